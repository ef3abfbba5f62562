"""The registry: the name, the source, the description and the parameters of each policy.

A wrapper takes ``inner=NAME`` and the parameters of that policy as ``inner.key=value``.

``load_policy`` reads ``NAME``, ``NAME:key=value,key=value``, and for a policy of a user's own
``module:Class`` or a name from the entry point group ``qbatch.policies``, both with parameters
after a further colon.
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

import msgspec

from qbatch.model.errors import UsageError, suggestion
from qbatch.model.machine import Machine
from qbatch.model.parameters import (
    Choice,
    Memory,
    Parameter,
    Real,
    Whole,
    canonical_name,
    read_parameters,
)
from qbatch.planning.kernels.orders import ORDERS
from qbatch.planning.policy import ListRules, Policy, name_of

GROUP = "qbatch.policies"
"""The entry point group in which packages announce their policies."""


class PolicyEntry(msgspec.Struct, frozen=True):
    """One registered policy: how to make it, what it does, its source, its parameters.

    ``is_wrapper``: it is made with an ``inner`` policy, and takes its parameters as ``inner.key``.
    ``is_interrupting``: jobs may run in several execution intervals, and promises of an inner
    policy may break.  ``is_for_single_hosts``: it refuses machines on which a job may span hosts,
    except (``takes_chunks``) those with chunks.  ``is_for_pools``: it refuses machines on which
    more than the number of free processors decides.  ``breaks_promises``: starts that an inner
    policy promises may be delayed.  ``has_own_passes``: jobs start at instants of the policy's own,
    not as soon as they fit.
    """

    make: Callable[..., Policy]
    meaning: str
    source: str
    parameters: tuple[Parameter, ...] = ()
    is_wrapper: bool = False
    is_interrupting: bool = False
    is_for_single_hosts: bool = False
    takes_chunks: bool = True
    is_for_pools: bool = False
    breaks_promises: bool = False
    has_own_passes: bool = False

    def takes(self, machine: Machine) -> bool:
        """Return whether the policy works on a machine."""
        is_divided = machine.spans_hosts or (machine.chunked and not self.takes_chunks)
        return not (self.is_for_single_hosts and is_divided) and (
            machine.is_one_pool or not self.is_for_pools
        )


_FW98 = "Feitelson and Weil 1998"
_ORDER = Choice("order", "fcfs", tuple(ORDERS), "the order in which the queue is scanned")
_SEARCH = (
    Choice(
        "search",
        "none",
        ("none", "ilds", "lex", "dds"),
        "how a better order of the first 20 jobs is searched in each pass",
    ),
    Whole("budget", 1000, 1, 10_000_000, "how many complete orders and cuts end a search"),
)
_BEHIND = Choice(
    "backfill",
    "order",
    ("order", "sjf"),
    (
        "which job is tried first behind the first that cannot start: in the order of the queue, "
        "or "
        "the shortest estimate"
    ),
)
_DEPTH = Whole(
    "depth", 2, 0, 1_000_000, "how many jobs get a reservation in a pass if they cannot start"
)
_COMPRESS = Choice(
    "compress",
    "arrival",
    ("arrival", "start", "none", "scratch"),
    "what happens when a job ends before its estimate",
)


def _lazy(module: str, name: str, **fixed: Any) -> Callable[..., Policy]:
    """Return what makes a policy of a class of this package.

    The modules of the policies import the compiler, so they are loaded only to run a policy.
    """

    def make(canonical: str, **values: Any) -> Policy:
        kind = getattr(importlib.import_module(f"qbatch.policies.{module}"), name)
        policy: Policy = kind(canonical, **fixed, **values)
        return policy

    return make


def _backfill(
    name: str, which: str, depth: int, order: str, search: str, budget: int, backfill: str = "order"
) -> Policy:
    if backfill != "order" and (order, search) != ("fcfs", "none"):
        raise UsageError(
            f"policy {name!r}: backfill={backfill} leaves the queue in order of submission up to "
            "the first job that cannot "
            "start; leave out order and search"
        )
    from qbatch.policies.backfill import Backfill

    order = order if backfill == "order" else f"{backfill}-behind"
    plain = Backfill(
        name, ListRules(order, depth, is_stopping=which == "fcfs", is_by_shadow=which == "easy")
    )
    if search == "none":
        return plain
    from qbatch.policies.searched import SearchedBackfill

    return SearchedBackfill(name, plain, search, budget)


_CV01 = "Chiang and Vernon 2001"
_RESERVATIONS = Whole(
    "depth", 1, 0, 1_000_000, "how many jobs get a reservation in a pass if they cannot start"
)
_WEIGHED = {
    "wait": "an hour of waiting",
    "xfactor": "the expansion factor (wait + estimate) / estimate",
    "procs": "a processor",
    "memory": "358.4 MB of memory",
    "both": "the larger of processors and memory",
    "bypass": "a job that bypassed it",
}


def _weighed(**defaults: float) -> tuple[Parameter, ...]:
    weights = (
        Real(name, defaults.get(name, 0.0), -1e9, 1e9, f"weight of {what}")
        for name, what in _WEIGHED.items()
    )
    return (*weights, _RESERVATIONS)


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
        _lazy("conservative", "Conservative"),
        "makes a reservation for every job on arrival, delays no job, keeps its promises",
        f"{_FW98}, section 2.1, Figs. 2 to 4",
        (_COMPRESS,),
    ),
    "priority-backfill": PolicyEntry(
        _lazy("priority", "PriorityBackfill"),
        "backfills by a weighted priority, on the host with the fewest free processors",
        f"{_CV01}, section 2.2, Table 3",
        _weighed(wait=1.0, xfactor=5.0, procs=0.2),
    ),
    "lsf": PolicyEntry(
        _lazy("lsf", "Lsf"),
        (
            "class limits by host and system-wide; hosts are kept for jobs that have waited longer "
            "than the limit of their class"
        ),
        f"{_CV01}, section 2.1, Tables 1 and 2",
    ),
    "fcfs-backfill": PolicyEntry(
        _lazy("priority", "PriorityBackfill", order="fcfs"),
        "priority-backfill in order of submission",
        f"{_CV01}, section 2.2",
        (_RESERVATIONS,),
    ),
    "sjf-backfill": PolicyEntry(
        _lazy("priority", "PriorityBackfill", order="sjf", is_sticky=True),
        (
            "priority-backfill, shortest estimate first; a reservation stays with its job until it "
            "starts"
        ),
        f"{_CV01}, section 2.3",
        (_RESERVATIONS,),
    ),
    "lxf-backfill": PolicyEntry(
        _lazy("priority", "PriorityBackfill"),
        "priority-backfill by the expansion factor",
        f"{_CV01}, section 2.3",
        _weighed(xfactor=1.0),
    ),
    "lxfw-backfill": PolicyEntry(
        _lazy("priority", "PriorityBackfill"),
        "priority-backfill by the expansion factor and a little of the wait (LXF&W)",
        f"{_CV01}, section 2.3, Table 3",
        _weighed(wait=0.0167, xfactor=1.0),
    ),
}
"""The policies of qbatch, by name."""


_LIST_POLICIES = tuple(POLICIES)
POLICIES["multifactor"] = PolicyEntry(
    _lazy("multifactor", "Multifactor"),
    "backfills in the order of the priorities of the machine file: age, fair share, size, partition, QOS",
    "Slurm 22.05 (2022), priority/multifactor; docs/spec/production.md 2.1 to 2.4",
    (_RESERVATIONS,),
)
_QUANTUM = (
    Choice(
        "inner", "lxfw-backfill", _LIST_POLICIES, "the inner policy; inner.KEY=VALUE sets its KEY"
    ),
    Whole("quantum", 60, 1, 1_000_000, "the length of a trial run, seconds"),
    Memory("memory", 2**30, 0, 2**60, "the most memory of a trial run"),
)

POLICIES["slurm"] = PolicyEntry(
    _lazy("slurm", "Slurm"),
    "makes the passes of Slurm: the main scheduler, and backfill in cycles with planned starts",
    "Slurm 22.05 (2022); docs/spec/production.md 4.1 and 4.2",
    (Whole("offset", 0, 0, 2**31, "the second of the epoch at which the clock begins"),),
    has_own_passes=True,
)

POLICIES["immediate"] = PolicyEntry(
    _lazy("immediate", "QuantumService"),
    (
        "gives a job that cannot start on arrival a trial run of a quantum at once, suspending "
        "others "
        "for it"
    ),
    f"{_CV01}, sections 2.4 and 3",
    (
        *_QUANTUM,
        Whole(
            "protect",
            600,
            0,
            1_000_000,
            "how long a job runs at least before it may be suspended, seconds",
        ),
    ),
    is_wrapper=True,
    is_interrupting=True,
    is_for_single_hosts=True,
)


POLICIES["equispatial"] = PolicyEntry(
    _lazy("equispatial", "EquiSpatial"),
    (
        "gives every job an equal share of its host, resized as jobs come and go (all jobs count "
        "as "
        "malleable)"
    ),
    f"{_CV01}, section 2.5",
    (
        Whole(
            "interval",
            0,
            0,
            1_000_000,
            "the shortest time between two divisions of a host, seconds",
        ),
        Choice(
            "over50", "no", ("no", "yes"), "whether a job gets all that it asks for after 50 hours"
        ),
        *_QUANTUM[1:],
    ),
    is_interrupting=True,
    is_for_single_hosts=True,
    takes_chunks=False,
)
POLICIES["soon"] = PolicyEntry(
    _lazy("immediate", "QuantumService"),
    (
        "gives each waiting job one trial run of a quantum on the first idle processors, "
        "suspending "
        "no "
        "job"
    ),
    f"{_CV01}, section 4.3",
    _QUANTUM,
    is_wrapper=True,
    is_interrupting=True,
    is_for_single_hosts=True,
)


POLICIES["predicted"] = PolicyEntry(
    _lazy("predicted", "PredictedRunTimes"),
    (
        "schedules by the mean run time of the last jobs of each user, corrected when outlived; "
        "jobs "
        "are killed at estimates"
    ),
    "Tsafrir, Etsion and Feitelson 2007",
    (
        Choice(
            "inner",
            "easy",
            tuple(name for name in _LIST_POLICIES if name != "lsf"),
            "the inner policy; inner.KEY=VALUE sets its KEY",
        ),
        Whole("last", 2, 1, 1000, "the number of ended jobs of a user in the mean run time"),
    ),
    is_wrapper=True,
    breaks_promises=True,
)


_IB03 = "Islam, Balaji, Sadayappan and Panda 2003"
_KEY = Choice("key", "llf", ("llf", "edf"), "least latest start first, or earliest deadline first")
_OTHERS = (
    Choice(
        "others",
        "relax",
        ("relax", "reject"),
        (
            "what happens if the artificial deadline of a job cannot be kept: a later one, or a "
            "refusal"
        ),
    ),
    Real(
        "factor",
        5.0,
        1.0,
        1e6,
        "an artificial deadline is this many estimates after submission, and at least a day",
    ),
    Real("urgency", 1.0, 0.0, 1e6, "the weight of the urgency of a job in its price"),
    Real("crowding", 1.0, 0.0, 1e6, "the weight of the crowding of the machine in a price"),
)


POLICIES |= {
    "qops": PolicyEntry(
        _lazy("deadlines", "DeadlineScheduler", scheme="qops"),
        (
            "admits a job if its deadline and all accepted ones can be kept; replans from few "
            "positions of the plan"
        ),
        f"{_IB03}, section 3, Fig. 3 (QoPS)",
        (
            Whole(
                "violations",
                5,
                0,
                1_000_000,
                "how many misses a position may have before the next is tried (K)",
            ),
            _KEY,
            Choice(
                "placing",
                "sorted",
                ("sorted", "head", "both"),
                "where a new job goes among those placed again",
            ),
            *_OTHERS,
        ),
        is_for_pools=True,
    ),
    "msb": PolicyEntry(
        _lazy("deadlines", "DeadlineScheduler", scheme="msb"),
        (
            "admits a job if its deadline and all accepted ones can be kept; tries every position "
            "of "
            "the plan, takes the cheapest"
        ),
        f"{_IB03}, section 2.2, Fig. 1 (modified slack-based)",
        (
            Choice(
                "order",
                "ast",
                ("ast", "llf", "edf"),
                "the order of the plan: planned start, or a key",
            ),
            Choice("price", "fraction", ("fraction", "delay", "makespan"), "what a plan costs"),
            *_OTHERS,
        ),
        is_for_pools=True,
    ),
    "mrt": PolicyEntry(
        _lazy("deadlines", "DeadlineScheduler", scheme="mrt"),
        (
            "admits a job if its deadline and all accepted ones can be kept; searches depth first, "
            "each step strongly feasible"
        ),
        f"{_IB03}, section 2.3, Fig. 2 (modified real-time); Ramamritham, Stankovic and Shiah 1990",
        (
            _KEY,
            Whole("backtracks", 10, 0, 1_000_000, "how many steps back a search may take"),
            *_OTHERS,
        ),
        is_for_pools=True,
    ),
    "slack": PolicyEntry(
        _lazy("deadlines", "DeadlineScheduler", scheme="slack"),
        (
            "promises each job a start within its slack, less for what is important or wide, and "
            "backfills by price"
        ),
        "Talby and Feitelson 1999",
        (
            Real("factor", 3.0, 0.0, 1e6, "the slack in mean waits (SF)"),
            Real(
                "administrative",
                1.0,
                0.001,
                1e6,
                "administrative priority, in addition to that of the user",
            ),
        ),
        is_for_pools=True,
    ),
}


POLICIES["taskqueues"] = PolicyEntry(
    _lazy("task_queues", "TaskQueues"),
    (
        "routes each task to a queue of one host on arrival; an idle host selects the next from "
        "its "
        "own queue"
    ),
    "Karatza and Hilzer 2003, section 2.2",
    (
        Choice(
            "routing",
            "shortest",
            ("probabilistic", "shortest"),
            "to any host, all equally likely, or to the shortest queue",
        ),
        Choice(
            "discipline",
            "fcfs",
            ("fcfs", "stf", "snutf", "lstf", "snutf-stf"),
            "first come; shortest estimate; fewest uncompleted tasks of its job; shortest, but "
            "sometimes the oldest; "
            "fewest uncompleted, ties by estimate",
        ),
        Whole("limit", 10, 1, 1_000_000, "after how many selections lstf takes the oldest task"),
        Choice("ties", "random", ("random", "lowest"), "the choice among several shortest queues"),
        Whole("seed", 0, 0, 2**31, "of the draws"),
    ),
    is_for_single_hosts=True,
)

_SCOJO = "Esbaugh and Sodan 2007 (SCOJO-PECT)"
_GROUPS = "thesis on group optimisation in SCOJO-PECT"
_SLICES = (
    Whole("cycle", 7200, 3, 10_000_000, "the length of one slice of each class together, seconds"),
    Whole("switch", 60, 0, 1_000_000, "the time between two slices in which no job runs, seconds"),
    Whole("short", 600, 1, 1_000_000, "the length of a slice of short jobs, seconds"),
    Whole("medium", 265, 1, 998, "the share of the time that medium jobs have, in thousandths"),
    Whole("long", 730, 1, 998, "the share of the time that long jobs have, in thousandths"),
    Whole(
        "night_medium",
        0,
        0,
        998,
        "the share of medium jobs at night, the rest for long ones; 0: as at daytime",
    ),
    Whole("night_from", 18, 0, 24, "the hour at which the night begins"),
    Whole("night_to", 8, 0, 24, "the hour at which the night ends"),
    Choice(
        "class_by",
        "estimate",
        ("estimate", "queue", "none"),
        "what determines the class of a job; none: one class for all",
    ),
    Choice(
        "backfill",
        "conservative",
        ("conservative", "easy"),
        "how jobs of a class are backfilled in its slice",
    ),
    Choice("smart", "yes", ("yes", "no"), "whether jobs of other classes use what a class leaves"),
)


def _slice_rules(values: dict[str, Any]) -> Any:
    from qbatch.policies.slice_rules import slice_rules

    night = (values.pop("night_medium"), values.pop("night_from"), values.pop("night_to"))
    lengths = {name: values.pop(name) for name in ("cycle", "switch", "short", "medium", "long")}
    is_easy, is_smart = values.pop("backfill") == "easy", values.pop("smart") == "yes"
    return slice_rules(
        **lengths, class_by=values.pop("class_by"), night=night, is_easy=is_easy, is_smart=is_smart
    )


def _scojo_groups(name: str, **values: Any) -> Policy:
    from qbatch.policies.groups import GroupRules, GroupScheduler, group_sizes

    rules = _slice_rules(values)
    sizes = group_sizes(
        *(values.pop(each) for each in ("least_medium", "most_medium", "least_long", "most_long"))
    )
    walk, budget = values.pop("search"), values.pop("budget")
    names = {
        "select": "selects",
        "shift": "shifts",
        "dynamic": "is_dynamic",
        "halves": "halves",
        "level1": "tries_wide",
        "level2": "searches",
    }
    flags = {field: values[each] == "yes" for each, field in names.items()}
    return GroupScheduler(name, rules, GroupRules(sizes, walk, budget, **flags))


def _switches(**meanings: str) -> tuple[Parameter, ...]:
    return tuple(Choice(name, "yes", ("yes", "no"), meaning) for name, meaning in meanings.items())


POLICIES |= {
    "scojo": PolicyEntry(
        lambda name, **values: _lazy("slices", "SliceScheduler")(name, rules=_slice_rules(values)),
        "short, medium and long jobs have the machine in turns, and use what other classes leave",
        f"{_SCOJO}; {_GROUPS}, section 4",
        _SLICES,
        is_interrupting=True,
    ),
    "scojo-groups": PolicyEntry(
        _scojo_groups,
        "scojo, with groups of medium and of long jobs planned in an order found by a search",
        f"{_GROUPS}, sections 6 and 7, on {_SCOJO}",
        (
            *_SLICES,
            Choice(
                "search",
                "ilds",
                ("ilds", "lex", "dds"),
                "the walk of the search through the orders",
            ),
            Whole(
                "budget",
                10_000,
                1,
                10_000_000,
                "the number of complete orders and cuts that ends a search",
            ),
            Whole(
                "least_medium", 10, 1, 1000, "the number of waiting medium jobs that forms a group"
            ),
            Whole("most_medium", 20, 1, 1000, "the longest group of medium jobs"),
            Whole("least_long", 5, 1, 1000, "the number of waiting long jobs that forms a group"),
            Whole("most_long", 30, 1, 1000, "the longest group of long jobs"),
            *_switches(
                select=(
                    "whether last end, utilisation and response choose among the three best orders"
                ),
                shift="whether jobs are tried in holes that are slightly too short",
                dynamic="whether jobs that fit start on arrival while a group is carried out",
                halves="whether the longest groups are searched in two halves",
                level1="whether all orders of the wide, lasting jobs are tried first",
                level2="whether the merged order is searched",
            ),
        ),
        is_interrupting=True,
    ),
    "bottom-line": PolicyEntry(
        lambda name, nodes, bound, **values: _lazy("groups", "BottomLine")(
            name,
            rules=_slice_rules(values),
            nodes=nodes,
            bound=bound * 3_600_000_000 if bound else None,
        ),
        (
            "scojo, in which a search for the least excessive wait, then the least slowdown, "
            "orders a "
            "class in every pass"
        ),
        f"Vasupongayya, Chiang and Massey 2005; {_GROUPS}, section 9.5",
        (
            *_SLICES,
            Whole("nodes", 1000, 1, 10_000_000, "the number of placements that ends a search"),
            Whole(
                "bound",
                0,
                0,
                1_000_000,
                "the longest wait in hours that is not excessive; 0: the longest wait so far",
            ),
        ),
        is_interrupting=True,
    ),
}


def load_policy(text: str) -> Policy:
    """Return the policy that a text such as ``hybrid:depth=4`` or ``mine:Smallest`` names.

    Raises:
        UsageError: for an unknown name or parameter (with the nearest known one), or a class that
            cannot be loaded.
    """
    head, _, tail = text.partition(":")
    if head in POLICIES:
        entry = POLICIES[head]
        pairs = [pair for pair in tail.split(",") if pair]
        if entry.is_wrapper:
            wrapped = _wrapped(head, entry, pairs, text)
            inner = POLICIES[wrapped.inner].make(wrapped.inner_name, **wrapped.inner_values)
            return entry.make(wrapped.name, inner=inner, **wrapped.values)
        values = read_parameters(pairs, entry.parameters, f"policy {text!r}")
        return entry.make(canonical_name(head, values, entry.parameters), **values)
    of_packages = announced()
    if head in of_packages:
        point = of_packages[head]
        try:
            made = point.load()
        except (Exception, SystemExit) as error:
            what = f"policy {text!r}: entry point {point.value!r}"
            raise UsageError(f"{what} cannot be loaded: {_one_line(error)}") from error
        return _make(made, tail, text)
    if own_class(text) is not None:
        return _own(head, tail, text)
    known = [*POLICIES, *of_packages]
    raise UsageError(
        f"policy {text!r}: there is no policy {head!r}{suggestion(head, known)} (known: "
        f"{', '.join(known)}; "
        "or module:Class for one of your own)"
    )


def announced() -> dict[str, EntryPoint]:
    """Return the policies that installed packages announce, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def own_class(text: str) -> str | None:
    """Return the ``module:Class`` of a user's own policy in a text; None if the text has another
    form or the registry knows its name.  Nothing is loaded.
    """
    head, _, tail = text.partition(":")
    name = tail.partition(":")[0]
    if head in POLICIES or not name or "=" in name or head in announced():
        return None
    return f"{head}:{name}"


