"""The export as a result's directory, the only format that keeps the execution intervals of jobs."""

from __future__ import annotations

from typing import Any

from qbatch.model.errors import UsageError
from qbatch.results.exports.exportable import Exportable
from qbatch.results.result import write_result

_OF_ANOTHER = ("schema", "files", "pieces", "policies")


def write_directory(path: str, source: Exportable) -> None:
    """Write ``result.json``, the job rows and the execution intervals of each policy, as ``qbatch replay --out`` does.

    Raises:
        UsageError: the size of the machine is unknown, or ``--procs`` contradicts the result: the metrics in the result are
            those of its own machine.
        OutputError: as ``write_result``.
    """
    result = source.result
    if result.is_size_guessed:
        raise UsageError("a result contains the size of its machine, and bare job rows do not; give it with --procs N")
    own = result.document.get("procs_total", result.procs_total)
    if own != result.procs_total:
        raise UsageError(
            f"--procs is for bare job rows, and the machine of {result.name} has {own} processors; leave it out"
        )
    document: dict[str, Any] = {
        "log": {"name": result.name},
        "procs_total": result.procs_total,
        "clock": {"unix_start": result.clock.unix_start, "zone": result.clock.zone},
        **{key: value for key, value in result.document.items() if key not in _OF_ANOTHER},
    }
    if "results" in document:
        document["results"] = [one for one in document["results"] if one.get("policy") in result.policies]
    write_result(path, document, result.schedules)
