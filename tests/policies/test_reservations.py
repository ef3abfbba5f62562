"""Reservations and maintenance: which hosts a job may have at which times, in replays."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest

from qbatch.engine.engine import Engine
from qbatch.model.actions import Start, parts_of
from qbatch.model.errors import DecisionError, UsageError
from qbatch.model.events import Finished, Submitted
from qbatch.model.job import SERVER, ChunkRequest, Job, JobRequest
from qbatch.model.machine import Host, Machine, Partition, Reservation, server_host
from qbatch.model.record import LogClock, Schedule, Workload
from qbatch.model.reservations import Window, windows_of
from qbatch.planning.policy import compiled_of
from qbatch.planning.view import View
from qbatch.policies import load_policy
from qbatch.simulation import run
from tests.harness import size
from tests.policies.test_partitions import random_site, work_of

SECOND = 1_000_000
HOUR = 3600 * SECOND
POLICIES = ("fcfs", "easy", "easy:order=sjf", "hybrid:depth=3", "conservative")


def machine_with(*reservations: Reservation, hosts: int = 4) -> Machine:
    every = tuple(Host(f"n{number}", 8) for number in range(1, hosts + 1))
    partitions = (Partition("main", tuple(range(hosts)), is_default=True),)
    return Machine(every, chunked=True, partitions=partitions, reservations=reservations)


def work_on(machine: Machine, *jobs: tuple[float, int, float, float, str]) -> Workload:
    """Return jobs of (submit, hosts, run, estimate, reservation); times in seconds."""
    requests = tuple(
        JobRequest((ChunkRequest(hosts, 8),), "scatter", reservation=name)
        for _, hosts, _, _, name in jobs
    )
    count = len(jobs)
    submit, run_time, estimate = (
        np.array([round(job[place] * SECOND) for job in jobs], np.int64) for place in (0, 2, 3)
    )
    none = np.full(count, -1, np.int64)
    return Workload(
        name="jobs",
        procs_total=machine.procs,
        number=np.arange(1, count + 1),
        submit=submit,
        procs=np.array([each.procs for each in requests], np.int64),
        estimate=estimate,
        run=run_time,
        logged_run=run_time,
        memory=np.zeros(count, np.int64),
        user=none,
        group=none,
        queue=none,
        counted=np.ones(count, np.bool_),
        log_row=np.arange(count),
        clock=LogClock(),
        requests=requests,
        request=np.arange(count),
    )


def starts(work: Workload, machine: Machine, policy: str) -> list[float]:
    done = run(work, machine, load_policy(policy), is_audited=True)
    return [start / SECOND for start in done.start.tolist()]


MAINTENANCE = Reservation("m", (0, 1, 2, 3), "3600", HOUR, is_maintenance=True)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_worked_case_of_maintenance(policy: str) -> None:
    """docs/spec/production.md, section 10, worked case 8."""
    machine = machine_with(MAINTENANCE)
    work = work_on(machine, (0, 1, 10, 3600, ""), (0, 1, 10, 3660, ""))
    assert starts(work, machine, policy) == [0, 7200]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fcfs", [100, 150, 160, 160]),
        # Only the first job that waits has a reservation of its policy.
        ("easy", [100, 150, 0, 0]),
        ("hybrid:depth=3", [100, 150, 160, 0]),
        ("conservative", [100, 150, 160, 0]),
    ],
)
def test_a_job_runs_inside_its_reservation_and_others_outside(
    policy: str, expected: list[float]
) -> None:
    machine = machine_with(Reservation("course", (0, 1), "100", 50 * SECOND))
    work = work_on(
        machine,
        (0, 2, 10, 20, "course"),  # Waits for its window, on the hosts of the reservation.
        (0, 3, 10, 200, ""),  # Needs a host of the reservation, for too long: after it.
        (0, 2, 10, 500, ""),  # Fits on the other two hosts, but the second would have to wait.
        (0, 1, 10, 20, ""),
    )
    assert starts(work, machine, policy) == expected


def test_a_job_that_comes_too_late_for_its_reservation_is_refused() -> None:
    machine = machine_with(
        Reservation("r", (0,), "10", 10 * SECOND),
        Reservation("flex", (1,), "10", 10 * SECOND, is_flexible=True),
    )
    work = work_on(
        machine,
        (0, 1, 15, 15, "r"),  # Begins in its window and may end after it.
        (0, 1, 5, 5, "r"),  # Never gets its host while the window lasts.
        (0, 2, 5, 20, "flex"),  # May use the hosts of the reservation before it begins.
        (30, 1, 5, 5, "r"),
        (30, 1, 5, 5, "flex"),
    )
    done = run(work, machine, load_policy("easy"), is_audited=True)
    assert (done.start / SECOND).tolist() == [10, -1e-6, 0, -1e-6, 30]
    late = {each.row: (each.at / SECOND, each.code) for each in done.rejected}
    assert late == {1: (20, "reservation-over"), 3: (30, "reservation-over")}


def test_explain_says_which_hosts_reservations_keep_it_from() -> None:
    machine = machine_with(Reservation("r", (0, 1, 2), "10", 10 * SECOND))
    windows = windows_of(machine.reservations, LogClock(), 10**12)
    for policy in ("easy", "conservative"):
        engine = Engine(machine, load_policy(policy), windows=windows)
        wide = Job(number=1, submit=0, procs=16, estimate=50 * SECOND, chunks=(ChunkRequest(2, 8),))
        inside = Job(number=2, submit=0, procs=8, estimate=SECOND, reservation="r")
        engine.handle(0, [Submitted(wide), Submitted(inside)])
        found = [engine.explain(row) for row in (0, 1)]
        assert [each.code for each in found] == ["reserved", "reserved"]
        assert "reservations keep it from n[1-3] during its estimate" in found[0].text
        assert found[1].text.endswith("its reservation r begins in 0:00:10")
        if policy == "conservative":
            assert [each.numbers["planned"] for each in found] == [20 * SECOND, 10 * SECOND]


def test_explain_says_that_a_job_fits_no_time_of_its_reservation_or_a_later_one() -> None:
    machine = machine_with(
        Reservation("r", (0, 1), "10", 10 * SECOND, "hourly", times=2),
        Reservation("m", (0,), "22", 3590 * SECOND, is_maintenance=True),
        Reservation("other", (1,), "20", 5 * SECOND),
    )
    windows = windows_of(machine.reservations, LogClock(), 10**12)
    engine = Engine(machine, load_policy("easy"), windows=windows)

    def asking(number: int, estimate: int, hosts: int = 1, name: str = "r") -> Submitted:
        chunks = (ChunkRequest(hosts, 8),)
        job = Job(
            number=number,
            submit=0,
            procs=8 * hosts,
            estimate=estimate * SECOND,
            chunks=chunks,
            placing="scatter",
            reservation=name,
        )
        return Submitted(job)

    engine.handle(0, [asking(1, 10), asking(2, 13), asking(3, 20, 2)])
    found = [engine.explain(row) for row in range(3)]
    assert [each.code for each in found] == ["reserved"] * 3
    assert found[0].text.endswith("its reservation r begins in 0:00:10")
    later = "its reservation r begins in 0:00:10, and it fits there in 1:00:10 at the earliest"
    assert found[1].text.endswith(later)
    # The maintenance ends two seconds after the second time of the reservation begins.
    last = "its reservation r begins in 0:00:10, and it fits there in 1:00:12 at the earliest"
    assert found[2].text.endswith(last)
    never = Engine(
        msgspec.structs.replace(machine, reservations=machine.reservations[1:]),
        load_policy("easy"),
        windows=windows_of(machine.reservations[1:], LogClock(), 10**12),
    )
    never.handle(0, [asking(1, 50, 1, "other")])
    assert never.explain(0).text.endswith("its reservation other begins in 0:00:20")
    short = Reservation("m", (1,), "30", 5 * SECOND, is_maintenance=True)
    kept = (short, machine.reservations[2])
    never = Engine(
        msgspec.structs.replace(machine, reservations=kept),
        load_policy("easy"),
        windows=windows_of(kept, LogClock(), 10**12),
    )
    never.handle(0, [asking(1, 11, 1, "other")])
    reason = never.explain(0)
    assert reason.code == "never-in-reservation"
    assert "it can never run: its 0:00:11 fit into no known time of its reservation other" in (
        reason.text
    )


def test_reasons_show_chunks_in_words() -> None:
    resources = (("gpu", 2), ("gpu:a100", 2))
    hosts = tuple(Host(f"n{number}", 8, 1 << 30, resources=resources) for number in (1, 2))
    machine = Machine((*hosts, server_host((("matlab", 3),))), chunked=True)
    licence = ChunkRequest(1, 0, host=SERVER, resources=(("matlab", 3),))
    chunk = ChunkRequest(2, 7, 1 << 30, resources=resources)
    engine = Engine(machine, load_policy("easy"))
    wide = Job(
        number=9,
        submit=0,
        procs=14,
        estimate=SECOND,
        memory=2 << 30,
        chunks=(chunk, licence),
        resources=(("gpu", 4), ("gpu:a100", 4), ("matlab", 3)),
        placing="scatter",
    )
    small = Job(
        number=2,
        submit=0,
        procs=1,
        estimate=SECOND,
        chunks=(ChunkRequest(1, 1), licence),
        resources=(("matlab", 3),),
    )
    engine.handle(0, [Submitted(small), Submitted(small), Submitted(wide)])
    texts = [engine.explain(row).text for row in (1, 2)]
    assert texts[0].endswith(
        "asks for 1 processor + 3 matlab, which the open hosts do not have free"
    )
    assert texts[1].endswith(
        "asks for 2 chunks of 7 processors, 1GB and 2 gpu:a100 + 3 matlab, each on another host, "
        "which the open hosts do not have free"
    )


def test_no_reservation_of_this_name_is_refused() -> None:
    machine = machine_with(MAINTENANCE)
    done = run(work_on(machine, (0, 1, 5, 5, "other")), machine, load_policy("easy"))
    assert [each.code for each in done.rejected] == ["no-reservation"]


class _First:
    """Starts every job that fits now, and says no place."""

    name = "first"

    def decide(self, view: View) -> list[Start]:
        free = view.free_now()
        return [Start(job.row) for job in view.waiting if free.take(job)]


class _Blind:
    """Starts every job on the first host."""

    name = "blind"

    def decide(self, view: View) -> list[Start]:
        from qbatch.model.actions import Chunk

        return [Start(row, (Chunk(0, 8, 0),)) for row in view.queue.tolist()[:1]]


def test_a_policy_in_python_gets_no_reserved_host_and_may_not_take_one() -> None:
    machine = machine_with(Reservation("r", (0,), "10", 10 * SECOND))
    work = work_on(machine, (0, 1, 5, 20, ""), (0, 4, 5, 20, ""))
    done = run(work, machine, _First(), is_audited=True)
    assert (done.start / SECOND).tolist() == [0, 20]
    with pytest.raises(DecisionError, match="host n1 is reserved during its estimate"):
        run(work, machine, _Blind())


def test_a_machine_with_reservations_is_replayed_by_the_engine() -> None:
    machine = machine_with(MAINTENANCE)
    assert compiled_of(load_policy("easy"), machine) is None
    with pytest.raises(UsageError, match="policy lsf knows no partitions, no reservations"):
        Engine(machine, load_policy("lsf"))


def site_with_windows(rng: random.Random) -> Machine:
    machine = random_site(rng)
    hosts = range(len(machine.real_hosts))
    reservations = tuple(
        Reservation(
            f"r{number}",
            tuple(host for host in hosts if host % 3 == number) or (0,),
            str(rng.randint(0, 300)),
            rng.randint(5, 120) * SECOND,
            is_flexible=rng.random() < 0.3,
        )
        for number in range(rng.randint(1, min(3, len(hosts))))
    )
    every = Reservation(
        "m", tuple(hosts), str(rng.randint(0, 200)), 60 * SECOND, is_maintenance=True
    )
    return msgspec.structs.replace(machine, reservations=(*reservations, every))


def reserved_breaches(done: Schedule, machine: Machine, hosts: list[set[int]]) -> list[str]:
    """Return the jobs that overlap a reservation of others, or start outside their own."""
    work, found = done.workload, []
    windows = windows_of(machine.reservations, work.clock, 10**15)
    names = [each.name for each in machine.reservations]
    for row in np.flatnonzero(done.ran).tolist():
        asked = work.requests[work.request[row]] if work.request[row] >= 0 else JobRequest(())
        own = names.index(asked.reservation) if asked.reservation else -1
        begin = int(done.start[row])
        end = max(begin + int(work.estimate[row]), begin + 1)
        for host in hosts[row]:
            here = [each for each in windows if host in each.hosts]
            if any(w.begin < end and w.end > begin and w.reservation != own for w in here):
                found.append(f"{row} on {host}")
            must = own >= 0 and not machine.reservations[own].is_flexible
            is_in = any(w.reservation == own and w.begin <= begin < w.end for w in here)
            if must and host < len(machine.real_hosts) and not is_in:
                found.append(f"{row} outside")
    return found


@pytest.mark.parametrize("policy", POLICIES)
def test_no_job_of_a_random_site_is_where_a_reservation_keeps_it_out(policy: str) -> None:
    ran = inside = 0
    for seed in range(size(20, 120)):
        rng = random.Random(seed)
        machine = site_with_windows(rng)
        work = work_of(rng, machine)
        names = ["", "", *(each.name for each in machine.reservations)]
        requests = tuple(
            msgspec.structs.replace(each, reservation=rng.choice(names)) for each in work.requests
        )
        work = work.changed(requests=requests)
        hosts: list[set[int]] = [set() for _ in range(len(work))]

        def note(engine: Engine, done: object, hosts: list[set[int]] = hosts) -> None:
            for action in done.actions:  # type: ignore[attr-defined]
                if isinstance(action, Start):
                    hosts[action.row] = {host for host, _, _ in parts_of(action.allocation)}

        done = run(work, machine, load_policy(policy), is_audited=True, observe=note)
        assert reserved_breaches(done, machine, hosts) == [], seed
        ran += int(done.ran.sum())
        kinds = [work.requests[kind].reservation if kind >= 0 else "" for kind in work.request]
        inside += sum(bool(name) and bool(ok) for name, ok in zip(kinds, done.ran, strict=True))
    assert ran > 200
    assert inside > 30


def test_windows_hold_only_the_hosts_they_name() -> None:
    window = Window(begin=0, end=10, reservation=0, hosts=(0,))
    machine = machine_with(Reservation("r", (0,), "0", 10))
    engine = Engine(machine, load_policy("easy"), windows=[window], is_audited=True)
    job = Job(number=1, submit=0, procs=8, estimate=100, chunks=(ChunkRequest(1, 8),))
    done = engine.handle(0, [Submitted(job)])
    (start,) = [each for each in done.actions if isinstance(each, Start)]
    assert [host for host, *_ in parts_of(start.allocation)] == [1]
    assert engine.next_timer() is None
    engine.handle(5, [Finished(0)])
