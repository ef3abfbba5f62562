"""The registry's entries of the time-shared policies."""

from __future__ import annotations

from typing import Any

from qbatch.model.parameters import Choice, Parameter, Whole
from qbatch.planning.policy import Policy
from qbatch.policies.entry import PolicyEntry

_SCOJO = "Esbaugh and Sodan 2007 (SCOJO-PECT)"
_GROUPS = "thesis on group optimisation in SCOJO-PECT"
_SLICES = (
    Whole("cycle", 7200, 3, 10_000_000, "the length of one slice of each class together, seconds"),
    Whole("switch", 60, 0, 1_000_000, "the time between two slices in which no job runs, seconds"),
    Whole("short", 600, 1, 1_000_000, "the length of a slice of short jobs, seconds"),
    Whole("medium", 265, 1, 998, "the share of the time that medium jobs have, in thousandths"),
    Whole("long", 730, 1, 998, "the share of the time that long jobs have, in thousandths"),
    Whole("night_medium", 0, 0, 998, "the share of medium jobs at night, the rest for long ones; 0: as at daytime"),
    Whole("night_from", 18, 0, 24, "the hour at which the night begins"),
    Whole("night_to", 8, 0, 24, "the hour at which the night ends"),
    Choice("class_by", "estimate", ("estimate", "queue", "none"), "what determines the class of a job; none: one class for all"),
    Choice("backfill", "conservative", ("conservative", "easy"), "how jobs of a class are backfilled in its slice"),
    Choice("smart", "yes", ("yes", "no"), "whether jobs of other classes use what a class leaves"),
)


def _slice_rules(values: dict[str, Any]) -> Any:
    from qbatch.policies.slice_rules import slice_rules

    night = (values.pop("night_medium"), values.pop("night_from"), values.pop("night_to"))
    lengths = {name: values.pop(name) for name in ("cycle", "switch", "short", "medium", "long")}
    is_easy, is_smart = values.pop("backfill") == "easy", values.pop("smart") == "yes"
    return slice_rules(**lengths, class_by=values.pop("class_by"), night=night, is_easy=is_easy, is_smart=is_smart)


def _scojo(name: str, **values: Any) -> Policy:
    from qbatch.policies.slices import SliceScheduler

    return SliceScheduler(name, _slice_rules(values))


def _scojo_groups(name: str, **values: Any) -> Policy:
    from qbatch.policies.groups import GroupRules, GroupScheduler, group_sizes

    rules = _slice_rules(values)
    sizes = group_sizes(*(values.pop(each) for each in ("least_medium", "most_medium", "least_long", "most_long")))
    walk, budget = values.pop("search"), values.pop("budget")
    names = {
        "select": "selects", "shift": "shifts", "dynamic": "is_dynamic", "halves": "halves", "level1": "tries_wide",
        "level2": "searches",
    }  # fmt: skip
    flags = {field: values[each] == "yes" for each, field in names.items()}
    return GroupScheduler(name, rules, GroupRules(sizes, walk, budget, **flags))


def _bottom_line(name: str, nodes: int, bound: int, **values: Any) -> Policy:
    from qbatch.policies.groups import BottomLine

    return BottomLine(name, _slice_rules(values), nodes, bound * 3_600_000_000 if bound else None)


def _switches(**meanings: str) -> tuple[Parameter, ...]:
    return tuple(Choice(name, "yes", ("yes", "no"), meaning) for name, meaning in meanings.items())


SLICE_POLICIES: dict[str, PolicyEntry] = {
    "scojo": PolicyEntry(
        _scojo,
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
            Choice("search", "ilds", ("ilds", "lex", "dds"), "the walk of the search through the orders"),
            Whole("budget", 10_000, 1, 10_000_000, "the number of complete orders and cuts that ends a search"),
            Whole("least_medium", 10, 1, 1000, "the number of waiting medium jobs that forms a group"),
            Whole("most_medium", 20, 1, 1000, "the longest group of medium jobs"),
            Whole("least_long", 5, 1, 1000, "the number of waiting long jobs that forms a group"),
            Whole("most_long", 30, 1, 1000, "the longest group of long jobs"),
            *_switches(
                select="whether last end, utilisation and response choose among the three best orders",
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
        _bottom_line,
        "scojo, in which a search for the least excessive wait, then the least slowdown, orders a class in every pass",
        f"Vasupongayya, Chiang and Massey 2005; {_GROUPS}, section 9.5",
        (
            *_SLICES,
            Whole("nodes", 1000, 1, 10_000_000, "the number of placements that ends a search"),
            Whole("bound", 0, 0, 1_000_000, "the longest wait in hours that is not excessive; 0: the longest wait so far"),
        ),
        is_interrupting=True,
    ),
}
"""The policies by name."""
