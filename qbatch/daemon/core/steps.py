"""Commands about many jobs: they are carried out in steps, so that other requests have their turn
in between.

A handler may be a generator: it yields whenever :func:`is_enough` is true, and returns its answer
at its end.  A command that takes one step is like any other.  A longer one stays among
``core.works``; the oldest of them goes on, step by step, until it is done.  Each step is an entry
of the journal, between those of other commands, so the same journal gives the same state.  A
command that was under way at a crash is finished after it.

A step does all that the command does to one job.  Between two steps another job may end or be held,
so a handler looks at each job as it is when its turn comes.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, TypeVar

from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Actor, Core, Work
from qbatch.wire.requests import Request

STEP = 100
"""Jobs that a step changes.  Deletion costs the most, some 50 us a job with its records: five
milliseconds."""

Result = TypeVar("Result")
Steps = Generator[None, None, Result]


UNFINISHED: Final = object()
"""The answer of a command that has more steps to go."""


def is_enough(core: Core) -> bool:
    """Count one more job; return whether the step has changed enough of them."""
    core.step_left -= 1
    return core.step_left <= 0


def members_of(core: Core, job: BatchJob) -> Steps[list[BatchJob]]:
    """Return the jobs of an array that have not ended, once the commands before this one are done;
    or the job itself."""
    if job.is_array and core.works:
        yield
    return [] if job.is_over else core.members(job)


def whole(result: Any) -> Any:
    """Do all steps of a handler at once, and return its answer."""
    if not isinstance(result, Generator):
        return result
    try:
        while True:
            next(result)
    except StopIteration as end:
        return end.value


def begin(
    core: Core, result: Any, actor: Actor | None = None, request: Request | None = None
) -> Any:
    """Return the answer of a handler that takes at most one step; else make it the youngest work
    and return ``UNFINISHED``."""
    if not isinstance(result, Generator):
        return result
    answer = _step(core, result)
    if answer is UNFINISHED:
        core.works.append(Work(result, actor, request))
    return answer


def go_on(core: Core) -> Any:
    """Do the next step of the oldest work; return its answer if that was the last one, else
    ``UNFINISHED``."""
    answer = _step(core, core.works[0].steps)
    if answer is not UNFINISHED:
        del core.works[0]
    return answer


def _step(core: Core, steps: Steps[Any]) -> Any:
    core.step_left = STEP
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    return UNFINISHED
