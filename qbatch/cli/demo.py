"""``qbatch demo``: from nothing to a comparison with pictures, in one command and without a download."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from qbatch.cli.console import talk
from qbatch.model.errors import OutputError, QbatchError

_POLICIES = ("fcfs", "easy", "conservative")


def demo(
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Where the log, the result and the pictures go.")
    ] = "qbatch-demo",
    jobs: Annotated[int, typer.Option(min=10, max=1_000_000, help="Jobs of the generated log.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the generated log.")] = 1,
) -> None:
    """Make a small log, replay it under three policies, draw the result; then run real jobs through a private daemon."""
    from qbatch.cli.replay import replay
    from qbatch.reports.output import whole_file
    from qbatch.workloads import generate_log, write_log

    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror})") from error
    log = generate_log(jobs=jobs, procs=128, load=0.9, seed=seed)
    with whole_file(folder / "demo.swf") as file:
        write_log(file, log.header, log.columns)
    talk(f"1. a log of {jobs} jobs on 128 processors: {folder / 'demo.swf'}")
    talk("2. replayed under three policies (qbatch replay):")
    sys.stdout.flush()
    result = folder / "result"
    if result.is_dir():
        shutil.rmtree(result)
    has_pictures = _can_draw()
    replay(
        str(folder / "demo.swf"), policy=list(_POLICIES), out=str(result) if has_pictures else None,
        jobs=str(folder / "jobs.csv"), quiet=False,
    )  # fmt: skip
    sys.stdout.flush()
    if not has_pictures:
        talk("3. no pictures: they need the extra, pip install 'qbatch[report]'")
    else:
        _pictures(folder, result)
    _live(folder)
    here = sys.argv[0] if os.path.basename(sys.argv[0]) == "qbatch" else "qbatch"
    talk(f"next: {here} replay {folder / 'demo.swf'} -p easy --explain 900; {here} policies; {here} --help")


_JOBS = """
for number in 1 2 3 4 5; do
    echo "sleep 1; echo job $PBS_O_HOST $number ran on $(hostname)" | qsub -N demo$number -l select=1:ncpus=16
done
qstat -s
qbatch wait 1 2 3 4 5
qstat -x
"""


def _pictures(folder: Path, result: Path) -> None:
    from qbatch.cli.plot import Kind, plot

    talk("3. pictures (qbatch plot):")
    for kind in (Kind.gantt, Kind.wait_hist, Kind.queue, Kind.utilisation):
        only = ["easy"] if kind is Kind.gantt else None
        plot(str(result), kind=kind, out=str(folder / f"{kind.value}.png"), policy=only)


def _live(folder: Path) -> None:
    """Run real jobs through a daemon that is there for this only."""
    talk("4. a batch system of one's own: five real jobs on four emulated hosts (qbatch run -- COMMAND):")
    sys.stdout.flush()
    command = [sys.executable, "-m", "qbatch", "run", "--", "sh", "-c", _JOBS]
    done = subprocess.run(command, cwd=folder, check=False)
    if done.returncode != 0:
        raise QbatchError(f"the private daemon's jobs ended with {done.returncode}")


def _can_draw() -> bool:
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("matplotlib", "pyarrow"))
