"""Every policy, every kind of machine: legal actions only, no job lost, deterministic, no "could
start now"."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from qbatch.engine.audit import breaches
from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.errors import UsageError
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.reasons import COULD_START
from qbatch.policies import load_policy
from qbatch.policies.registry import POLICIES, PolicyEntry
from qbatch.simulation.calendar import Calendar
from tests.harness import draws, same_schedule, total_wait, workload_of
from tests.oracle.workloads import random_jobs

MACHINES = {
    "one host": one_host(8),
    "spanned hosts": Machine((Host("a", 3), Host("b", 4), Host("c", 1))),
    "hosts with memory": Machine((Host("a", 8, 1000), Host("b", 4, 3000)), single_host=True),
    "one host with memory": Machine((Host("a", 8, 1000),)),
    "chunks": Machine((Host("a", 8, 1000), Host("b", 4, 3000), Host("c", 2)), chunked=True),
}


REFUSING = tuple(
    f"tests.policies.refusing:{each}"
    for each in ("Bounded:most=20", "Bounded:most=40,order=sjf", "Silent")
)
"""Policies that refuse, promise and break promises, on one pool of processors."""


def every_policy() -> list[str]:
    names = list(REFUSING)
    for name, entry in POLICIES.items():
        is_uncompiled = os.environ.get("NUMBA_DISABLE_JIT") == "1"
        names.append(f"{name}:nodes=20" if is_uncompiled and name == "bottom-line" else name)
        # Uncompiled, where lines are counted, each policy once is enough: parameters change no line
        # that is run.
        for parameter in entry.parameters if not is_uncompiled else ():
            if hasattr(parameter, "choices"):
                names += [f"{name}:{parameter.name}={value}" for value in parameter.choices]
            else:
                names += [
                    f"{name}:{parameter.name}={value}"
                    for value in (parameter.least, 3, parameter.most)
                ]
    return names


def pairs_of(policies: list[str]) -> list[tuple[str, str]]:
    """Return policies and names of machines that they take: defaults on every machine, other
    parameters on one, in turn."""
    found = []
    for turn, policy in enumerate(policies):
        taken = [name for name, machine in MACHINES.items() if takes(policy, machine)]
        is_default = ":" not in policy or entry_of(policy) is None
        found += [(policy, name) for name in (taken if is_default else [taken[turn % len(taken)]])]
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = metafunc.config.getoption("--policy")
    policies = chosen or every_policy()
    if {"policy", "machine"} <= set(metafunc.fixturenames):
        pairs = pairs_of(policies)
        if chosen:  # a policy that somebody asks for is held to it on every machine that it takes
            pairs = [
                (policy, name)
                for policy in policies
                for name, machine in MACHINES.items()
                if takes(policy, machine)
            ]
        metafunc.parametrize(
            ("policy", "machine"),
            [(policy, MACHINES[name]) for policy, name in pairs],
            ids=map("-".join, pairs),
        )
    elif "policy" in metafunc.fixturenames:
        metafunc.parametrize("policy", policies)


def entry_of(policy: str) -> PolicyEntry | None:
    return POLICIES.get(policy.partition(":")[0])


def takes(policy: str, machine: Machine) -> bool:
    """Return whether a policy takes a machine; another test shows that it says so if it does
    not."""
    if policy in REFUSING:
        return machine.is_one_pool
    entry = entry_of(policy)
    if entry is not None:
        return entry.takes(machine)
    try:
        Engine(machine, load_policy(policy))
    except UsageError:  # one of a user's own says so itself
        return False
    return True


def test_a_machine_that_a_policy_does_not_take_is_refused_at_once(policy: str) -> None:
    entry = entry_of(policy)
    for machine in MACHINES.values():
        if policy in REFUSING or takes(policy, machine):
            Engine(machine, load_policy(policy))
        else:
            words = r"single_host = true|spans = true" if entry is not None else r"on this machine"
            with pytest.raises(UsageError, match=words):
                Engine(machine, load_policy(policy))


def cases(machine: Machine, count: int):
    for seed in range(count):
        rng = random.Random(seed)
        widest = max(host.cpus for host in machine.hosts) if machine.chunked else machine.widest_job
        jobs = random_jobs(rng, rng.randint(1, 18), widest)
        most = max(host.memory for host in machine.hosts)
        # Only hosts wide enough for the job count, so that every job can run somewhere.
        memory = [
            rng.choice([0, 1, 300, max(h.memory for h in machine.hosts if h.cpus >= job.procs)])
            if most
            else 0
            for job in jobs
        ]
        users = np.array([rng.randrange(-1, 2) for _ in jobs], np.int64)
        yield seed, workload_of(jobs, machine.procs, memory).changed(user=users)


def test_every_job_runs_once_and_the_audit_holds(policy: str, machine: Machine) -> None:
    for seed, work in cases(machine, draws(25, policy)):
        schedule = Calendar(work, machine, load_policy(policy), is_audited=True).run()
        refused = [each.row for each in schedule.rejected]
        assert np.flatnonzero(~schedule.ran).tolist() == refused, seed
        assert not refused or getattr(load_policy(policy), "may_refuse", False), seed
        assert (schedule.start >= work.submit)[schedule.ran].all(), seed
        entry = entry_of(policy)
        has_trials = entry is None or entry.is_interrupting
        found = breaches(
            schedule, is_one_pool=machine.is_one_pool, hosts=machine.hosts, has_trials=has_trials
        )
        # Every promise of a policy that stands alone is kept; "test_promises_are_kept" says which
        # are not held to theirs.
        assert not [text for text in found if "after its promise" not in text], seed
        whole = schedule.ran.copy()
        if schedule.pieces is not None:
            entry = entry_of(policy)
            assert entry is None or entry.is_interrupting, seed
            whole[schedule.pieces[:, 0]] = False
        assert (schedule.end == schedule.start + work.run)[whole].all(), seed
        assert (total_wait(schedule) >= 0)[schedule.ran].all(), seed


def test_the_same_input_gives_the_same_schedule(policy: str, machine: Machine) -> None:
    for seed, work in cases(machine, draws(5, policy)):
        one, other = (Calendar(work, machine, load_policy(policy)).run() for _ in range(2))
        assert same_schedule(one, other), seed


def test_after_a_pass_no_explanation_says_could_start_now(policy: str, machine: Machine) -> None:
    def look(engine: Engine, done: Round) -> None:
        for row in engine.view().queue.tolist():
            reason = engine.explain(row)
            assert reason.code != COULD_START, (done.at, row, reason)
            assert reason.text
            assert reason.said_by

    for _, work in cases(machine, draws(12, policy)):
        Calendar(work, machine, load_policy(policy)).run(look)


def test_promises_are_kept(policy: str, machine: Machine) -> None:
    if "scratch" in policy:
        pytest.skip(
            "conservative:compress=scratch is there to show how promises break (Fig. 4 of its "
            "paper)"
        )
    entry = entry_of(policy)
    if entry is not None and entry.is_interrupting:
        pytest.skip(
            "quanta and shares put reservations behind their promises; broken ones are recorded"
        )
    for seed, work in cases(machine, draws(15, policy)):
        schedule = Calendar(work, machine, load_policy(policy)).run()
        promised = schedule.promise >= 0
        if entry is not None and entry.breaks_promises:
            late = promised & (schedule.start > schedule.promise)
            assert (
                late.tolist()
                == (late & False if schedule.broken is None else schedule.broken > 0).tolist()
            ), seed
            continue
        assert (schedule.start[promised] <= schedule.promise[promised]).all(), seed
        kept = promised if schedule.broken is None else promised & (schedule.broken == 0)
        assert (schedule.promise[kept] <= schedule.first_promise[kept]).all(), seed
        assert schedule.broken is None or getattr(load_policy(policy), "may_refuse", False), seed


def test_no_policy_waits_for_ever_on_an_idle_machine(policy: str) -> None:
    machine = one_host(4)
    for _, work in cases(machine, draws(10, policy)):
        idle_with_work: list[int] = []

        def look(engine: Engine, done: Round, found: list[int] = idle_with_work) -> None:
            view = engine.view()
            if len(view.queue) and not view.running and engine.next_timer() is None:
                found.append(done.at)

        Calendar(work, machine, load_policy(policy)).run(look)
        assert idle_with_work == []
