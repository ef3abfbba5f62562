"""Print the speed figures with the machine's description, and keep them in
``tests/bench/RESULTS.md``."""

from __future__ import annotations

import argparse
import gc
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from qbatch.distribution import __version__
from qbatch.model.actions import Action, Start
from qbatch.model.machine import one_host
from qbatch.model.record import Workload
from qbatch.planning.view import View
from qbatch.policies import load_policy
from qbatch.simulation import prepare, run
from qbatch.simulation.drivers import run_around_python
from qbatch.workloads import Log, generate_log, read_log, write_log
from tests.bench import (
    agents,
    cluster,
    coverage,
    deadlines,
    live,
    monitor,
    network,
    origin2000,
    slices,
    sweeps,
)
from tests.bench.plain import plain_easy
from tests.bench.timing import best
from tests.daemon.harness import Daemon

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
LOGS = (
    ("KTH-SP2-1996-2.1-cln", 100),
    ("CTC-SP2-1996-3.1-cln", 338),
    ("SDSC-BLUE-2000-4.2-cln", 1152),
)
SECOND = 1_000_000


def machine_text() -> str:
    """Return what this machine is, in a line."""
    names = [
        line.split(":", 1)[1].strip() for line in _cpu_lines() if line.startswith("model name")
    ]
    return (
        f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}"
    )


