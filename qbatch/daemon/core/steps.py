"""Commands that are about many jobs are carried out in steps, so that other requests have their turn in between.

A handler may be a generator: it yields whenever :func:`is_enough` says that it has done enough at one go, and returns its
answer at its end.  A command that is done within one step is like any other.  A longer one stays among ``core.works``; the oldest
of them goes on, step by step, until it is done.  Each step is an entry of the journal, between those of the commands that came in
the meantime, so the same journal gives the same state; a command that was under way at a crash is finished after it.

What a step does to one job is whole.  What it does to many is not: between two steps a job may end or be held, and a handler
looks at each job as it is when its turn comes.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob
    from qbatch.daemon.core.state import Actor, Core
    from qbatch.wire.requests import Request

STEP = 100
"""Jobs that a step changes.  Deletion costs the most, some 50 us a job with its records: five milliseconds."""

Result = TypeVar("Result")
Steps = Generator[None, None, Result]


class StepsLeft:
    """The answer of a command that has more steps to go."""


UNFINISHED = StepsLeft()


@dataclass(eq=False)
class Work:
    """A command under way.  ``actor``, ``request``: who gave which, None for a new configuration."""

    steps: Generator[None, None, Any]
    actor: Actor | None = None
    request: Request | None = None


def is_enough(core: Core) -> bool:
    """Count one more job; tell whether the step has changed enough of them."""
    core.step_left -= 1
    return core.step_left <= 0


def members_of(core: Core, job: BatchJob) -> Steps[list[BatchJob]]:
    """Return the jobs of an array that have not ended, once the works before this one are done with it; or the job itself."""
    if job.is_array and core.works:
        yield
    return [] if job.is_over else core.members(job)


def whole(result: Any) -> Any:
    """Return the answer of a handler, all its steps done at once."""
    if not isinstance(result, Generator):
        return result
    try:
        while True:
            next(result)
    except StopIteration as end:
        return end.value


def begin(core: Core, result: Any, actor: Actor | None = None, request: Request | None = None) -> Any:
    """Return the answer of a handler if it takes one step at most; else ``UNFINISHED``: it is the youngest work now."""
    if not isinstance(result, Generator):
        return result
    work = Work(result, actor, request)
    answer = _next(core, work)
    if answer is UNFINISHED:
        core.works.append(work)
    return answer


def go_on(core: Core) -> Any:
    """Do the next step of the oldest work; return its answer if that was the last one, else ``UNFINISHED``."""
    answer = _next(core, core.works[0])
    if answer is not UNFINISHED:
        del core.works[0]
    return answer


def _next(core: Core, work: Work) -> Any:
    core.step_left = STEP
    try:
        next(work.steps)
    except StopIteration as end:
        return end.value
    return UNFINISHED
