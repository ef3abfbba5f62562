"""Rules by which OpenPBS refuses a well-formed list of resources: unknown resources, and two ways
of asking at once.

Source: OpenPBS pbs_error.h (PBSE_UNKRESC, PBSE_INVALJOBRESC, PBSE_INVALNODEPLACE,
PBSE_PLACENOSELECT, PBSE_DUPRESC) and svr_jobfunc.c, make_schedselect.  A server's configuration can
relax them: ``custom_resources`` are what ``qmgr`` makes with ``create resource``, and ``lenient``
names the rules below that the server does not apply.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from qbatch.wire.resources import RESOURCES_OF_CHUNKS, RESOURCES_OF_JOBS, Demand

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

UNCOUNTED = ("ngpus", "gpus", "nmics", "mics", "naccelerators", "accelerator", "accelerator_model")
"""Resources that PBS knows and no host here has: a job that asks for one would be treated as if it
asked for none."""


def refused_resource(
    resources: Mapping[str, str], demand: Demand, custom: Collection[str], lenient: Collection[str]
) -> tuple[str, str] | None:
    """Return the code and the reason of a refusal of resources, None if they are accepted.

    ``custom``: resources that the server knows in addition to those of PBS; ``lenient``: keys of
    ``LENIENCIES``.
    """
    if "resources" not in lenient:
        unknown = unknown_resource(resources, demand, custom)
        if unknown is not None:
            return "unknown-resource", unknown
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
    if "nodes" in resources and "place" in resources:
        return (
            "place-beside-nodes",
            'Cannot be used with "select" or "place": nodes (nodes=2#excl takes whole hosts)',
        )
    if "select" in resources and "select" not in lenient:
        other = next((name for name in resources if name in RESOURCES_OF_CHUNKS), None)
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
    resources: Mapping[str, str], demand: Demand, custom: Collection[str]
) -> str | None:
    """Return a message about the first resource that the server does not know or cannot count, None
    if there is none."""
    names, what = (
        (_NODE_WORDS, "node property")
        if "nodes" in resources
        else (RESOURCES_OF_CHUNKS, "resource")
    )
    asked: list[tuple[str, str, Collection[str], str]]
    asked = [(name, value, RESOURCES_OF_JOBS, "resource") for name, value in resources.items()]
    asked += [
        (name, value, names, what) for chunk in demand.chunks for name, value in chunk.other.items()
    ]
    for name, value, known, what in asked:
        if name in custom:
            continue
        if name not in known:
            return f"Unknown {what}: {name} (a server knows those of PBS and its custom_resources)"
        if name in UNCOUNTED and value.strip("0"):  # ngpus=0 asks for none
            return (
                f"Unknown resource: {name} (no host of this server has any; leave it out, or name "
                "it in the server's "
                "custom_resources: then it is shown and never counted)"
            )
    return None
