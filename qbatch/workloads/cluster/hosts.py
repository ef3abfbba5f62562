"""The hosts and partitions of the generated cluster."""

from __future__ import annotations

from typing import NamedTuple

from qbatch.model.machine import Host, Machine, Partition

GB = 2**30


class Model(NamedTuple):
    """Hosts of one model: processors, memory in bytes, GPUs and their type (empty: none), and what
    a job may ask them to have."""

    prefix: str
    cpus: int
    memory: int
    gpus: int
    gpu_type: str
    features: tuple[str, ...] = ()


MODELS = {
    "a100": Model("a", 128, 1024 * GB, 8, "a100", ("ib",)),
    "h100": Model("h", 96, 2048 * GB, 8, "h100", ("ib", "nvme")),
    "l40s": Model("l", 64, 512 * GB, 4, "l40s"),
    "cpu": Model("c", 128, 512 * GB, 0, ""),
}
"""The models of hosts, in the order of the machine file."""


def counts_of(nodes: int) -> dict[str, int]:
    """Return how many hosts of each model a cluster of this many has (8 or more): a quarter with
    H100, an eighth with L40S, a quarter without GPUs, the others with A100."""
    counts = {"h100": nodes // 4, "l40s": nodes // 8, "cpu": nodes // 4}
    return {"a100": nodes - sum(counts.values())} | counts


def machine_of(nodes: int) -> Machine:
    """Return the cluster of this many hosts.

    Its partitions: ``gpu`` (A100, the default), ``large`` (H100), ``small`` (L40S), ``interactive``
    (L40S and the first host with A100) and ``cpu``.
    """
    counts = counts_of(nodes)
    hosts: list[Host] = []
    of: dict[str, tuple[int, ...]] = {}
    for name, model in MODELS.items():
        count = counts[name]
        of[name] = tuple(range(len(hosts), len(hosts) + count))
        resources = (("gpu", model.gpus), (f"gpu:{model.gpu_type}", model.gpus))
        hosts += [
            Host(
                f"{model.prefix}{number:0{len(str(count))}d}",
                model.cpus,
                model.memory,
                resources=resources if model.gpus else (),
                features=model.features,
            )
            for number in range(1, count + 1)
        ]
    partitions = (
        Partition("gpu", of["a100"], is_default=True),
        Partition("large", of["h100"]),
        Partition("small", of["l40s"]),
        Partition("interactive", (of["a100"][0], *of["l40s"])),
        Partition("cpu", of["cpu"]),
    )
    return Machine(tuple(hosts), name="generated", chunked=True, partitions=partitions)
