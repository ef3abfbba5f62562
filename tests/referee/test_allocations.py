"""The checks of hosts, partitions, features, licences and reservations against plain loops over every
instant."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qbatch.model.errors import InputError
from qbatch.model.job import SCATTER, SERVER, ChunkRequest, JobRequest
from qbatch.model.machine import Host, Machine, Partition, Reservation, server_host
from qbatch.model.record import LogClock, Schedule, finished_run
from qbatch.referee.breach import CODES, Breach
from qbatch.referee.reading import Conditions
from qbatch.referee.site import CPUS, MEMORY, Site
from qbatch.referee.verify import Judgement, judge
from qbatch.workloads.resource_rows import ResourceRows

SECOND = 1_000_000
HOSTS = (
    Host("a", 2, 4, resources=(("gpu", 2), ("gpu:x", 2)), features=("f", "g")),
    Host("b", 4, 0, resources=(("gpu", 1),), features=("f",)),
    Host("c", 3, 5),
)
"""A host with a type, one on which memory does not count, and one without GPUs."""

PARTITIONS = (
    Partition("all", (0, 1, 2), is_default=True),
    Partition("small", (0, 1), max_hosts=1, max_time=6 * SECOND),
    Partition("own", (1, 2), share="exclusive", max_memory_per_cpu=2),
)
RESERVATIONS = (
    Reservation("r", (0,), "4", 3 * SECOND),
    Reservation("s", (1, 2), "8", 2 * SECOND, is_flexible=True),
    Reservation("m", (0, 1, 2), "9", SECOND, is_maintenance=True),
)
MACHINE = Machine(
    (*HOSTS, server_host((("lic", 3),))),
    chunked=True,
    partitions=PARTITIONS,
    reservations=RESERVATIONS,
)


class Case:
    """Jobs as plain values, and the same as a schedule and the rows of a side file."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.jobs = [self._job(draw) for _ in range(draw.randint(1, 7))]
        self.jobs.sort(key=lambda job: job["start"])

    def _job(self, draw: random.Random) -> dict[str, object]:
        hosts = sorted(draw.sample(range(3), draw.choice((1, 1, 2, 3))))
        start = draw.randint(0, 10)
        nodes = len(hosts) if draw.random() < 0.8 else draw.randint(1, 3)
        each = {CPUS: draw.randint(1, 3), MEMORY: draw.choice((0, 1, 3, 5))}
        each |= {"gpu": draw.choice((0, 0, 1, 2))}
        each |= {"gpu:x": each["gpu"] if draw.random() < 0.5 else 0}
        return {
            "hosts": hosts,
            "start": start,
            "end": start + draw.randint(0, 5),
            "estimate": draw.randint(5, 8),
            "nodes": nodes,
            "each": each,
            "used": max(nodes * each[CPUS] + draw.choice((0, 0, 0, 1, 2)), 1),
            "unknown": draw.random() < 0.3,
            "exclusive": draw.random() < 0.15,
            "partitions": draw.choice(((), ("all",), ("small",), ("own",), ("small", "own"))),
            "features": draw.choice(((), (), ("f",), ("f", "g"))),
            "server": draw.choice((0, 0, 1, 2)),
            "reservation": draw.choice(("", "", "r", "s", "m")),
        }

    def judge(self, machine: Machine = MACHINE) -> Judgement:
        requests: dict[JobRequest, int] = {}
        of = []
        for job in self.jobs:
            each = job["each"]
            named = tuple((name, each[name]) for name in ("gpu", "gpu:x") if each[name])
            chunk = ChunkRequest(job["nodes"], each[CPUS], each[MEMORY], -1, named, job["features"])
            of_server = ChunkRequest(1, 0, host=SERVER, resources=(("lic", job["server"]),))
            request = JobRequest(
                (chunk, of_server) if job["server"] else (chunk,),
                SCATTER,
                job["exclusive"],
                job["partitions"],
                job["reservation"],
            )
            of.append(requests.setdefault(request, len(requests)))
        rows = ResourceRows(
            tuple(requests),
            np.array(of),
            {},
            "side.csv",
            "",
            {row: ",".join("abc"[h] for h in job["hosts"]) for row, job in enumerate(self.jobs)},
            np.array([job["unknown"] for job in self.jobs]),
            None,
        )
        return judge(self.schedule(), None, Conditions(site=Site(machine, rows, LogClock())))

    def schedule(self) -> Schedule:
        def column(name: str) -> np.ndarray:
            return np.array([job[name] for job in self.jobs], np.int64) * SECOND

        start, end = column("start"), column("end")
        return finished_run(
            "",
            number=np.arange(1, len(self.jobs) + 1),
            submit=start,
            start=start,
            end=end,
            run=end - start,
            procs=column("used") // SECOND,
            estimate=np.maximum(column("estimate"), end - start),
            procs_total=1000,
        )


