"""The registry: the name, the source, the description and the parameters of each policy.

A wrapper takes ``inner=NAME`` and the parameters of that policy as ``inner.key=value``.

``load_policy`` reads ``NAME``, ``NAME:key=value,key=value``, and for a policy of a user's own ``module:Class`` or a
name from the entry point group ``qbatch.policies``, both with parameters after a further colon.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from qbatch.model.errors import UsageError, suggestion
from qbatch.model.parameters import Choice, Memory, Parameter, Real, Whole, canonical_name, read_parameters
from qbatch.planning.kernels.orders import ORDERS
from qbatch.planning.policy import Policy, name_of
from qbatch.policies.entry import PolicyEntry
from qbatch.policies.slice_entries import SLICE_POLICIES

GROUP = "qbatch.policies"
"""The entry point group in which packages announce their policies."""

_FW98 = "Feitelson and Weil 1998"
_ORDER = Choice("order", "fcfs", tuple(ORDERS), "the order in which the queue is scanned")
_SEARCH = (
    Choice("search", "none", ("none", "ilds", "lex", "dds"), "how a better order of the first 20 jobs is searched in each pass"),
    Whole("budget", 1000, 1, 10_000_000, "how many complete orders and cuts end a search"),
)
_BEHIND = Choice(
    "backfill", "order", ("order", "sjf"),
    "which job is tried first behind the first that cannot start: in the order of the queue, or the shortest estimate",
)  # fmt: skip
_DEPTH = Whole("depth", 2, 0, 1_000_000, "how many jobs get a reservation in a pass if they cannot start")
_COMPRESS = Choice(
    "compress", "arrival", ("arrival", "start", "none", "scratch"), "what happens when a job ends before its estimate"
)


def _backfill(
    name: str, which: str, depth: int, order: str, search: str, budget: int, backfill: str = "order"
) -> Policy:
    if backfill != "order" and (order, search) != ("fcfs", "none"):
        raise UsageError(
            f"policy {name!r}: backfill={backfill} leaves the queue in order of submission up to the first job that cannot "
            "start; leave out order and search"
        )
    # The kernels import the compiler: load them only to run a policy.
    from qbatch.policies.backfill import Backfill

    plain = Backfill(name, which, depth, order if backfill == "order" else f"{backfill}-behind")
    if search == "none":
        return plain
    from qbatch.policies.searched import SearchedBackfill

    return SearchedBackfill(name, plain, search, budget)


def _conservative(name: str, compress: str) -> Policy:
    from qbatch.policies.conservative import Conservative

    return Conservative(name, compress)


_CV01 = "Chiang and Vernon 2001"
_RESERVATIONS = Whole("depth", 1, 0, 1_000_000, "how many jobs get a reservation in a pass if they cannot start")
_WEIGHED = {
    "wait": "an hour of waiting", "xfactor": "the expansion factor (wait + estimate) / estimate", "procs": "a processor",
    "memory": "358.4 MB of memory", "both": "the larger of processors and memory", "bypass": "a job that bypassed it",
}  # fmt: skip


def _weighed(**defaults: float) -> tuple[Parameter, ...]:
    weights = (Real(name, defaults.get(name, 0.0), -1e9, 1e9, f"weight of {what}") for name, what in _WEIGHED.items())
    return (*weights, _RESERVATIONS)


def _priority(name: str, depth: int, **weights: float) -> Policy:
    from qbatch.policies.priority import PriorityBackfill, Weights

    return PriorityBackfill(name, "priority", depth, Weights(**weights))


def _lsf(name: str) -> Policy:
    from qbatch.policies.lsf import Lsf

    return Lsf(name)


def _static(name: str, order: str, depth: int) -> Policy:
    from qbatch.policies.priority import PriorityBackfill, Weights

    return PriorityBackfill(name, order, depth, Weights(), is_sticky=order == "sjf")


POLICIES: dict[str, PolicyEntry] = {
    "fcfs": PolicyEntry(
        lambda name, **values: _backfill(name, "fcfs", 0, **values),
        "starts jobs in order and stops at the first that does not fit",
        f"{_FW98}, section 1",
        (_ORDER, *_SEARCH),
    ),
    "easy": PolicyEntry(
        lambda name, **values: _backfill(name, "easy", 1, **values),
        "backfills whatever does not delay the first job of the queue",
        f"{_FW98}, section 2.2, Fig. 5; Lifka 1995",
        (_ORDER, *_SEARCH, _BEHIND),
    ),
    "hybrid": PolicyEntry(
        lambda name, depth, **values: _backfill(name, "hybrid", depth, **values),
        "backfills whatever does not delay the first DEPTH jobs that cannot start",
        f"{_FW98}, section 2 (between EASY, depth 1, and conservative from scratch)",
        (_DEPTH, _ORDER, *_SEARCH),
    ),
    "conservative": PolicyEntry(
        _conservative,
        "makes a reservation for every job on arrival, delays no job, keeps its promises",
        f"{_FW98}, section 2.1, Figs. 2 to 4",
        (_COMPRESS,),
    ),
    "priority-backfill": PolicyEntry(
        _priority,
        "backfills by a weighted priority, on the host with the fewest free processors",
        f"{_CV01}, section 2.2, Table 3",
        _weighed(wait=1.0, xfactor=5.0, procs=0.2),
    ),
    "lsf": PolicyEntry(
        _lsf,
        "class limits by host and system-wide; hosts are kept for jobs that have waited longer than the limit of their class",
        f"{_CV01}, section 2.1, Tables 1 and 2",
    ),
    "fcfs-backfill": PolicyEntry(
        lambda name, depth: _static(name, "fcfs", depth),
        "priority-backfill in order of submission",
        f"{_CV01}, section 2.2",
        (_RESERVATIONS,),
    ),
    "sjf-backfill": PolicyEntry(
        lambda name, depth: _static(name, "sjf", depth),
        "priority-backfill, shortest estimate first; a reservation stays with its job until it starts",
        f"{_CV01}, section 2.3",
        (_RESERVATIONS,),
    ),
    "lxf-backfill": PolicyEntry(
        _priority,
        "priority-backfill by the expansion factor",
        f"{_CV01}, section 2.3",
        _weighed(xfactor=1.0),
    ),
    "lxfw-backfill": PolicyEntry(
        _priority,
        "priority-backfill by the expansion factor and a little of the wait (LXF&W)",
        f"{_CV01}, section 2.3, Table 3",
        _weighed(wait=0.0167, xfactor=1.0),
    ),
}
"""The policies of qbatch, by name."""


def _with_quantum(name: str, inner: Policy, quantum: int, memory: int, protect: int | None = None) -> Policy:
    from qbatch.policies.immediate import QuantumService

    return QuantumService(name, inner, quantum * 1_000_000, memory, None if protect is None else protect * 1_000_000)


_LIST_POLICIES = tuple(POLICIES)
_QUANTUM = (
    Choice(
        "inner", "lxfw-backfill", _LIST_POLICIES, "the inner policy; inner.KEY=VALUE sets its KEY"
    ),
    Whole("quantum", 60, 1, 1_000_000, "the length of a trial run, seconds"),
    Memory("memory", 2**30, 0, 2**60, "the most memory of a trial run"),
)

POLICIES["immediate"] = PolicyEntry(
    _with_quantum,
    "gives a job that cannot start on arrival a trial run of a quantum at once, suspending others for it",
    f"{_CV01}, sections 2.4 and 3",
    (
        *_QUANTUM,
        Whole("protect", 600, 0, 1_000_000, "how long a job runs at least before it may be suspended, seconds"),
    ),
    is_wrapper=True,
    is_interrupting=True,
    is_for_single_hosts=True,
)


def _equispatial(name: str, interval: int, over50: str, quantum: int, memory: int) -> Policy:
    from qbatch.policies.equispatial import EquiSpatial

    return EquiSpatial(name, interval * 1_000_000, over50 == "yes", quantum * 1_000_000, memory)


POLICIES["equispatial"] = PolicyEntry(
    _equispatial,
    "gives every job an equal share of its host, resized as jobs come and go (all jobs count as malleable)",
    f"{_CV01}, section 2.5",
    (
        Whole("interval", 0, 0, 1_000_000, "the shortest time between two divisions of a host, seconds"),
        Choice("over50", "no", ("no", "yes"), "whether a job gets all that it asks for after 50 hours"),
        *_QUANTUM[1:],
    ),
    is_interrupting=True,
    is_for_single_hosts=True,
    takes_chunks=False,
)
POLICIES["soon"] = PolicyEntry(
    _with_quantum,
    "gives each waiting job one trial run of a quantum on the first idle processors, suspending no job",
    f"{_CV01}, section 4.3",
    _QUANTUM,
    is_wrapper=True,
    is_interrupting=True,
    is_for_single_hosts=True,
)


def _predicted(name: str, inner: Policy, last: int) -> Policy:
    from qbatch.policies.predicted import PredictedRunTimes

    return PredictedRunTimes(name, inner, last)


POLICIES["predicted"] = PolicyEntry(
    _predicted,
    "schedules by the mean run time of the last jobs of each user, corrected when outlived; jobs are killed at estimates",
    "Tsafrir, Etsion and Feitelson 2007",
    (
        Choice(
            "inner", "easy", tuple(name for name in _LIST_POLICIES if name != "lsf"),
            "the inner policy; inner.KEY=VALUE sets its KEY",
        ),
        Whole("last", 2, 1, 1000, "the number of ended jobs of a user in the mean run time"),
    ),
    is_wrapper=True,
    breaks_promises=True,
)  # fmt: skip


_IB03 = "Islam, Balaji, Sadayappan and Panda 2003"
_KEY = Choice("key", "llf", ("llf", "edf"), "least latest start first, or earliest deadline first")
_OTHERS = (
    Choice(
        "others", "relax", ("relax", "reject"),
        "what happens if the artificial deadline of a job cannot be kept: a later one, or a refusal",
    ),
    Real("factor", 5.0, 1.0, 1e6, "an artificial deadline is this many estimates after submission, and at least a day"),
    Real("urgency", 1.0, 0.0, 1e6, "the weight of the urgency of a job in its price"),
    Real("crowding", 1.0, 0.0, 1e6, "the weight of the crowding of the machine in a price"),
)  # fmt: skip


def _deadlines(scheme: str) -> Callable[..., Policy]:
    def make(name: str, **values: Any) -> Policy:
        from qbatch.policies.deadlines import DeadlineScheduler, rules_of

        return DeadlineScheduler(name, rules_of(scheme, **values))

    return make


POLICIES |= {
    "qops": PolicyEntry(
        _deadlines("qops"),
        "admits a job if its deadline and all accepted ones can be kept; replans from few positions of the plan",
        f"{_IB03}, section 3, Fig. 3 (QoPS)",
        (
            Whole("violations", 5, 0, 1_000_000, "how many misses a position may have before the next is tried (K)"),
            _KEY,
            Choice("placing", "sorted", ("sorted", "head", "both"), "where a new job goes among those placed again"),
            *_OTHERS,
        ),
        is_for_pools=True,
    ),
    "msb": PolicyEntry(
        _deadlines("msb"),
        "admits a job if its deadline and all accepted ones can be kept; tries every position of the plan, takes the cheapest",
        f"{_IB03}, section 2.2, Fig. 1 (modified slack-based)",
        (
            Choice("order", "ast", ("ast", "llf", "edf"), "the order of the plan: planned start, or a key"),
            Choice("price", "fraction", ("fraction", "delay", "makespan"), "what a plan costs"),
            *_OTHERS,
        ),
        is_for_pools=True,
    ),
    "mrt": PolicyEntry(
        _deadlines("mrt"),
        "admits a job if its deadline and all accepted ones can be kept; searches depth first, each step strongly feasible",
        f"{_IB03}, section 2.3, Fig. 2 (modified real-time); Ramamritham, Stankovic and Shiah 1990",
        (_KEY, Whole("backtracks", 10, 0, 1_000_000, "how many steps back a search may take"), *_OTHERS),
        is_for_pools=True,
    ),
    "slack": PolicyEntry(
        _deadlines("slack"),
        "promises each job a start within its slack, less for what is important or wide, and backfills by price",
        "Talby and Feitelson 1999",
        (
            Real("factor", 3.0, 0.0, 1e6, "the slack in mean waits (SF)"),
            Real("administrative", 1.0, 0.001, 1e6, "administrative priority, in addition to that of the user"),
        ),
        is_for_pools=True,
    ),
}


def _task_queues(name: str, **values: Any) -> Policy:
    from qbatch.policies.task_queues import QueueRules, TaskQueues

    return TaskQueues(name, QueueRules(**values))


POLICIES["taskqueues"] = PolicyEntry(
    _task_queues,
    "routes each task to a queue of one host on arrival; an idle host selects the next from its own queue",
    "Karatza and Hilzer 2003, section 2.2",
    (
        Choice("routing", "shortest", ("probabilistic", "shortest"), "to any host, all equally likely, or to the shortest queue"),
        Choice(
            "discipline", "fcfs", ("fcfs", "stf", "snutf", "lstf", "snutf-stf"),
            "first come; shortest estimate; fewest uncompleted tasks of its job; shortest, but sometimes the oldest; "
            "fewest uncompleted, ties by estimate",
        ),
        Whole("limit", 10, 1, 1_000_000, "after how many selections lstf takes the oldest task"),
        Choice("ties", "random", ("random", "lowest"), "the choice among several shortest queues"),
        Whole("seed", 0, 0, 2**31, "of the draws"),
    ),
    is_for_single_hosts=True,
)  # fmt: skip
POLICIES |= SLICE_POLICIES


def load_policy(text: str) -> Policy:
    """Return the policy that a text such as ``hybrid:depth=4`` or ``mine:Smallest`` names.

    Raises:
        UsageError: for an unknown name or parameter (with the nearest known one), or a class that cannot be loaded.
    """
    head, _, tail = text.partition(":")
    if head in POLICIES:
        entry = POLICIES[head]
        pairs = [pair for pair in tail.split(",") if pair]
        if entry.is_wrapper:
            return _wrapper(head, entry, pairs, text)
        values = read_parameters(pairs, entry.parameters, f"policy {text!r}")
        policy: Policy = entry.make(canonical_name(head, values, entry.parameters), **values)
        return policy
    of_packages = announced()
    if head in of_packages:
        return _announced(of_packages[head], tail, text)
    if own_class(text) is not None:
        return _own(head, tail, text)
    known = [*POLICIES, *of_packages]
    raise UsageError(
        f"policy {text!r}: there is no policy {head!r}{suggestion(head, known)} (known: {', '.join(known)}; "
        "or module:Class for one of your own)"
    )


def announced() -> dict[str, EntryPoint]:
    """Return the policies that installed packages announce, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def own_class(text: str) -> str | None:
    """Return the ``module:Class`` of a user's own policy in a text; None if the text has another form or the registry
    knows its name.  Nothing is loaded.
    """
    head, _, tail = text.partition(":")
    name = tail.partition(":")[0]
    if head in POLICIES or not name or "=" in name or head in announced():
        return None
    return f"{head}:{name}"


