"""Random commands while policies that suspend, try and resize follow each other: no job is lost, a
crash changes nothing.

It adds to :mod:`tests.daemon.core.test_core_properties` other pools (hosts with memory, classes of
jobs), other policies, which are exchanged on the way, and processes, of which the test reports how
they end.
"""

from __future__ import annotations

import contextlib
import random

import pytest

from qbatch.daemon.core import state_snapshot
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.executors.attempt import LOST, Ended
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from tests.daemon.core.driver import ALICE, BOB, ROOT, Bench
from tests.harness import size

POOLS = {
    "spanned": 'hosts = "n[1-4]"\ncpus = 4\nspans = true',
    "chunked": 'hosts = "n[1-4]"\ncpus = 4\nmemory = "8GB"',
    "single": 'hosts = "n[1-4]"\ncpus = 4\nmemory = "8GB"\nsingle_host = true',
    "classes": """
[pool.machine]
schema = 1
single_host = true
[[pool.machine.host]]
name = "n[1-3]"
cpus = 4
memory = "8GB"
limits = { large = 1 }
[[pool.machine.host]]
name = "n4"
cpus = 2
memory = "4GB"
serves = ["small"]
[[pool.machine.class]]
name = "short"
kind = "time"
time = 20
limit = 4
goes_first = true
[[pool.machine.class]]
name = "long"
kind = "time"
reserve_wait = 30
[[pool.machine.class]]
name = "small"
kind = "size"
procs = 2
memory = "2GB"
[[pool.machine.class]]
name = "large"
kind = "size"
""",
}
ON_ONE_POOL = (
    "easy",
    "conservative",
    "qops",
    "scojo:cycle=30,switch=3,short=10,class_by=queue",
    "scojo:cycle=20,switch=0,short=5,class_by=queue,smart=no",
    "scojo-groups:cycle=20,switch=2,short=5,class_by=queue",
    "bottom-line:cycle=20,switch=2,short=5,class_by=queue,nodes=50",
)
"""Policies for the pool on which jobs span hosts; it refuses some others."""

ON_HOSTS = (
    "easy",
    "conservative",
    "lsf",
    "sjf-backfill:depth=2",
    "immediate:inner=easy,protect=0,quantum=10",
    "immediate:inner=conservative,protect=5,quantum=10",
    "immediate:inner=lsf,protect=0,quantum=5",
    "soon:inner=lxfw-backfill,quantum=5",
    "soon:inner=lsf,quantum=7",
    "equispatial",
    "equispatial:interval=10",
    "scojo:cycle=30,switch=3,short=10,class_by=queue",
    "scojo-groups:cycle=20,switch=0,short=5,class_by=queue",
)

POLICIES = tuple(dict.fromkeys(ON_HOSTS + ON_ONE_POOL))
"""Policies that are set on the live server; a pool that one refuses keeps its own."""


def policies_on(pool: str) -> list[str]:
    if pool == "spanned":
        return list(ON_ONE_POOL)
    return [each for each in ON_HOSTS if pool != "chunked" or not each.startswith("equispatial")]


def bench_of(pool: str, executor: str, policy: str) -> Bench:
    queues = "".join(
        f'[[queue]]\nname = "{name}"\ndefault_walltime = "10:00"\n' for name in ("batch", "narrow")
    )
    limits = "max_running = 2\nmax_running_per_user = 1\n"
    return Bench(
        f'executor = "{executor}"\npolicy = "{policy}"\n[[pool]]\n{POOLS[pool]}\n{queues}{limits}'
    )


def running(bench: Bench) -> list[BatchJob]:
    return [job for pool in bench.core.pools for job in pool.running.values()]


def waiting(bench: Bench) -> list[str]:
    jobs = [one for job in bench.core.live_jobs() for one in bench.core.members(job)]
    return [
        bench.core.id_of(job.key) for job in jobs if job.state.letter == "Q" and not job.is_array
    ]


def some_job(bench: Bench, draw: random.Random) -> str:
    on_hosts = [bench.core.id_of(job.key) for job in running(bench)]
    if on_hosts and draw.random() < 0.6:
        return draw.choice(on_hosts)
    if bench.core.arrays and draw.random() < 0.3:
        return f"{draw.choice(list(bench.core.arrays))}[{draw.randrange(1, 4)}]"
    return str(draw.randrange(1, max(bench.core.next_sequence, 2)))


