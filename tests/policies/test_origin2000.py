"""The policies of the Origin 2000 study against an oracle that was written from the specification
alone, job for job."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from qbatch.model.job_class import JobClass
from qbatch.model.machine import Host, Machine
from qbatch.model.record import Workload
from qbatch.planning.view import View
from qbatch.policies import load_policy
from qbatch.policies.lsf import Lsf
from qbatch.simulation.calendar import Calendar
from tests.harness import size
from tests.oracle import origin2000 as oracle
from tests.oracle import origin2000_checks as checks

SIZES = ("sj", "mj", "lj")


def machine_of(hosts: list[oracle.Host], times: list[oracle.TimeClass]) -> Machine:
    """Return the machine of a random workload, with its classes."""
    classes = [
        JobClass(
            each.name,
            limit=each.limit,
            reserve_wait=each.reserve_wait,
            kind="time",
            goes_first=each.goes_first,
        )
        for each in times
    ]
    classes += [JobClass(name, kind="size") for name in SIZES]
    places = [
        Host(each.name, each.cpus, each.memory, "b", each.serves, tuple(each.limits.items()))
        for each in hosts
    ]
    return Machine(tuple(places), single_host=True, classes=tuple(classes))


def workload_of(jobs: list[oracle.Job], machine: Machine) -> Workload:
    """Return jobs, in order of sequence, as the replay takes them (killed at their estimate)."""

    def column(values: list[int]) -> Any:
        return np.array(values, np.int64)

    absent = column([-1] * len(jobs))
    run = column([min(job.run, job.estimate) for job in jobs])
    return Workload(
        "random",
        machine.procs,
        column([job.sequence for job in jobs]),
        column([job.submit for job in jobs]),
        column([job.procs for job in jobs]),
        column([job.estimate for job in jobs]),
        run,
        run,
        column([job.memory for job in jobs]),
        absent,
        absent,
        absent,
        np.ones(len(jobs), np.bool_),
        np.arange(len(jobs)),
        used_memory=column([job.used_memory for job in jobs]),
    )


class Recorded(Lsf):
    """LSF* with the classes that the oracle's jobs are said to be in, whatever they ask for."""

    def __init__(self, jobs: list[oracle.Job], times: list[oracle.TimeClass]) -> None:
        super().__init__("lsf")
        names = [each.name for each in times]
        self._classes = {
            job.sequence: (names.index(job.time_class), len(names) + SIZES.index(job.size_class))
            for job in jobs
        }

    def _classes_of_rows(self, view: View, rows: list[int]) -> Any:
        ranks = self._tables_of(view.machine).ranks
        found = []
        for job in (view.jobs[row] for row in rows):
            time, size = self._classes[job.number]
            fits = any(
                ranks[place, time, size] >= 0
                and host.cpus >= job.procs
                and host.memory >= job.memory
                for place, host in enumerate(view.machine.hosts)
            )
            found.append((time, size, int(fits)))
        return np.array(found, np.int64).T


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "lsf": ("lsf", {}),
    "fcfs-backfill": ("fcfs", {}),
    "fcfs-backfill:depth=4": ("fcfs", {"depth": 4}),
    "sjf-backfill": ("sjf", {}),
    "sjf-backfill:depth=3": ("sjf", {"depth": 3}),
    "lxf-backfill": ("priority", {"weights": oracle.LXF}),
    "lxfw-backfill:depth=2": ("priority", {"weights": oracle.LXF_W, "depth": 2}),
    "priority-backfill": ("priority", {"weights": oracle.PRIORITY}),
    "priority-backfill:memory=-1,both=0.25,bypass=3": (
        "priority",
        {"weights": {**oracle.PRIORITY, "memory": -1, "pe": 0.25, "bypass": 3}},
    ),
}


QUANTA: dict[str, dict[str, Any]] = {
    "soon:inner=lxfw-backfill": {"inner": "priority", "weights": oracle.LXF_W},
    "immediate:inner=lxfw-backfill": {"inner": "priority", "weights": oracle.LXF_W},
    "immediate:inner=fcfs-backfill": {"inner": "fcfs"},
    "immediate:inner=sjf-backfill,inner.depth=3": {
        "inner": "sjf",
        "depth": 3,
        "quantum_end": "estimate",
    },
    "soon:inner=sjf-backfill,inner.depth=2": {
        "inner": "sjf",
        "depth": 2,
        "quantum_end": "estimate",
    },
}


@pytest.mark.parametrize("policy", QUANTA)
def test_quanta_are_the_oracles(policy: str) -> None:
    for seed in range(size(40, 150)):
        jobs, hosts, times = checks.random_workload(random.Random(seed))
        jobs = [
            job
            for job in jobs
            if any(host.cpus >= job.procs and host.memory >= job.memory for host in hosts)
        ]
        jobs.sort(key=lambda job: (job.submit, job.sequence))
        machine = machine_of(hosts, times)
        schedule = Calendar(
            workload_of(jobs, machine), machine, load_policy(policy), is_audited=True
        ).run()
        outcome = oracle.simulate(jobs, hosts, times, policy.partition(":")[0], **QUANTA[policy])
        assert schedule.end.tolist() == [outcome[job.sequence].end for job in jobs], seed
        starts = [
            (outcome[job.sequence].first_start, outcome[job.sequence].final_start) for job in jobs
        ]
        assert all(
            start in both for start, both in zip(schedule.start.tolist(), starts, strict=True)
        ), seed


@pytest.mark.parametrize("policy", CASES)
def test_every_start_is_the_oracles(policy: str) -> None:
    name, parameters = CASES[policy]
    for seed in range(size(40, 150)):
        jobs, hosts, times = checks.random_workload(random.Random(seed))
        if name != "lsf":
            jobs = [
                job
                for job in jobs
                if any(host.cpus >= job.procs and host.memory >= job.memory for host in hosts)
            ]
        jobs.sort(key=lambda job: (job.submit, job.sequence))
        machine = machine_of(hosts, times)
        ours = Recorded(jobs, times) if name == "lsf" else load_policy(policy)
        schedule = Calendar(workload_of(jobs, machine), machine, ours, is_audited=True).run()
        outcome = oracle.simulate(jobs, hosts, times, name, **parameters)
        expected = [
            -1 if outcome[job.sequence].final_start is None else outcome[job.sequence].final_start
            for job in jobs
        ]
        assert schedule.start.tolist() == expected, seed


def test_the_oracle_keeps_its_own_rules() -> None:
    checks.hand_cases()
    checks.self_check(count=20)
