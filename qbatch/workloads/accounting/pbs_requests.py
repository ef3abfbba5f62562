"""What a record of PBS asks for: the fields of ``Resource_List`` (``select``, ``nodes``, ``place``,
``mem``, ``ngpus`` and others), as a request for hosts, and as what a log leaves out.

A chunk of ``select`` has amounts, and words that distinguish hosts.  An amount that is asked for
the whole job and by no chunk is one of the server (docs/spec/production.md 1.2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from qbatch.model.job import FREE, PACK, SCATTER, SERVER, ChunkRequest, JobRequest
from qbatch.workloads import left_out
from qbatch.workloads.accounting.record import ABSENT, COUNT_MAX, whole_number
from qbatch.workloads.left_out import Asks

REMEMBERED = 4096
"""How many different texts a cache keeps."""

IN_THE_LOG = frozenset(
    (
        "walltime",
        "min_walltime",
        "max_walltime",
        "soft_walltime",
        "ncpus",
        "ppn",
        "procs",
        "nodect",
        "neednodes",
        "mpiprocs",
        "ompthreads",
        "cput",
        "pcput",
        "nice",
        "mppwidth",
        "mppdepth",
        "mppnppn",
    )
)
"""Resources that a log contains, or that do not limit what jobs share."""

_MEMORIES = frozenset(("mem", "pmem", "vmem", "pvmem", "mppmem"))
_GPU = re.compile(r"n?gpus?\Z|n?accelerators?\Z")
_LICENCE = re.compile(r"software\Z|(?:.*_)?(?:lics?|licen[cs]es?|tokens?)(?:_.*)?\Z")
_AMOUNT = re.compile(r"\d+(?:\.\d+)?(?:[kmgtp]?[bw])?\Z", re.IGNORECASE)
_SIZE = re.compile(r"(\d{1,18})([kmgtp]?)(b|w)?\Z", re.ASCII)
_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}


@lru_cache(maxsize=REMEMBERED)
def asks_of(listed: tuple[tuple[str, str], ...], qos: str, reservation: str) -> Asks:
    """Return the requests in a job's listed resources, its QOS and its reservation."""
    asks = {
        (kind, name)
        for kind, name in ((left_out.QOS, qos), (left_out.RESERVATIONS, reservation))
        if name
    }
    for name, value in listed:
        is_exclusive = False
        # 2:ncpus=4:ngpus=1 (select), 2:ppn=4:gpus=1:bigmem or n7:ppn=4 (nodes)
        if name in ("select", "nodes"):
            chunks, _, rest = value.partition("#")
            is_exclusive = "excl" in rest
            for part in re.split("[+:]", chunks):
                resource, equals, wanted = part.strip().partition("=")
                if equals:
                    asks |= _ask(resource, wanted)
                elif resource and not resource.isdigit():
                    asks.add((left_out.FEATURES, resource))
        elif name == "place":
            is_exclusive = "excl" in value
        elif name == "naccesspolicy":
            is_exclusive = value.lower().startswith("single")
        elif name != "qos":
            asks |= _ask(name, value)
        if is_exclusive:
            asks.add((left_out.EXCLUSIVE, ""))
    return tuple(sorted(asks))


def _ask(name: str, value: str) -> set[tuple[str, str]]:
    """Return the request of one resource: amounts are consumed, words distinguish hosts."""
    if name in IN_THE_LOG or value == "0":
        return set()
    if name in _MEMORIES:
        return {(left_out.MEMORY, "")}
    if _GPU.match(name):
        return {(left_out.GPUS, name)}
    if _LICENCE.match(name):
        return {(left_out.LICENCES, value if name == "software" else name)}
    if _AMOUNT.match(value):
        return {(left_out.OTHERS, name)}
    return {(left_out.FEATURES, name if value == "True" else f"{name}={value}")}


@lru_cache(maxsize=REMEMBERED)
def chunk_sums(text: str) -> tuple[int, int]:
    """Return the chunks and the processors of ``2:ncpus=4+1`` (select) or ``2:ppn=4+n7``
    (nodes)."""
    nodes = cores = 0
    for chunk in _chunks(text):
        nodes += chunk.many
        cores += chunk.many * chunk.procs
    return (nodes, cores) if 0 < cores <= COUNT_MAX and nodes <= COUNT_MAX else (ABSENT, ABSENT)


class _Chunk(NamedTuple):
    """``many`` equal chunks: processors, bytes of memory, named amounts, features of their hosts.

    ``is_said``: whether that is all, as no line of a side file asks for a host by name, an amount
    that is no whole number, or the absence of a feature.
    """

    many: int
    procs: int
    memory: int
    amounts: tuple[tuple[str, int], ...]
    features: tuple[str, ...]
    is_said: bool


