"""Advance reservations (stub)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.policies.slurm_oracle.world import Job, World


@dataclass
class Verdict:
    """Which nodes reservations leave to a job, and from when."""

    nodes: set[int]
    start: int
    excluded: dict[int, frozenset[int]]
    refused: bool = False
    overlap: bool = False


def usable_nodes(world: World, job: Job, start: int, move: bool, minutes: int) -> Verdict:
    return Verdict({node.index for node in world.site.nodes}, start, {})


def next_end(world: World, start: int, resolution: int) -> int:
    return 0


def nodes_of(world: World, name: str) -> set[int]:
    return set()
