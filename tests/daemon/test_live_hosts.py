"""The Origin 2000's way of scheduling, live: ten minutes scaled in time, and the replay takes the
same decisions.

Hosts fill by memory, class limits bite, preempted jobs are suspended and resumed, jobs are resized.
Both use one machine file.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from qbatch.daemon.core import passes, state_snapshot
from qbatch.daemon.core.state import Core, Ending
from qbatch.daemon.export import exportable_of
from qbatch.daemon.settings import Queue, Settings, pool_on
from qbatch.daemon.sources import TraceSource
from qbatch.model.job_class import JobClass
from qbatch.model.machine import Host, Machine
from qbatch.model.machine_file import parse_machine
from qbatch.model.record import Schedule, Workload
from qbatch.policies.registry import load_policy
from qbatch.results.job_rows import read_job_rows
from qbatch.simulation.drivers import run
from qbatch.simulation.prepare import Options, prepare
from qbatch.wire.pieces import procs_now, run_of
from qbatch.wire.records import HostRecord, JobRecord, Text
from qbatch.wire.requests import Metrics
from qbatch.wire.resources import parse_duration, parse_size
from qbatch.workloads import read_log
from qbatch.workloads.machines import load_machine
from qbatch.workloads.origin2000 import generate_month
from tests.daemon.harness import Daemon
from tests.daemon.hostile.tools import until
from tests.daemon.test_promise import finished

SCALE = 20
"""So many seconds of the scenario take a second where jobs are real processes."""

SHARED_PASS = 250_000
"""Microseconds by which instants may differ where real events came so close to each other that one
pass served them."""

MACHINE = """
schema = 1
single_host = true
[[host]]
name = "alpha"
cpus = 16
memory = "16GB"
serves = ["large", "small"]
limits = {{ large = 1 }}
[[host]]
name = "beta"
cpus = 4
memory = "2GB"
serves = ["small"]
[[class]]
name = "short"
kind = "time"
time = {short}
reserve_wait = {reserve_wait}
goes_first = true
[[class]]
name = "long"
kind = "time"
reserve_wait = {reserve_wait}
limit = 2
[[class]]
name = "small"
kind = "size"
procs = 4
memory = "2GB"
[[class]]
name = "large"
kind = "size"
procs = 16
memory = "16GB"
"""

CONFIG = """
executor = "process"
[[pool]]
machine = "machine.toml"
policy = "{policy}"
[[queue]]
name = "batch"
"""

MEGABYTE = 2**20


class Wanted(NamedTuple):
    """A job of the scenario: seconds and megabytes."""

    submit: int
    procs: int
    memory: int
    walltime: int
    run: int


TEN_MINUTES = (
    Wanted(0, 6, 6144, 400, 250),  # large and long: alpha.
    Wanted(10, 2, 1536, 180, 150),  # beta, where half a gigabyte of memory stays free.
    Wanted(30, 2, 1024, 180, 120),  # processors on beta, but no memory: alpha.
    Wanted(50, 1, 1536, 180, 100),  # alpha.
    # It fits on alpha, but one large job there is enough; its quantum is too short.
    Wanted(70, 6, 6144, 400, 110),
    Wanted(90, 2, 512, 400, 170),  # the second long one.
    Wanted(110, 1, 512, 400, 100),  # a third long one: a trial run, then it waits for the class.
    Wanted(130, 4, 1024, 180, 20),  # done in its quantum.
    Wanted(150, 12, 8192, 180, 30),  # others stop for it.
    Wanted(200, 4, 1024, 180, 30),
    Wanted(250, 16, 4096, 180, 30),
    Wanted(300, 3, 2048, 180, 90),
    Wanted(330, 8, 3072, 400, 130),
    Wanted(365, 14, 1024, 180, 20),
    Wanted(405, 16, 1024, 180, 25),
    Wanted(480, 14, 2048, 180, 45),
    Wanted(600, 1, 256, 180, 10),
)


def machine_text(scale: int) -> str:
    return MACHINE.format(short=200 // scale, reserve_wait=180 // scale)


def policy_of(scale: int) -> str:
    return f"immediate:inner=lsf,quantum={60 // scale},protect={60 // scale},memory=512MB"


class Lived(NamedTuple):
    """What became of a job, in microseconds: its last start, its end, and when it stood still
    between them."""

    start: int
    end: int
    pauses: tuple[tuple[int, int], ...]


def lived(record: JobRecord, first: int = 0) -> Lived:
    pauses = [
        (since - first, (until or 0) - first) for since, until in record.pauses if until != since
    ]
    ended = (record.ended or 0) - first
    if pauses and pauses[-1][1] == ended:
        # Its process ended before the signal to stop reached it: it ran until then, and in a replay
        # it ends then.
        ended, _ = pauses.pop()
    return Lived((record.started or 0) - first, ended, tuple(pauses))


def replayed(schedule: Schedule) -> list[Lived]:
    """What became of each job, from the pieces of those that did not run through in one go."""
    found = [
        Lived(int(start), int(end), ())
        for start, end in zip(schedule.start, schedule.end, strict=True)
    ]
    assert schedule.pieces is not None
    pieces = schedule.pieces[np.argsort(schedule.pieces[:, 1], kind="stable")]
    for row in np.unique(pieces[:, 0]).tolist():
        mine = [
            (begin, end)
            for begin, end, kept in pieces[pieces[:, 0] == row][:, [1, 2, 5]].tolist()
            if kept
        ]
        gaps = tuple((end, begin) for (_, end), (begin, _) in pairwise(mine) if begin > end)
        found[row] = Lived(mine[0][0], mine[-1][1], gaps)
    return found


def swf(jobs: tuple[Wanted, ...]) -> str:
    """The scenario as a log: memory in kilobytes of each processor; none is used."""
    lines = ["; MaxProcs: 20"]
    for number, job in enumerate(jobs, 1):
        size = job.memory * 1024 // job.procs
        lines.append(
            f"{number} {job.submit} -1 {job.run} {job.procs} -1 0 {job.procs} {job.walltime} "
            f"{size} 1 1 1 -1 -1 -1 -1 -1"
        )
    return "\n".join(lines) + "\n"


def without(machine: Machine, what: str) -> Machine:
    """The machine without its memory, or without the limits of its classes."""
    if what == "memory":
        return msgspec.structs.replace(
            machine, hosts=tuple(msgspec.structs.replace(host, memory=0) for host in machine.hosts)
        )
    hosts: tuple[Host, ...] = tuple(
        msgspec.structs.replace(host, limits=()) for host in machine.hosts
    )
    classes: tuple[JobClass, ...] = tuple(
        msgspec.structs.replace(each, limit=None) for each in machine.classes
    )
    return msgspec.structs.replace(machine, hosts=hosts, classes=classes)


def check_that_it_bites(
    work: Workload, machine: Machine, policy: str, decided: list[Lived]
) -> None:
    """Memory, class limits and quanta each change what becomes of the jobs: none of them stands
    there for nothing."""
    assert sum(len(each.pauses) for each in decided) >= 3
    for what in ("memory", "limits"):
        assert replayed(run(work, without(machine, what), load_policy(policy))) != decided
    plain = run(work, machine, load_policy("lsf"))
    assert plain.end.tolist() != [each.end for each in decided]


def test_ten_minutes_on_emulated_hosts_at_sixty_times_the_speed(tmp_path: Path) -> None:
    (tmp_path / "machine.toml").write_text(machine_text(1), encoding="utf-8")
    (tmp_path / "log.swf").write_text(swf(TEN_MINUTES), encoding="utf-8")
    machine = parse_machine(machine_text(1), "machine.toml")
    work = prepare(read_log(str(tmp_path / "log.swf")), machine)
    expected = replayed(run(work, machine, load_policy(policy_of(1))))
    arguments = (
        "--trace",
        "log.swf",
        "--machine",
        "machine.toml",
        "--policy",
        policy_of(1),
        "--time",
        "x60",
    )
    with Daemon(tmp_path, *arguments, "--origin", "0") as daemon:
        jobs = {int(job.extra["log_number"]): lived(job) for job in finished(daemon)}
    assert [jobs[number] for number in range(1, len(TEN_MINUTES) + 1)] == expected
    check_that_it_bites(work, machine, policy_of(1), expected)


def history(records: list[JobRecord], first: int) -> Workload:
    """The jobs that really ran, as a log says it: when they came, what they asked for, how long
    they executed."""

    def column(values: list[int]) -> np.ndarray:
        return np.array(values, np.int64)

    absent = column([-1] * len(records))
    run_time = column([run_of(record, 0) for record in records])
    return Workload(
        "history",
        20,
        np.arange(1, len(records) + 1),
        column([(job.eligible or 0) - first for job in records]),
        column([int(job.resources["ncpus"]) for job in records]),
        column([parse_duration(job.resources["walltime"]) for job in records]),
        run_time,
        run_time,
        column([parse_size(job.resources["mem"]) for job in records]),
        absent,
        absent,
        absent,
        np.ones(len(records), np.bool_),
        np.arange(len(records)),
        used_memory=absent * 0,
    )


def has_run_faster_later(records: list[JobRecord]) -> bool:
    """Whether a script that was thrown back after its quantum then ended in less: a log has one run
    time for both."""
    return any(record.trials and run_of(record, 0) < 60 * 1_000_000 // SCALE for record in records)


def check_that_they_agree(expected: list[Lived], found: list[Lived]) -> None:
    """The same jobs stand still equally often, and every instant is the same but for a pass that
    was shared."""
    for wanted, real in zip(expected, found, strict=True):
        assert len(wanted.pauses) == len(real.pauses), (expected, found)
        instants = [
            (each.start, each.end, *(at for pause in each.pauses for at in pause))
            for each in (wanted, real)
        ]
        assert max(abs(a - b) for a, b in zip(*instants, strict=True)) < SHARED_PASS, (
            expected,
            found,
        )


def submitted(daemon: Daemon, number: int, job: Wanted, script: str, patience: int = 1) -> str:
    """Submit a job of the scenario as a real process and return its identifier; it gets
    ``patience`` times its walltime."""
    walltime = str(job.walltime // SCALE * patience)
    resources = {"ncpus": str(job.procs), "mem": f"{job.memory}mb", "walltime": walltime}
    return daemon.submit(script, resources=resources, name=f"job{number}")


def lived_through(daemon: Daemon, jobs: tuple[Wanted, ...]) -> list[JobRecord]:
    """Submit the scenario to real processes at its instants, and return what became of it, in order
    of submission."""
    begun = time.monotonic()
    names = []
    for number, job in enumerate(jobs):
        time.sleep(max(begun + job.submit / SCALE - time.monotonic(), 0))
        names.append(submitted(daemon, number, job, f"sleep {job.run / SCALE}\n"))
    for name in names:
        daemon.until(name, "F", 60)
    found = daemon.jobs(*names)
    return [found[name] for name in names]


def test_ten_minutes_of_real_processes_are_decided_as_their_replay(tmp_path: Path) -> None:
    """Half a minute: jobs are scripts, SIGSTOP suspends preempted jobs; a replay of the resulting
    log decides the same.

    To the microsecond, as long as each event has a pass of its own.  What comes while the server is
    busy shares one pass (an acknowledgement never waits for a pass), so on a loaded machine a job
    goes on some milliseconds after the other has ended.
    """
    (tmp_path / "machine.toml").write_text(machine_text(SCALE), encoding="utf-8")
    machine = parse_machine(machine_text(SCALE), "machine.toml")
    policy = policy_of(SCALE)
    with Daemon(tmp_path, config=CONFIG.format(policy=policy)) as daemon:
        records = lived_through(daemon, TEN_MINUTES)
        if has_run_faster_later(records):  # on a machine that is busy for seconds: once more
            records = lived_through(daemon, TEN_MINUTES)
    assert {record.exit_status for record in records} == {0}
    first = (records[0].submitted or 0) // 1_000_000 * 1_000_000
    work = history(records, first)
    decided = [lived(record, first) for record in records]
    check_that_they_agree(replayed(run(work, machine, load_policy(policy))), decided)
    check_that_it_bites(work, machine, policy, decided)


MALLEABLE = """
trap '. "$QBATCH_ALLOCATION"; echo "$NCPUS" >> {counts}' WINCH
. "$QBATCH_ALLOCATION"
echo "$NCPUS" >> {counts}
while [ ! -e {end} ]; do sleep 0.05; done
"""

PATIENCE = 100


def order_of_events(machine: Machine, directory: Path) -> list[int]:
    """Return the jobs of the scenario in the order in which they come and end under equal shares:
    each number twice."""
    (directory / "log.swf").write_text(swf(TEN_MINUTES), encoding="utf-8")
    work = prepare(read_log(str(directory / "log.swf")), machine)
    schedule = run(work, machine, load_policy("equispatial:interval=0"))
    events = [*zip(work.submit.tolist(), work.number.tolist(), strict=True)]
    events += zip(schedule.end.tolist(), work.number.tolist(), strict=True)
    return [number for _, number in sorted(events)]


def passes_of(daemon: Daemon) -> int:
    with daemon.session() as session:
        text = session.ask(Metrics(), Text).text
    return int(
        next(line for line in text.splitlines() if line.startswith("qbatch_passes_total ")).split()[
            1
        ]
    )


def counts_seen(directory: Path, number: int) -> list[int]:
    """Return the numbers of processors that a script has read, in order."""
    path = directory / f"counts-{number}"
    return (
        [int(line) for line in path.read_text(encoding="ascii").splitlines()]
        if path.exists()
        else []
    )


def grown_and_shrunk(daemon: Daemon, order: list[int]) -> list[JobRecord]:
    """Submit each job of the scenario and let it end, event by event; return what became of them,
    in order of submission.

    An event comes once the one before has had its pass, and all running scripts know how many
    processors they have: then no two share a pass, however slow the machine is.
    """
    names: dict[str, int] = {}
    for number in order:
        name, made = (
            next((name for name, known in names.items() if known == number), ""),
            passes_of(daemon),
        )
        if name:
            (daemon.directory / f"end-{number}").touch()
            daemon.until(name, "F")
        else:
            script = MALLEABLE.format(
                counts=daemon.directory / f"counts-{number}", end=daemon.directory / f"end-{number}"
            )
            names[submitted(daemon, number, TEN_MINUTES[number - 1], script, PATIENCE)] = number
        until(lambda made=made: passes_of(daemon) > made, "the pass that follows")
        until(
            lambda: all(
                counts_seen(daemon.directory, names[job.id])[-1:] == [procs_now(job)]
                for job in daemon.jobs(*names).values()
                if job.state == "R"
            ),
            "scripts that know their processors",
        )
    found = daemon.jobs(*names)
    return [found[name] for name in names]


@pytest.mark.parametrize("interval", [0, 1])
def test_malleable_processes_are_resized_as_in_their_replay(tmp_path: Path, interval: int) -> None:
    """Scripts get a signal at each change of their processors, and the replay of what happened has
    the same changes."""
    (tmp_path / "machine.toml").write_text(machine_text(SCALE), encoding="utf-8")
    machine = parse_machine(machine_text(SCALE), "machine.toml")
    policy = f"equispatial:interval={interval}"
    with Daemon(tmp_path, config=CONFIG.format(policy=policy)) as daemon:
        records = grown_and_shrunk(daemon, order_of_events(machine, tmp_path))
        daemon.run("qbatch", "export", "parquet", "-o", "jobs.parquet")
    (rows,) = read_job_rows(tmp_path / "jobs.parquet")
    counts = dict(zip(rows.workload.number.tolist(), rows.piece_count.tolist(), strict=True))
    assert [counts[number] > 0 for number in range(1, len(records) + 1)] == [
        bool(each.sizes) for each in records
    ]
    assert {record.exit_status for record in records} == {0}
    assert sum(len(record.sizes) for record in records) >= 4
    for number, record in enumerate(records, start=1):
        sizes = [size for _, size in record.sizes]
        assert counts_seen(tmp_path, number)[-len(sizes) :] == (
            sizes or counts_seen(tmp_path, number)
        )
    first = (records[0].submitted or 0) // 1_000_000 * 1_000_000
    schedule = run(history(records, first), machine, load_policy(policy))
    # A real job's work is no whole number of microseconds on the processors that it asked for: its
    # end is rounded.
    assert (
        np.abs(schedule.end - [(record.ended or 0) - first for record in records]).max()
        < SHARED_PASS
    )


STUDY = (
    "lsf",
    "priority-backfill",
    "fcfs-backfill",
    "sjf-backfill",
    "lxf-backfill",
    "lxfw-backfill:depth=4",
    "immediate:inner=lxfw-backfill",
    "soon:inner=lxfw-backfill",
    "equispatial",
    "equispatial:over50=yes,interval=0",
)


@pytest.mark.parametrize("policy", STUDY)
def test_the_core_takes_the_decisions_of_the_replay_on_the_origin(policy: str) -> None:
    """The same machine file, a log with memory asked for and used, snapshots in between: each job
    ends when it ends there, and its export has the pieces of the replay, on the same hosts."""
    machine = load_machine("origin2000")
    work = prepare(generate_month("1999-12", seed=7), machine, Options(first=700))
    core = Core(
        Settings(
            executor="emulated",
            pools=(pool_on(machine, "main", policy),),
            queues=(Queue(name="batch"),),
        ),
        load_policy,
    )
    trace = TraceSource(work, 0)
    trace.attach(core)
    records: dict[int, JobRecord] = {}
    steps = 0
    while instants := [
        each for each in (passes.next_due(core), trace.next_instant()) if each is not None
    ]:
        at = max(min(instants), core.now)
        trace.take(core, at)
        passes.advance(core, at)
        endings = [effect.record for effect in core.take_effects() if isinstance(effect, Ending)]
        records |= {int(record.extra["log_number"]): record for record in endings}
        steps += 1
        if steps % 200 == 0:
            core = state_snapshot.load(state_snapshot.dump(core), core.settings, load_policy)
    schedule = run(work, machine, load_policy(policy))
    numbers = work.number.tolist()
    assert {number: record.ended for number, record in records.items()} == dict(
        zip(numbers, schedule.end.tolist(), strict=True)
    )
    hosts = [
        HostRecord(name=host.name, pool="main", state="free", cpus=host.cpus)
        for host in machine.hosts
    ]
    exported, *_, left_out = exportable_of([records[number] for number in numbers], hosts, "here")
    assert left_out == 0
    assert pieces_by_job(exported.result.schedules[0]) == pieces_by_job(schedule)


def pieces_by_job(rows: Schedule) -> dict[int, list[tuple[int, ...]]]:
    """The start, the end and the pieces of each job by its place in the log, times from the first
    submission."""
    zero = int(rows.workload.submit.min()) // 1_000_000 * 1_000_000
    found: dict[int, list[tuple[int, ...]]] = {}
    for row in range(len(rows)):
        found[row] = [
            (int(rows.start[row]) - zero, int(rows.end[row]) - zero, int(rows.piece_count[row]))
        ]
    for row, begin, end, *others in (
        []
        if rows.pieces is None
        else rows.pieces[np.argsort(rows.pieces[:, 1], kind="stable")].tolist()
    ):
        found[row].append((begin - zero, end - zero, *others))
    return found
