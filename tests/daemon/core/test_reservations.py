"""Reservations of a server: which jobs have which hosts when, what users make, what a crash
leaves."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from qbatch.daemon.config import parse_config
from qbatch.daemon.core import reservations, state_snapshot
from qbatch.daemon.core.invariants import breaches
from qbatch.daemon.core.reconfigure import reconfigure
from qbatch.daemon.core.records import host_records
from qbatch.daemon.core.steps import whole
from qbatch.model.errors import InputError
from qbatch.model.job import ChunkRequest, JobRequest
from qbatch.model.machine import Machine
from qbatch.model.machine_file import parse_machine
from qbatch.model.record import LogClock, Workload
from qbatch.policies.registry import load_policy
from qbatch.simulation import run
from qbatch.wire.errors import Refusal
from qbatch.wire.records import ReservationRecord
from qbatch.wire.requests import ForceStart, PolicySet, Reserve, Unreserve
from tests.daemon.core.driver import ALICE, BOB, ROOT, SECOND, Bench, forecast_of
from tests.daemon.core.test_slots import record

SITE = """
executor = "emulated"
policy = "{policy}"
[[pool]]
[pool.machine]
schema = 2
[[pool.machine.host]]
name = "n[1-4]"
cpus = 8
{reservations}
[[queue]]
name = "batch"
default_walltime = "1:00:00"
"""
COURSE = """
[[pool.machine.reservation]]
name = "course"
hosts = ["n[1-2]"]
start = 100
duration = 100
repeat = "{repeat}"
"""


def site(*, policy: str = "easy", reservations: str = "") -> str:
    return SITE.format(policy=policy, reservations=reservations)


def bench_of(**changes: str) -> Bench:
    bench = Bench(site(**changes))
    bench.make_pass()
    return bench


def made(
    bench: Bench, actor=ALICE, *, after: int = 100, lasts: int = 100, **fields
) -> ReservationRecord:  # type: ignore[no-untyped-def]
    """Reserve hosts some seconds from now."""
    found = bench.do(
        actor,
        Reserve(start=bench.now + after * SECOND, duration=lasts * SECOND, **fields),
    )
    assert isinstance(found, ReservationRecord)
    return found


def started(bench: Bench, job: str) -> float | None:
    at = (bench.ended.get(job) or record(bench, job)).started
    return None if at is None else at / SECOND


def whole_host(
    bench: Bench, walltime: int, *, hosts: int = 1, queue: str = "", runtime: int = 10, actor=ALICE
) -> str:  # type: ignore[no-untyped-def]
    return bench.submit(
        "true\n",
        actor,
        queue=queue,
        runtime=runtime * SECOND,
        resources={"select": f"{hosts}:ncpus=8", "walltime": str(walltime)},
    )


def test_jobs_of_a_reservation_run_inside_it_and_others_around_it() -> None:
    bench = bench_of()
    mine = made(bench, hosts=("n[1-2]",))
    assert (mine.name, mine.hosts, mine.state) == ("R1", ("n1", "n2"), "confirmed")
    inside = whole_host(bench, 50, hosts=2, queue="R1")
    short, long = whole_host(bench, 100, hosts=4), whole_host(bench, 101, hosts=4)
    bench.wait(1000)
    assert started(bench, short) == 0
    assert started(bench, inside) == 100
    assert started(bench, long) == 200
    assert bench.ended[inside].queue == "R1"
    assert breaches(bench.core) == []


def test_a_reservation_is_kept_only_if_its_hosts_are_free() -> None:
    bench = bench_of()
    whole_host(bench, 500, hosts=2)
    bench.make_pass()
    with pytest.raises(
        Refusal, match=r"n1 is not free from .* for 0:01:40: n1: a job may run there until 19"
    ):
        made(bench, hosts=("n1",))
    assert made(bench, hosts=("n1",), after=500).hosts == ("n1",)
    assert made(bench, resources={"select": "2:ncpus=8"}).hosts == ("n3", "n4")
    with pytest.raises(Refusal, match=r"the 0 hosts that are free .* do not hold the request"):
        made(bench, resources={"select": "1:ncpus=8"})
    assert made(bench, ROOT, hosts=("n1",), ignores_jobs=True).hosts == ("n1",)
    with pytest.raises(Refusal, match="n3: the reservation R3 has it"):
        made(bench, hosts=("n3",), after=199)
    assert made(bench, hosts=("n3",), after=200).hosts == ("n3",)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"hosts": ("n9",)}, "Unknown node n9"),
        ({"hosts": ("n[1-",)}, "a bracket is not closed"),
        ({}, "name hosts, or what they must have together"),
        ({"hosts": ("n1",), "resources": {"ncpus": "1"}}, "and not both"),
        ({"hosts": ("n1",), "lasts": 0}, "the end is not after the start"),
        ({"hosts": ("n1",), "lasts": 3601, "repeat": "hourly"}, "comes again after 1:00:00"),
        ({"hosts": ("n1",), "after": -5}, "the start .* is past"),
        ({"hosts": ("n1",), "repeat": "yearly"}, "'yearly' is no repetition"),
        ({"hosts": ("n1",), "name": "batch"}, "a queue or a reservation batch already"),
        ({"hosts": ("n1",), "name": "a b"}, "is no name of a reservation"),
        ({"resources": {"select": "9:ncpus=8", "place": "scatter"}}, "can never run in queue R1"),
        ({"hosts": ("n1",), "is_maintenance": True}, "only operators make maintenance"),
        ({"hosts": ("n1",), "pool": "x"}, "there is no pool 'x'"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(fields: dict, said: str) -> None:  # type: ignore[type-arg]
    bench = bench_of()
    bench.wait(10)
    before = state_snapshot.dump(bench.core)
    with pytest.raises(Refusal, match=said):
        made(bench, **fields)
    bench.core.prepared.clear()
    assert state_snapshot.dump(bench.core) == before


def test_only_its_users_may_submit_to_a_reservation_and_only_its_owner_ends_it() -> None:
    bench = bench_of()
    made(bench, hosts=("n1",), name="course", users=("alice",))
    waiting = whole_host(bench, 50, queue="course")
    with pytest.raises(Refusal, match="course is not for user bob"):
        whole_host(bench, 50, queue="course", actor=BOB)
    outcome = bench.do(BOB, Unreserve(reservations=("course",))).outcomes[0]  # type: ignore[attr-defined]
    assert outcome.error.message == "Unauthorized Request course"
    outcome = bench.do(ALICE, Unreserve(reservations=("course.qbatch",))).outcomes[0]  # type: ignore[attr-defined]
    assert outcome.error is None
    assert bench.state(waiting) == "F"
    assert "course" not in bench.core.queues
    other = whole_host(bench, 500, hosts=4)
    bench.wait(10)
    assert started(bench, other) == 0
    outcome = bench.do(ALICE, Unreserve(reservations=("course",))).outcomes[0]  # type: ignore[attr-defined]
    assert outcome.error.message == "Unknown Reservation Id course"


def test_a_job_that_fits_no_time_of_its_reservation_is_refused() -> None:
    bench = bench_of()
    made(bench, hosts=("n[1-2]",))
    made(bench, hosts=("n1",), after=200)
    whole_host(bench, 100, hosts=2, queue="R1")
    whole_host(bench, 101, queue="R1")  # It fits on the other host.
    with pytest.raises(Refusal, match="it can never run: its 0:01:41 fit into no known time") as no:
        whole_host(bench, 101, hosts=2, queue="R1")
    assert no.value.code == "never-fits"


def test_a_reservation_is_explained_by_its_name_and_its_number() -> None:
    bench = bench_of()
    made(bench, hosts=("n[1-2]",))
    made(bench, ROOT, hosts=("n4",), is_maintenance=True)
    whole_host(bench, 10, queue="R1")

    def said(text: str) -> str | None:
        found = reservations.explanation(bench.core, text, bench.now)
        return None if found is None else found.text

    for name in ("R1", "1", "R1.server", "R1.other"):
        assert said(name) == (
            "will keep n[1-2] from 1970-01-01 00:01:40 until 1970-01-01 00:03:20, for the jobs of "
            "alice in its queue; 0 of them run and 1 wait"
        )
    assert said("2") == said("M2")
    assert str(said("M2")).endswith("no job runs there")
    assert said("3") is None
    bench.wait(101)
    assert str(said("R1")).startswith("keeps n[1-2] from")
    assert str(said("R1")).endswith("1 of them run and 0 wait")


def test_a_past_reservation_of_a_machine_file_is_named() -> None:
    machine = (
        parse_config(site(reservations=COURSE.format(repeat="daily")), "the test").pools[0].machine
    )
    assert machine is not None
    machine = msgspec.structs.replace(
        machine,
        reservations=tuple(
            msgspec.structs.replace(each, repeat="") for each in machine.reservations
        ),
    )
    assert reservations.past(machine, 199 * SECOND) == []
    [note] = reservations.past(machine, 200 * SECOND)
    assert note.startswith("the reservation course (start 100) of the machine file is past")


def test_a_reservation_that_is_over_takes_no_job_and_loses_those_that_wait() -> None:
    bench = bench_of()
    made(bench, hosts=("n1",))
    late = [whole_host(bench, 80, queue="R1", runtime=80) for _ in range(3)]
    bench.wait(150)
    held = whole_host(bench, 80, queue="R1")
    bench.wait(60)
    assert [started(bench, job) for job in late] == [100, 180, None]
    assert "no window left" in bench.ended[late[2]].comment
    assert bench.state(held) == "F"
    with pytest.raises(Refusal, match="Queue is not enabled: R1"):
        whole_host(bench, 80, queue="R1")
    bench.wait(100)
    assert "R1" not in bench.core.queues  # Its last job has ended.
    assert breaches(bench.core) == []


def test_maintenance_takes_hosts_that_are_reserved_and_no_job_runs_there() -> None:
    bench = bench_of()
    made(bench, hosts=("n1",))
    inside = whole_host(bench, 50, queue="R1")
    down = made(bench, ROOT, hosts=("all",), is_maintenance=True)
    assert down.name.startswith("M")
    assert down.name not in bench.core.queues
    with pytest.raises(Refusal, match="fit into no known time of its reservation R1"):
        whole_host(bench, 50, queue="R1")
    other = whole_host(bench, 200)
    bench.wait(500)
    assert bench.ended[inside].started is None
    assert started(bench, other) == 200


def test_a_repeated_reservation_comes_again_for_ever() -> None:
    bench = bench_of(reservations=COURSE.format(repeat="hourly"))
    for hour in range(100):
        inside = whole_host(bench, 50, queue="course", hosts=2)
        outside = whole_host(bench, 3500, hosts=4)
        bench.wait(3600)
        assert started(bench, inside) == 3600 * hour + 100
        assert started(bench, outside) == 3600 * hour + 200
    assert len(bench.core.pools[0].engine.windows) <= reservations.MOST_AHEAD


def test_reservations_survive_a_crash() -> None:
    """From any snapshot, the journal leads to the same state: the same reservations, queues, jobs."""
    for seed in range(6):
        draw = random.Random(seed)
        bench = bench_of(
            policy=draw.choice(("easy", "conservative", "fcfs")),
            reservations=draw.choice(
                ("", COURSE.format(repeat="daily"), COURSE.format(repeat="hourly"))
            ),
        )
        snapshots = [(0, b"")]
        for _ in range(60):
            _do_something(bench, draw)
            bench.wait(draw.choice((0, 5, 60, 700)))
            if draw.random() < 0.2:
                snapshots.append((len(bench.journal), state_snapshot.dump(bench.core)))
            assert breaches(bench.core) == []
        last = state_snapshot.dump(bench.core)
        for place, snapshot in snapshots:
            core = bench.replayed(bench.journal[place:], snapshot or None)
            assert state_snapshot.dump(core) == last


def _do_something(bench: Bench, draw: random.Random) -> None:
    names = [each.kept.name for each in bench.core.pools[0].reservations]
    what = draw.random()
    try:
        if what < 0.2:
            made(
                bench,
                after=draw.randrange(300),
                lasts=draw.randrange(1, 300),
                repeat=draw.choice(("", "", "hourly")),
                **draw.choice(
                    (
                        {"hosts": (f"n{draw.randrange(1, 5)}",)},
                        {"resources": {"select": f"{draw.randrange(1, 4)}:ncpus=8"}},
                    )
                ),
            )
        elif what < 0.3 and names:
            bench.do(ALICE, Unreserve(reservations=(draw.choice(names),)))
        else:
            whole_host(
                bench,
                draw.randrange(1, 400),
                hosts=draw.randrange(1, 4),
                queue=draw.choice(("", "", *names)),
                runtime=draw.randrange(1, 500),
            )
    except Refusal:
        pass


def test_reservations_go_with_another_policy() -> None:
    bench = bench_of(policy="conservative")
    made(bench, hosts=("n[1-4]",))
    long = whole_host(bench, 101, hosts=1)
    bench.wait(1)
    bench.do(ROOT, PolicySet(policy="easy"))
    bench.wait(500)
    assert started(bench, long) == 200
    with pytest.raises(Refusal, match="knows no partitions, no reservations"):
        bench.do(ROOT, PolicySet(policy="lsf"))


def test_a_forecast_knows_the_reservations() -> None:
    bench = bench_of()
    made(bench, hosts=("n[1-4]",))
    long = whole_host(bench, 101)
    bench.make_pass()
    assert forecast_of(bench)[long] == (200 * SECOND, 301 * SECOND)


def test_a_new_configuration_changes_its_own_reservations_and_keeps_the_others() -> None:
    bench = bench_of(reservations=COURSE.format(repeat="daily"))
    made(bench, hosts=("n3",), name="mine")
    waiting = whole_host(bench, 50, queue="mine")
    bench.make_pass()

    def set_to(text: str) -> None:
        whole(reconfigure(bench.core, parse_config(text, "new")))
        bench.make_pass()

    set_to(site())
    assert [each.kept.name for each in bench.core.pools[0].reservations] == ["mine"]
    free = whole_host(bench, 500, hosts=3)
    bench.wait(0)
    assert started(bench, free) == 0
    set_to(site(reservations=COURSE.format(repeat="daily")))
    assert set(bench.core.queues) == {"batch", "mine", "course"}
    with pytest.raises(InputError, match="a user made a reservation mine"):
        set_to(site(reservations=COURSE.format(repeat="daily").replace("course", "mine")))
    with pytest.raises(InputError, match="'mine' and 'course' overlap on a host"):
        set_to(site(reservations=COURSE.format(repeat="daily").replace("n[1-2]", "n3")))
    with pytest.raises(InputError, match="delete the reservation first"):
        set_to(site().replace("cpus = 8", "cpus = 9"))
    bench.wait(300)
    assert started(bench, waiting) == 100


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (COURSE.format(repeat="daily") * 2, "the reservation 'course' appears twice"),
        (COURSE.format(repeat="daily").replace('"course"', '"batch"'), "a reservation is a queue"),
    ],
)
def test_a_configuration_with_reservations_that_do_not_go_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_config(site(reservations=text), "test")


GPU_SITE = """
[[{table}host]]
name = "n[1-3]"
cpus = 8

