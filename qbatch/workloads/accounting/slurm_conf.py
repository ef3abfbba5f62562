"""The hosts and partitions of a ``slurm.conf``, as a machine (slurm.conf(5) of Slurm 22.05;
docs/spec/production.md, section 7).

It is a first reader: nodes with processors, memory, GPUs, features and weight; partitions with their
nodes, times, sizes, tiers, billing and exclusive nodes; licences.  Everything else is named and not
used.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import msgspec

from qbatch.model.errors import InputError
from qbatch.model.machine import (
    CPUS_BILLED,
    EXCLUSIVE,
    MEMORY_BILLED,
    SHARED,
    USUAL_PRIORITY,
    USUAL_TIER,
    Host,
    Machine,
    Partition,
    server_host,
)
from qbatch.model.site_tables import MOST_TIER, MOST_WEIGHT
from qbatch.workloads.accounting.sacct import host_names
from qbatch.workloads.accounting.slurm_reservations import read_reservations
from qbatch.workloads.accounting.times import slurm_span

_PAIR = re.compile(r'([A-Za-z]\w*)=("[^"]*"|\S*)')
_GRES = re.compile(r"([A-Za-z][\w-]*)(?::([A-Za-z][\w.-]*))?(?::(\d+))?(?:\(.*\))?\Z")
_OF_NODES = frozenset(
    (
        "nodename",
        "cpus",
        "boards",
        "sockets",
        "socketsperboard",
        "corespersocket",
        "threadspercore",
        "realmemory",
        "gres",
        "feature",
        "features",
        "weight",
    )
)
_ADDRESSES = frozenset(("nodeaddr", "nodehostname", "port", "bcastaddr", "state", "reason"))
_OF_PARTITIONS = frozenset(
    (
        "partitionname",
        "nodes",
        "default",
        "maxtime",
        "defaulttime",
        "minnodes",
        "maxnodes",
        "maxmempercpu",
        "oversubscribe",
        "prioritytier",
        "tresbillingweights",
        "priorityjobfactor",
        "qos",
    )
)
_WITHOUT_EFFECT = frozenset(("state",))
_MOST_INCLUDED = 16
_SHOWN = 5
_UNLIMITED = frozenset(("UNLIMITED", "INFINITE", "-1"))
_WEIGHT = re.compile(r"([A-Za-z][\w/:.-]*)=(\d+(?:\.\d*)?|\.\d+)([KMGTP]?)\Z", re.IGNORECASE)
_UNITS_OF_A_GB = {"K": 2**20, "M": 2**10, "": 2**10, "G": 1, "T": 2**-10, "P": 2**-20}
"""How many of each unit of memory are 2**30 bytes; without one it is MB (slurm.conf(5))."""


class SlurmSite(NamedTuple):
    """A machine, and what of the file does not count in it, in words.

    ``is_time_sliced``: gang scheduling (``PreemptMode=GANG``) may give processors to jobs of several
    partitions at once.  ``settings``: the value and the place of every other line, by name in small
    letters.  ``partition_qos``: the QOS of each partition that has one.
    """

    machine: Machine
    remarks: tuple[str, ...]
    is_time_sliced: bool = False
    settings: Mapping[str, tuple[str, str]] = {}
    partition_qos: Mapping[str, str] = {}


def read_site(conf: str, reservations: str | None = None) -> SlurmSite:
    """Return the machine of a configuration file, with the reservations of another file."""
    site = read_slurm_conf(conf)
    if reservations is None:
        return site
    kept, remarks = read_reservations(reservations, site.machine)
    machine = msgspec.structs.replace(site.machine, reservations=kept)
    return site._replace(machine=machine, remarks=(*site.remarks, *remarks))


def other_cluster(machine: Machine, clusters: Iterable[str], hosts: Collection[str]) -> list[str]:
    """Return what shows that a machine is not the cluster of some jobs, in words.

    ``clusters``: those that the records name; ``hosts``: those on which the jobs ran.
    """
    named = sorted(filter(None, clusters))
    found = []
    if named and machine.name and machine.name.lower() not in map(str.lower, named):
        found.append(f"ClusterName is {machine.name}, and the records are of {', '.join(named)}")
    missing = sorted(set(hosts).difference(host.name for host in machine.real_hosts))
    if missing:
        shown = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        found.append(
            f"{len(missing):,} of {len(hosts):,} hosts on which jobs ran are not in it: {shown}"
        )
    return found


def read_slurm_conf(path: str) -> SlurmSite:
    """Return the machine of a configuration file.

    Hosts come in order of weight, then of the file: that is the order in which Slurm and a replay
    try them.

    Raises:
        InputError: names the file, the line and the reason.
    """
    nodes: dict[str, tuple[int, Host]] = {}
    partitions: list[tuple[dict[str, str], str]] = []
    licences: dict[str, int] = {}
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
    unused: Counter[str] = Counter()
    names = ("selecttypeparameters", "preemptmode", "clustername", "priorityflags")
    settings, others = dict.fromkeys(names, ""), dict[str, tuple[str, str]]()
    for place, pairs in conf_lines(path):
        kind = next(iter(pairs))
        if kind in defaults:
            name = pairs[kind]
            if name.upper() == "DEFAULT":
                defaults[kind] |= pairs
                continue
            pairs = defaults[kind] | pairs
        if kind == "nodename":
            unused.update(f"{name} of nodes" for name in pairs.keys() - _OF_NODES - _ADDRESSES)
            for weight, host in _hosts(pairs, place):
                if host.name in nodes:
                    raise InputError(f"{place}: the node {host.name!r} appears twice")
                nodes[host.name] = weight, host
        elif kind == "partitionname":
            extra = pairs.keys() - _OF_PARTITIONS - _WITHOUT_EFFECT
            unused.update(f"{name} of partitions" for name in extra)
            partitions.append((pairs, place))
        elif kind == "licenses":
            licences |= _licences(pairs[kind], place)
        else:
            others[kind] = pairs[kind], place
            if kind in settings:
                settings[kind] = pairs[kind]
    if not nodes:
        raise InputError(f"{path}: it has no NodeName line; name the slurm.conf of the cluster")
    hosts = [host for _, host in sorted(nodes.values(), key=lambda pair: pair[0])]
    counts_memory = "MEMORY" in settings["selecttypeparameters"].upper()
    if not counts_memory:
        hosts = [msgspec.structs.replace(host, memory=0) for host in hosts]
    places = {host.name: number for number, host in enumerate(hosts)}
    counted = {name for host in hosts for name, _ in host.resources} | licences.keys()
    machine = Machine(
        (*hosts, server_host(tuple(licences.items()))) if licences else tuple(hosts),
        name=settings["clustername"],
        chunked=True,
        partitions=tuple(_partition(*each, places, counted, unused) for each in partitions),
    )
    sharing = [(pairs["partitionname"], pairs.get("oversubscribe", "")) for pairs, _ in partitions]
    remarks = _remarks(unused, sharing, machine, settings, counts_memory=counts_memory)
    return SlurmSite(
        machine,
        tuple(remarks),
        "GANG" in settings["preemptmode"].upper(),
        others,
        {pairs["partitionname"]: pairs["qos"] for pairs, _ in partitions if pairs.get("qos")},
    )


def _remarks(
    unused: Counter[str],
    sharing: Sequence[tuple[str, str]],
    machine: Machine,
    settings: Mapping[str, str],
    *,
    counts_memory: bool,
) -> Iterator[str]:
    """Yield what does not count; ``sharing``: ``OverSubscribe`` by the name of the partition."""
    for name, count in sorted(unused.items()):
        yield f"{name}: does not count ({count} times)"
    for name, text in sharing:
        value = text.upper()
        if value.startswith(("YES", "FORCE")) and value != "FORCE:1":
            yield f"oversubscribe={value} of partition {name}: does not count"
    has_billing = any(each.billing for each in machine.partitions)
    if has_billing and "MAX_TRES" in settings["priorityflags"].upper():
        yield "priorityflags=MAX_TRES: does not count; billing is the sum of all weights"
    if not counts_memory:
        yield "memory does not count: SelectTypeParameters names no memory"


def conf_lines(path: str, within: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each line's place and its pairs, names in small letters; a backslash joins lines.
    ``Include`` reads another file, next to this one if its name is relative."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    pending, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(?<!\\)#.*", "", line).rstrip()
        first = first or number
        if line.endswith("\\"):
            pending += line[:-1]
            continue
        whole, pending = (pending + line).strip(), ""
        place, first = f"{path}: line {first}", 0
        if whole.lower().startswith("include "):
            within = within or (path,)
            named = os.path.join(os.path.dirname(path), whole[8:].strip())
            if len(within) == _MOST_INCLUDED or named in within:
                raise InputError(f"{place}: files include each other: {', '.join(within)}")
            yield from conf_lines(named, (*within, named))
        elif whole:
            pairs = {name.lower(): value.strip('"') for name, value in _PAIR.findall(whole)}
            if not pairs:
                raise InputError(f"{place}: {whole[:40]!r} is not Name=value")
            yield place, pairs


def _hosts(pairs: dict[str, str], place: str) -> Iterator[tuple[int, Host]]:
    """Yield weight and host of each node of a line."""

    def whole(name: str, default: int) -> int:
        text = pairs.get(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise InputError(f"{place}: {name} {text[:40]!r} is not a whole number")
        return int(text)

    sockets = whole("boards", 1) * whole("socketsperboard", 1)
    sockets = whole("sockets", sockets)
    built = sockets * whole("corespersocket", 1) * whole("threadspercore", 1)
    cpus, memory = whole("cpus", built), whole("realmemory", 1) << 20
    resources: dict[str, int] = {}
    for part in filter(None, re.split(r",(?![^(]*\))", pairs.get("gres", ""))):
        found = _GRES.match(part)
        if found is None:
            raise InputError(f"{place}: Gres {part[:40]!r} is not name:type:number")
        name, kind, amount = found[1].lower(), found[2], int(found[3] or 1)
        if kind and any(each.startswith(f"{name}:") for each in resources):
            raise InputError(
                f"{place}: a node has {name} of two types; that is not supported yet: name one"
            )
        resources[name] = resources.get(name, 0) + amount
        if kind:
            resources[f"{name}:{kind}"] = amount
    features = pairs.get("features", pairs.get("feature", ""))
    for name in host_names(pairs["nodename"]):
        yield (
            whole("weight", 1),
            Host(
                name,
                cpus,
                memory,
                resources=tuple(resources.items()),
                features=tuple(filter(None, features.split(","))),
                weight=whole("weight", 1),
            ),
        )


def _licences(text: str, place: str) -> dict[str, int]:
    """Return the amounts of ``matlab:20,ansys`` (no number: one)."""
    found: dict[str, int] = {}
    for part in filter(None, re.split(r"[,;]", text)):
        name, _, amount = part.strip().partition(":")
        if not name or (amount and not (amount.isascii() and amount.isdigit())):
            raise InputError(f"{place}: Licenses {part[:40]!r} is not name:number")
        found[name] = found.get(name, 0) + int(amount or 1)
    return found


def _billing(
    text: str, place: str, counted: Set[str], unused: Counter[str]
) -> tuple[tuple[str, float], ...]:
    """Return the weights of ``CPU=1.0,Mem=0.25G,GRES/gpu=2.0,License/matlab=1``; what the machine
    does not count is named in ``unused``."""
    known = {name.lower(): name for name in counted}
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        match = _WEIGHT.match(part.strip())
        name, unit = (match[1].lower(), match[3].upper()) if match else ("", "")
        weight = float(match[2]) if match else -1.0
        if match is None or (unit and name not in ("mem", "bb")) or weight > MOST_WEIGHT:
            shown = part.strip()[:40]
            raise InputError(f"{place}: TRESBillingWeights {shown!r} is not name=weight")
        kind, slash, rest = name.partition("/")
        if name == "cpu":
            found[CPUS_BILLED] = weight
        elif name == "mem":
            found[MEMORY_BILLED] = weight * _UNITS_OF_A_GB[unit]
        elif slash and kind in ("gres", "license") and rest in known:
            found[known[rest]] = weight
        else:
            unused[f"{name} of tresbillingweights"] += 1
    return tuple(found.items())


def _partition(
    pairs: dict[str, str],
    place: str,
    places: dict[str, int],
    counted: Set[str],
    unused: Counter[str],
) -> Partition:
    """Return the partition of a line.  ``OverSubscribe=EXCLUSIVE`` gives its jobs whole nodes.

    ``counted``: the named resources of the machine; ``unused``: counts what does not count.
    """
    nodes, chosen = pairs.get("nodes", ""), set()
    for each in places if nodes.upper() == "ALL" else host_names(nodes):
        if each not in places:
            raise InputError(f"{place}: there is no node {each!r}; its NodeName line is missing")
        chosen.add(places[each])

    def minutes(name: str) -> int:
        text = pairs.get(name, "")
        if not text or text.upper() in _UNLIMITED:
            return 0
        is_number = text.isascii() and text.isdigit() and len(text) < 10
        seconds = int(text) * 60 if is_number else slurm_span(text)
        if seconds < 0:
            raise InputError(f"{place}: {name} {text[:40]!r} is neither minutes nor a time")
        return round(seconds * 1_000_000)

    def whole(name: str) -> int:
        text = pairs.get(name, "")
        if not text or text.upper() in _UNLIMITED:
            return 0
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise InputError(f"{place}: {name} {text[:40]!r} is not a whole number")
        return int(text)

    tier = whole("prioritytier") if "prioritytier" in pairs else USUAL_TIER
    if tier > MOST_TIER:
        raise InputError(f"{place}: prioritytier {tier} is above {MOST_TIER}")
    is_exclusive = pairs.get("oversubscribe", "").upper() == "EXCLUSIVE"
    return Partition(
        pairs["partitionname"],
        tuple(sorted(chosen)),
        pairs.get("default", "").upper() == "YES",
        minutes("defaulttime"),
        minutes("maxtime"),
        whole("minnodes"),
        whole("maxnodes"),
        whole("maxmempercpu") << 20,
        EXCLUSIVE if is_exclusive else SHARED,
        tier,
        _billing(pairs.get("tresbillingweights", ""), place, counted, unused),
        whole("priorityjobfactor") if "priorityjobfactor" in pairs else USUAL_PRIORITY,
    )