def canonical_text(text: str) -> str | None:
    """Return the canonical name of a registered policy written as ``text``; None for a user's own.  Nothing is loaded.

    Raises:
        UsageError: for an unknown name or parameter of a registered policy.
    """
    head, _, tail = text.partition(":")
    if head not in POLICIES:
        return None
    entry, pairs = POLICIES[head], [pair for pair in tail.split(",") if pair]
    if entry.is_wrapper:
        return _wrapped(head, entry, pairs, text).name
    return canonical_name(head, read_parameters(pairs, entry.parameters, f"policy {text!r}"), entry.parameters)


def name_among(text: str, names: Iterable[str]) -> str:
    """Return the name in ``names`` of the policy written as ``text``: the text itself, or its canonical name.

    If neither is there, the text is returned unchanged; no user's own code is loaded to find out.
    """
    names = set(names)
    if text not in names and text.partition(":")[0] in POLICIES:
        with suppress(UsageError):
            found = name_of(load_policy(text))
            return found if found in names else text
    return text


class _Wrapped(NamedTuple):
    """A wrapper as written: its name, its values, and its inner policy with the values of that."""

    name: str
    values: dict[str, Any]
    inner: str
    inner_name: str
    inner_values: dict[str, Any]


def _wrapped(head: str, entry: PolicyEntry, pairs: list[str], text: str) -> _Wrapped:
    """Return the parsed pairs of a wrapper."""
    own = [pair for pair in pairs if not pair.startswith("inner.")]
    values = read_parameters(own, entry.parameters, f"policy {text!r}")
    inner = str(values.pop("inner"))
    known = POLICIES[inner].parameters
    inner_values = read_parameters(
        [pair.removeprefix("inner.") for pair in pairs if pair not in own], known, f"policy {text!r}, inner"
    )
    inner_name = canonical_name(inner, inner_values, known)
    name = canonical_name(head, {**values, "inner": inner}, entry.parameters)
    of_inner = [f"inner.{pair}" for pair in inner_name.partition(":")[2].split(",") if pair]
    name = f"{name}{',' if ':' in name else ':'}{','.join(of_inner)}" if of_inner else name
    return _Wrapped(name, values, inner, inner_name, inner_values)