[[{table}host]]
name = "g[1-2]"
cpus = 8
resources = {{ gpu = 4 }}

[[{table}reservation]]
name = "course"
hosts = ["n1", "g1"]
start = 300
duration = 400
repeat = "hourly"

[[{table}reservation]]
name = "down"
hosts = ["all"]
start = 5000
duration = 900
flags = ["maint"]
"""


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "hybrid:depth=3"])
@pytest.mark.parametrize("seed", range(3))
def test_live_equals_replay_with_gpus_and_reservations(policy: str, seed: int) -> None:
    """The same jobs start at the same instants on a server, killed in between, and in a replay."""
    draw = random.Random(seed)
    machine = parse_machine("schema = 2\n" + GPU_SITE.format(table=""), "test")
    config = f'executor = "emulated"\npolicy = "{policy}"\n[[pool]]\n[pool.machine]\nschema = 2\n'
    config += GPU_SITE.format(table="pool.machine.") + '[[queue]]\nname = "batch"\n'
    jobs = sorted(_random_job(draw) for _ in range(80))
    bench, names = Bench(config), []
    bench.make_pass()
    for at, count, gpus, walltime, queue in jobs:
        bench.wait(at - bench.now / SECOND)
        bench.wait(0)
        if draw.random() < 0.1:
            after = Bench(config)
            after.core = state_snapshot.load(
                state_snapshot.dump(bench.core), bench.settings, load_policy
            )
            after.now, after.ended, bench = bench.now, bench.ended, after
        select = f"{count}:ncpus=4" + (f":ngpus={gpus}" if gpus else "")
        resources = {"select": select, "place": "scatter", "walltime": str(walltime)}
        names.append(
            bench.submit(
                "true\n", queue=queue, runtime=walltime * SECOND * 2 // 3, resources=resources
            )
        )
    bench.wait(100_000)
    done = run(_work_of(machine, jobs), machine, load_policy(policy), is_audited=True)
    live = [bench.ended[name].started for name in names]
    assert live == [at if at >= 0 else None for at in done.start.tolist()]
    assert breaches(bench.core) == []


def _random_job(draw: random.Random) -> tuple[int, int, int, int, str]:
    """Return submit, chunks, GPUs of each, walltime and queue of a job that can run."""
    queue, gpus = draw.choice(("", "", "", "course")), draw.choice((0, 0, 1, 2))
    most = 5 - bool(queue) * 3 if not gpus else 2 - bool(queue)
    return draw.randrange(9000), draw.randint(1, most), gpus, draw.randrange(60, 900), queue


def _work_of(machine: Machine, jobs: Sequence[tuple[int, int, int, int, str]]) -> Workload:
    requests = tuple(
        JobRequest(
            (ChunkRequest(count, 4, resources=(("gpu", gpus),) if gpus else ()),),
            "scatter",
            reservation=queue,
        )
        for _, count, gpus, _, queue in jobs
    )
    submit, estimate = (np.array([job[place] for job in jobs]) * SECOND for place in (0, 3))
    gpu = np.array([job[1] * job[2] for job in jobs], np.int64)
    none = np.full(len(jobs), -1, np.int64)
    return Workload(
        name="jobs",
        procs_total=machine.procs,
        number=np.arange(1, len(jobs) + 1),
        submit=submit,
        procs=np.array([each.procs for each in requests], np.int64),
        estimate=estimate,
        run=estimate * 2 // 3,
        logged_run=estimate * 2 // 3,
        memory=np.zeros(len(jobs), np.int64),
        user=none,
        group=none,
        queue=none,
        counted=np.ones(len(jobs), np.bool_),
        log_row=np.arange(len(jobs)),
        clock=LogClock(),
        resources={"gpu": gpu},
        requests=requests,
        request=np.arange(len(jobs)),
    )


PARTITIONS = """
executor = "emulated"
[[pool]]
[pool.machine]
schema = 2
[[pool.machine.host]]
name = "n[1-2]"
cpus = 8

