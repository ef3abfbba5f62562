"""One supervisor runs one attempt: ``python -I -S supervisor.py RUN_DIRECTORY``, in a session of
its own.

It outlives the daemon, and guarantees alone that the script starts at most once, keeps its walltime
and has an exit record. The work is in the folder ``supervision`` next to this file.  This file only
imports it, so that Python loads its bytecode from the cache: a program given by its path is
compiled anew each time, which would take longer than the whole start.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from qbatch.daemon.executors.supervision.loop import main
else:
    # Last in the path: a file of this folder must never replace a module of the standard library.
    sys.path.append(__file__.rpartition("/")[0] or ".")
    from supervision.loop import main

if __name__ == "__main__":
    sys.exit(main(sys.argv))
