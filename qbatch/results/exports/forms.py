"""The forms of export by name, and the export as a result's directory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

from qbatch.model.errors import UsageError
from qbatch.results.exports.batsim import write_batsim
from qbatch.results.exports.chrome import write_chrome
from qbatch.results.exports.exportable import Exportable
from qbatch.results.exports.swf import write_swf
from qbatch.results.job_rows import write_job_rows
from qbatch.results.result import write_result


@dataclass(frozen=True, slots=True)
class Form:
    """One format: its writer, its description, whether a terminal may show it, and what it keeps
    and loses.

    ``keeps`` and ``loses``: the facts about suspended or resized jobs that the format contains and
    lacks.
    """

    write: Callable[[BinaryIO, Exportable], None]
    text: str
    is_text: bool = True
    keeps: str = ""
    loses: str = ""

    def losses(self, source: Exportable) -> list[str]:
        """Return a line on what is kept and lost of suspended or resized jobs, and one on memory,
        if any is requested."""
        is_own_log = self.write is write_swf and source.write_swf is not None
        keeps, loses = (
            (source.swf_keeps, source.swf_loses) if is_own_log else (self.keeps, self.loses)
        )
        count = sum(int(schedule.is_in_pieces.sum()) for schedule in source.result.schedules)
        found = []
        if count and loses:
            jobs = "1 job" if count == 1 else f"{count:,} jobs"
            found.append(
                f"{jobs} with several intervals: kept is {keeps}; lost is {loses}; qbatch export "
                "result -o DIR keeps all"
            )
        if self.write is write_swf and not is_own_log and source.result.may_count_memory:
            found.append(
                "the requested memory is lost: job rows do not contain it, and the machine has "
                "memory or several hosts; "
                "qbatch replay LOG --machine FILE -p POLICY --swf FILE keeps it"
            )
        return found


def _write_rows(suffix: str) -> Callable[[BinaryIO, Exportable], None]:
    return lambda out, source: write_job_rows(out, source.result.schedules, suffix)


_KEPT_IN_ROWS = "first start, end, run time, total wait and the number of execution intervals"
_LOST = "when each was suspended or resized"

FORMS: dict[str, Form] = {
    "parquet": Form(
        _write_rows(".parquet"),
        "job rows as Parquet",
        is_text=False,
        keeps=_KEPT_IN_ROWS,
        loses=_LOST,
    ),
    "csv": Form(_write_rows(".csv"), "job rows as CSV", keeps=_KEPT_IN_ROWS, loses=_LOST),
    "swf": Form(
        write_swf,
        "the schedule as a workload log",
        keeps="first start and end",
        loses=f"{_LOST}, and the time that each really ran (field 4 is end - start)",
    ),
    "chrome": Form(write_chrome, "a trace that opens in ui.perfetto.dev"),
    "batsim": Form(
        write_batsim,
        "Batsim's jobs.csv, for evalys",
        keeps="first start and end",
        loses=(
            f"{_LOST}: each job is one bar, and bars may need more processors than the machine has"
        ),
    ),
}
"""Every form of export."""

_OF_ANOTHER = ("schema", "files", "pieces", "policies")


def write_directory(path: str, source: Exportable) -> None:
    """Write ``result.json``, the job rows and the execution intervals of each policy, as ``qbatch
    replay --out`` does.

    No other form keeps the execution intervals of jobs.

    Raises:
        UsageError: the size of the machine is unknown, or ``--procs`` contradicts the result: the
            metrics in the result are those of its own machine.
        OutputError: as ``write_result``.
    """
    result = source.result
    if result.is_size_guessed:
        raise UsageError(
            "a result contains the size of its machine, and bare job rows do not; give it with "
            "--procs N"
        )
    own = result.document.get("procs_total", result.procs_total)
    if own != result.procs_total:
        raise UsageError(
            f"--procs is for bare job rows, and the machine of {result.name} has {own} processors; "
            "leave it out"
        )
    document: dict[str, Any] = {
        "log": {"name": result.name},
        "procs_total": result.procs_total,
        "clock": {"unix_start": result.clock.unix_start, "zone": result.clock.zone},
        **{key: value for key, value in result.document.items() if key not in _OF_ANOTHER},
    }
    if "results" in document:
        document["results"] = [
            one for one in document["results"] if one.get("policy") in result.policies
        ]
    write_result(path, document, result.schedules)
