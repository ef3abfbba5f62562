"""The forms of export by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from qbatch.reports.exports.batsim import write_batsim
from qbatch.reports.exports.chrome import write_chrome
from qbatch.reports.exports.exportable import Exportable
from qbatch.reports.exports.swf import write_swf
from qbatch.reports.job_rows import write_job_rows


@dataclass(frozen=True, slots=True)
class Form:
    """One form: who writes it, what it is, and whether it is text that a terminal may show."""

    write: Callable[[BinaryIO, Exportable], None]
    text: str
    is_text: bool = True


def _write_parquet(out: BinaryIO, source: Exportable) -> None:
    write_job_rows(out, source.result.rows, ".parquet")


def _write_csv(out: BinaryIO, source: Exportable) -> None:
    write_job_rows(out, source.result.rows, ".csv")


FORMS: dict[str, Form] = {
    "parquet": Form(_write_parquet, "job rows as Parquet", is_text=False),
    "csv": Form(_write_csv, "job rows as CSV"),
    "swf": Form(write_swf, "the schedule as a workload log"),
    "chrome": Form(write_chrome, "a trace that opens in ui.perfetto.dev"),
    "batsim": Form(write_batsim, "Batsim's jobs.csv, for evalys"),
}
"""Every form of export."""
