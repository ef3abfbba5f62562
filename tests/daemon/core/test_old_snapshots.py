"""Snapshots of older versions: they go on as they would have gone on then.

Each file in ``images`` is one: of version 1, written before a job's progress was one record, made by the scenario of its name; of
version 2 (``-2``), written before the facts of a state were kept together.  The JSON beside it says what the version that wrote
it did afterwards (:func:`what_follows`), and version 2 also what it told of each job.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from qbatch.daemon.core import state_snapshot
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.records import full_record
from qbatch.daemon.executors.attempt import Ended
from qbatch.policies.registry import load_policy
from qbatch.wire import requests
from tests.daemon.core.driver import EMULATED, ROOT, Bench
from tests.daemon.core.test_resized import malleable

IMAGES = Path(__file__).parent / "images"
NAMES = ("emulated", "resized", "process", "older", "emulated-2", "resized-2", "process-2")


def bench_of(name: str) -> Bench:
    """Return an empty bench with the settings of a scenario."""
    name = name.removesuffix("-2")
    if name in ("resized", "older"):
        return malleable()
    return Bench(EMULATED if name == "emulated" else EMULATED.replace('"emulated"', '"process"'))


def scenario(name: str) -> Bench:
    """Return what a file is a snapshot of."""
    bench = bench_of(name)
    if name == "older":
        bench.submit("sleep 100\n", resources={"ncpus": "4", "walltime": "150"})
        bench.wait(30)
        return bench
    first = bench.submit("sleep 100\n", resources={"ncpus": "4", "walltime": "150"})
    bench.submit("sleep 60\n", resources={"ncpus": "3", "walltime": "70"})
    bench.submit("sleep 45\n", resources={"ncpus": "1", "walltime": "50"}, array="0-3")
    bench.wait(10)
    bench.do(ROOT, requests.Signal(jobs=(first,), signal="suspend"))
    bench.wait(7)
    bench.submit("sleep 45\n", resources={"ncpus": "4", "walltime": "50"})
    bench.wait(3)
    return bench


def what_follows(name: str, bench: Bench) -> list[list[object]]:
    """Drive a bench on and return what became of each job."""
    if name == "older":
        bench.submit("sleep 300\n", resources={"ncpus": "4", "walltime": "500"})
        bench.wait(400)
    else:
        bench.wait(5)
        bench.do(ROOT, requests.Signal(jobs=("1",), signal="resume"))
        for _ in range(60):
            bench.wait(20)
            running = [job for pool in bench.core.pools for job in pool.running.values()]
            if name.startswith("process") and running:
                bench.core.now = bench.now
                bench.report(Ended(min(job.file_key for job in running), 0, bench.now, used={"cput": 1.0}))
    rows = [
        [key, record.started, record.ended, record.exit_status, record.used, record.pauses, record.sizes]
        for key, record in sorted(bench.ended.items())
    ]
    found: list[list[object]] = json.loads(json.dumps(rows))
    return found


def loaded(name: str) -> Bench:
    """Return a bench with the state that a file holds."""
    bench = bench_of(name)
    data = (IMAGES / f"{name}.image").read_bytes()
    bench.core = state_snapshot.load(data, bench.settings, load_policy)
    bench.now = bench.core.now
    return bench


@pytest.mark.parametrize("name", NAMES)
def test_an_old_snapshot_goes_on_as_it_would_have_gone_on(name: str) -> None:
    expected = json.loads((IMAGES / f"{name}.json").read_text())
    bench = loaded(name)
    bench.check()
    if name.endswith("-2"):
        assert told(bench) == expected["records"]
        expected = expected["follows"]
    assert len(expected) >= 2
    assert what_follows(name, bench) == expected
    bench.check()


@pytest.mark.parametrize("name", NAMES)
def test_it_is_written_again_in_the_present_version(name: str) -> None:
    bench = loaded(name)
    data = state_snapshot.dump(bench.core)
    assert state_snapshot.dump(state_snapshot.load(data, bench.settings, load_policy)) == data


def told(bench: Bench) -> object:
    """Return the whole record of each job that a snapshot holds, those of its arrays too."""
    ones: list[BatchJob] = []
    for job in bench.core.live_jobs():
        ones += [job, *(bench.core.arrays[job.sequence].members.values() if job.is_array else ())]
    return json.loads(json.dumps([msgspec.to_builtins(full_record(bench.core, one)) for one in ones]))


def facts(job: BatchJob) -> tuple[object, ...]:
    return job.state, job.attempt, job.earlier, job.final, job.attempts


@pytest.mark.parametrize("name", ["emulated", "resized"])
def test_it_is_what_the_same_commands_give_today(name: str) -> None:
    expected, found = scenario(name), loaded(name)
    assert len(expected.core.jobs) == len(found.core.jobs) == 4
    for sequence, job in expected.core.jobs.items():
        for one, other in zip(expected.core.members(job), found.core.members(found.core.jobs[sequence]), strict=True):
            assert facts(one) == facts(other)