def _wrapper(head: str, entry: PolicyEntry, pairs: list[str], text: str) -> Policy:
    """Return a wrapper around the policy that its pairs name."""
    wrapped = _wrapped(head, entry, pairs, text)
    inner = POLICIES[wrapped.inner].make(wrapped.inner_name, **wrapped.inner_values)
    policy: Policy = entry.make(wrapped.name, inner=inner, **wrapped.values)
    return policy


def _announced(point: EntryPoint, tail: str, text: str) -> Policy:
    try:
        made = point.load()
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"policy {text!r}: entry point {point.value!r} cannot be loaded: {_one_line(error)}"
        ) from error
    return _make(made, tail, text)


def _own(module: str, tail: str, text: str) -> Policy:
    name, _, parameters = tail.partition(":")
    if module.endswith(".py"):
        meant = f"{os.path.basename(module).removesuffix('.py')}:{tail}"
        raise UsageError(
            f"policy {text!r}: {module!r} is a file; name its module: {meant}, where the file is in the current folder or in one "
            "of PYTHONPATH"
        )
    # A module in the user's folder, as with "python -m"; after everything that is installed.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        made = getattr(importlib.import_module(module), name)
    except AttributeError as error:
        raise UsageError(f"policy {text!r}: module {module!r} has no {name!r}") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"policy {text!r}: module {module!r} cannot be imported: {_one_line(error)}") from error
    return _make(made, parameters, text)


def _make(made: Any, parameters: str, text: str) -> Policy:
    """Call a policy class with its parameters, as whole numbers if they look like it."""
    values: dict[str, int | str] = {}
    for pair in (pair for pair in parameters.split(",") if pair):
        key, sign, value = pair.partition("=")
        if not sign or not key.isidentifier():
            raise UsageError(f"policy {text!r}: {pair!r} is no parameter; write name=value")
        values[key] = int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else value
    # Only a policy is called: os:abort names a callable too.
    if not isinstance(made, type):
        raise UsageError(f"policy {text!r}: that is no class, but a {type(made).__name__}")
    if not callable(getattr(made, "decide", None)):
        raise UsageError(f"policy {text!r}: {made.__name__} has no method decide(view)")
    try:
        policy: Policy = made(**values)
    except (Exception, SystemExit) as error:
        raise UsageError(f"policy {text!r}: cannot be made: {_one_line(error)}") from error
    return policy


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
