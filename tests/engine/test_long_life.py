"""What years and millions do to an engine: little."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qbatch.engine import snapshot
from qbatch.engine.engine import Engine
from qbatch.engine.states import State
from qbatch.engine.waiting import Waiting
from qbatch.model.errors import DecisionError
from qbatch.model.events import Finished, Submitted, Withdrawn
from qbatch.model.job import Job
from qbatch.model.machine import one_host
from qbatch.policies import load_policy

SECOND = 1_000_000


def submitted(number: int, procs: int = 1, **more: int) -> Submitted:
    return Submitted(
        Job(
            number=number, submit=0, procs=procs, estimate=more.pop("estimate", 10 * SECOND), **more
        )
    )


def test_the_waiting_rows_are_a_sorted_set_whatever_happens() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        waiting, expected, fresh = Waiting(), [], 0
        for _ in range(40):
            match rng.randrange(5):
                case 0 | 1:
                    more = rng.choice((0, 1, 3, 90))
                    waiting.append(np.arange(fresh, fresh + more))
                    expected += range(fresh, fresh + more)
                    fresh += more + rng.randint(0, 3)
                case 2:
                    for row in rng.sample(expected, min(len(expected), rng.choice((1, 2, 20)))):
                        waiting.remove(row)
                        expected.remove(row)
                case 3:
                    back = sorted({rng.randint(0, fresh) for _ in range(4)} - set(expected))
                    waiting.insert(np.array(back, np.int64))
                    expected = sorted([*expected, *back])
                    fresh = max([fresh, *(row + 1 for row in back)])
                case _:
                    expected = [row for row in expected if rng.random() < 0.5]
                    waiting.replace(np.array(expected, np.int64))
            assert len(waiting) == len(expected)
            if rng.random() < 0.6:
                assert waiting.rows.tolist() == expected
                assert waiting.first() == (expected[0] if expected else None)
                assert all((row in waiting) == (row in set(expected)) for row in range(0, fresh, 7))


@pytest.mark.parametrize("name", ["fcfs", "conservative"])
def test_a_job_that_is_over_is_forgotten_in_the_next_round(name: str) -> None:
    engine = Engine(one_host(2), load_policy(name), is_audited=True)
    engine.handle(0, [submitted(1), submitted(2, 2), submitted(3, 9), submitted(4, 2)])
    engine.handle(1, [Finished(0), Withdrawn(1)])
    assert [engine.view().jobs[row].number for row in (0, 1)] == [1, 2]
    engine.handle(2, [])
    for row in (0, 1, 2):
        with pytest.raises(LookupError, match="is forgotten"):
            engine.view().jobs[row]
        assert engine.promise_to(row) is None
        assert engine.explain(row).code == "not-waiting"
    states = [engine.state_of(row) for row in range(4)]
    assert states == [State.FINISHED, State.WITHDRAWN, State.REJECTED, State.RUNNING]
    assert engine.view().columns.procs.tolist() == [1, 2, 9, 2]
    assert engine.view().jobs[3].number == 4


def test_a_number_beyond_64_bits_changes_nothing() -> None:
    engine = Engine(one_host(2), load_policy("fcfs"), is_audited=True)
    with pytest.raises(DecisionError, match="64-bit"):
        engine.handle(0, [submitted(1), submitted(2, memory=2**70)])
    done = engine.handle(0, [submitted(3)])
    assert done.arrived == (0,)


def test_a_hundred_thousand_arrivals_are_one_round() -> None:
    engine = Engine(one_host(4), load_policy("easy"))
    done = engine.handle(
        0, [submitted(number, 1 + number % 4) for number in reversed(range(100_000))]
    )
    assert len(done.arrived) == 100_000
    assert [action.row for action in done.actions] == [0, 1, 4]
    for row in (50_000, 2, 99_999):
        engine.handle(1, [Withdrawn(row)])
    assert len(engine.view().queue) == 100_000 - 6
    assert snapshot.dump(
        snapshot.load(one_host(4), load_policy("easy"), snapshot.dump(engine))
    ) == snapshot.dump(engine)
