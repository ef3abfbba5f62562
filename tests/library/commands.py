"""The commands next to the library: the same question asked of both."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.harness import command

ROOT = Path(__file__).resolve().parents[2]
TINY, DEMO = "traces/tiny.txt", "traces/demo-128.swf"


def qbatch(*words: str, code: int = 0, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command; it must end with ``code``."""
    return command(*words, code=code, cwd=cwd)


def document(*words: str) -> dict[str, Any]:
    """Return what a command prints with ``--json``."""
    return json.loads(qbatch(*words, "--json").stdout)
