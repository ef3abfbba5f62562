"""What a pool counts beyond processors and memory: GPUs and other named resources of its hosts,
their features, and amounts of the whole server (licences).

``ngpus`` (OpenPBS) and ``gpus`` (Torque) ask for the resource ``gpu``.  Its type is
``accelerator_model=a100``, or the property ``a100`` of Torque's ``nodes=``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from qbatch.model.job import SERVER, ChunkRequest
from qbatch.model.machine import Machine
from qbatch.wire.errors import Refusal
from qbatch.wire.resources import ChunkOf, parse_select

GPU = "gpu"
GPU_NAMES = ("ngpus", "gpus")
_TYPE = "accelerator_model"
_TRUE = ("true", "t", "1", "y", "")
_MOST = 10_000_000


class Counted(NamedTuple):
    """What one chunk asks for: named resources with their amounts, and features."""

    resources: tuple[tuple[str, int], ...]
    features: tuple[str, ...]


def counted_names(machine: Machine) -> frozenset[str]:
    """Return the names that a job may use because the hosts of a machine count them."""
    names = {name for name in machine.resources if ":" not in name}
    names |= {feature for host in machine.hosts for feature in host.features}
    if GPU in names:
        names |= {*GPU_NAMES, _TYPE}
        names |= {name.partition(":")[2] for name in machine.resources if name.startswith("gpu:")}
    return frozenset(names)


def counted_of(machine: Machine, chunk: ChunkOf) -> Counted:
    """Return what a chunk asks for that the hosts of a machine count.

    Raises:
        Refusal: an amount is not a whole number.
    """
    names = counted_names(machine) if chunk.other else frozenset()
    amounts: dict[str, int] = {}
    features: list[str] = []
    kind = ""
    for name, value in chunk.other.items():
        if name not in names or name in server_names(machine):
            continue
        if name == _TYPE or f"{GPU}:{name}" in machine.resources:
            kind = value if name == _TYPE else name
        elif name in GPU_NAMES or name in machine.resources:
            counted = GPU if name in GPU_NAMES else name
            amounts[counted] = amounts.get(counted, 0) + _whole(name, value)
        elif value.lower() in _TRUE:
            features.append(name)
    if kind and amounts.get(GPU):
        amounts[f"{GPU}:{kind}"] = amounts[GPU]
    return Counted(tuple((name, many) for name, many in amounts.items() if many), tuple(features))


def server_names(machine: Machine) -> frozenset[str]:
    """Return the names of what the whole server has."""
    last = machine.hosts[machine.server] if machine.server >= 0 else None
    return frozenset(name for name, _ in last.resources) if last is not None else frozenset()


def server_chunk(machine: Machine, resources: Mapping[str, str]) -> ChunkRequest | None:
    """Return the chunk of what a job asks the whole server for (``-l matlab=2``), None for nothing.

    Raises:
        Refusal: an amount is not a whole number, or it is inside ``select``.
    """
    names = server_names(machine)
    for chunk in parse_select(resources["select"]) if names and "select" in resources else ():
        for name in names.intersection(chunk.other):
            raise Refusal(
                "not-in-chunk",
                f"{name} cannot be inside select: it is of the whole server; write -l "
                f"{name}={chunk.other[name][:20]} next to it",
            )
    amounts = tuple(
        (name, many)
        for name, text in resources.items()
        if name in names and (many := _whole(name, text))
    )
    return ChunkRequest(1, 0, 0, SERVER, amounts) if amounts else None


def gpus_of(machine: Machine, chunk: ChunkOf) -> int:
    """Return how many GPUs a chunk has, if the hosts of a machine count them."""
    return dict(counted_of(machine, chunk).resources).get(GPU, 0) if chunk.other else 0


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _MOST):
        raise Refusal(
            "bad-value",
            f"Illegal attribute or resource value Resource_List.{name}: {text[:40]!r} is not a "
            "whole number",
        )
    return int(text)
