"""The tables of what runs: they grow, and verbs do the same in plain Python and compiled."""

from __future__ import annotations

import random

import pytest

from qbatch.engine.engine import Engine
from qbatch.model.events import Finished, Submitted
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.planning.kernels import entries
from qbatch.policies import load_policy
from qbatch.simulation import run
from tests.golden.cases import MACHINES, random_workload
from tests.harness import same_schedule

WIDE = Machine(tuple(Host(f"n{number}", 4) for number in range(200)))


@pytest.mark.parametrize(
    ("machine", "procs"), [(one_host(1000), 1), (WIDE, 30)], ids=["a pool", "many hosts"]
)
def test_tables_grow_with_what_runs(machine: Machine, procs: int) -> None:
    engine, count = Engine(machine, load_policy("easy"), is_audited=True), machine.procs // procs
    engine.handle(
        0,
        [
            Submitted(Job(number=number, submit=0, procs=procs, estimate=1000 + number))
            for number in range(count)
        ],
    )
    view = engine.view()
    assert len(view.running) == count
    assert view.free_procs == machine.procs - count * procs
    assert view.ends.tolist() == [1000 + number for number in range(count)]
    for number in range(count):
        engine.handle(1 + number, [Finished(count - 1 - number)])
    assert engine.view().free_procs == machine.procs
    assert engine.view().pieces.shape[1] == 0


@pytest.mark.parametrize("policy", ["easy", "immediate", "equispatial"])
def test_a_process_begins_in_plain_python_where_the_verbs_are_not_compiled(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = MACHINES["hosts with memory"]
    work = random_workload(random.Random(3), machine)
    compiled = run(work, machine, load_policy(policy), driver="engine")
    monkeypatch.setattr(entries, "_is_on_disk", lambda kernel: False)
    monkeypatch.setattr(entries, "_plain_steps_left", 7)
    assert same_schedule(compiled, run(work, machine, load_policy(policy), driver="engine"))
    assert entries._plain_steps_left == 0
