"""One supervisor runs one attempt: ``python -I -S supervisor.py RUN_DIRECTORY``, in a session of its own.

It outlives the daemon: what it promises (at most one start, the walltime, the exit record) it keeps alone.  The work
is in the folder ``supervision`` beside this file; this file only finds it, so that Python can load its bytecode from
the cache (a program given by its path is compiled anew each time, which would cost more than the whole start).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from qbatch.daemon.executors.supervision.loop import main
else:
    # Appended, not put in front: a file of this folder must never stand in for a module of the standard library.
    sys.path.append(__file__.rpartition("/")[0] or ".")
    from supervision.loop import main

if __name__ == "__main__":
    sys.exit(main(sys.argv))