def submit(bench: Bench, draw: random.Random) -> None:
    asked = {"ncpus": str(draw.randrange(1, 5)), "mem": draw.choice(("0", "1gb", "3gb"))}
    asked = (
        asked
        if draw.random() < 0.8
        else {"select": f"{draw.randrange(1, 4)}:ncpus={draw.randrange(1, 5)}"}
    )
    fields: dict[str, object] = {
        "resources": {**asked, "walltime": str(draw.randrange(1, 300))},
        "runtime": draw.randrange(300) * 1_000_000,
        "queue": draw.choice(("batch", "batch", "narrow")),
        "array": draw.choice(("", "", "", "1-3", "1-3%2")),
        "is_rerunnable": draw.random() < 0.85,
        "used_memory": draw.choice((None, 0, 1 << 30)),
    }
    if draw.random() < 0.2:
        fields["depend"] = (
            f"{draw.choice(('afterany', 'after', 'before', 'runone'))}:{some_job(bench, draw)}"
        )
    bench.submit(actor=draw.choice((ALICE, BOB)), **fields)


def command(bench: Bench, draw: random.Random) -> None:
    jobs = (some_job(bench, draw),)
    bench.do(
        ROOT,
        draw.choice(
            (
                requests.Delete(jobs=jobs),
                requests.Delete(jobs=jobs, is_forced=True),
                requests.Hold(jobs=jobs),
                requests.Release(jobs=jobs),
                requests.Rerun(jobs=jobs),
                requests.ForceStart(jobs=jobs),
                requests.ForceStart(
                    jobs=tuple(waiting(bench)), hosts=draw.choice(((), ("n1",), ("n2", "n3")))
                ),
                requests.Signal(
                    jobs=jobs, signal=draw.choice(("suspend", "resume", "TERM", "CONT"))
                ),
                requests.Alter(
                    jobs=jobs,
                    changes=requests.Changes(resources={"walltime": str(draw.randrange(1, 90))}),
                ),
                requests.Alter(
                    jobs=jobs, changes=requests.Changes(is_rerunnable=draw.random() < 0.5)
                ),
                requests.Move(jobs=jobs, destination=draw.choice(("batch", "narrow"))),
                requests.HostControl(
                    hosts=(f"n{draw.randrange(1, 5)}",),
                    action=draw.choice(("drain", "down", "resume", "resume")),
                ),
                requests.QueueControl(queues=("batch",), started=draw.random() < 0.7),
                requests.PolicySet(policy=draw.choice(POLICIES)),
            )
        ),
    )


def end_some(bench: Bench, draw: random.Random) -> None:
    """Report the ends of attempts, most often of those that were asked to end."""
    for job in running(bench):
        chance = 0.6 if job.ending else {"R": 0.2, "S": 0.03, "E": 0.6}[job.state.letter]
        if draw.random() < chance:
            bench.report(
                Ended(
                    job.file_key,
                    271 if job.ending else draw.choice((0, 0, 1, LOST)),
                    bench.core.now,
                )
            )


def let_all_end(bench: Bench, draw: random.Random) -> None:
    """Open everything, let every job go on, and wait."""
    bench.do(ROOT, requests.HostControl(hosts=tuple(bench.core.host_places), action="resume"))
    bench.do(ROOT, requests.QueueControl(queues=("batch", "narrow"), started=True))
    for job in list(bench.core.live_jobs()):
        for one in [job, *bench.core.members(job)] if job.sequence in bench.core.jobs else []:
            bench.do(ROOT, requests.Release(jobs=(bench.core.id_of(one.key),), kinds="uos"))
            if one.state.letter == "S":
                bench.do(ROOT, requests.Signal(jobs=(bench.core.id_of(one.key),), signal="resume"))
    for _ in range(300 if bench.settings.executor == "process" else 0):
        bench.wait(draw.choice((0, 1, 20)))
        for job in running(bench):
            if job.state.letter != "S" and draw.random() < 0.5:
                bench.report(Ended(job.file_key, 271 if job.ending else 0, bench.core.now))
    bench.wait(1_000_000)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("executor", ["emulated", "process"])
def test_whatever_is_done_to_jobs_that_policies_suspend_try_and_resize(
    pool: str, executor: str
) -> None:
    for seed in range(size(12, 40)):
        draw = random.Random(seed)
        bench = bench_of(pool, executor, draw.choice(policies_on(pool)))
        snapshot, place, cut = b"", 0, draw.randrange(100)
        for step in range(100):
            with contextlib.suppress(Refusal):
                draw.choice(
                    (
                        submit,
                        submit,
                        command,
                        command,
                        lambda bench, draw: bench.wait(draw.randrange(20)),
                    )
                )(bench, draw)
            if executor == "process" and step % 3 == 0:
                end_some(bench, draw)
            bench.check()
            if step == cut:
                snapshot, place = state_snapshot.dump(bench.core), len(bench.journal)
        whole = state_snapshot.dump(bench.core)
        assert state_snapshot.dump(bench.replayed(bench.journal)) == whole, seed
        assert state_snapshot.dump(bench.replayed(bench.journal[place:], snapshot)) == whole, seed
        let_all_end(bench, draw)
        bench.check()
        assert [
            bench.core.id_of(job.key) for job in bench.core.live_jobs() if not job.unmet
        ] == [], seed