@lru_cache(maxsize=REMEMBERED)
def _chunks(text: str) -> tuple[_Chunk, ...]:
    return tuple(map(_chunk, text.partition("#")[0].split("+")))


def _chunk(text: str) -> _Chunk:
    first, *words = text.split(":")
    count, is_said = whole_number(first.strip()), True
    if count < 0:
        words, count, is_said = ([*words, first] if "=" in first else words), 1, "=" in first
    procs, memory, kind = 1, 0, ""
    amounts: dict[str, int] = {}
    features: list[str] = []
    for word in words:
        name, equals, value = word.strip().partition("=")
        number = whole_number(value)
        if name in ("ppn", "ncpus"):
            procs = max(number, 0)
        elif name == "mem":
            memory = max(bytes_of(value), 0)
        elif name in IN_THE_LOG or name in _MEMORIES or not name:
            continue
        elif name == "accelerator_model":
            kind = value
        elif _GPU.match(name) and number >= 0:
            amounts["gpu"] = amounts.get("gpu", 0) + number
        elif number >= 0:
            amounts[name] = number
        elif not equals or value.lower() == "true":
            features.append(name)
        elif name in ("host", "vnode") or value.lower() == "false" or _AMOUNT.match(value):
            is_said = False
        else:
            features.append(f"{name}={value}")
    if kind and amounts.get("gpu"):
        amounts[f"gpu:{kind}"] = amounts["gpu"]
    there = tuple((name, amount) for name, amount in amounts.items() if amount)
    return _Chunk(count, procs, memory, there, tuple(features), is_said)


@lru_cache(maxsize=REMEMBERED)
def bytes_of(text: str | None) -> int:
    """Return the bytes of ``100mb``, ``512kb``, ``1234b``, ``12gw`` (words of eight bytes);
    ``ABSENT`` for anything else."""
    found = _SIZE.match(text.lower()) if text else None
    if found is None:
        return ABSENT
    return min(int(found[1]) * _SIZES[found[2]] * (8 if found[3] == "w" else 1), 2**60)


class Asked(NamedTuple):
    """What a job asks for; ``is_whole``: whether that is all (not a host by name, an amount that is
    no whole number, or the absence of a feature)."""

    request: JobRequest
    is_whole: bool


def request_of(listed: Mapping[str, str], reservation: str = "") -> Asked | None:
    """Return what a job asks for; ``listed``: the fields of ``Resource_List``, without this word.

    None: they name neither chunks nor processors, or in the terms of a Cray.
    """
    names = ("select", "nodes", "neednodes")
    text = next((listed[name] for name in names if listed.get(name)), "")
    if not text and "procs" in listed:
        text = listed["procs"]  # so many chunks of one processor
    elif not text and "ncpus" in listed:
        words = ("ncpus", "mem", "ngpus", "naccelerators", "accelerator_model")
        text = ":".join(["1", *(f"{name}={listed[name]}" for name in words if listed.get(name))])
    if not text or "mppwidth" in listed or sum(chunk.many for chunk in _chunks(text)) <= 0:
        return None
    chunks = [chunk for chunk in _chunks(text) if chunk.many > 0]
    if not any(chunk.memory for chunk in chunks):
        whole, each = (max(bytes_of(listed.get(name)), 0) for name in ("mem", "pmem"))
        share = -(-whole // sum(chunk.many for chunk in chunks))
        chunks = [chunk._replace(memory=share or each * chunk.procs) for chunk in chunks]
    in_chunks = {name for chunk in chunks for name, _ in chunk.amounts}
    of_server = tuple(
        (name, whole_number(value))
        for name, value in sorted(listed.items())
        if name not in IN_THE_LOG | _MEMORIES | in_chunks
        and not _GPU.match(name)
        and whole_number(value) > 0
    )
    asked = [
        ChunkRequest(
            chunk.many,
            chunk.procs,
            chunk.memory,
            resources=chunk.amounts,
            features=chunk.features,
        )
        for chunk in chunks
    ]
    if of_server:
        asked.append(ChunkRequest(1, 0, host=SERVER, resources=of_server))
    place = listed.get("place", "").lower().split(":")
    is_exclusive = bool({"excl", "exclhost"} & {*place, *text.split("#")[1:]}) or listed.get(
        "naccesspolicy", ""
    ).lower().startswith("single")
    placing = FREE if "nodes" not in listed or listed.get("select") else SCATTER
    if {"scatter", "vscatter"} & {*place}:
        placing = SCATTER
    elif {"pack", "group=host", "group=vnode"} & {*place}:
        placing = PACK
    elif "free" in place:
        placing = FREE
    placing = placing if sum(chunk.many for chunk in chunks) > 1 else FREE
    request = JobRequest(tuple(asked), placing, is_exclusive, reservation=reservation)
    return Asked(request, all(chunk.is_said for chunk in chunks))