def shares(job: dict) -> dict[str, list[int]]:
    """Return what a job has for certain of each resource on each of its hosts."""
    found = {}
    for name, each in job["each"].items():
        capacity = [
            {CPUS: HOSTS[h].cpus, MEMORY: HOSTS[h].memory or 10**9}.get(
                name, dict(HOSTS[h].resources).get(name, 0)
            )
            for h in job["hosts"]
        ]
        is_even = not job["unknown"] and len(job["hosts"]) == job["nodes"]
        total = job["nodes"] * each if is_even else max(job["nodes"] * (each - 1) + 1, 0)
        total = total if each else 0
        if name == CPUS and job["used"] > total:
            total, is_even = job["used"], is_even and job["used"] % job["nodes"] == 0
        if is_even:
            found[name] = [total // job["nodes"]] * len(job["hosts"])
            continue
        floor = 1 if name == CPUS else 0
        found[name] = [max(floor, total - sum(capacity) + own) for own in capacity]
    return found


def there(name: str, host: int) -> int:
    if name == CPUS:
        return HOSTS[host].cpus
    if name == MEMORY:
        return HOSTS[host].memory or 10**9
    return dict(HOSTS[host].resources).get(name, 0)


def spells(over: list[bool]) -> list[int]:
    """Return the instants at which something begins to be true."""
    return [at for at, now in enumerate(over) if now and not (at and over[at - 1])]


def running(jobs: list, host: int, at: int) -> list:
    return [job for job in jobs if host in job["hosts"] and job["start"] <= at < job["end"]]


def admitting(job: dict) -> list[Partition]:
    named = [p for p in PARTITIONS if p.name in (job["partitions"] or ("all",))]
    memory = job["each"][MEMORY] * job["nodes"]
    if job["unknown"] and memory:
        memory = (job["each"][MEMORY] - 1) * job["nodes"] + 1
    cpus = max(job["used"], job["each"][CPUS] * job["nodes"] if not job["unknown"] else 0)
    return [
        p
        for p in named
        if not (
            p.max_time and max(job["estimate"], job["end"] - job["start"]) * SECOND > p.max_time
        )
        and not (p.max_hosts and len(job["hosts"]) > p.max_hosts)
        and not (p.max_memory_per_cpu and memory > p.max_memory_per_cpu * cpus)
    ]


def alone(job: dict) -> bool:
    named = [p for p in PARTITIONS if p.name in (job["partitions"] or ("all",))]
    return job["exclusive"] or any(p.share == "exclusive" for p in admitting(job) or named)


def expected(jobs: list) -> set[tuple]:
    """Return the breaches by brute force: code, second, and what it is about."""
    found: set[tuple] = set()
    instants = range(20)
    for name in (CPUS, MEMORY, "gpu", "gpu:x"):
        for host in range(3):
            used = [
                sum(shares(job)[name][job["hosts"].index(host)] for job in running(jobs, host, at))
                for at in instants
            ]
            for at in spells([amount > there(name, host) for amount in used]):
                found.add(("host-overfull", at, f"{name} {'abc'[host]} {used[at]}"))
    for host in range(3):
        both = [running(jobs, host, at) for at in instants]
        for at in spells([len(each) > 1 and any(map(alone, each)) for each in both]):
            found.add(("not-alone", at, "abc"[host]))
    used = [sum(j["server"] for j in jobs if j["start"] <= at < j["end"]) for at in instants]
    for at in spells([amount > 3 for amount in used]):
        found.add(("server-overfull", at, used[at]))
    windows = {"r": (4, 7, {0}), "s": (8, 10, {1, 2}), "m": (9, 10, {0, 1, 2})}
    for number, job in enumerate(jobs, 1):
        start, hosts = job["start"], set(job["hosts"])
        named = [p for p in PARTITIONS if p.name in (job["partitions"] or ("all",))]
        if not admitting(job):
            found.add(("partition-limit", start, number))
        if not hosts <= {h for p in admitting(job) or named for h in p.hosts}:
            found.add(("outside-partition", start, number))
        if any(not set(job["features"]) <= set(HOSTS[h].features) for h in hosts):
            found.add(("missing-feature", start, number))
        for name, (begin, end, kept) in windows.items():
            if job["reservation"] != name and begin <= start < end and hosts & kept:
                found.add(("reserved-host", start, number, name))
        if job["reservation"] in ("r", "m"):
            begin, end, kept = windows[job["reservation"]]
            if not begin <= start < end:
                found.add(("outside-reservation", start, number, "times"))
            if not hosts <= kept:
                found.add(("outside-reservation", start, number, "hosts"))
    return found


def said(each: Breach) -> tuple:
    """Return what a breach is about, from its text."""
    words, at = each.text.split(), each.instant // SECOND
    if each.code == "host-overfull":
        name = next(n for n in ("gpu:x", "gpu", CPUS, MEMORY) if f" {n} of host" in each.text)
        amount = words[0].removesuffix("B")
        return each.code, at, f"{name} {words[words.index('host') + 1]} {amount}"
    if each.code == "not-alone":
        return each.code, at, words[words.index("host") + 1].removesuffix(",")
    if each.code == "server-overfull":
        return each.code, at, int(words[0])
    if each.code == "reserved-host":
        name = words[words.index("reservation") + 1].removesuffix(",")
        return each.code, at, each.jobs[0], name
    if each.code == "outside-reservation":
        return each.code, at, each.jobs[0], "times" if "times" in words[-1] else "hosts"
    return each.code, at, each.jobs[0]


def test_every_breach_is_that_of_a_count_at_every_instant() -> None:
    codes: set[str] = set()
    for seed in range(400):
        case = Case(seed)
        found = [said(each) for each in case.judge().breaches]
        wanted = expected(case.jobs)
        assert set(found) == wanted, (seed, case.jobs)
        assert len(found) == len(wanted), seed
        codes |= {each[0] for each in found}
    assert codes == {
        "host-overfull",
        "not-alone",
        "server-overfull",
        "partition-limit",
        "outside-partition",
        "missing-feature",
        "reserved-host",
        "outside-reservation",
    }
    assert codes < set(CODES)


def test_the_jobs_of_a_breach_are_those_in_use_then_the_last_first() -> None:
    case = Case(0)
    case.jobs = [
        Case(1).jobs[0]
        | {"hosts": [0], "nodes": 1, "start": start, "end": end, "used": 1}
        | {"each": {CPUS: 1, MEMORY: 0, "gpu": 1, "gpu:x": 0}, "exclusive": False}
        | {"partitions": ("all",), "features": (), "server": 0, "reservation": "r"}
        for start, end in ((4, 9), (4, 5), (5, 9), (6, 9))
    ]
    found = [each for each in case.judge().breaches if each.code == "host-overfull"]
    assert [each.jobs for each in found] == [(4, 3, 1), (4, 3, 1)]
    assert [each.text for each in found] == [
        "3 of 2 processors of host a in use, by jobs 4, 3, 1",
        "3 of 2 gpu of host a in use, by jobs 4, 3, 1",
    ]


def test_jobs_that_ran_before_a_reservation_are_counted_once() -> None:
    case = Case(0)
    case.jobs = [
        Case(1).jobs[0]
        | {"hosts": hosts, "nodes": len(hosts), "start": start, "end": end}
        | {"reservation": "", "partitions": (), "features": ()}
        for hosts, start, end in (([0, 1], 3, 9), ([0], 3, 4), ([0, 2], 7, 10))
    ]
    judged = case.judge()
    assert not [each for each in judged.breaches if each.code == "reserved-host"]
    [text] = [text for text in judged.checked if text.startswith("reservations")]
    # Job 1 meets r and s, job 3 meets s and m.
    assert (
        text
        == "reservations at 3 times: hosts and starts; 2 jobs that started earlier ran on into one"
    )


def test_reservations_that_contradict_each_other_are_refused() -> None:
    kept = (RESERVATIONS[0], Reservation("t", (0, 1), "5", SECOND))
    machine = Machine(MACHINE.hosts, chunked=True, reservations=kept)
    case = Case(0)
    case.jobs[-1] |= {"start": 10, "end": 12}
    with pytest.raises(InputError, match="'r' and 't' overlap"):
        case.judge(machine)


def test_a_job_suspended_at_unknown_times_counts_nowhere() -> None:
    case = Case(0)
    rows = ResourceRows(
        (JobRequest((ChunkRequest(1, 2),)),),
        np.zeros(2, np.int64),
        {},
        "side.csv",
        "",
        {0: "a", 1: "a"},
        np.zeros(2, np.bool_),
        np.array([0, 5]),
    )
    first = Case(1).jobs[0] | {"start": 0, "end": 3, "used": 2, "estimate": 9}
    case.jobs = [first, first]
    site = Site(Machine(MACHINE.hosts, chunked=True), rows, LogClock())
    judged = judge(case.schedule(), None, Conditions(site=site, is_preempted=True))
    assert judged.is_kept
    assert "what 1 job had in use" in judged.not_checked
    never = Site(site.machine, rows._replace(suspended=np.zeros(2, np.int64)), LogClock())
    judged = judge(case.schedule(), None, Conditions(site=never, is_preempted=True))
    assert [each.code for each in judged.breaches] == ["host-overfull"]
