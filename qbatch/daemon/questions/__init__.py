"""What is asked of the server, and what is said to the daemon itself: a function a verb, entered into the table by ``@handles``.

What lives here: functions of the service, the connected client and the request; they read the state, the store and the clock, and
may wait.  What must never come in: a change of the core that a replay would have to make again.  Such a change goes
through the service and its journal, as a command does; what does nothing else is a handler (``handlers``).
"""

from qbatch.daemon.handlers.verbs import require_handlers
from qbatch.daemon.questions import jobs, lists, server
from qbatch.wire.requests import Question

__all__ = ["jobs", "lists", "server"]

require_handlers(Question)
