"""The states of a job of the batch server and the legal transitions between them, as one table.

Rule 1: everything that may happen to a job's state stands in ``NEXT``; :meth:`.state.Core.set_state` looks every change up
here, and what is not here is refused.  Rule 2: this file knows neither time nor hosts nor policies.

The state of an array follows from those of its jobs: it is BEGUN once any has started.  The engine has a table of its own
(:mod:`qbatch.engine.states`), for the jobs that it knows.
"""

from __future__ import annotations

from enum import Enum


class BatchState(Enum):
    """Where a job, an array or a job of an array is in its life.  The value is its letter on the wire and in PBS formats."""

    QUEUED = "Q"
    HELD = "H"
    WAITING_FOR_TIME = "W"
    RUNNING = "R"
    SUSPENDED = "S"
    EXITING = "E"
    BEGUN = "B"
    FINISHED = "F"
    EXPIRED = "X"

    __hash__ = object.__hash__  # that of Enum is a function in Python; states are keys of counts

    @property
    def letter(self) -> str:
        """The letter by which PBS knows it."""
        letter: str = self._value_
        return letter


WAITING = (BatchState.QUEUED, BatchState.HELD, BatchState.WAITING_FOR_TIME)
"""The states of a job that has not started, or waits to start again."""

ON_HOSTS = (BatchState.RUNNING, BatchState.SUSPENDED, BatchState.EXITING)
"""The states of a job that has hosts; EXITING: it was told to end."""

OVER = (BatchState.FINISHED, BatchState.EXPIRED)
"""The states that no job leaves; EXPIRED: a job of an array."""

NEXT: dict[str, dict[BatchState, BatchState]] = {
    "queued": dict.fromkeys(WAITING, BatchState.QUEUED),
    "held": dict.fromkeys(WAITING, BatchState.HELD),
    "postponed": dict.fromkeys(WAITING, BatchState.WAITING_FOR_TIME),
    "begun": dict.fromkeys((*WAITING, BatchState.BEGUN), BatchState.BEGUN),
    "started": {BatchState.QUEUED: BatchState.RUNNING},
    "suspended": {BatchState.RUNNING: BatchState.SUSPENDED},
    "resumed": {BatchState.SUSPENDED: BatchState.RUNNING},
    "told to end": dict.fromkeys((BatchState.RUNNING, BatchState.SUSPENDED), BatchState.EXITING),
    "requeued": dict.fromkeys(ON_HOSTS, BatchState.QUEUED),
    "expired": dict.fromkeys((*WAITING, *ON_HOSTS), BatchState.EXPIRED),
    "finished": dict.fromkeys((*WAITING, *ON_HOSTS, BatchState.BEGUN), BatchState.FINISHED),
}
"""By what happened, the state after each state in which it may happen.  ``begun`` is said of arrays only, ``expired`` of their
jobs only; a job that was submitted is QUEUED."""

SUBSTATES = {
    BatchState.QUEUED: 10,
    BatchState.HELD: 20,
    BatchState.WAITING_FOR_TIME: 30,
    BatchState.RUNNING: 42,
    BatchState.SUSPENDED: 45,
    BatchState.EXITING: 51,
    BatchState.BEGUN: 1,
    BatchState.FINISHED: 92,
    BatchState.EXPIRED: 91,
}
"""The substate that ``qstat -f`` shows for each state (OpenPBS job_attr.h)."""
