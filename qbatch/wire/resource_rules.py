"""Rules by which OpenPBS refuses a well-formed list of resources: unknown resources, and two ways
of asking at once.

Source: OpenPBS pbs_error.h (PBSE_UNKRESC, PBSE_INVALJOBRESC, PBSE_INVALNODEPLACE,
PBSE_PLACENOSELECT, PBSE_DUPRESC) and svr_jobfunc.c, make_schedselect.  A server's configuration can
relax them: ``custom_resources`` are what ``qmgr`` makes with ``create resource``, and ``lenient``
names the rules below that the server does not apply.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from qbatch.wire.resource_values import (
    OWN_RESOURCES,
    READ_ONLY,
    RESOURCES,
    TORQUE_RESOURCES,
    known_name,
)
from qbatch.wire.resources import Demand

LENIENCIES = {
    "resources": "accept and show unknown resources, as if they were custom ones",
    "select": "accept resources of the whole job, such as ncpus, together with select= or place=",
    "place": "accept place= without select=",
    "array": "accept an array of one index, -J 3",
    "server": "take another server, as in -q queue@other or qstat 1@other, for this one",
    "user": "ignore -u and -W group_list with a user or a group other than the submitter's",
}
"""The rules that a server can relax, and what it does then."""

_NODE_WORDS = ("host", "vnode", "gpus", "mics", "ngpus", "nmics")

_ONLY_IF_COUNTED = ("ngpus",)
# A site makes this resource with qmgr: without hosts that have it, not even 0 is known.

UNCOUNTED = (
    "ngpus",
    "gpus",
    "nmics",
    "mics",
    "naccelerators",
    "accelerator",
    "accelerator_group",
    "accelerator_memory",
    "accelerator_model",
    "hbmem",
    "aoe",
    "eoe",
    "vntype",
)
"""Resources that PBS knows, and that no host has if the machine of its pool does not say so: a job
that asks for one would be treated as if it asked for none."""


def refused_resource(
    resources: Mapping[str, str],
    demand: Demand,
    custom: Collection[str],
    lenient: Collection[str],
    *,
    is_torque: bool = False,
) -> tuple[str, str] | None:
    """Return the code and the reason of a refusal of resources, None if they are accepted.

    ``custom``: resources that the server knows in addition to those of PBS, and those that its hosts
    count; ``lenient``: keys of ``LENIENCIES``.
    """
    unknown = unknown_resource(
        resources, demand, custom, is_torque=is_torque, is_lenient="resources" in lenient
    )
    if unknown is not None:
        return unknown
    groups = [word for word in resources.get("place", "").split(":") if word.startswith("group=")]
    if any(word not in ("group=host", "group=vnode") for word in groups):
        return (
            "unsupported",
            (
                f"place={resources['place']}: {groups[0]} cannot be honoured: hosts have no such "
                "resource"
            ),
        )
    if groups and demand.placing == "scatter":
        return (
            "bad-value",
            f"place={resources['place']}: chunks cannot be on one host and on different ones",
        )
    if "select" in resources and "select" not in lenient:
        other = next(
            (name for name in resources if name in RESOURCES and RESOURCES[name].in_chunk), None
        )
        if other is not None:
            return (
                "resource-beside-select",
                (
                    f'"-lresource=" cannot be used with "select" or "place", resource is: {other} '
                    "(write it into select)"
                ),
            )
    if "place" in resources and "select" not in resources and "place" not in lenient:
        return "place-without-select", 'Cannot have "place" without "select" (add select=1:ncpus=1)'
    return None


def unknown_resource(
    resources: Mapping[str, str],
    demand: Demand,
    custom: Collection[str],
    *,
    is_torque: bool = False,
    is_lenient: bool = False,
) -> tuple[str, str] | None:
    """Return the code and a message about the first resource that the server does not know, cannot
    count or sets itself, None if there is none.

    ``is_lenient``: unknown ones are taken, but not those that are nearly known ones.
    """
    known = {**RESOURCES, **OWN_RESOURCES, **(TORQUE_RESOURCES if is_torque else {})}
    for name, value in resources.items():
        if name in custom:
            continue
        if name in READ_ONLY:
            return (
                "read-only",
                f"Cannot set attribute, read only or insufficient permission  Resource_List.{name}",
            )
        is_unknown = name not in known or name in _ONLY_IF_COUNTED
        if (is_unknown or (name in UNCOUNTED and value.strip("0"))) and (
            not is_lenient or _near(name, known)
        ):
            return "unknown-resource", f"Unknown resource Resource_List.{name}{_hint(name, known)}"
    is_of_nodes = "nodes" in resources
    in_chunk = [name for name, each in RESOURCES.items() if each.in_chunk]
    for chunk in demand.chunks:
        for name, value in chunk.other.items():
            if name in custom:
                continue
            if not is_of_nodes and name in known and name not in in_chunk:
                return (
                    "not-in-chunk",
                    f'Resource invalid in "select" specification: {name} (write -l {name}={value})',
                )
            words = _NODE_WORDS if is_of_nodes else in_chunk
            what = "node property" if is_of_nodes and name not in UNCOUNTED else "resource"
            is_unknown = name not in words or (name in _ONLY_IF_COUNTED and not is_of_nodes)
            if (is_unknown or (name in UNCOUNTED and value.strip("0"))) and (
                not is_lenient or _near(name, words)
            ):
                return "unknown-resource", f"Unknown {what}: {name}{_hint(name, words)}"
    return None


_NO_HOST = (
    " (no host of this server has any; leave it out, or name it in the server's custom_resources: "
    "then it is shown and never counted)"
)


def _near(name: str, known: Collection[str]) -> str:
    """Return the known name of which this one may be a misspelling; empty if there is none."""
    from difflib import get_close_matches

    if name in UNCOUNTED:
        return ""
    return next(iter(get_close_matches(known_name(name), known, n=1, cutoff=0.8)), "")


def _hint(name: str, known: Collection[str]) -> str:
    if name in UNCOUNTED:
        return _NO_HOST
    near = _near(name, known)
    if near:
        return f" (did you mean {near!r}?)"
    return " (a server knows those of PBS and its custom_resources)"
