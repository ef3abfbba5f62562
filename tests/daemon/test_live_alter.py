"""``qalter -l walltime`` on a running job: which users may, with PBS's codes, and that it holds,
after a restart too."""

from __future__ import annotations

import re
from pathlib import Path

from qbatch.wire.errors import Refusal
from qbatch.wire.requests import Alter, Changes
from tests.daemon.core.driver import ALICE, EMULATED, ROOT, SECOND, Bench
from tests.daemon.harness import Daemon, emulated


def alter(bench: Bench, actor: object, job: str, **resources: str) -> Refusal | None:
    said = bench.do(actor, Alter(jobs=(job,), changes=Changes(resources=resources)))  # type: ignore[arg-type]
    return said.outcomes[0].error  # type: ignore[attr-defined]


def test_owners_lower_it_managers_change_it_and_the_rest_stays() -> None:
    bench = Bench(EMULATED)
    job = bench.submit("sleep 1000\n", actor=ALICE, resources={"walltime": "500", "ncpus": "1"})
    bench.wait(10)
    refused = alter(bench, ALICE, job, walltime="501")
    assert refused is not None
    assert (refused.code, refused.pbs) == ("not-permitted", 15007)
    for resources in ({"ncpus": "2"}, {"walltime": "100", "mem": "1gb"}):
        refused = alter(bench, ROOT, job, **resources)
        assert refused is not None
        assert (refused.code, refused.pbs, refused.pbs % 256) == ("modify-running", 15015, 167)
    assert alter(bench, ALICE, job, walltime="300") is None
    assert alter(bench, ROOT, job, walltime="600") is None
    assert alter(bench, ALICE, job, walltime="400") is None
    other = bench.replayed(bench.journal)
    dues = [core.find(core.key_of(job)).under_way.due for core in (other, bench.core)]
    assert dues == [400 * SECOND] * 2
    bench.wait(1000)
    record = bench.ended[job]
    assert (record.ended, record.exit_status) == (400 * SECOND, -29)
    assert record.resources["walltime"] == "00:06:40"


def test_a_real_job_is_held_to_its_new_walltime(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=emulated("n1").replace('"emulated"', '"process"')) as daemon:
        job = daemon.submit("#!/bin/sh\nsleep 300\n", resources={"walltime": "200"})
        daemon.until(job, "R")
        daemon.kill()
        daemon.start()
        assert (
            "Cannot modify attribute while job running"
            in daemon.run("qalter", "-l", "ncpus=2", job, code=167).stderr
        )
        daemon.run("qalter", "-l", "walltime=2", job)
        assert "Resource_List.walltime = 00:00:02" in daemon.run("qstat", "-xf", job).stdout
        assert daemon.until(job, "F").exit_status == -29
        assert re.search(
            r"^=>> PBS: job killed: walltime \d+ exceeded limit 2$",
            daemon.run("qbatch", "output", "-e", job).stdout,
            re.MULTILINE,
        )
