"""The closed network in a live server: the tasks of the replay, also after a kill; arrays of users
as parents."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from qbatch.daemon import journal_entry
from qbatch.daemon.core import passes, state_snapshot
from qbatch.daemon.core.state import Actor, Core, Ending
from qbatch.daemon.handlers import verbs
from qbatch.daemon.settings import Queue, Settings, pool_on
from qbatch.daemon.sources import ClosedNetworkSource
from qbatch.model.errors import InputError
from qbatch.policies.registry import load_policy
from qbatch.simulation.drivers import run
from qbatch.simulation.network import NetworkSource
from qbatch.wire.records import JobRecord
from qbatch.wire.requests import Alter, Changes, Delete, JobStatus
from qbatch.workloads.network import Network, read_network
from tests.daemon.harness import Daemon
from tests.harness import size

Tasks = dict[tuple[int, int, int], tuple[int, int]]
"""By job of the network, visit and task, from 1: start and end in microseconds."""

POLICIES = (
    "taskqueues:routing=probabilistic",
    "taskqueues",
    "taskqueues:routing=probabilistic,discipline=stf",
    "taskqueues:routing=probabilistic,discipline=snutf",
    "taskqueues:routing=probabilistic,discipline=lstf,limit=3",
    "easy",
)


def replayed(network: Network, seed: int, policy: str) -> Tasks:
    schedule = run(NetworkSource(network, seed), network.machine(), load_policy(policy))
    work = schedule.workload
    visits: Counter[int] = Counter()
    parents: dict[int, tuple[int, int]] = {}
    found: Tasks = {}
    within: Counter[int] = Counter()
    for row, (user, parent) in enumerate(
        zip(work.user.tolist(), work.parent.tolist(), strict=True)
    ):
        if parent not in parents:
            visits[user] += 1
            parents[parent] = (user, visits[user])
        within[parent] += 1
        found[*parents[parent], within[parent]] = (int(schedule.start[row]), int(schedule.end[row]))
    return found


def tasks_of(jobs: list[JobRecord]) -> Tasks:
    found: Tasks = {}
    for job in jobs:
        owner, visit = map(int, re.fullmatch(r"job(\d+)\.(\d+)", job.name).groups())  # type: ignore[union-attr]
        if job.array_index is not None:
            found[owner, visit, job.array_index] = (job.started or 0, job.ended or 0)
    return found


def settings_of(network: Network, policy: str) -> Settings:
    pool = pool_on(network.machine(), "main", policy)
    return Settings(executor="emulated", pools=(pool,), queues=(Queue(name="batch"),))


def lived(
    network: Network, seed: int, policy: str, until: int, restarts: random.Random | None = None
) -> Tasks:
    """Run the network through a live core to an instant; with ``restarts`` it is written down and
    read back now and then."""
    settings = settings_of(network, policy)
    core, source = Core(settings, load_policy), ClosedNetworkSource(network, seed, 0)
    source.attach(core)
    ended: list[JobRecord] = []
    while True:
        instants = [
            each for each in (passes.next_due(core), source.next_instant()) if each is not None
        ]
        at = max(min(instants), core.now)
        if at > until:
            return tasks_of(ended)
        source.take(core, at)
        passes.advance(core, at)
        ended += [effect.record for effect in core.take_effects() if isinstance(effect, Ending)]
        if restarts is not None and restarts.random() < 0.02:
            core = state_snapshot.load(state_snapshot.dump(core), settings, load_policy)
            source = ClosedNetworkSource(network, seed, 0)
            source.attach(core)


OPERATOR = Actor(0, "root", "root", "manager")


@pytest.mark.parametrize("seed", range(12))
def test_a_core_that_is_made_again_from_the_journal_goes_on_whatever_was_deleted(seed: int) -> None:
    network = read_network("closed:N=4,P=3,d=3,e=2,z=0.4")
    settings, draw = settings_of(network, "taskqueues"), random.Random(seed)
    core, source = Core(settings, load_policy), ClosedNetworkSource(network, seed, 0)
    source.attach(core)
    journal: list[bytes] = []
    written = state_snapshot.dump(core)
    for _ in range(120):
        instants = [
            each for each in (passes.next_due(core), source.next_instant()) if each is not None
        ]
        at = max(min(instants), core.now)
        journal += source.take(core, at)
        passes.advance(core, at)
        journal.append(journal_entry.one_pass(core.now))
        arrays = list(core.source.at_work)
        draw.shuffle(arrays)
        # Several commands of one instant, the clock standing still; the source is looked at in
        # between, as the daemon does.
        for sequence in arrays[: draw.choice((0, 0, 0, 1, 2, 3))]:
            request = Delete(jobs=(f"{sequence}[]",))
            journal.append(journal_entry.command(core.now, OPERATOR, msgspec.json.encode(request)))
            verbs.carry_out(core, OPERATOR, request)
            source.next_instant()
        core.take_effects()
        if draw.random() < 0.1:
            written, journal = state_snapshot.dump(core), []
        if draw.random() < 0.2:
            duplicate, other = (
                state_snapshot.load(written, settings, load_policy),
                ClosedNetworkSource(network, seed, 0),
            )
            for entry in journal:
                journal_entry.apply(duplicate, entry)
            duplicate.take_effects()
            other.attach(duplicate)
            assert other.next_instant() == source.next_instant()
            assert state_snapshot.dump(duplicate) == state_snapshot.dump(core)
            core, source = duplicate, other
    visits = core.source.visits
    assert set(visits) == {0, 1, 2, 3}
    assert min(visits.values()) > 5
    assert len(core.source.ended) + len(core.source.at_work) == 4


def test_a_source_that_is_refused_does_not_stop_the_time() -> None:
    network = read_network("closed:N=2,P=2,z=0")
    core, source = (
        Core(settings_of(network, "taskqueues"), load_policy),
        ClosedNetworkSource(network, 1, 0),
    )
    core.queue("batch").enabled = False
    source.attach(core)
    for _ in range(20):
        at = source.next_instant()
        assert at is not None
        source.take(core, at)
        passes.advance(core, at)
    assert core.now >= 15_000_000


def test_an_array_whose_jobs_differ_keeps_that_when_it_is_altered() -> None:
    network = read_network("closed:N=1,P=8,tasks=normal")
    core, source = (
        Core(settings_of(network, "taskqueues"), load_policy),
        ClosedNetworkSource(network, 1, 0),
    )
    source.attach(core)
    source.take(core, 0)
    passes.advance(core, 0)
    (parent,) = core.arrays
    members = core.arrays[parent].members

    def facts() -> list[tuple[int, int | None, int]]:
        return [
            (one.prepared.walltime, one.spec.runtime, one.prepared.request.route)
            for one in members.values()
        ]

    before = facts()
    assert len(set(before)) == len(before) > 2
    verbs.carry_out(core, OPERATOR, Alter(jobs=(f"{parent}[]",), changes=Changes(account="other")))
    assert facts() == before
    said = verbs.carry_out(
        core, OPERATOR, Alter(jobs=(f"{parent}[]",), changes=Changes(resources={"walltime": "5"}))
    )
    assert "of its own" in str(said)
    assert facts() == before


@pytest.mark.parametrize("policy", POLICIES)
def test_the_core_does_with_the_network_what_the_replay_does(policy: str) -> None:
    network = read_network("closed:N=6,P=4,C=4,d=3,e=2,z=0.4,warmup=0,length=150")
    wanted = {
        key: times
        for key, times in replayed(network, 3, policy).items()
        if times[1] <= network.horizon
    }
    assert len(wanted) > 100
    assert lived(network, 3, policy, network.horizon) == wanted
    assert lived(network, 3, policy, network.horizon, random.Random(policy)) == wanted


def test_stations_of_several_processors_too() -> None:
    network = read_network("closed:N=8,P=6,servers=3,warmup=0,length=50")
    wanted = {
        key: times
        for key, times in replayed(network, 1, "taskqueues").items()
        if times[1] <= network.horizon
    }
    assert lived(network, 1, "taskqueues", network.horizon) == wanted


def test_a_store_of_other_jobs_is_refused() -> None:
    network = read_network("closed:N=2,P=2")
    settings = settings_of(network, "taskqueues")
    core, source = Core(settings, load_policy), ClosedNetworkSource(network, 1, 0)
    source.attach(core)
    source.take(core, 0)
    with pytest.raises(InputError, match="--state DIR"):
        ClosedNetworkSource(network, 2, 0).attach(core)


@pytest.mark.parametrize("mode", ["x20", "virtual"])
def test_the_daemon_plays_the_network_and_a_kill_changes_nothing(mode: str, tmp_path: Path) -> None:
    text = "closed:N=6,P=4,d=5,e=5"
    network = read_network(text)
    daemon = Daemon(tmp_path, "--source", text, "--seed", "5", "--time", mode).start()
    draw = random.Random(7)
    for _ in range(size(2, 4)):
        time.sleep(draw.uniform(0.5, 1.5))
        daemon.kill()
        daemon.start()
    with daemon:
        time.sleep(1.0)
        if mode == "virtual":
            daemon.run("qbatch", "time", "pause")
        with daemon.session() as session:
            pages = session.pages(JobStatus(finished="only", subjobs=True))
            ended = tasks_of([job for page in pages for job in page.jobs])
    latest = max(end for _, end in ended.values())
    assert latest > 40_000_000
    wanted = replayed(
        read_network(f"{text},warmup=0,length={latest / 1e6 + 1:.0f}"), 5, "taskqueues"
    )
    assert ended == {key: wanted[key] for key in ended}
    assert network.stations == 4


ARRAYS = """
default_queue = "batch"
[[pool]]
hosts = "n[1-3]"
cpus = 1
policy = "taskqueues"
[[queue]]
name = "batch"
default_walltime = "1:00"
"""


def test_an_array_is_a_parent_whose_tasks_run_once_whatever_becomes_of_hosts_and_daemon(
    tmp_path: Path,
) -> None:
    daemon = Daemon(tmp_path, config=ARRAYS).start()
    script = (
        f"echo $PBS_ARRAY_INDEX >> {tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.1; "
        "done; "
        f"echo $PBS_ARRAY_INDEX >> {tmp_path}/ended\n"
    )
    parent = daemon.submit(script, array="1-9")
    number = parent.partition("[")[0]

    def queues() -> dict[str, list[int]]:
        hosts = json.loads(daemon.run("qbatch", "hosts", "--json").stdout)["hosts"]
        return {
            host["name"]: [int(name.split("[")[1].split("]")[0]) for name in host["queue"]]
            for host in hosts
        }

    waiting = queues()
    assert sorted(task for queue in waiting.values() for task in queue) == [4, 5, 6, 7, 8, 9]
    host, (first, second) = next(iter(waiting.items()))
    said = daemon.run("qbatch", "explain", f"{number}[{second}]").stdout
    assert f"second in the queue of {host}, behind 1 task of job {number}" in said
    assert f"second in the queue of {host}" in daemon.run("qstat", "-ts").stdout
    daemon.run("qhold", f"{number}[{first}]")
    assert first not in queues()[host]
    daemon.run("pbsnodes", "-o", host)
    assert queues()[host] == []
    daemon.kill()
    daemon.start()
    daemon.run("pbsnodes", "-r", host)
    daemon.run("qrls", f"{number}[{first}]")
    running = next(
        job.array_index for job in daemon.jobs(parent, subjobs=True).values() if job.state == "R"
    )
    daemon.run("qrerun", f"{number}[{running}]")
    deleted = next(task for queue in queues().values() for task in reversed(queue))
    daemon.run("qdel", f"{number}[{deleted}]")
    (tmp_path / "go").touch()
    with daemon:
        daemon.until(parent, "F", 60.0)
    began, ended = ((tmp_path / name).read_text().split() for name in ("began", "ended"))
    assert sorted(map(int, ended)) == [task for task in range(1, 10) if task != deleted]
    assert sorted(map(int, began)) == sorted([*map(int, ended), running])


def test_live_estimates_are_exact(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    done = daemon.run(*daemon.command(), "--source", "closed:E=0.2", code=2)
    assert "E out" in done.stderr
    done = daemon.run(*daemon.command(), "--source", "closed", "--trace", "log.swf", code=2)
    assert "leave one out" in done.stderr
