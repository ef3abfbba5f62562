"""Questions to the server, and requests about the daemon itself: a function for each verb, in the
table of ``@handles``.

They are functions of the service, the connected client and the request; they read the state, the
store and the clock, and may wait.  What must never come in: a change of the core that a replay
would have to make again.  Such a change goes through the service and its journal, as a command
does; a request that does nothing else is a command (``handlers``).
"""

from qbatch.daemon.handlers.verbs import require_handlers
from qbatch.daemon.questions import jobs, lists, server
from qbatch.wire.requests import Question

__all__ = ["jobs", "lists", "server"]

require_handlers(Question)
