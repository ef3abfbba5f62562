"""Time slices on real processes: what is on disk stands still and goes on in the slice of its
class, also after a kill -9."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest

from qbatch.client import Result
from qbatch.wire.records import Explanation, Forecasts, JobRecord, ServerRecord
from qbatch.wire.requests import Explain, Forecast, Request, ServerStatus
from tests.daemon.harness import Daemon

CONFIG = """
executor = "process"
default_queue = "short"
[[pool]]
name = "batch"
hosts = ["n1", "n2"]
cpus = 2
spans = true
policy = "scojo:cycle=7,switch=1,short=2,class_by=queue,smart=no"
[[queue]]
name = "short"
default_walltime = "10:00"
[[queue]]
name = "medium"
default_walltime = "10:00"
[[queue]]
name = "long"
default_walltime = "10:00"
"""
"""Slices of 2, 1 and 4 seconds, switches of one."""

SLICES = {"short": 2.0, "medium": 1.0, "long": 4.0}
TICKS = "for n in $(seq 60); do echo $(date +%s.%N) >> {file}; sleep 0.1; done\n"


def ask(daemon: Daemon, request: Request, kind: type[Result]) -> Result:
    with daemon.session() as session:
        return session.ask(request, kind)


def submit(daemon: Daemon, folder: Path, queue: str) -> str:
    return daemon.submit(
        TICKS.format(file=folder / queue), resources={"ncpus": "3"}, queue=queue, name=queue
    )


def ticks(folder: Path, queue: str) -> list[float]:
    """Return when a script has ticked."""
    path = folder / queue
    return [float(word) for word in path.read_text().split()] if path.exists() else []


def phase(daemon: Daemon) -> str:
    (found,) = ask(daemon, ServerStatus(), ServerRecord).phases
    return found.name


def suspended(daemon: Daemon, jobs: Iterable[str]) -> set[str]:
    """Return those of some jobs that are suspended."""
    return {name for name, record in daemon.jobs(*jobs).items() if record.state == "S"}


def until_phase(daemon: Daemon, name: str, jobs: Iterable[str], seconds: float = 120.0) -> bool:
    """Wait for a phase; return whether it came before one of the jobs had ended, after which it may
    not come again."""
    limit = time.monotonic() + seconds
    while phase(daemon) != name:
        assert time.monotonic() < limit, f"no {name} for {seconds} s"
        if any(record.state == "F" for record in daemon.jobs(*jobs).values()):
            return False
        time.sleep(0.02)
    return True


def runs_of(times: list[float], gap: float = 0.8) -> list[list[float]]:
    """Return the ticks in the runs between which a script stood still."""
    runs: list[list[float]] = []
    for tick in times:
        if runs and tick - runs[-1][-1] < gap:
            runs[-1].append(tick)
        else:
            runs.append([tick])
    return runs


def test_scripts_stop_and_go_on_at_the_edges_of_the_slices(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=CONFIG) as daemon:
        names = {queue: submit(daemon, tmp_path, queue) for queue in ("long", "medium", "short")}
        daemon.until(names["long"], "S", 30)
        said = ask(daemon, Explain(names["long"]), Explanation)
        assert "is suspended to disk; long jobs have the machine again" in said.text
        waits = ask(daemon, Forecast(), Forecasts).jobs
        assert all(each.start is not None for each in waits), "forecasts know the slices"
        # Jobs may be suspended while one asks: how many are is compared where that did not happen.
        while True:
            before = suspended(daemon, names.values())
            (shown,) = ask(daemon, ServerStatus(), ServerRecord).phases
            if before and before == suspended(daemon, names.values()):
                break
        assert shown.on_disk == len(before)
        assert shown.procs_on_disk == 3 * len(before)
        for name in names.values():
            assert daemon.until(name, "F", 90).exit_status == 0
        seen = {queue: ticks(tmp_path, queue) for queue in names}
        for queue, times in seen.items():
            assert len(times) == 60, queue
            last_of_others = max(seen[other][-1] for other in seen if other != queue)
            for run in runs_of(times):
                if run[-1] < last_of_others:  # a class that is alone goes on
                    assert run[-1] - run[0] < SLICES[queue] + 1.0, f"{queue} ran beyond its slice"
        assert len(runs_of(seen["medium"])) > 2
        spans = sorted(
            (run[0], run[-1], queue) for queue, times in seen.items() for run in runs_of(times)
        )
        for (_, end, one), (begin, _, other) in pairwise(spans):
            assert end < begin, f"{one} and {other} ran at once"


@pytest.mark.parametrize("where", ["slice of long jobs", "slice of medium jobs", "switch"])
def test_a_kill_in_any_phase_loses_no_job_and_leaves_no_job_stopped(
    tmp_path: Path, where: str
) -> None:
    draw = random.Random(where)
    daemon = Daemon(tmp_path, config=CONFIG).start()
    try:
        names = {queue: submit(daemon, tmp_path, queue) for queue in ("long", "medium", "short")}
        kills = 0
        for _ in range(3):
            if not until_phase(daemon, where, names.values()):
                break
            kills += 1
            time.sleep(draw.uniform(0.0, 0.5))
            daemon.kill()
            time.sleep(draw.uniform(0.0, 1.5))
            daemon.start()
        assert kills > 0
        for queue, name in names.items():
            found: JobRecord = daemon.until(name, "F", 120)
            assert (found.exit_status, found.run_count) == (0, 1), queue
            assert len(ticks(tmp_path, queue)) == 60, queue
    finally:
        daemon.kill(15)