def canonical_text(text: str) -> str | None:
    """Return the canonical name of a registered policy written as ``text``; None for a user's own.
    Nothing is loaded.

    Raises:
        UsageError: for an unknown name or parameter of a registered policy.
    """
    head, _, tail = text.partition(":")
    if head not in POLICIES:
        return None
    entry, pairs = POLICIES[head], [pair for pair in tail.split(",") if pair]
    if entry.is_wrapper:
        return _wrapped(head, entry, pairs, text).name
    return canonical_name(
        head, read_parameters(pairs, entry.parameters, f"policy {text!r}"), entry.parameters
    )


def name_among(text: str, names: Iterable[str]) -> str:
    """Return the name in ``names`` of the policy written as ``text``: the text itself, or its
    canonical name.

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
        [pair.removeprefix("inner.") for pair in pairs if pair not in own],
        known,
        f"policy {text!r}, inner",
    )
    inner_name = canonical_name(inner, inner_values, known)
    name = canonical_name(head, {**values, "inner": inner}, entry.parameters)
    of_inner = [f"inner.{pair}" for pair in inner_name.partition(":")[2].split(",") if pair]
    name = f"{name}{',' if ':' in name else ':'}{','.join(of_inner)}" if of_inner else name
    return _Wrapped(name, values, inner, inner_name, inner_values)


def _own(module: str, tail: str, text: str) -> Policy:
    name, _, parameters = tail.partition(":")
    if module.endswith(".py"):
        meant = f"{os.path.basename(module).removesuffix('.py')}:{tail}"
        raise UsageError(
            f"policy {text!r}: {module!r} is a file; name its module: {meant}, if the file is in "
            "the current folder or in one "
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
        raise UsageError(
            f"policy {text!r}: module {module!r} cannot be imported: {_one_line(error)}"
        ) from error
    return _make(made, parameters, text)


def _make(made: Any, parameters: str, text: str) -> Policy:
    """Call a policy class with its parameters, as whole numbers if they look like it."""
    values: dict[str, int | str] = {}
    for pair in filter(None, parameters.split(",")):
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
