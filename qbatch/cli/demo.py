"""``qbatch demo``: show the monitor at work, or a comparison of policies, in one command and
without a download."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from qbatch.cli.console import talk
from qbatch.distribution import install_command
from qbatch.model.errors import OutputError, QbatchError

_POLICIES = ("fcfs", "easy", "conservative")

_PROCS = 128

_JOBS = """
for number in 1 2 3 4 5; do
    echo "sleep 1; echo job $PBS_O_HOST $number ran on $(hostname)" | qsub -N demo$number -l select=1:ncpus=16
done
qstat -s
qbatch wait 1 2 3 4 5
qstat -x
"""


def demo(
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Keep the log, the result and the pictures there [nothing is kept]."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=10, max=1_000_000, help="Number of jobs of the generated log.")
    ] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the generated log.")] = 1,
    speed: Annotated[
        float,
        typer.Option(min=1, max=1e6, help="In the monitor: seconds of the log per real second."),
    ] = 5000,
    monitor: Annotated[
        bool | None,
        typer.Option("--monitor/--no-monitor", help="Open the monitor [only on a terminal]."),
    ] = None,
) -> None:
    """Watch a private batch system work through a generated log; then compare three policies on
    it."""
    from qbatch.results.output import whole_file
    from qbatch.workloads import generate_log, write_log

    has_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with _folder(out) as folder:
        path = folder / "demo.swf"
        log = generate_log(jobs=jobs, procs=_PROCS, load=0.9, seed=seed)
        with whole_file(path) as file:
            write_log(file, log.header, log.columns)
        if monitor if monitor is not None else has_terminal and find_spec("textual") is not None:
            _watch(path, speed)
        _compare(folder, path, jobs, is_kept=out is not None)
    here = sys.argv[0] if os.path.basename(sys.argv[0]) == "qbatch" else "qbatch"
    log_name = f"{out}/demo.swf" if out is not None else "LOG.swf"
    talk(
        f"next: {here} up; {here} top; {here} replay {log_name} -p easy --explain 900; {here} "
        f"policies; {here} --help"
    )


@contextlib.contextmanager
def _folder(out: str | None) -> Iterator[Path]:
    """Yield the folder in which the demonstration works; a temporary one unless ``--out`` names
    one."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="qbatch-demo-") as name:
            yield Path(name)
        return
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be created ({error.strerror})") from error
    yield folder


def _watch(path: Path, speed: float) -> None:
    """Start a private daemon at which the log arrives, and open the monitor on it."""
    from qbatch.cli.daemon_answers import ask
    from qbatch.cli.top import load_monitor
    from qbatch.library.private_server import PrivateServer
    from qbatch.tui.live import Live
    from qbatch.wire.records import Shadows
    from qbatch.wire.requests import Shadow

    watch = load_monitor()
    talk("starting a private daemon on a generated log; q leaves the monitor, ? shows its keys")
    with PrivateServer("--trace", str(path.resolve()), "--time", f"x{speed:g}") as server:
        ask(Shadow(action="set", policies=("fcfs", "conservative")), Shadows, server.socket)
        watch(Live(server.socket), "textual-dark")


def _compare(folder: Path, path: Path, jobs: int, *, is_kept: bool) -> None:
    from qbatch.cli.plot import Kind, plot
    from qbatch.cli.replay import replay

    where = f": {path}" if is_kept else ""
    talk(
        f"a log of {jobs} jobs on {_PROCS} processors{where}, under three policies (qbatch replay):"
    )
    sys.stdout.flush()
    result = folder / "result"
    if result.is_dir():
        shutil.rmtree(result)
    has_pictures = is_kept and all(
        find_spec(name) is not None for name in ("matplotlib", "pyarrow")
    )
    replay(
        str(path),
        policy=list(_POLICIES),
        out=str(result) if has_pictures else None,
        jobs=str(folder / "jobs.csv"),
        quiet=False,
    )
    sys.stdout.flush()
    if has_pictures:
        talk("pictures (qbatch plot):")
        for kind in (Kind.gantt, Kind.wait_hist, Kind.queue, Kind.utilisation):
            only = ["easy"] if kind is Kind.gantt else None
            plot(str(result), kind=kind, out=str(folder / f"{kind.value}.png"), policy=only)
    elif is_kept:
        talk(f"no pictures, they need the extra: {install_command('report')}")
    talk("a private batch system: five real jobs on four emulated hosts (qbatch run -- COMMAND):")
    sys.stdout.flush()
    command = [sys.executable, "-m", "qbatch", "run", "--", "sh", "-c", _JOBS]
    done = subprocess.run(command, cwd=folder, check=False)
    if done.returncode != 0:
        raise QbatchError(f"the private daemon's jobs ended with {done.returncode}")
