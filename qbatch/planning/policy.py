"""The contract of a policy, and how a policy declares that the replay may run it compiled.

A policy is a function of a view: ``decide(view)`` returns the actions of one pass.  It has no clock
and no state of its own; the record that it makes with ``new_memory`` comes back to it as
``view.memory``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

import msgspec

from qbatch.model.actions import Action
from qbatch.model.errors import UsageError
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.phase import Phase
from qbatch.model.quote import Quote
from qbatch.model.reasons import Reason
from qbatch.model.record import Workload
from qbatch.planning.kernels.tables import Needs
from qbatch.planning.kernels.types import BoolArray, Int64Array
from qbatch.planning.partitions import has_tiers
from qbatch.planning.view import Reserved, View


class Policy(Protocol):
    """Any object with ``decide``.

    Optional attributes, true or false:

    - ``is_malleable``: every job is malleable, from one processor to those that it asks for; the
      engine sets these bounds at the arrival of a job that has none.
    - ``follows_classes``: the policy follows the classes of the machine file.
    - ``may_refuse``: the policy may refuse jobs that it could run (``Reject``), in the first pass
      that shows it a job, usually in ``view.arrived``: that pass answers a live submission.  Jobs
      that arrive together are judged in order of sequence.
    - ``takes_deadlines``: the policy keeps the deadlines of accepted jobs: it promises the latest
      start that keeps them.
    - ``breaks_promises``: the policy may delay a start that it promised; the engine records it.
    - ``knows_resources``: if False, the policy counts only processors and memory, and is refused on
      a machine that counts other resources too.
    """

    def decide(self, view: View) -> Iterable[Action]:
        """Return what to do at ``view.now``; the engine checks each action, in order."""


@runtime_checkable
class Remembering(Protocol):
    """A policy that keeps a record between passes."""

    def new_memory(self, machine: Machine) -> Any:
        """Return the record for a machine before its first event."""


@runtime_checkable
class Explaining(Protocol):
    """A policy that explains why a job waits."""

    def explain(self, view: View, row: int) -> Reason:
        """Return why a waiting job did not start in the pass just over (``view``: the state after
        it)."""


@runtime_checkable
class Predicting(Protocol):
    """A policy that predicts run times."""

    def first_predictions(self, view: View) -> Int64Array:
        """Return by row the run time predicted at submission, microseconds; -1 for jobs without a
        prediction."""


@runtime_checkable
class Reserving(Protocol):
    """A list scheduler that makes reservations in its passes without promising them."""

    def reserved_after(self, view: View) -> list[Reserved]:
        """Return the reservations of the pass just over (``view`` is the state after it)."""


@runtime_checkable
class Quoting(Protocol):
    """A policy that can predict its answer to a job that is not submitted."""

    def quote(self, view: View, job: Job) -> Quote:
        """Return what ``decide`` would answer to a job that arrived now (``view``: the state after
        the last pass).

        The job has no row.  Nothing may change, least of all ``view.memory``; an audited engine
        refuses a policy that changes it.
        """


@runtime_checkable
class Phased(Protocol):
    """A policy that divides time among groups of jobs.  It explains suspended jobs, not only
    waiting ones."""

    def phase(self, view: View) -> Phase:
        """Return the current phase (``view``: the state after the last pass)."""


@runtime_checkable
class Queueing(Protocol):
    """A policy that keeps a queue for each host."""

    def host_queues(self, view: View) -> list[list[int]]:
        """Return by host the waiting rows, in the order in which they would start (``view``: the
        state after a pass)."""


@runtime_checkable
class Charging(Protocol):
    """A policy that charges for accepted jobs."""

    def price(self, view: View, row: int) -> int | None:
        """Return the price of a job that waits or runs in millionths of a processor-hour, fixed
        when it was accepted."""


class PlanRules(msgspec.Struct, frozen=True):
    """The rules of a kept plan: how it is compressed when a job ends early (``none``, ``arrival``,
    ``start``, ``scratch``)."""

    compression: str


class ListRules(msgspec.Struct, frozen=True):
    """The rules of a list scheduler.

    ``order``: ``fcfs``, ``sjf``, ``lxf``, ``sjf-behind`` (by submission up to the first job that
    cannot start, then ``sjf``), or ``priority`` by ``weights`` (in the order of the kernels).
    ``depth``: number of reservations. ``is_stopping``: the pass ends at the first job that does
    not fit.  ``is_by_shadow``: it is EASY, of which the referee knows the shadow time.  ``is_sticky``: reservations
    stay.
    """

    order: str
    depth: int
    is_stopping: bool = False
    is_by_shadow: bool = False
    is_sticky: bool = False
    weights: tuple[float, ...] = (0.0,) * 6


class Compiled(msgspec.Struct, frozen=True):
    """A policy in the form in which the replay runs it compiled.

    ``decide(instant, jobs, state, done, memory)``: a kernel
    (:mod:`qbatch.planning.kernels.tables`); ``needs``: what it returns and reads.
    ``new_memory(work, machine)``: its memory for a workload, a named tuple of arrays and numbers.
    ``takes(memory)``: by row, whether it accepts a job at all; None: every job.  ``refusal(work,
    row, memory)``: the code and the text with which it refuses a job.  ``is_planned``: it promises
    starts.
    """

    decide: Callable[..., int]
    needs: Needs
    new_memory: Callable[[Workload, Machine], Any]
    takes: Callable[[Any], BoolArray] | None = None
    refusal: Callable[[Workload, int, Any], tuple[str, str]] | None = None
    is_planned: bool = False


@runtime_checkable
class Compilable(Protocol):
    """A policy that the replay may run compiled."""

    def compiled_on(self, machine: Machine) -> Compiled | None:
        """Return the kernel that makes the same decisions on a machine, or None."""


def compiled_of(policy: Policy, machine: Machine) -> Compiled | None:
    """Return the kernel that decides as the policy does on this machine, or None if there is none:
    then the engine runs it."""
    if not isinstance(policy, Compilable):
        return None
    # A derived class may decide differently from its base, so it counts only if it defines
    # ``compiled_on`` itself, or inherits ``decide`` from the base of policies that are one kernel
    # (:mod:`.compiled_policy`).
    kind: Any = type(policy)
    base: Any = next(each for each in kind.__mro__ if "compiled_on" in vars(each))
    is_a_kernel = base.__module__.startswith("qbatch.planning.") and kind.decide is base.decide
    if not (base is kind or kind.__module__.startswith("qbatch.policies.") or is_a_kernel):
        return None

    if (machine.resources or machine.asks_for_hosts) and not knows_resources(policy):
        return None  # the engine gives the reason
    if machine.reservations:
        return None  # the compiled loop makes no round when a reservation begins or ends
    return policy.compiled_on(machine)


def check_resources(policy: Policy, machine: Machine) -> None:
    """Refuse a machine with named resources, partitions or features for a policy that does not know
    them.

    Raises:
        UsageError: names the policy, what it does not know, and the way out.
    """
    if knows_resources(policy):
        return
    if machine.resources:
        raise UsageError(
            f"policy {name_of(policy)} counts only processors and memory, and the hosts of this "
            "machine also have "
            f"{', '.join(machine.resources)}; choose another policy, or leave out their resources"
        )
    if machine.asks_for_hosts:
        raise UsageError(
            f"policy {name_of(policy)} knows no partitions, no reservations and no features of "
            "hosts; choose another policy, or leave them out of the machine file"
        )


def check_single_hosts(
    machine: Machine, name: str, what: str, *, takes_chunks: bool = True
) -> None:
    """Refuse a machine on which a job may be on several hosts, for a policy that keeps it inside
    one.

    Args:
        name: of the policy.
        what: a phrase about what is inside one host, for the message.
        takes_chunks: machines on which jobs ask for chunks are accepted.

    Raises:
        UsageError: names the way out.
    """
    if machine.spans_hosts or (machine.chunked and not takes_chunks):
        raise UsageError(
            f"policy {name}: {what}, and jobs may span the hosts of this machine; "
            "write single_host = true in the machine file, or choose another policy"
        )


def knows_resources(policy: Policy) -> bool:
    """Return whether a policy takes the named resources of hosts into account."""
    return bool(getattr(policy, "knows_resources", True))


def note_of_classes(policies: Iterable[Policy], machine: Machine) -> str | None:
    """Return a note for a user if the machine has classes that none of the policies follows, else
    None."""
    heedless = [name_of(each) for each in policies if not getattr(each, "follows_classes", False)]
    if not machine.classes or not heedless:
        return None
    named = f"{', '.join(heedless)} {'does' if len(heedless) == 1 else 'do'} not"
    return (
        "of the policies only lsf follows the classes of the machine file, also inside "
        f"immediate and soon; {named}"
    )


def note_of_tiers(policies: Iterable[Policy], machine: Machine) -> str | None:
    """Return a note for a user if the partitions of a machine have tiers that some of the policies do
    not follow, else None."""
    heedless = [name_of(each) for each in policies if not getattr(each, "follows_tiers", False)]
    if not has_tiers(machine) or not heedless:
        return None
    return (
        "list schedulers look at jobs of a higher tier first; "
        f"{', '.join(heedless)} {'does' if len(heedless) == 1 else 'do'} not"
    )


def note_of_site(policies: Iterable[Policy], machine: Machine) -> str | None:
    """Return a note for a user if the machine file has priorities or limits of a site that some of the
    policies do not follow, else None."""
    heedless = [name_of(each) for each in policies if not getattr(each, "follows_site", False)]
    if machine.site is None or not heedless:
        return None
    return (
        "the policies multifactor and slurm follow the priorities of the machine file, and slurm its "
        f"limits; {', '.join(heedless)} {'follows' if len(heedless) == 1 else 'follow'} neither"
    )


def name_of(policy: Policy) -> str:
    """Return the policy's canonical name: its ``name``, else that of its class."""
    return str(getattr(policy, "name", "") or type(policy).__name__)
