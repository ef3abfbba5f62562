"""The four deadline schemes: replays of the logs of their paper, and a live daemon with 1,000
promised jobs."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from qbatch.client import ClientSession
from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS
from qbatch.papers.qops import DUPLICATION, QopsCase, log_of, source_of
from qbatch.policies import load_policy
from qbatch.simulation import prepare, run
from qbatch.simulation.drivers import responses_of
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes, SubmissionRecord
from qbatch.wire.requests import Delete, Spec, Submit
from qbatch.workloads.transform import with_deadlines
from tests.bench.live import percentile, resident_megabytes
from tests.daemon.harness import Daemon

Row = Callable[[str, str], None]
SHARE, STRINGENCY = 0.8, 0.2
LOGS = (
    ("CTC-SP2-1996-3.1-cln", 1.4, (0.12, 0.44, 0.96)),
    ("SDSC-SP2-1998-4.2-cln", 1.6, (4, 160, 24)),
)
"""A log, its load, and the targets of QoPS, MSB and MRT in seconds: four times what a C++ prototype
took."""
SCHEMES = ("qops", "msb", "mrt", "slack")
PROCS, PROMISED, ASKED, QUOTED, FLOOD = 430, 1000, 300, 30, 10_000
PAUSE_S = 0.05
"""Between two requests, so that the pass that follows the deletion of a job is not in the time of
the next."""
ADMISSION_TARGET_MS, QUOTE_TARGET_MS = 50, 200
CONFIG = """
executor = "emulated"
policy = "{policy}"
[[pool]]
hosts = "n1"
cpus = 430
spans = true
[[queue]]
name = "batch"
"""
_LONG = 10**12


def figures(row: Row, traces: Path, *, is_short: bool) -> None:
    """Measure and report the best of three replays, percentiles at the socket of a daemon."""
    for name, load, targets in LOGS:
        path = traces / f"{name}.swf.gz"
        if path.exists():
            replays(row, path, load, targets, times=1 if is_short else 3)
    for scheme in SCHEMES:
        admission(row, scheme, promised=100 if is_short else PROMISED)
    flood(row, promised=100 if is_short else PROMISED, refused=FLOOD // 10 if is_short else FLOOD)
    row(
        "load average at the end: others that use the machine make the greatest times greater",
        f"{os.getloadavg()[1]:.1f}",
    )


def replays(row: Row, path: Path, load: float, targets: tuple[float, ...], *, times: int) -> None:
    """Time the simulation proper of 5,000 jobs, duplicated to a load, most of them with
    deadlines."""
    trace = source_of(str(path)).trace
    log, machine = log_of(QopsCase(trace, DUPLICATION, 0, load)), one_host(trace.procs)
    responses = responses_of(log, run(prepare(log, machine), machine, load_policy("easy")))
    asked = with_deadlines(log, responses, stringency=STRINGENCY, share=SHARE, seed=1).deadline
    work = prepare(log, machine, deadlines=np.where(asked >= 0, asked * MICROSECONDS, -1))
    for place, scheme in enumerate(SCHEMES):
        policy, found = load_policy(scheme), []
        queue = run(work, machine, policy).queue_max
        for _ in range(times):
            begun = time.perf_counter()
            run(work, machine, policy)
            found.append(time.perf_counter() - begun)
        figure = (
            _against(min(found), "s", targets[place])
            if place < len(targets)
            else f"{min(found):.2f} s"
        )
        row(
            f"{scheme}: {trace.name}, 5,000 jobs duplicated to load {load}, {len(work):,} in all",
            f"{figure}; {queue} waited",
        )


def _against(measured: float, unit: str, target: float) -> str:
    verdict = "" if measured < target else ", MISSED"
    return f"{measured:.2f} {unit} (target {target:g} {unit}{verdict})"


# ------------------------------------------------------------------------------------------------
# live


class Client:
    """Asks one daemon for jobs, drawn in the same order every time."""

    def __init__(self, session: ClientSession, *, has_deadlines: bool) -> None:
        self.session = session
        self.has_deadlines = has_deadlines
        self.draw = random.Random(1)

    def job(self) -> Submit:
        """Return a job of a common size and walltime, which few deadlines are too early for."""
        walltime = self.draw.choice((60, 600, 3600, 18_000))
        deadline = walltime + self.draw.randrange(3600, 2_000_000)
        return _submission(
            self.draw.choice((1, 2, 4, 8, 16, 64)), walltime, deadline if self.has_deadlines else 0
        )

    def admissions(self, count: int) -> list[float]:
        """Submit so many, one after another, each deleted after its answer; return ascending
        milliseconds."""
        found = []
        for _ in range(count):
            asked = self.job()
            time.sleep(PAUSE_S)
            begun = time.perf_counter()
            try:
                job = self.session.ask(asked, SubmissionRecord).job
            except Refusal:
                job = ""
            found.append((time.perf_counter() - begun) * 1e3)
            if job:
                self.session.ask(Delete(jobs=(job,)), Outcomes)
        return sorted(found)

    def quotes(self, count: int) -> list[float]:
        """Ask for so many quotes; return ascending milliseconds."""
        found = []
        for _ in range(count):
            asked = self.job()
            begun = time.perf_counter()
            self.session.ask(Submit(spec=asked.spec, is_dry_run=True), SubmissionRecord)
            found.append((time.perf_counter() - begun) * 1e3)
        return sorted(found)


def _submission(procs: int, walltime: int, deadline: int) -> Submit:
    resources = {"ncpus": str(procs), "walltime": str(walltime)}
    if deadline:
        resources["deadline"] = f"+{deadline}"
    return Submit(spec=Spec(script="true\n", directory="/tmp", resources=resources, runtime=_LONG))


@contextmanager
def _promising(scheme: str, promised: int) -> Iterator[tuple[Client, int]]:
    """Yield a client of a daemon and its process; the machine is busy for an hour and the plan has
    ``promised`` jobs."""
    with (
        tempfile.TemporaryDirectory() as directory,
        Daemon(Path(directory), config=CONFIG.format(policy=scheme)) as daemon,
        daemon.session() as session,
    ):
        client = Client(session, has_deadlines=scheme != "slack")
        session.ask(_submission(PROCS, 3600, 0), SubmissionRecord)
        daemon.warm()
        waiting = 0
        while waiting < promised:
            asked = client.job()
            try:
                session.ask(asked, SubmissionRecord)
                waiting += 1
            except Refusal:
                continue
        assert daemon.process is not None
        yield client, daemon.process.pid


def admission(row: Row, scheme: str, *, promised: int) -> None:
    """Time admissions and quotes of one scheme at the socket."""
    with _promising(scheme, promised) as (client, _):
        label = f"{scheme}: {promised:,} promised jobs wait"
        found = client.admissions(ASKED)
        high = _against(percentile(found, 0.99), "ms", ADMISSION_TARGET_MS)
        row(
            f"{label}, an admission at the socket",
            f"p50 {percentile(found, 0.5):.1f} ms, p99 {high}",
        )
        found = client.quotes(QUOTED)
        row(
            f"{label}, a quote",
            (
                f"p50 {percentile(found, 0.5):.1f} ms, greatest "
                f"{_against(found[-1], 'ms', QUOTE_TARGET_MS)}"
            ),
        )


def flood(row: Row, *, promised: int, refused: int) -> None:
    """Refuse many jobs, half before the policy is asked and half by it; measure the effect on other
    clients and on the memory."""
    with _promising("qops", promised) as (client, pid):
        client.admissions(ASKED)
        before, memory = client.admissions(ASKED), resident_megabytes(pid)
        # The first is shorter than its walltime; the second, while the whole machine is busy for an
        # hour.
        impossible = (_submission(8, 600, 60), _submission(8, 600, 900))
        begun, count = time.perf_counter(), 0
        for turn in range(refused):
            try:
                client.session.ask(impossible[turn % 2], SubmissionRecord)
            except Refusal:
                count += 1
        seconds, grown = time.perf_counter() - begun, resident_megabytes(pid) - memory
        assert count == refused, "each of them is impossible"
        after = client.admissions(ASKED)
        row(
            f"qops: {refused:,} impossible deadlines with {promised:,} promised jobs",
            f"{seconds:.1f} s; memory {memory:.0f} MB {grown:+.1f} MB",
        )
        felt = (
            f"p{100 * at:.0f} {percentile(before, at):.1f} and {percentile(after, at):.1f} ms"
            for at in (0.5, 0.99)
        )
        row("qops: an admission of another, before and after them", ", ".join(felt))
