"""A daemon on a machine with a clock that is wrong by as many seconds as the file ``shift`` holds;
started as ``python -m`` with the words of ``qbatch``."""

from __future__ import annotations

import time
from pathlib import Path

from qbatch.cli.main import main
from qbatch.daemon import clock, process


def _wall() -> int:
    return time.time_ns() // 1000 + int(Path("shift").read_text(encoding="ascii")) * 1_000_000


clock.wall = process.wall = _wall  # type: ignore[attr-defined]

if __name__ == "__main__":
    main()
