"""The contract of a policy, and how it says that the replay may run it compiled.

A policy is a function of a view: ``decide(view)`` returns the actions of one pass.  It has no clock and no
state of its own; what it must remember it makes with ``new_memory`` and finds again in ``view.memory``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

import msgspec

from qbatch.model.actions import Action
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.phase import Phase
from qbatch.model.quote import Quote
from qbatch.model.reasons import Reason
from qbatch.model.record import Workload
from qbatch.planning.kernels.layout import Classes
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.spaces.space import Reserved
from qbatch.planning.view import View


class Policy(Protocol):
    """Anything with ``decide``.

    A policy with ``is_malleable = True`` takes every job as malleable, from one processor to those that it asks for:
    the engine gives jobs that say nothing else these bounds when they arrive.  One with ``follows_classes = True`` keeps to
    the classes of the machine file.  One with ``may_refuse = True`` may refuse jobs that it could run (``Reject``).  It does so
    in the first pass that shows it a job, in ``view.arrived`` as a rule: a live submission is answered by that pass.  Jobs
    that arrive together are judged one after another, in order of sequence.  One with ``takes_deadlines = True`` keeps the
    deadlines of the jobs that it takes in: what it promises is the latest start that keeps them.  One with
    ``breaks_promises = True`` may put off what it promised; the engine records it.
    """

    def decide(self, view: View) -> Iterable[Action]:
        """Return what to do at ``view.now``; the engine checks each action, in order."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A policy that keeps a record between passes."""

    def new_memory(self, machine: Machine) -> Any:
        """Return the record for a machine on which nothing has happened yet."""
        ...


@runtime_checkable
class Explaining(Protocol):
    """A policy that can say why a job waits."""

    def explain(self, view: View, row: int) -> Reason:
        """Return why a waiting job did not start in the pass just over (``view`` is the state after it)."""
        ...


@runtime_checkable
class Predicting(Protocol):
    """A policy that predicts run times."""

    def first_predictions(self, view: View) -> Int64Array:
        """Return by row the run time that was predicted at submission, microseconds; -1 where the estimate stood."""
        ...


@runtime_checkable
class Reserving(Protocol):
    """A list scheduler, whose passes make reservations that are not promised."""

    def reserved_after(self, view: View) -> list[Reserved]:
        """Return the reservations of the pass just over (``view`` is the state after it)."""
        ...


@runtime_checkable
class Quoting(Protocol):
    """A policy that can say what would become of a job that is not submitted."""

    def quote(self, view: View, job: Job) -> Quote:
        """Return what ``decide`` would answer to a job that arrived now (``view`` is the state after the last pass).

        The job has no row.  Nothing may change, least of all ``view.memory``: an audited engine refuses a policy that does
        so.
        """
        ...


@runtime_checkable
class Phased(Protocol):
    """A policy that divides the time.  It explains suspended jobs too, not only those that wait."""

    def phase(self, view: View) -> Phase:
        """Return whose turn it is (``view`` is the state after the last pass)."""
        ...


@runtime_checkable
class Queueing(Protocol):
    """A policy that keeps a queue for each host."""

    def host_queues(self, view: View) -> list[list[int]]:
        """Return by host the waiting rows, in the order in which it would take them (``view`` is the state after a pass)."""
        ...


@runtime_checkable
class Charging(Protocol):
    """A policy that says what an accepted job costs."""

    def price(self, view: View, row: int) -> int | None:
        """Return the price of a job that waits or runs in millionths of a processor-hour, fixed when it was accepted."""
        ...


class PlanLoop(msgspec.Struct, frozen=True):
    """The compiled loop of a kept plan: what is done when a job ends early (``none``, ``arrival``, ``start``, ``scratch``)."""

    compression: str


