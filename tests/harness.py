"""Builders for tests: workloads from the oracle's jobs, runs of both drivers, real logs where they
are."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from qbatch.cli.main import run as run_command
from qbatch.model.machine import Machine, one_host
from qbatch.model.record import KINDS, Int64Array, Schedule, Workload
from qbatch.policies import load_policy
from qbatch.policies.registry import POLICIES
from qbatch.simulation import Options, prepare, run
from qbatch.workloads import read_log
from tests.oracle.naive import Job, Outcome

TRACES = Path(__file__).resolve().parents[2] / "shared" / "traces"
OWN_TRACES = Path(__file__).resolve().parents[1] / "traces"


NIGHTLY = bool(os.environ.get("QBATCH_NIGHTLY"))
"""Whether there are hours (``make nightly``)."""


QUICK = bool(os.environ.get("QBATCH_QUICK"))
"""Whether a developer waits (``make check``): fewer random cases for each policy."""


def size(default: int, nightly: int) -> int:
    """Return how many: the default, or the nightly count where QBATCH_NIGHTLY is set."""
    return nightly if NIGHTLY else default


def draws(count: int, policy: str) -> int:
    """Return how many random cases a policy is held to: all, but half where it is one of ours, a
    few with other parameters."""
    name, _, parameters = policy.partition(":")
    if NIGHTLY or name not in POLICIES:
        return count
    if QUICK:
        return max(1, count // 6)
    return max(1, count // 5) if parameters else (count + 1) // 2


def workload_of(jobs: Sequence[Job], procs: int, memory: Sequence[int] | None = None) -> Workload:
    """Return the workload of the oracle's jobs."""

    def column(name: str) -> np.ndarray:
        return np.array([getattr(job, name) for job in jobs], np.int64)

    count = len(jobs)
    absent = np.broadcast_to(np.int64(-1), count)
    return Workload(
        name="test",
        procs_total=procs,
        number=np.arange(1, count + 1),
        submit=column("submit"),
        procs=column("procs"),
        estimate=column("estimate"),
        run=column("run"),
        logged_run=column("run"),
        memory=np.zeros(count, np.int64) if memory is None else np.array(memory, np.int64),
        user=absent,
        group=absent,
        queue=absent,
        counted=np.ones(count, np.bool_),
        log_row=np.arange(count),
    )


def run_named(
    work: Workload, policy: str, *, driver: str = "auto", machine: Machine | None = None
) -> Schedule:
    """Run a policy by name, audited."""
    return run(
        work,
        machine or one_host(work.procs_total),
        load_policy(policy),
        driver=driver,
        is_audited=True,
    )


def assert_same(schedule: Schedule, outcomes: Sequence[Outcome], context: str = "") -> None:
    """Hold a schedule to the oracle, job for job, in start, end, kind and promises."""
    assert schedule.start.tolist() == [outcome.start for outcome in outcomes], context
    assert schedule.end.tolist() == [outcome.end for outcome in outcomes], context
    assert [KINDS[kind] for kind in schedule.kind] == [outcome.kind for outcome in outcomes], (
        context
    )
    promises = [-1 if outcome.promise is None else outcome.promise for outcome in outcomes]
    first = [-1 if outcome.first_promise is None else outcome.first_promise for outcome in outcomes]
    assert schedule.promise.tolist() == promises, context
    assert schedule.first_promise.tolist() == first, context


def total_wait(schedule: Schedule) -> Int64Array:
    """Return how long each job that ran did not advance, in one go or in pieces: response less run
    time."""
    return schedule.end - schedule.workload.submit - schedule.workload.run


def same_schedule(one: Schedule, other: Schedule) -> bool:
    """Return whether two schedules are equal to the microsecond, in kinds, promises and refusals
    too."""
    names = ("start", "end", "kind", "promise", "first_promise")
    return (one.queue_max, one.rejected) == (other.queue_max, other.rejected) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in names
    )


def real_log(name: str, procs: int, first: int | None = None, **options: object) -> Workload:
    """Return a prefix of a real log, or skip the test where the log is not there."""
    path = TRACES / f"{name}.swf.gz"
    if not path.exists():
        pytest.skip(f"{path} is not on this machine; real logs are not part of the project")
    return prepare(read_log(str(path)), one_host(procs), Options(first=first, **options))


def command(
    *words: str,
    code: int | None = 0,
    cwd: Path | None = None,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``qbatch`` in this process, where a process of its own would prove no more; it must end
    with ``code``."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
    )
    with (
        contextlib.chdir(cwd or OWN_TRACES.parent),
        mock.patch.object(sys, "argv", ["qbatch", *words]),
        mock.patch.dict(os.environ, environment or {}, clear=environment is not None),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        ended = run_command(list(words))
    said = [each.buffer.getvalue().decode() for each in (out, err)]  # type: ignore[attr-defined]
    assert code in (ended, None), said
    return subprocess.CompletedProcess(["qbatch", *words], ended, *said)


def same_places(one: Schedule, other: Schedule) -> bool:
    """Return whether two schedules are equal, also in the hosts of jobs, where both have them."""
    has_hosts = one.host is not None and other.host is not None
    return same_schedule(one, other) and (not has_hosts or np.array_equal(one.host, other.host))
