"""Results on disk for the tests of the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from qbatch.results.result import write_result
from tests.reports.samples import KTH_CLOCK, by_hand, random_workload, scheduled, tried

EVIL = "</script><img src=x onerror=window.pwned=1>"
"""A name that would take over the page if it were ever put in as it is."""


def small_work(seed: int = 1, rows: int = 200, clock=KTH_CLOCK):
    work = random_workload(rows, seed, clock=clock)
    queue = np.random.default_rng(seed).integers(1, 4, rows)
    return work.changed(queue=queue, sha256=f"{seed:064d}", name=f"/logs/sample-{seed}.swf")


def write_small(folder: Path, seed: int = 1, /, *, clock=KTH_CLOCK, **facts) -> str:
    """Write a result of 200 jobs under three policies."""
    work = small_work(seed, clock=clock)
    document = {
        "seed": seed,
        "command": ["qbatch", "replay", "sample.swf"],
        "options": {"load": 1.0},
    } | facts
    schedules = [scheduled(work, "fcfs"), scheduled(work, "easy"), scheduled(work, "conservative")]
    write_result(folder, document, schedules)
    return str(folder)


def write_on_machine(folder: Path) -> str:
    """Write a result of a machine with resources, partitions and a reservation."""
    used = {"there": 8, "hours": 1234.5, "utilisation_submit": 0.445, "loss_of_capacity": None}
    gpu, kept = used | {"name": "gpu", "unusable_mean": 1.69}, "n[1-4],n[7-9]"
    parts = [used | {"partition": "batch", "name": name} for name in ("processors", "gpu")]
    results = [
        {"policy": "fcfs", "resources": [gpu], "partitions": parts, "unsure_on_hosts": 2},
        {
            "policy": "easy",
            "resources": [gpu],
            "billed": [{"partition": "batch", "jobs": 9, "hours": 7.5}],
        },
    ]
    reservation = {
        "name": "course",
        "hosts": [kept],
        "start": 60.5,
        "duration": 7200,
        "users": ["ann"],
    }
    reservation |= {"repeat": "weekly", "times": 3, "flags": ["flex"]}
    machine = {"partitions": ["batch"], "reservations": [reservation]}
    return write_small(folder, machine=machine, results=results)


def write_evil(folder: Path) -> str:
    """Write a result in which the names are attacks."""
    work = small_work().changed(name=f"/logs/{EVIL}")
    facts = {"command": ["qbatch", "replay", EVIL], "seed": 1, "options": {EVIL: EVIL}}
    facts["log"] = {"name": f"/logs/{EVIL}", "sha256": EVIL, "notes": [EVIL]}
    write_result(
        folder, facts, [scheduled(work, "fcfs", EVIL), scheduled(work, "easy", f"'\"{EVIL}")]
    )
    return str(folder)


def unpromised(folder: Path) -> str:
    """Write a result of one policy that promised nothing."""
    work = small_work(rows=30)
    write_result(folder, {}, [by_hand(work, work.submit, "at once")])
    return str(folder)


def suspended(folder: Path) -> str:
    """Write a result of two policies under which jobs ran in pieces."""
    write_result(folder, {}, [tried("immediate:inner=easy"), tried("equispatial")])
    return str(folder)