class ListLoop(msgspec.Struct, frozen=True):
    """The compiled loop of a list scheduler.

    ``order``: ``fcfs``, ``sjf``, ``lxf``, ``sjf-behind`` (by submission up to the first job that cannot start, behind it
    ``sjf``), or ``priority`` by ``weights`` (their places are those of the kernels).  ``depth``: reservations.
    ``is_stopping``: the pass ends at the first job that does not fit.  ``is_by_shadow``: the one reservation is an instant
    only.  ``is_sticky``: reservations stay.
    """

    order: str
    depth: int
    is_stopping: bool = False
    is_by_shadow: bool = False
    is_sticky: bool = False
    weights: tuple[float, ...] = (0.0,) * 6


class ClassLoop(msgspec.Struct, frozen=True):
    """The compiled loop of a scheduler of classes on hosts (``lsf``).

    ``classify`` finds the classes of a workload's jobs; ``refusal``: the code and the text with which those are rejected that
    no class takes.
    """

    classify: Callable[[Workload], Classes]
    refusal: tuple[str, str]


class DeadlineLoop(msgspec.Struct, frozen=True):
    """The compiled loop of a scheduler that admits jobs by deadlines.

    ``rules``: the numbers of :mod:`qbatch.planning.kernels.deadline_plan`.  ``factor``: of artificial deadlines, and
    ``slack_factor``: of slack-based backfilling, in thousandths.  ``weight``: the priority of every job of a log.
    """

    rules: tuple[int, ...]
    factor: int
    slack_factor: int
    weight: float


class QuantumLoop(msgspec.Struct, frozen=True):
    """The compiled loop of quanta around a list scheduler on hosts.

    ``quantum`` and ``protect`` (-1: nobody is suspended): microseconds.  ``memory``: the most that a guest gets, bytes.
    """

    inner: ListLoop
    quantum: int
    protect: int
    memory: int


class SharesLoop(msgspec.Struct, frozen=True):
    """The compiled loop of equal shares of hosts.

    ``interval``, ``long`` (executed time after which a job gets all that it asks for) and ``quantum``: microseconds.
    ``memory``: the most that a guest gets, bytes.
    """

    interval: int
    long: int
    quantum: int
    memory: int


Loop = ListLoop | PlanLoop | ClassLoop | DeadlineLoop | QuantumLoop | SharesLoop


@runtime_checkable
class Looping(Protocol):
    """A policy that is nothing but kernels: the replay may run its whole loop compiled."""

    def loop_on(self, machine: Machine) -> Loop | None:
        """Return the compiled loop that does the same on a machine, or None."""
        ...


def loop_of(policy: Policy, machine: Machine) -> Loop | None:
    """Return the compiled loop that does what the policy does on this machine, or None: then the engine runs it."""
    # A class derived from one of ours may decide otherwise: then its loop is not the one that it inherited.
    is_ours = type(policy).__module__.startswith("qbatch.policies.")
    if not (is_ours and isinstance(policy, Looping)):
        return None
    # The spaces bring the compiler, which only who runs a policy has to load.
    from qbatch.planning.spaces import space_of

    loop = policy.loop_on(machine)
    if loop is None:
        return None
    is_planned = isinstance(loop, PlanLoop | DeadlineLoop)
    return None if space_of(machine).replayed_as(machine, is_planned=is_planned) is None else loop


def note_of_classes(policies: Iterable[Policy], machine: Machine) -> str | None:
    """Return what to tell a user who gives a machine with classes to policies that do not follow them; None for nothing."""
    heedless = [name_of(each) for each in policies if not getattr(each, "follows_classes", False)]
    if not machine.classes or not heedless:
        return None
    named = f"{', '.join(heedless)} {'does' if len(heedless) == 1 else 'do'} not"
    return f"of the policies only lsf follows the classes of the machine file, also inside immediate and soon; {named}"


def name_of(policy: Policy) -> str:
    """Return the policy's canonical name: its ``name``, else that of its class."""
    return str(getattr(policy, "name", "") or type(policy).__name__)
