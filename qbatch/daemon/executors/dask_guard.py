"""Ends the jobs of a Dask worker of which the process is gone: ``python -m
qbatch.daemon.executors.dask_guard DIRECTORY``.

The worker holds the other end of the standard input.  Supervisors would outlive the worker, but the
daemon cannot see them any more: it takes the host to be down, and may run the jobs again on another
while they still write.  So the guard ends them, and each run directory names that reason.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from pathlib import Path

from qbatch.daemon.executors.attempt import Ended
from qbatch.daemon.executors.dask_worker import LOST_MARK
from qbatch.daemon.executors.process_directory import Alive, Gone, RunDirectory, check_key

PATIENCE = 10.0
"""Seconds for supervisors to end their processes, before these are killed without them."""

TICK = 0.02


def main(directory: str) -> int:
    """Wait until the worker is gone, then end what runs in its directory."""
    # A fork of the worker may hold the other end of the input too, so we wait for the end of the
    # parent as well.
    parent = os.getppid()
    waiting: list[int] = [0]
    with contextlib.suppress(OSError):
        waiting.append(os.pidfd_open(parent))
    while os.getppid() == parent and not select.select(waiting, [], [], 60.0)[0]:
        pass
    end_attempts(Path(directory))
    return 0


def end_attempts(root: Path) -> None:
    """Mark each attempt that has not ended as lost with the worker, and end it."""
    left = []
    for entry in sorted(os.listdir(root)):
        with contextlib.suppress(OSError, ValueError):
            directory = RunDirectory(root / check_key(entry))
            if not isinstance(directory.look(), Ended):
                (directory.path / LOST_MARK).touch(0o600)
                if directory.look() is None:
                    directory.fence()
                directory.send("stop 0.0")
                left.append(directory)
    deadline = time.monotonic() + PATIENCE
    while left:
        for directory in list(left):
            # A worker that was started again has removed it, and ends it itself.
            with contextlib.suppress(OSError):
                situation = directory.look()
                if isinstance(situation, Alive) and time.monotonic() <= deadline:
                    continue
                if isinstance(situation, Alive | Gone):
                    directory.kill_leftovers(situation.claim)
            left.remove(directory)
        time.sleep(TICK)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