[[pool.machine.host]]
name = "g[1-2]"
cpus = 8
resources = { gpu = 4 }

[[pool.machine.partition]]
name = "batch"
hosts = ["n[1-2]"]
default = true

[[pool.machine.partition]]
name = "gpu"
hosts = ["g[1-2]"]

[[queue]]
name = "batch"
"""


def test_jobs_of_a_reservation_run_in_every_partition_that_has_its_hosts() -> None:
    bench = Bench(PARTITIONS)
    bench.make_pass()
    kept = made(bench, resources={"select": "1:ncpus=4:ngpus=2"})
    assert kept.hosts == ("g1",)
    job = bench.submit(
        "true\n", queue=kept.name, resources={"select": "1:ncpus=4:ngpus=2", "walltime": "50"}
    )
    bench.wait(120)
    assert record(bench, job).exec_vnode == "(g1:ncpus=4:ngpus=2)"


def test_a_host_shows_that_it_is_reserved_or_in_maintenance_now() -> None:
    bench = bench_of()
    made(bench, hosts=("n1",))
    made(bench, ROOT, hosts=("n2",), is_maintenance=True)

    def states() -> list[str]:
        return [host.state for host in host_records(bench.core, bench.now)]

    bench.wait(99)
    assert states() == ["free"] * 4
    bench.wait(2)
    assert states() == ["resv-exclusive", "maintenance", "free", "free"]
    whole_host(bench, 50, queue="R1")
    bench.wait(0)
    assert states()[0] == "job-busy"
    bench.wait(200)
    assert states() == ["free"] * 4


def test_a_forced_start_keeps_to_reservations_and_says_so() -> None:
    bench = bench_of()
    made(bench, hosts=("n[2-4]",))
    busy, job = whole_host(bench, 500), whole_host(bench, 500, hosts=3)
    bench.wait(0)
    outcome = bench.do(ROOT, ForceStart(jobs=(job,))).outcomes[0]  # type: ignore[attr-defined]
    assert "reservations keep it from n[2-4] during its walltime" in outcome.error.message
    inside = whole_host(bench, 50, queue="R1")
    bench.wait(0)
    outcome = bench.do(ROOT, ForceStart(jobs=(inside,))).outcomes[0]  # type: ignore[attr-defined]
    assert "reservations keep it from" in outcome.error.message
    assert bench.state(busy) == "R"
    assert breaches(bench.core) == []
