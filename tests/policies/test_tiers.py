"""Tiers of partitions: list schedulers look at jobs of a higher tier first; and what partitions
charge."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest

from qbatch.engine.engine import Engine
from qbatch.metrics.resources import billed_hours
from qbatch.model.actions import Start
from qbatch.model.errors import InputError, UsageError
from qbatch.model.events import Submitted
from qbatch.model.job import ChunkRequest, Job, JobRequest
from qbatch.model.machine import Host, Machine, Partition
from qbatch.model.machine_file import machine_as_toml, parse_machine
from qbatch.planning.policy import compiled_of, note_of_tiers
from qbatch.policies import load_policy
from qbatch.simulation import run
from tests.harness import same_schedule
from tests.policies.test_partitions import random_site, work_of
from tests.policies.test_reservations import SECOND, machine_with, work_on

LISTS = ("fcfs", "easy", "easy:order=sjf", "easy:backfill=sjf", "hybrid:depth=3", "lxfw-backfill")
FILE = """schema = 2
[[host]]
name = "n[1-2]"
cpus = 8
memory = "32GB"
resources = { "gpu:a100" = 2 }
[[partition]]
name = "low"
hosts = ["n[1-2]"]
default = true
[[partition]]
name = "high"
hosts = ["n2"]
rank = { tier = 5 }
billing = { cpus = 0.5, memory_gb = 0.25, gpu = 10 }
"""


def tiered(low: int, high: int) -> Machine:
    machine = machine_with(hosts=2)
    partitions = (
        Partition("low", (0, 1), is_default=True, tier=low),
        Partition("high", (0, 1), tier=high),
    )
    return msgspec.structs.replace(machine, partitions=partitions)


@pytest.mark.parametrize("policy", LISTS)
def test_jobs_of_a_higher_tier_are_looked_at_first(policy: str) -> None:
    machine = tiered(1, 2)
    work = work_on(machine, *[(0, 2, 10, 10, "")] * 4)
    both = ("low", "high")
    names = [(), ("low",), ("high",), both]
    asked = zip(work.requests, names, strict=True)
    requests = tuple(msgspec.structs.replace(one, partitions=each) for one, each in asked)
    work = work.changed(requests=requests)
    done = run(work, machine, load_policy(policy), is_audited=True)
    assert (done.start // SECOND).tolist() == [20, 30, 0, 10]
    done = run(work, tiered(2, 2), load_policy(policy), is_audited=True)
    assert (done.start // SECOND).tolist() == [0, 10, 20, 30]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "hybrid:depth=3", "lxfw-backfill"])
def test_jobs_of_one_tier_start_as_without_tiers(policy: str) -> None:
    """Without tiers a compiled loop runs the jobs, with them the engine."""
    for seed in range(25):
        draw = random.Random(seed)
        machine = random_site(draw)
        work = work_of(draw, machine)
        plain = run(work, machine, load_policy(policy))
        # One more partition, of another tier, that no job names.
        more = (*machine.partitions, Partition("never", (0,), tier=9))
        if not machine.partitions:
            more = (Partition("all", tuple(range(len(machine.real_hosts))), True), *more)
        other = msgspec.structs.replace(machine, partitions=more)
        assert compiled_of(load_policy(policy), other) is None
        assert same_schedule(run(work, other, load_policy(policy)), plain)


def test_a_pass_and_its_explanation_follow_tiers_live() -> None:
    machine = tiered(1, 2)
    engine = Engine(machine, load_policy("easy"), is_audited=True)
    chunk = (ChunkRequest(2, 8),)
    jobs = [
        Job(number=number, submit=0, procs=16, estimate=10, chunks=chunk, partitions=names)
        for number, names in enumerate([("low",), ("high",), ("low",)])
    ]
    done = engine.handle(0, [Submitted(job) for job in jobs])
    assert [each.row for each in done.actions if isinstance(each, Start)] == [1]
    late = msgspec.structs.replace(jobs[1], number=9, submit=1)
    engine.handle(1, [Submitted(late)])
    policy = load_policy("easy")
    assert policy.in_order(engine.view()).tolist() == [3, 0, 2]  # type: ignore[attr-defined]


def test_policies_without_tiers_are_named() -> None:
    machine = tiered(1, 2)
    chosen = [load_policy(name) for name in ("easy", "conservative", "sjf-backfill")]
    said = note_of_tiers(chosen, machine)
    assert said is not None
    assert said.endswith("first; conservative, sjf-backfill do not")
    assert note_of_tiers(chosen, tiered(3, 3)) is None
    assert note_of_tiers(chosen[:1], machine) is None
    work = work_on(machine, (0, 1, 10, 10, ""))
    with pytest.raises(UsageError, match="no compiled loop"):
        run(work, machine, load_policy("easy"), driver="compiled")


def test_the_keys_are_read_and_written() -> None:
    machine = parse_machine(FILE, "m")
    assert [each.tier for each in machine.partitions] == [1, 5]
    assert machine.partitions[1].billing == (("cpus", 0.5), ("memory_gb", 0.25), ("gpu", 10.0))
    assert parse_machine("\n".join(machine_as_toml(machine)), "again") == machine


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("tier = 5", "tier = -1", "is not a whole number from 0"),
        ("tier = 5", "tier = 70000", "tier 70000 is above 65533"),
        ("tier = 5", "level = 5", "'level': is not known in rank of a [[partition]]"),
        ("gpu = 10", "gpus = 10", "'gpus': is not known in billing of a [[partition]]"),
        ("gpu = 10", "gpu = -1", "gpu = -1 is not a number from 0 to"),
        ("rank = { tier = 5 }", 'share = "user"', "hosts that only jobs of one user share are not"),
    ],
)
def test_wrong_keys_are_refused_by_name(old: str, new: str, error: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_machine(FILE.replace(old, new), "m")
    assert str(caught.value).startswith("m: ")
    assert error in str(caught.value)


def test_billed_hours_are_those_of_a_plain_loop() -> None:
    machine = parse_machine(FILE, "m")
    gib = 2**30
    work = work_on(machine, (0, 1, 3600, 3600, ""), (0, 1, 1800, 3600, ""), (0, 1, 60, 60, ""))
    chunk = ChunkRequest(1, 4, 8 * gib, -1, (("gpu", 2), ("gpu:a100", 2)))
    requests = (JobRequest((chunk,), partitions=("high",)), JobRequest((chunk,)))
    work = work.changed(
        requests=requests,
        request=np.array([0, 1, -1]),
        procs=np.array([4, 4, 8]),
        memory=np.array([8 * gib, 8 * gib, 0]),
        resources={"gpu": np.array([2, 2, 0]), "gpu:a100": np.array([2, 2, 0])},
    )
    done = run(work, machine, load_policy("easy"))
    low, high = billed_hours(done, machine)
    assert (low.jobs, high.jobs) == (2, 1)
    assert high.hours == pytest.approx(4 * 0.5 + 8 * 0.25 + 2 * 10)
    assert low.hours == pytest.approx(4 * 0.5 + 8 / 60)
    assert billed_hours(done, Machine((Host("n", 4),))) == []
