"""The commands beside the library: the same question asked of both."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TINY, DEMO = "traces/tiny.txt", "traces/demo-128.swf"


def qbatch(*words: str, code: int = 0, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command; it must end with ``code``."""
    done = subprocess.run([sys.executable, "-m", "qbatch", *words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def document(*words: str) -> dict[str, Any]:
    """Return what a command prints with ``--json``."""
    return json.loads(qbatch(*words, "--json").stdout)
