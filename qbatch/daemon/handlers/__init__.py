"""What changes the core: a function a verb, which ``@handles`` enters into the table of :mod:`.verbs`.

What lives here: pure functions of the core, the asker and the request, replayed from the journal after a crash.  What
must never come in: a decision about who starts when, a clock, a socket, a file, an ``await``; and no check of permission
of a handler's own: all go through :mod:`.verbs`.  What only asks is answered in ``questions``.
"""

from qbatch.daemon.handlers import alter, jobs, server, submit
from qbatch.daemon.handlers.verbs import require_handlers
from qbatch.wire.requests import Command

__all__ = ["alter", "jobs", "server", "submit"]

require_handlers(Command)
