"""A forecast is what then happens, where estimates are exact and nothing else is submitted."""

from __future__ import annotations

import random

import pytest

from qbatch.daemon.forecast import forecast
from qbatch.engine import snapshot
from qbatch.wire import requests
from tests.daemon.core.driver import EMULATED, ROOT, SECOND, Bench

POLICIES = ("fcfs", "easy", "easy:order=sjf", "easy:order=lxf", "hybrid:depth=3", "conservative")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["spans = true", "single_host = true", ""])
def test_what_is_forecast_happens(policy: str, kind: str) -> None:
    for seed in range(8):
        draw = random.Random(seed)
        bench = Bench(EMULATED.replace("[[pool]]", f'[[pool]]\npolicy = "{policy}"\n{kind}'))
        for _ in range(40):
            seconds = draw.randrange(1, 200)
            bench.submit(
                resources={"ncpus": str(draw.randrange(1, 5)), "walltime": str(seconds)}, runtime=seconds * SECOND
            )
            bench.wait(draw.choice([0, 0, 1, 5]))
        if seed % 2:
            bench.do(ROOT, requests.HostControl(hosts=("n2",), action="drain"))
            bench.wait(1)
        bench.wait(1)
        pool = bench.core.pools[0]
        keys = {job.row: job.key for job in pool.by_row if job is not None and job.letter == "Q"}
        assert keys
        copy = snapshot.load(pool.machine, pool.policy, snapshot.dump(pool.engine))
        found = {
            bench.core.id_of(keys[row]): (start, end) for row, start, end in forecast(copy, pool.policy, bench.now)
        }
        assert len(found) == len(keys)
        bench.wait(100_000)
        assert found == {job: (bench.ended[job].started, bench.ended[job].ended) for job in found}
