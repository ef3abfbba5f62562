"""Opens the inputs of ``qbatch top --recording``: recordings, results, job rows."""

from __future__ import annotations

from pathlib import Path

from qbatch.model.errors import InputError
from qbatch.tui.schedule_tape import ScheduleTape
from qbatch.tui.tape import FileTape, Tape


def open_tape(text: str) -> Tape:
    """Open the input of ``--recording``: a recording, a result (``DIR`` or ``DIR:POLICY``), or job rows.

    Raises:
        InputError: it cannot be used.
    """
    from qbatch.results.reading import read_named, split_name

    path, _ = split_name(text)
    if Path(path).is_dir() or path.endswith((".csv", ".parquet")):
        result = read_named(text)
        if len(result.schedules) > 1:
            names = ", ".join(result.policies)
            raise InputError(f"{path} holds several policies ({names}); name one: {path}:{result.policies[0]}")
        offset = result.clock.unix_start * 1_000_000 if result.clock.unix_start else 0
        return ScheduleTape(result.schedules[0], offset, f"{Path(path).name}: {result.policies[0]}")
    return FileTape(path)
