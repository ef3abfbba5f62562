"""Ends the jobs of a Dask worker whose process is gone: ``python -m qbatch.daemon.executors.dask_guard DIRECTORY``.

The worker holds the other end of the standard input.  Supervisors would outlive the worker, but the daemon has lost sight of
them: it takes the host to be down, and may run the jobs again on another while they still write.  So they end here, and
each run directory says that it was for this reason.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from pathlib import Path

from qbatch.daemon.executors.dask_worker import LOST_MARK
from qbatch.daemon.executors.process_directory import (
    Alive,
    Gone,
    Over,
    RunDirectory,
    Unclaimed,
    check_key,
    kill_leftovers,
)

PATIENCE = 10.0
"""Seconds for supervisors to end what they watch, before it is killed without them."""

TICK = 0.02


def main(directory: str) -> int:
    """Wait until the worker is gone, then end what runs in its directory."""
    _wait_for_parent()
    end_attempts(Path(directory))
    return 0


def _wait_for_parent() -> None:
    """Wait for the end of the input, or of the parent: a fork of the worker's may hold the other end of the input."""
    parent = os.getppid()
    waiting: list[int] = [0]
    with contextlib.suppress(OSError):
        waiting.append(os.pidfd_open(parent))
    while os.getppid() == parent and not select.select(waiting, [], [], 60.0)[0]:
        pass


def end_attempts(root: Path) -> None:
    """Mark each attempt that has not ended as lost with the worker, and end it."""
    left = {}
    for entry in sorted(os.listdir(root)):
        with contextlib.suppress(OSError, ValueError):
            directory = RunDirectory(root / check_key(entry), entry)
            if not isinstance(directory.look(), Over):
                (directory.path / LOST_MARK).touch(0o600)
                if isinstance(directory.look(), Unclaimed):
                    directory.fence()
                directory.tell("stop 0.0")
                left[entry] = directory
    deadline = time.monotonic() + PATIENCE
    while left:
        for entry, directory in list(left.items()):
            if _is_ended(directory, is_late=time.monotonic() > deadline):
                del left[entry]
        time.sleep(TICK)


def _is_ended(directory: RunDirectory, *, is_late: bool) -> bool:
    try:
        situation = directory.look()
        if isinstance(situation, Alive) and not is_late:
            return False
        if isinstance(situation, Alive | Gone):
            kill_leftovers(directory, situation.claim)
    except OSError:  # removed by a worker that was started again, which sees to it itself
        pass
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
