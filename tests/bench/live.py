"""The speed of the live daemon: submissions, acknowledgements, long queues, restarts, short
commands."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from qbatch.client import ClientSession
from qbatch.wire.records import (
    ClockRecord,
    JobRecord,
    Jobs,
    Outcomes,
    Shadows,
    SubmissionRecord,
    Text,
)
from qbatch.wire.requests import Delete, JobStatus, Metrics, Shadow, Spec, Submit, Time
from tests.bench import beside
from tests.bench.flood import flood, submission
from tests.daemon.harness import Daemon

CONFIG = 'executor = "emulated"\npolicy = "{policy}"\n[[pool]]\nhosts = "n[01-64]"\ncpus = 16\n'
Row = Callable[[str, str], None]
_LONG = 10**12


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process so far."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(pid: int) -> float:
    """Return the resident memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def percentile(values: list[float], share: float) -> float:
    """Return a percentile of ascending values."""
    return values[min(int(len(values) * share), len(values) - 1)]


def timed(action: Callable[[], object], times: int) -> list[float]:
    """Return ascending milliseconds."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        action()
        found.append((time.perf_counter() - begun) * 1e3)
    return sorted(found)


def empty_server(row: Row) -> None:
    """Figures of a server with a short queue."""
    with (
        tempfile.TemporaryDirectory() as directory,
        Daemon(Path(directory), config=CONFIG.format(policy="easy")) as daemon,
    ):
        assert daemon.process is not None
        pid = daemon.process.pid
        with daemon.session() as session:
            session.ask(submission(1), SubmissionRecord)
            daemon.warm()
            waits = timed(lambda: session.ask(submission(2), SubmissionRecord), 3000)
            row(
                "one synchronous client",
                (
                    f"{3000 / sum(waits) * 1e3:,.0f} submissions/s, p99 "
                    f"{percentile(waits, 0.99):.1f} "
                    "ms"
                ),
            )
        for depth in (1, 16):
            before = cpu_seconds(pid)
            seconds, times = flood(daemon.socket, 32_000, 64, depth)
            spent = (cpu_seconds(pid) - before) / 32_000 * 1e6
            row(
                f"64 clients, {depth} submissions under way each",
                f"{32_000 / seconds:,.0f}/s, {spent:.0f} us of server CPU each, p50 "
                f"{percentile(times, 0.5) * 1e3:.1f} ms, "
                f"p99 {percentile(times, 0.99) * 1e3:.1f} ms",
            )
        with daemon.session() as session:
            begun = time.perf_counter()
            session.ask(
                Submit(
                    spec=Spec(script="true\n", directory="/tmp", array="1-100000", runtime=_LONG)
                ),
                SubmissionRecord,
            )
            row("an array of 100,000 tasks, acknowledged", f"{time.perf_counter() - begun:.2f} s")


def starts(row: Row, *, rounds: int = 30) -> None:
    """What a start of a short command consists of, before it asks anything: in turns, wall and
    processor time."""
    commands = {
        "the start of Python without site-packages (python -I -S -c pass)": [
            sys.executable,
            "-I",
            "-S",
            "-c",
            "pass",
        ],
        "the start of Python (python -c pass)": [sys.executable, "-c", "pass"],
        "with msgspec and all that it imports (python -c 'import msgspec')": [
            sys.executable,
            "-c",
            "import msgspec",
        ],
        "with all that qsub imports (qsub --version)": [
            str(Path(sys.executable).with_name("qsub")),
            "--version",
        ],
    }
    found: dict[str, list[tuple[float, float]]] = {label: [] for label in commands}
    for _ in range(rounds):
        for label, command in commands.items():
            begun = time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, process.returncode, usage = os.wait4(process.pid, 0)
            found[label].append(
                ((time.perf_counter() - begun) * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3)
            )
    for label, each in found.items():
        wall, spent = (sorted(column) for column in zip(*each, strict=True))
        row(
            label,
            (
                f"{wall[0]:.0f} ms best, {statistics.median(wall):.0f} ms median; CPU "
                f"{statistics.median(spent):.1f} ms"
            ),
        )


def short_commands(row: Row) -> None:
    """Wall time of whole commands, the start of Python included."""
    with (
        tempfile.TemporaryDirectory() as directory,
        Daemon(Path(directory), config=CONFIG.format(policy="easy")) as daemon,
    ):
        flood(daemon.socket, 1000, 1, 64)
        for command in (
            ["qstat"],
            ["qstat", "-f"],
            ["qstat", "-f", "-F", "json"],
            ["qstat", "7"],
            ["qsub", "-N", "x", "--", "true"],
        ):
            found = timed(
                lambda command=command: subprocess.run(
                    command, env=daemon.environment, capture_output=True, check=True
                ),
                15,
            )  # type: ignore[misc]
            row(
                f"{' '.join(command)} with 1,000 jobs",
                f"{found[0]:.0f} ms best, {statistics.median(found):.0f} ms median",
            )
        daemon.kill()
        begun = time.perf_counter()
        daemon.start()
        row(
            "restart after kill -9, 1,000 jobs",
            f"{time.perf_counter() - begun:.2f} s to the first answer",
        )


def long_queue(row: Row, policy: str, jobs: int = 1_000_000) -> None:
    """Figures with a million queued jobs."""
    with (
        tempfile.TemporaryDirectory() as directory,
        Daemon(Path(directory), config=CONFIG.format(policy=policy)) as daemon,
    ):
        seconds, times = flood(daemon.socket, jobs, 16, 64)
        row(
            f"{policy}: {jobs:,} submissions",
            f"{seconds:.0f} s, p99 {percentile(times, 0.99) * 1e3:.0f} ms",
        )
        assert daemon.process is not None
        pid = daemon.process.pid
        with daemon.session() as session:
            numbers = iter(range(jobs // 2, jobs))
            for name, action, kind in (
                (
                    "qstat JOB",
                    lambda: session.ask(JobStatus(jobs=(str(next(numbers)),)), Jobs),
                    "socket",
                ),
                (
                    "qdel JOB",
                    lambda: session.ask(Delete(jobs=(str(next(numbers)),)), Outcomes),
                    "socket",
                ),
                ("submission", lambda: session.ask(submission(3), SubmissionRecord), "socket"),
            ):
                found = timed(action, 300)
                row(
                    f"{policy}, {jobs:,} queued: {name} at the {kind}",
                    f"p50 {percentile(found, 0.5):.1f} ms, p99 {percentile(found, 0.99):.1f} ms",
                )
            before = _passes(session.ask(Metrics(), Text).text)
            running: list[JobRecord] = list(
                session.ask(JobStatus(states="R", is_brief=True, limit=40), Jobs).jobs
            )
            for job in running:
                session.ask(Delete(jobs=(job.id,)), Outcomes)
                time.sleep(0.3)
            after = _passes(session.ask(Metrics(), Text).text)
            count = max(after[0] - before[0], 1)
            row(
                f"{policy}, {jobs:,} queued: a pass after a completion",
                f"{(after[1] - before[1]) / count * 1e3:.1f} ms on average",
            )
        row(f"{policy}, {jobs:,} queued: memory", f"{resident_megabytes(pid):,.0f} MB")
        time.sleep(15)
        daemon.kill()
        begun = time.perf_counter()
        daemon.start()
        assert daemon.process is not None
        row(
            f"{policy}, {jobs:,} queued: restart after kill -9",
            (
                f"{time.perf_counter() - begun:.1f} s, "
                f"{resident_megabytes(daemon.process.pid):,.0f} "
                "MB"
            ),
        )


def beside_shadows(row: Row, *, rounds: int = 10, jobs: int = 1500, rate: float = 300.0) -> None:
    """What two what-if policies cost: submissions with and without them, in turns, in one run of
    one daemon.

    One client submits ``rate`` jobs a second, each after the answer to the one before.  The order
    of the two changes from round to round, so that a growing queue and a busy machine affect both
    equally.
    """
    settings = CONFIG.format(policy="easy")
    with (
        tempfile.TemporaryDirectory() as directory,
        Daemon(Path(directory), config=settings) as daemon,
    ):
        found: dict[tuple[str, ...], list[list[float]]] = {(): [], ("fcfs", "conservative"): []}
        with daemon.session() as session:
            session.ask(submission(1), SubmissionRecord)
            daemon.warm()
            for number in range(rounds):
                for policies in sorted(found, reverse=bool(number % 2)):
                    session.ask(Shadow(action="set", policies=policies), Shadows)
                    time.sleep(2)
                    found[policies].append(_paced(session, jobs, rate))
            lag = session.ask(Shadow(), Shadows).note
        without, beside = (
            sorted(wait for each in waits for wait in each) for waits in found.values()
        )
        ratios = sorted(
            percentile(one, 0.99) / percentile(other, 0.99)
            for other, one in zip(*found.values(), strict=True)
        )
        for share in (0.5, 0.99):
            was, now = percentile(without, share), percentile(beside, share)
            row(
                (
                    f"a submission with two what-if policies, p{share * 100:.0f} of "
                    f"{len(beside):,} "
                    f"against {len(without):,} without"
                ),
                f"{now:.2f} ms against {was:.2f} ms: {(now / was - 1) * 100:+.1f} %",
            )
        row(
            "the same p99, round by round",
            (
                f"ratio {ratios[0]:.2f} to {ratios[-1]:.2f}, median "
                f"{statistics.median(ratios):.3f}{lag and '; '}{lag}"
            ),
        )


def virtual_time(row: Row, *, jobs: int = 2000) -> None:
    """How long a daemon in virtual time takes for the jobs of a log, once compiled kernels
    serve."""
    log = Path(__file__).resolve().parents[2] / "traces" / "demo-128.swf"
    for policy in ("easy", "fcfs"):
        arguments = (
            "--trace",
            str(log),
            "--first",
            str(jobs),
            "--policy",
            policy,
            "--time",
            "virtual",
            "--paused",
        )
        with (
            tempfile.TemporaryDirectory() as directory,
            Daemon(Path(directory), *arguments) as daemon,
        ):
            assert daemon.process is not None
            daemon.warm()
            with daemon.session() as session:
                before, begun = cpu_seconds(daemon.process.pid), time.perf_counter()
                session.ask(Time(action="play"), ClockRecord)
                while f"jobs_ended_total {jobs}" not in session.ask(Metrics(), Text).text:
                    time.sleep(0.01)
                seconds, spent = (
                    time.perf_counter() - begun,
                    cpu_seconds(daemon.process.pid) - before,
                )
        row(
            f"{policy}: {jobs:,} jobs of a log in virtual time",
            f"{seconds:.2f} s, {spent / jobs * 1e6:.0f} us of server CPU each",
        )


def _paced(session: ClientSession, jobs: int, rate: float) -> list[float]:
    """Submit so many jobs a second, one after the other; return ascending milliseconds."""
    found = []
    begun = time.perf_counter()
    for number in range(jobs):
        time.sleep(max(begun + number / rate - time.perf_counter(), 0.0))
        sent = time.perf_counter()
        session.ask(submission(number), SubmissionRecord)
        found.append((time.perf_counter() - sent) * 1e3)
    return sorted(found)


def _passes(text: str) -> tuple[float, float]:
    found = dict(line.split(" ") for line in text.splitlines() if line.startswith("qbatch_pass"))
    return float(found["qbatch_passes_total"]), float(found["qbatch_pass_seconds_total"])


def measure(row: Row, *, jobs: int = 1_000_000) -> None:
    """Measure everything; ``row`` takes a label and a figure."""
    empty_server(row)
    beside_shadows(row)
    beside.measure(row, jobs=min(jobs, 200_000), array=min(jobs, 200_000) // 2)
    virtual_time(row)
    starts(row)
    short_commands(row)
    long_queue(row, "easy", jobs)
    long_queue(row, "easy:order=lxf", jobs)
