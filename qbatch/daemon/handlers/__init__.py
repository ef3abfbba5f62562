"""Commands, which change the core: a function for each verb, which ``@handles`` enters into the
table of :mod:`.verbs`.

They are pure functions of the core, the asker and the request, and are replayed from the journal
after a crash.  What must never come in: a decision about which job starts when, a clock, a socket,
a file, an ``await``, or a handler's own check of permission: all go through :mod:`.verbs`.  The
package ``questions`` answers requests that only ask.
"""

from qbatch.daemon.handlers import alter, jobs, reservations, server, submit
from qbatch.daemon.handlers.verbs import require_handlers
from qbatch.wire.requests import Command

__all__ = ["alter", "jobs", "reservations", "server", "submit"]

require_handlers(Command)
