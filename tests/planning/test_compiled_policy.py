"""The compiled policy of docs/how-to/write-a-compiled-policy.md, in a file of its own: replayed
compiled, run live, explained."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.snapshot import dump, load
from qbatch.model.actions import Start
from qbatch.model.errors import DecisionError, UsageError
from qbatch.model.events import Finished, Submitted
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.planning.compiled_policy import CompiledPolicy
from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.tables import NO_PARTS, Needs
from qbatch.planning.policy import compiled_of
from qbatch.policies import load_policy
from qbatch.simulation import run
from tests.contract.test_policies import MACHINES, cases
from tests.documents.blocks import ROOT, blocks_of
from tests.harness import command

SECOND = 1_000_000
WHOLE_JOBS = {name: machine for name, machine in MACHINES.items() if name != "chunks"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The document's code as a module in a file."""
    folder = tmp_path_factory.mktemp("own")
    blocks = blocks_of(ROOT / "docs" / "how-to" / "write-a-compiled-policy.md")
    (code,) = [block.text for block in blocks if block.file == "manyfactors.py"]
    (folder / "manyfactors.py").write_text(code, encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("manyfactors")
    finally:
        sys.path.remove(str(folder))
        del sys.modules["manyfactors"]


@pytest.mark.parametrize("machine", WHOLE_JOBS.values(), ids=WHOLE_JOBS.keys())
def test_the_replay_and_the_engine_decide_the_same_by_one_kernel(
    own: Any, machine: Machine
) -> None:
    for seed, work in cases(machine, 8):
        policy = own.ManyFactors(size=700.0)
        assert compiled_of(policy, machine) is not None
        found = [
            run(work, machine, policy, driver=driver, is_audited=True)
            for driver in ("compiled", "engine")
        ]
        for column in ("start", "kind", "end"):
            assert np.array_equal(getattr(found[0], column), getattr(found[1], column)), (
                seed,
                column,
            )


def test_by_age_alone_it_is_easy_backfilling(own: Any) -> None:
    machine = one_host(8)
    for seed, work in cases(machine, 8):
        found, expected = (
            run(work, machine, own.ManyFactors(size=0.0)),
            run(work, machine, load_policy("easy")),
        )
        assert np.array_equal(found.start, expected.start), seed


def test_live_it_decides_explains_and_outlives_a_snapshot(own: Any) -> None:
    engine = Engine(one_host(8), own.ManyFactors(age=0.0, size=1.0), is_audited=True)
    jobs = [
        Job(number=n, submit=0, procs=procs, estimate=10 * SECOND)
        for n, procs in enumerate((2, 5, 8, 4))
    ]
    done = engine.handle(0, [Submitted(job) for job in jobs])
    # The widest is first.
    assert [action.row for action in done.actions if isinstance(action, Start)] == [2]
    assert engine.explain(3).text == "its priority is 0, 1 waiting jobs have more"
    assert engine.explain(3).blocked_by == ()
    again = load(one_host(8), own.ManyFactors(age=0.0, size=1.0), dump(engine))
    for each in (engine, again):
        done = each.handle(10 * SECOND, [Finished(2)])
        assert [action.row for action in done.actions if isinstance(action, Start)] == [1, 0]


def test_the_command_replays_it_compiled(own: Any) -> None:
    folder, log = Path(own.__file__).parent, ROOT / "traces" / "demo-128.swf"
    words = (
        "replay",
        str(log),
        "-p",
        "manyfactors:ManyFactors",
        "--driver",
        "compiled",
        "--json",
        "--quiet",
        "--first",
        "200",
    )
    assert '"manyfactors"' in command(*words, cwd=folder).stdout


@kernel
def twice(instant: Any, jobs: Any, state: Any, done: Any, memory: Any) -> int:
    """Start the first row again and again."""
    state.started[0], state.places[0] = 0, 0
    return 1


class Twice(CompiledPolicy):
    name = "twice"
    kernel = twice
    needs = Needs(reads=NO_PARTS, has_hosts=True)

    def new_tables(self, machine: Machine, rows: int) -> tuple[int]:
        return (rows,)


class Derived(Twice):
    def decide(self, view: Any) -> list[Start]:
        return [Start(row) for row in view.queue.tolist() if row == 0]


def test_a_start_that_may_not_be_is_refused_by_name() -> None:
    _, work = next(iter(cases(one_host(8), 1)))
    with pytest.raises(
        DecisionError, match=r"policy twice at .* s: job 1 may not start: it does not wait"
    ):
        run(work, one_host(8), Twice(), driver="compiled")


def test_a_class_that_redefines_decide_is_not_compiled_and_chunks_are_refused() -> None:
    assert compiled_of(Twice(), one_host(8)) is not None
    assert compiled_of(Derived(), one_host(8)) is None
    with pytest.raises(UsageError, match="places whole jobs"):
        Engine(Machine((Host("a", 8), Host("b", 4)), chunked=True), Twice())


@kernel
def first_come(instant: Any, jobs: Any, state: Any, done: Any, memory: Any) -> int:
    """Start the first row that waits, on the first host, if it fits; count the passes, and ask for
    one more a second later."""
    memory[0][0] += 1
    memory[1][0][instant.arrived - 1] = 1
    state.counts[0].timer = instant.now + 1_000_000
    if (
        instant.head == instant.tail
        or jobs.procs[state.waiting[instant.head]] > state.hosts[0, 0, 0]
    ):
        return 0
    state.started[0], state.places[0] = state.waiting[instant.head], 0
    return 1


class FirstCome(CompiledPolicy):
    name = "first-come"
    kernel = first_come
    needs = Needs(reads=NO_PARTS, has_hosts=True, has_timers=True)

    def new_tables(self, machine: Machine, rows: int) -> tuple[Any, ...]:
        return np.zeros(1, np.int64), (np.zeros(rows, np.int64),)


class Late(FirstCome):
    @kernel
    def kernel(instant: Any, jobs: Any, state: Any, done: Any, memory: Any) -> int:  # noqa: N805, it is no method
        """Ask for a pass now, for ever."""
        state.counts[0].timer = instant.now
        return 0


class Idle(Twice):
    @kernel
    def kernel(instant: Any, jobs: Any, state: Any, done: Any, memory: Any) -> int:  # noqa: N805
        """Start nobody."""
        return 0


def test_memory_by_job_grows_with_the_jobs_of_a_live_engine() -> None:
    engine = Engine(one_host(1000), FirstCome())
    for row in range(300):
        engine.handle(row, [Submitted(Job(number=row, submit=row, procs=1, estimate=SECOND))])
    counted, (seen,) = engine.view().memory.tables
    assert counted[0] == 300
    assert seen[:300].all()
    assert len(seen) >= 300


def test_what_a_kernel_may_not_do_is_said_by_name() -> None:
    _, work = next(iter(cases(one_host(8), 1)))
    with pytest.raises(
        DecisionError, match=r"policy first-come at .* s: it asks for a pass that is not later"
    ):
        run(work, one_host(8), Late(), driver="compiled")
    for driver in ("compiled", "engine"):
        with pytest.raises(DecisionError, match=r"policy twice left \d+ jobs waiting for ever"):
            run(work, one_host(8), Idle(), driver=driver)
    both = type("Both", (Twice,), {"needs": Needs(gives=1, has_hosts=True)})
    with pytest.raises(UsageError, match="starts jobs by host"):
        run(work, one_host(8), both())


def test_equal_shares_are_not_compiled_where_jobs_span_hosts() -> None:
    assert compiled_of(load_policy("equispatial"), MACHINES["spanned hosts"]) is None
