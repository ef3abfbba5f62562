"""The machine that accounting records show: each host that a job ran on, with the most processors in use there at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from qbatch.model.errors import InputError
from qbatch.model.machine import Host, Machine
from qbatch.workloads.accounting.assembly import AccountedJob

_DIGITS = re.compile(r"(\d+)")


def machine_seen(jobs: Sequence[AccountedJob], *, is_anonymous: bool = False) -> Machine:
    """Return the hosts that jobs ran on, by name, each as large as the most in use there; others are not there.

    A job that was suspended counts for the second after its start, as in the peak of the log: when it held what is not known.
    ``is_anonymous``: hosts are numbered in place of their names.

    Raises:
        InputError: if no record names a host.
    """
    names: dict[str, int] = {}
    rows: list[tuple[int, int, int, int]] = []
    for job in jobs:
        end = job.ended if job.suspended <= 0 else min(job.ended, job.start + 1)
        rows += [(names.setdefault(name, len(names)), job.start, end, cores) for name, cores in job.hosts if cores > 0]
    if not rows:
        raise InputError(
            "no record names the hosts of a job: there is no machine file to be made; leave --machine-file out"
        )
    most = _most_at_once(np.array(rows, np.int64), len(names))
    ordered = sorted(names, key=_natural)
    shown = (
        [f"host{number:0{len(str(len(names)))}d}" for number in range(1, len(names) + 1)] if is_anonymous else ordered
    )
    hosts = (Host(name, int(most[names[own]]), pool="main") for name, own in zip(shown, ordered, strict=True))
    return Machine(tuple(hosts), name="hosts seen in accounting records")


def _most_at_once(rows: Any, hosts: int) -> Any:
    """Return the most processors in use at once on each host, of rows of host, start, end, processors."""
    host, start, end, cores = rows.T
    most = np.zeros(hosts, np.int64)
    np.maximum.at(most, host, cores)  # also of a job of no length
    who, at = np.concatenate([host, host]), np.concatenate([end, start])
    change = np.concatenate([-cores, cores])
    order = np.lexsort(
        (np.concatenate([np.zeros_like(host), np.ones_like(host)]), at, who)
    )  # at one instant, ends come first
    used = np.cumsum(change[order])  # every host ends with none in use, so one sum serves them all
    np.maximum.at(most, who[order], used)
    return most


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key by which n2 comes before n10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(name)]