def _cpu_lines() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def bursts(
    jobs: int, *, early: float, shapes: int = 20, procs: int = 8192, burst: int = 20_000
) -> Workload:
    """Return bursts of ``burst`` jobs that queue, of few shapes; a share ``early`` ends before its
    estimate.

    A burst arrives within ten minutes; the next one comes when the machine has had time to drain
    it.
    """
    draw = np.random.Generator(np.random.PCG64(1))
    sizes = 2 ** draw.integers(0, 12, shapes)
    times = draw.choice(
        [300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 64800, 86400], shapes
    )
    shape = draw.integers(0, shapes, jobs)
    size, estimate = sizes[shape].astype(np.int64), times[shape].astype(np.int64)
    share = np.where(draw.random(jobs) < early, draw.random(jobs), 1.0)
    length = np.maximum((estimate * share).astype(np.int64), 1)
    count = -(-jobs // burst)
    gap = float((size * length).sum()) / procs / count * 1.15
    submit = np.sort(((np.arange(jobs) // burst) * gap + draw.random(jobs) * 600).astype(np.int64))
    absent = np.broadcast_to(np.int64(-1), jobs)
    return Workload(
        name="bursts",
        procs_total=procs,
        number=np.arange(1, jobs + 1),
        submit=submit * SECOND,
        procs=size,
        estimate=estimate * SECOND,
        run=length * SECOND,
        logged_run=length * SECOND,
        memory=np.broadcast_to(np.int64(0), jobs),
        user=absent,
        group=absent,
        queue=absent,
        counted=np.ones(jobs, np.bool_),
        log_row=np.arange(jobs),
    )


class Report:
    """Collects lines and prints them as they come."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str = "") -> None:
        """Print and keep a line."""
        print(text, flush=True)
        self.lines.append(text)


def simulation(
    report: Report, name: str, work: Workload, *, times: int = 5, policies: tuple[str, ...] = ()
) -> None:
    """Time the simulation proper under each policy."""
    for policy in policies or ("fcfs", "easy", "conservative"):
        machine, chosen = one_host(work.procs_total), load_policy(policy)
        queue = run(work, machine, chosen).queue_max
        seconds = best(lambda m=machine, c=chosen: run(work, m, c), times)  # type: ignore[misc]
        report.say(
            f"| {name} | {policy} | {seconds:.4f} | {len(work) / seconds:,.0f} | {queue:,} |"
        )


def whole_command(report: Report, arguments: list[str], label: str) -> None:
    """Time a whole command, warm, as a process of its own, with its peak memory above that of the
    imports."""
    command = [sys.executable, "-m", "qbatch", *arguments]
    subprocess.run(command, check=True, capture_output=True)
    seconds = best(lambda: subprocess.run(command, check=True, capture_output=True), 5)
    report.say(f"| {label} | {seconds:.2f} s |")


def peak_bytes(code: str) -> int:
    """Return the peak resident memory of a Python program, in bytes."""
    done = subprocess.run(
        # VmHWM starts at zero with the program; ru_maxrss would be that of the process that forked
        # it.
        [
            sys.executable,
            "-c",
            code
            + (
                "\nprint([x for x in open('/proc/self/status') if "
                "x.startswith('VmHWM')][0].split()[1])"
            ),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout.split()[-1]) * 1024


def memory(report: Report, path: str, jobs: int) -> None:
    """Print the peak memory of a million-job replay above that of its imports."""
    code = (
        "from qbatch.cli.main import run\n"
        "import contextlib, io\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n    run({arguments!r})"
    )
    small = peak_bytes(
        code.format(arguments=["replay", path, "-p", "easy", "-q", "--first", "10"]).replace(
            path, "traces/tiny.txt"
        )
    )
    for policy in ("easy", "conservative"):
        more = peak_bytes(code.format(arguments=["replay", path, "-p", policy, "-q"])) - small
        report.say(
            f"| peak memory above the imports, {policy}, {jobs:,} jobs | {more / jobs:.0f} bytes a "
            "job |"
        )


def compilation(report: Report, path: str) -> None:
    """Print how long the first run takes, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "qbatch", "replay", path],
            check=True,
            capture_output=True,
            env={**os.environ, "QBATCH_CACHE": folder, "NUMBA_CACHE_DIR": ""},
        )
        report.say(
            "| first run ever, three policies, compilation included | "
            f"{time.perf_counter() - begun:.1f} s |"
        )


def live_figures(*, is_short: bool) -> None:
    """Measure the daemon and keep the figures in ``tests/bench/LIVE.md``."""
    report = Report()
    report.say(
        f"# The live daemon of qbatch {__version__}\n\nOn {machine_text()}; `make bench`; client "
        "and server share the cores.\n"
    )
    report.say("| what | measured |\n|---|---|")
    live.measure(
        lambda label, figure: report.say(f"| {label} | {figure} |"),
        jobs=50_000 if is_short else 1_000_000,
    )
    if not is_short:
        (Path(__file__).parent / "LIVE.md").write_text(
            "\n".join(report.lines) + "\n", encoding="utf-8"
        )


def monitor_figures(*, is_short: bool) -> None:
    """Measure the monitor and keep the figures in ``tests/bench/MONITOR.md``."""
    report = Report()
    report.say(
        f"# The monitor of qbatch {__version__}\n\nOn {machine_text()}; `python -m tests.bench "
        "--monitor`.\n"
    )
    report.say("| what | measured |\n|---|---|")
    monitor.figures(
        lambda label, figure: report.say(f"| {label} | {figure} |"), 5.0 if is_short else 30.0
    )
    if not is_short:
        (Path(__file__).parent / "MONITOR.md").write_text(
            "\n".join(report.lines) + "\n", encoding="utf-8"
        )


def origin2000_figures(report: Report, *, is_short: bool) -> None:
    """Measure the policies of the Origin 2000."""
    report.say("\n## The Origin 2000: eight hosts with memory\n\n| what | measured |\n|---|---|")
    origin2000.figures(
        lambda label, figure: report.say(f"| {label} | {figure} |"), times=1 if is_short else 3
    )


def deadline_figures(report: Report, *, is_short: bool) -> None:
    """Measure the policies that keep deadlines."""
    report.say(
        "\n## Deadlines: the four schemes in replay and live\n\n| what | measured |\n|---|---|"
    )
    deadlines.figures(
        lambda label, figure: report.say(f"| {label} | {figure} |"), TRACES, is_short=is_short
    )


def slices_figures(report: Report, *, is_short: bool) -> None:
    """Measure time slices and the search."""
    report.say("\n## Time slices and group optimisation\n\n| what | measured |\n|---|---|")
    slices.figures(
        lambda label, figure: report.say(f"| {label} | {figure} |"), times=1 if is_short else 3
    )


def network_figures(report: Report, *, is_short: bool) -> None:
    """Measure the closed network."""
    report.say("\n## The closed network\n\n| what | measured |\n|---|---|")
    network.figures(lambda label, figure: report.say(f"| {label} | {figure} |"), is_short=is_short)


def cluster_figures(report: Report, *, is_short: bool) -> None:
    """Measure a year of a thousand hosts."""
    report.say("\n## A year of a thousand hosts with GPUs\n\n| what | measured |\n|---|---|")
    cluster.figures(lambda label, figure: report.say(f"| {label} | {figure} |"), is_short=is_short)


def agent_figures(report: Report, *, is_short: bool) -> None:
    """Measure the Gymnasium environment."""
    report.say("\n## Agents\n\n| what | measured |\n|---|---|")
    log = Path(__file__).resolve().parents[2] / "traces" / "demo-128.swf"
    agents.figures(
        lambda label, figure: report.say(f"| {label} | {figure} |"), log, is_short=is_short
    )


def sweeps_figures(report: Report, *, is_short: bool) -> None:
    """Measure sweeps."""
    report.say("\n## Sweeps\n\n| what | measured |\n|---|---|")
    sweeps.figures(
        lambda label, figure: report.say(f"| {label} | {figure} |"), TRACES, is_short=is_short
    )


def replay_figures(*, is_short: bool) -> None:
    """Measure replays and whole commands and keep the figures in ``tests/bench/RESULTS.md``."""
    report = Report()
    report.say(
        f"# Benchmarks of qbatch {__version__}\n\nOn {machine_text()}; `make bench`; best of "
        "five.\n"
    )
    jobs = 100_000 if is_short else 1_000_000
    log = generate_log(jobs=jobs, procs=1024, load=0.85, seed=1)
    simulations(report, log, is_short=is_short)
    origin2000_figures(report, is_short=is_short)
    deadline_figures(report, is_short=is_short)
    slices_figures(report, is_short=is_short)
    network_figures(report, is_short=is_short)
    cluster_figures(report, is_short=is_short)
    sweeps_figures(report, is_short=is_short)
    against_plain(report)
    commands(report, log, jobs)
    report.say(
        "\nPeak memory of this benchmark: "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB."
    )
    if not is_short:
        (Path(__file__).parent / "RESULTS.md").write_text(
            "\n".join(report.lines) + "\n", encoding="utf-8"
        )


def simulations(report: Report, log: Log, *, is_short: bool) -> None:
    """Time the compiled simulations: archive logs where they are at hand, a generated one,
    bursts."""
    report.say("## The simulation proper, compiled, one core\n")
    report.say("| log | policy | seconds | jobs/s | longest queue |\n|---|---|---|---|---|")
    for name, procs in LOGS:
        path = TRACES / f"{name}.swf.gz"
        if path.exists():
            simulation(report, name, prepare(read_log(str(path)), one_host(procs)))
    simulation(report, f"generated, {len(log):,} jobs", prepare(log, one_host(1024)), times=3)
    for early in (0.0, 0.02, 0.1):
        count = 20_000 if is_short else 450_000 if early == 0.0 else 60_000
        label = f"bursts of 20,000, {count:,} jobs, {early:.0%} end early"
        simulation(
            report, label, bursts(count, early=early), times=1, policies=("easy", "conservative")
        )


class Smallest:
    """The policy of the README."""

    name = "smallest"

    def decide(self, view: View) -> Iterator[Action]:
        """Start the smallest waiting job that fits, again and again."""
        free = view.free_now()
        for job in view.that_fit("procs"):
            if free.take(job):
                yield Start(job.row)


class Sorted:
    """A policy that looks at every waiting job in each pass."""

    name = "sorted"

    def decide(self, view: View) -> Iterator[Action]:
        """Sort the whole queue in Python, and start what fits."""
        free = view.free_now()
        for job in sorted(view.waiting, key=lambda job: (job.procs, job.estimate)):
            if free.take(job):
                yield Start(job.row)


def against_plain(report: Report) -> None:
    """Compare the compiled EASY with a plain Python loop of the same, in this run."""
    report.say("\n## Against a plain Python loop of the same EASY, in this run\n")
    gc.collect()
    # What other figures of this run left behind is not for the collector to look at in these.
    gc.freeze()
    small = prepare(generate_log(jobs=30_000, procs=128, load=0.85, seed=1), one_host(128))
    machine, easy = one_host(128), load_policy("easy")
    assert run(small, machine, easy).start.tolist() == plain_easy(small, 128)
    slow, fast = best(lambda: plain_easy(small, 128), 3), best(lambda: run(small, machine, easy))
    report.say(
        f"30,000 jobs: plain {slow:.2f} s, compiled {fast:.4f} s: {slow / fast:.0f} times as fast\n"
    )
    report.say(
        "Decided in Python, in times the plain loop: within the compiled loop, and by the engine "
        "and its calendar.\n"
    )
    report.say(
        "| policy | in the loop, seconds | times | aim | by the engine, seconds | times |\n"
        "|---|---|---|---|---|---|"
    )
    for policy, name, aim in (
        (easy, "easy", 2.5),
        (load_policy("lxfw-backfill"), "lxfw-backfill", 3),
        (load_policy("conservative"), "conservative", 4),
        (Smallest(), "the policy of the README", 4),
        (Sorted(), "one that sorts the whole queue", 10),
    ):
        looped = best(lambda policy=policy: run_around_python(small, machine, policy), 3)  # type: ignore[misc]
        engine = best(lambda policy=policy: run(small, machine, policy, driver="engine"), 3)  # type: ignore[misc]
        report.say(
            f"| {name} | {looped:.2f} | {looped / slow:.1f} | {aim} | {engine:.2f} | "
            f"{engine / slow:.1f} |"
        )


def commands(report: Report, log: Log, jobs: int) -> None:
    """Time whole commands, and their memory."""
    report.say(
        "\n## Whole commands, warm cache, process start included\n\n| command | measured |\n"
        "|---|---|"
    )
    kth = TRACES / f"{LOGS[0][0]}.swf.gz"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "generated.swf")
        with open(path, "wb") as file:
            write_log(file, log.header, log.columns)
        if kth.exists():
            whole_command(report, ["replay", str(kth)], "qbatch replay KTH, three policies")
        whole_command(
            report,
            ["replay", path, "-p", "easy"],
            f"qbatch replay of {jobs:,} jobs under EASY, file to table",
        )
        rows = os.path.join(folder, "rows.csv")
        whole_command(
            report,
            ["replay", path, "-p", "easy", "--jobs", rows],
            "the same, with job rows as CSV (--jobs)",
        )
        whole_command(report, ["--help"], "qbatch --help")
        memory(report, path, jobs)
        compilation(report, str(kth) if kth.exists() else "traces/demo-128.swf")


def main() -> None:
    """Run the parts that are asked for, or all."""
    Daemon.is_executed = True  # as a user's is
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help="small runs, to see that it works; no file is written"
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--monitor", action="store_true", help="only the monitor (MONITOR.md)")
    only.add_argument(
        "--coverage",
        action="store_true",
        help="only how often intervals hold the truth; no file is written",
    )
    only.add_argument("--live", action="store_true", help="only the daemon (LIVE.md)")
    only.add_argument(
        "--replay", action="store_true", help="only replays and whole commands (RESULTS.md)"
    )
    only.add_argument(
        "--origin2000", action="store_true", help="only the Origin 2000; no file is written"
    )
    only.add_argument(
        "--deadlines", action="store_true", help="only the deadline schemes; no file is written"
    )
    only.add_argument(
        "--slices", action="store_true", help="only time slices and the search; no file is written"
    )
    only.add_argument(
        "--network", action="store_true", help="only the closed network; no file is written"
    )
    only.add_argument(
        "--cluster", action="store_true", help="only a thousand hosts; no file is written"
    )
    only.add_argument("--sweeps", action="store_true", help="only sweeps; no file is written")
    only.add_argument(
        "--agents", action="store_true", help="only the Gymnasium environment; no file is written"
    )
    asked = parser.parse_args()
    some = (
        asked.monitor,
        asked.live,
        asked.replay,
        asked.origin2000,
        asked.deadlines,
        asked.slices,
        asked.network,
        asked.sweeps,
        asked.coverage,
        asked.agents,
        asked.cluster,
    )
    is_all = not any(some)
    if asked.monitor or is_all:
        monitor_figures(is_short=asked.short)
    if asked.live or is_all:
        live_figures(is_short=asked.short)
    if asked.replay or is_all:
        replay_figures(is_short=asked.short)
    if asked.origin2000:
        origin2000_figures(Report(), is_short=asked.short)
    if asked.deadlines:
        deadline_figures(Report(), is_short=asked.short)
    if asked.slices:
        slices_figures(Report(), is_short=asked.short)
    if asked.network:
        network_figures(Report(), is_short=asked.short)
    if asked.sweeps:
        sweeps_figures(Report(), is_short=asked.short)
    if asked.cluster:
        cluster_figures(Report(), is_short=asked.short)
    if asked.agents:
        agent_figures(Report(), is_short=asked.short)
    if asked.coverage:
        coverage.report(is_short=asked.short)


if __name__ == "__main__":
    main()
