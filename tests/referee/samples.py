"""Recordings of Slurm, imported, with faults planted in them."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from qbatch.cli.main import run
from qbatch.referee.reading import SiteFiles
from qbatch.referee.verify import Judgement, judge, read_finished
from qbatch.workloads.machines import load_machine

OWN = Path(__file__).parent / "recordings"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "recordings" / "slurm-22.05"

Row = dict[str, str]
Change = Callable[[dict[str, Row]], None]
"""Changes the rows of ``sacct``, by job identifier (the last attempt of each)."""


class Imported(NamedTuple):
    """The paths of a log, its side file and its machine file."""

    log: str
    resources: str
    machine: str


def imported(recording: Path, folder: Path, change: Change | None = None) -> Imported:
    """Import a recording into a folder, after a change of its rows."""
    lines = (recording / "sacct_jobs.psv").read_text().splitlines()
    header = lines[0].split("|")
    rows = [dict(zip(header, line.split("|", len(header) - 1), strict=True)) for line in lines[1:]]
    if change is not None:
        change({row["JobID"]: row for row in rows})
    text = "\n".join("|".join(cells) for cells in [header, *(row.values() for row in rows)])
    records = folder / "sacct.psv"
    records.write_text(text + "\n")
    done = Imported(*(str(folder / name) for name in ("log.swf", "side.csv", "site.toml")))
    asked = ["import", "slurm", str(records), "--timezone", "UTC", "-o", done.log, "-q"]
    asked += ["--resources", done.resources, "--slurm-conf", str(recording / "slurm.conf")]
    kept = reservations(recording)
    if kept:
        (folder / "reservations.txt").write_text(kept)
        asked += ["--reservations", str(folder / "reservations.txt")]
    assert run([*asked, "--machine-file", done.machine]) == 0
    return done


def reservations(recording: Path) -> str:
    """Return the lines that ``scontrol -o show reservation`` printed during a recording."""
    texts = []
    if (recording / "samples_misc.txt.gz").exists():
        texts.append(gzip.decompress((recording / "samples_misc.txt.gz").read_bytes()).decode())
    if (recording / "actions.log").exists():
        texts.append((recording / "actions.log").read_text())
    found = re.findall(r"^ReservationName=.*$", "\n".join(texts), re.MULTILINE)
    return "".join(f"{line}\n" for line in found)


def verdict(of: Imported) -> Judgement:
    """Return the verdict on an imported recording."""
    site = SiteFiles(load_machine(of.machine), of.resources)
    [(schedule, known)] = read_finished(of.log, site=site)
    return judge(schedule, None, known)


def verify(of: Imported, *more: str) -> tuple[int, str, str]:
    """Run ``qbatch verify`` on an imported recording; return exit code, output and errors."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        asked = ["verify", of.log, "--machine", of.machine, "--resources", of.resources, *more]
        code = run(asked)
    return code, out.getvalue(), err.getvalue()


def side_rows(of: Imported) -> list[Row]:
    """Return the lines of a side file."""
    with Path(of.resources).open(newline="") as file:
        return list(csv.DictReader(file))


def write_side_rows(of: Imported, rows: list[Row]) -> None:
    """Write the lines of a side file."""
    with Path(of.resources).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
