"""The identity of a log: the words of its header about the machine, or the name of its file."""

from __future__ import annotations

import re
from pathlib import Path

from qbatch.workloads import Log


def machine_words(log: Log) -> str:
    """Return the origin of the log in its header: installation, then computer."""
    return f"{log.header.installation or ''} {log.header.computer or ''}"


def name_by_file(path: str) -> tuple[str, str]:
    """Return a short name, for files, and a name of a log, both from the name of its file."""
    stem = re.sub(r"\.(swf|txt|gz|xz)\b", "", Path(path).name)
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "log", stem
