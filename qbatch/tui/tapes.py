"""What ``qbatch top --recording`` can play, by its name: recordings, results, job rows."""

from __future__ import annotations

from pathlib import Path

from qbatch.model.errors import InputError
from qbatch.tui.rows_tape import RowsTape
from qbatch.tui.tape import FileTape, Tape


def open_tape(text: str) -> Tape:
    """Open what ``--recording`` names: a recording, a result (``DIR`` or ``DIR:POLICY``), or job rows.

    Raises:
        InputError: it cannot be used.
    """
    path, policy = _split(text)
    if Path(path).is_dir() or path.endswith((".csv", ".parquet")):
        from qbatch.reports.result import read_result

        result = read_result(path).only([policy] if policy else [])
        if len(result.rows) > 1:
            names = ", ".join(result.policies)
            raise InputError(f"{path} holds several policies ({names}); name one: {path}:{result.policies[0]}")
        offset = result.clock.unix_start * 1_000_000 if result.clock.unix_start else 0
        return RowsTape(result.rows[0], result.procs_total, offset, f"{Path(path).name}: {result.policies[0]}")
    return FileTape(path)


def _split(text: str) -> tuple[str, str]:
    """Return the path and the policy; policies have colons too (``hybrid:depth=2``), and so may paths."""
    if not Path(text).exists():
        for place, letter in enumerate(text):
            if letter == ":" and place and Path(text[:place]).exists():
                return text[:place], text[place + 1 :]
    return text, ""
