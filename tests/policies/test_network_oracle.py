"""The oracle of the closed network by itself: examples worked out by hand, analytic checks, and
laws of every run.

Schedules in comments read: processor: job.task start-end.  Times of the examples are microseconds.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests.policies import network_oracle as oracle
from tests.policies.network_oracle import (
    SECOND,
    Discipline,
    Outcome,
    Response,
    Script,
    Task,
    TaskDraws,
    VisitDraws,
    simulate,
)

DISCIPLINES: list[Discipline] = ["fcfs", "stf", "snutf", "lstf"]
LONG_IO = 1000
"""So long that no job comes back within an example."""


class Seeded:
    """Draws of a seed; those of a visit depend on nothing else."""

    def __init__(self, seed: int, processors: int) -> None:
        self.seed = seed
        self.processors = processors

    def visit(self, job: int, visit: int) -> VisitDraws:
        fraction = random.Random(f"{self.seed} visit {job} {visit}").random
        tasks = [
            TaskDraws(*(fraction() for _ in TaskDraws._fields)) for _ in range(self.processors)
        ]
        return VisitDraws(fraction(), fraction(), tasks)

    def parallelism_interval(self, number: int) -> float:
        return random.Random(f"{self.seed} parallelism {number}").random()

    def demand_interval(self, number: int) -> float:
        return random.Random(f"{self.seed} demand {number}").random()


class Constant:
    """Draws that are the same at every visit and for every task, but for the routes."""

    def __init__(
        self, fraction: float, routes: Sequence[float], interval: float = 0.5, **fractions: float
    ) -> None:
        task = TaskDraws(*[fraction] * 5)._replace(**fractions)
        self.drawn = VisitDraws(
            fraction, fraction, [task._replace(route=route) for route in routes]
        )
        self.interval = interval

    def visit(self, job: int, visit: int) -> VisitDraws:
        return self.drawn

    def parallelism_interval(self, number: int) -> float:
        return self.interval

    def demand_interval(self, number: int) -> float:
        return self.interval


class Written:
    """Visits written out: of a job and a visit its tasks, each a processor and a demand, and its
    I/O service.

    A visit that is not written is one task, on the first processor, too long for the example.
    """

    def __init__(
        self, processors: int, visits: dict[tuple[int, int], tuple[list[tuple[int, int]], int]]
    ) -> None:
        self.processors = processors
        self.visits = visits

    def of(self, job: int, visit: int) -> tuple[list[tuple[int, int]], int]:
        return self.visits.get((job, visit), ([(0, 10**6)], LONG_IO))

    def script(self, job: int, visit: int) -> tuple[list[int], list[int], int]:
        tasks, io_service = self.of(job, visit)
        demands = [demand for _, demand in tasks]
        return demands, demands, io_service

    def visit(self, job: int, visit: int) -> VisitDraws:
        """Route each task into the middle of its processor's share."""
        routes = [(processor + 0.5) / self.processors for processor, _ in self.of(job, visit)[0]]
        return VisitDraws(0.0, 0.0, [TaskDraws(0.0, 0.0, 0.0, route, 0.0) for route in routes])

    def parallelism_interval(self, number: int) -> float:
        return 0.5

    def demand_interval(self, number: int) -> float:
        return 0.5

    def run(self, **settings: Any) -> Outcome:
        jobs = 1 + max(job for job, _ in self.visits)
        chosen = {
            "jobs": jobs,
            "processors": self.processors,
            "horizon": 0.0001,
            "scripted": self.script,
            **settings,
        }
        return simulate(self, **chosen)


def once(processors: int, *jobs: list[tuple[int, int]]) -> Written:
    """Return one visit a job, of tasks on processors, and an I/O service that outlasts the
    example."""
    return Written(processors, {(job, 0): (tasks, LONG_IO) for job, tasks in enumerate(jobs)})


def lines(outcome: Outcome, processors: int) -> list[str]:
    """Return the schedule as the comments write it, a line a processor."""
    return [
        " ".join(
            f"{task.job}.{task.task} {task.start}-{task.end}"
            for task in outcome.tasks
            if task.processor == index
        )
        for index in range(processors)
    ]


def ends(outcome: Outcome) -> list[tuple[int, int]]:
    """Return job and end of each response."""
    return [(response.job, response.ended) for response in outcome.responses]


# ---- Generators.

HALF_TABLE = [
    0.00041035,
    0.00188156,
    0.00693904,
    0.02058470,
    0.04912376,
    0.09431332,
    0.14568448,
    0.18106279,
]


def test_the_table_of_the_bounded_normal_is_that_of_the_specification():
    table = oracle.parallelism_table(16)
    assert [round(probability, 8) for probability in table] == HALF_TABLE + HALF_TABLE[::-1]
    mean = sum(tasks * probability for tasks, probability in enumerate(table, 1))
    variance = sum((tasks - mean) ** 2 * probability for tasks, probability in enumerate(table, 1))
    assert mean == pytest.approx(8.5, abs=1e-12)
    assert round(math.sqrt(variance), 4) == 2.1418


def test_the_table_is_symmetric_and_whole_for_other_numbers_of_processors():
    assert oracle.parallelism_table(1) == [1.0]
    for processors in (2, 3, 4, 7, 64):
        table = oracle.parallelism_table(processors)
        assert len(table) == processors
        assert sum(table) == pytest.approx(1)
        assert table == pytest.approx(table[::-1])


def test_mean_of_the_greatest_of_so_many_exponentials():
    harmonic = [sum(1 / i for i in range(1, tasks + 1)) for tasks in range(1, 17)]
    assert round(sum(harmonic) / 16, 5) == 2.59202
    normal = sum(p * h for p, h in zip(oracle.parallelism_table(16), harmonic, strict=True))
    assert round(normal, 5) == 2.74375


def test_numbers_of_tasks_change_where_the_cumulative_probability_does():
    assert [oracle.uniform_tasks(16, u) for u in (0.0, 0.0624, 0.0625, 0.9999999)] == [1, 1, 2, 16]
    assert [oracle.normal_tasks(16, u) for u in (0.0, 0.00041, 0.00042, 0.4999999, 0.5000001)] == [
        1,
        1,
        2,
        8,
        9,
    ]
    assert oracle.normal_tasks(16, math.nextafter(1, 0)) == 16
    counts = Counter(oracle.normal_tasks(16, (i + 0.5) / 20000) for i in range(20000))
    for tasks, probability in enumerate(oracle.parallelism_table(16), 1):
        assert abs(counts[tasks] - 20000 * probability) <= 1


def test_times_worked_out_by_hand():
    assert oracle.exponential(1.0, 0.0) == 0
    assert oracle.exponential(1.0, 0.5) == 693147  # ln 2 = .6931471..
    assert oracle.exponential(0.531, 0.5) == 368061  # .3680611..
    # (ln 2) / 2 = .3465735..: u2 is not below 1/8.
    assert oracle.branching_erlang(1.0, 2.0, 0.5, 0.125, 0.5) == 346574
    assert oracle.branching_erlang(1.0, 2.0, 0.5, 0.12, 0.5) == 3119162  # 4.5 ln 2 = 3.1191623..
    assert oracle.estimate(1000, 0.3, 0.0) == 700
    assert oracle.estimate(1000, 0.3, 0.5) == 1000
    assert oracle.estimate(1000, 0.3, 0.75) == 1150
    assert oracle.estimate(1000, 0.0, 0.9) == 1000
    assert oracle.estimate(1, 0.5, 0.0) == 1  # .5, halves up
    assert oracle.estimate(0, 0.3, 0.9) == 0


SURVIVAL = {
    1.0: (0.60653, 0.36788, 0.13534, 0.00674, 0.00005),
    2.0: (0.44140, 0.22726, 0.10235, 0.04097, 0.01173),
    4.0: (0.38728, 0.16127, 0.04619, 0.02364, 0.01727),
}


@pytest.mark.parametrize("variation", [1.0, 2.0, 4.0])
def test_moments_of_the_demands(variation: float):
    """Variation 1 stands for the exponential."""
    fraction = random.Random(7).random
    size = 400_000
    if variation == 1:
        drawn = [oracle.exponential(1.0, fraction()) / SECOND for _ in range(size)]
    else:
        drawn = [
            oracle.branching_erlang(1.0, variation, fraction(), fraction(), fraction()) / SECOND
            for _ in range(size)
        ]
    mean = sum(drawn) / size
    deviation = math.sqrt(sum((time - mean) ** 2 for time in drawn) / size)
    assert mean == pytest.approx(1, rel=0.015)
    assert deviation / mean == pytest.approx(variation, rel=0.03)
    for instant, probability in zip((0.5, 1, 2, 5, 10), SURVIVAL[variation], strict=True):
        assert sum(time > instant for time in drawn) / size == pytest.approx(probability, abs=0.003)


# ---- The disciplines, worked out by hand.

# Two processors, in order of sequence.  First: 0.0 (9), 1.0 (2), 1.1 (4), 2.0 (6).  Second: 0.1
# (5), 1.2 (7).
FOUR_WAYS = once(2, [(0, 9), (1, 5)], [(0, 2), (0, 4), (1, 7)], [(0, 6)])


def test_first_come_first_served():
    # First: 0.0 0-9, 1.0 9-11, 1.1 11-15, 2.0 15-21.  Second: 0.1 0-5, 1.2 5-12.
    outcome = FOUR_WAYS.run(discipline="fcfs")
    assert lines(outcome, 2) == ["0.0 0-9 1.0 9-11 1.1 11-15 2.0 15-21", "0.1 0-5 1.2 5-12"]
    assert outcome.responses == [
        Response(0, 0, 2, 0, 9, 9, 1009),
        Response(1, 0, 3, 0, 15, 1009, 2009),
        Response(2, 0, 1, 0, 21, 2009, 3009),
    ]
    assert outcome.tasks[:2] == [Task(0, 0, 0, 0, 0, 0, 9), Task(0, 0, 1, 1, 0, 0, 5)]


def test_shortest_task_first():
    # First: 1.0 0-2, 1.1 2-6, 2.0 6-12, 0.0 12-21.  Jobs 1 and 2 end together at 12: I/O in order
    # of job number.
    outcome = FOUR_WAYS.run(discipline="stf")
    assert lines(outcome, 2) == ["1.0 0-2 1.1 2-6 2.0 6-12 0.0 12-21", "0.1 0-5 1.2 5-12"]
    assert [(each.job, each.ended, each.io_start) for each in outcome.responses] == [
        (1, 12, 12),
        (2, 12, 1012),
        (0, 21, 2012),
    ]


def test_smallest_number_of_uncompleted_tasks_first():
    # Counts at 0: 2, 3, 1.  First: 2.0 0-6.  Second: 0.1 0-5, then 1.2 5-12.  At 6 counts are 1 and
    # 3: 0.0 6-15. At 15 job 1 has 2 left, both here: 1.0 15-17, 1.1 17-21.
    outcome = FOUR_WAYS.run(discipline="snutf")
    assert lines(outcome, 2) == ["2.0 0-6 0.0 6-15 1.0 15-17 1.1 17-21", "0.1 0-5 1.2 5-12"]
    assert ends(outcome) == [(2, 6), (0, 15), (1, 21)]


def test_limited_shortest_task_first():
    # Limit 2.  First: by length 1.0 0-2 and 1.1 2-6, then the oldest: 0.0 6-15, then 2.0 15-21.
    outcome = FOUR_WAYS.run(discipline="lstf", limit=2)
    assert lines(outcome, 2) == ["1.0 0-2 1.1 2-6 0.0 6-15 2.0 15-21", "0.1 0-5 1.2 5-12"]
    assert ends(outcome) == [(1, 12), (0, 15), (2, 21)]
    assert FOUR_WAYS.run(discipline="lstf") == FOUR_WAYS.run(discipline="stf")


def test_the_eleventh_selection_is_the_oldest():
    # Jobs 0 to 11 of demands 12 to 1: the ten shortest are 11 .. 2; then the oldest, 0, before the
    # shorter 1.
    jobs = once(1, *[[(0, 12 - job)] for job in range(12)])
    assert [task.job for task in jobs.run(discipline="lstf").tasks] == [*range(11, 1, -1), 0, 1]
    assert [task.job for task in jobs.run(discipline="stf").tasks] == [*range(11, -1, -1)]
    # Limit 2: shortest, shortest, oldest, again and again.
    assert [task.job for task in jobs.run(discipline="lstf", limit=2).tasks] == [
        11,
        10,
        0,
        9,
        8,
        1,
        7,
        6,
        2,
        5,
        4,
        3,
    ]
    assert jobs.run(discipline="lstf", limit=0) == jobs.run(discipline="fcfs")


def test_the_counter_is_of_each_processor_and_counts_lonely_tasks_and_outlives_idle_times():
    # Limit 2.  Job 0, alone: 0-4 at the first processor, I/O to 5, 5-9 there, I/O to 10, then two
    # tasks at each processor.  The first has selected twice: its oldest, 9 long, goes 10-19, then
    # 19-20.  The second has not: by length.
    visits = {
        (0, 0): ([(0, 4)], 1),
        (0, 1): ([(0, 4)], 1),
        (0, 2): ([(0, 9), (0, 1), (1, 9), (1, 1)], LONG_IO),
    }
    outcome = Written(2, visits).run(discipline="lstf", limit=2)
    assert lines(outcome, 2) == ["0.0 0-4 0.0 5-9 0.0 10-19 0.1 19-20", "0.3 10-11 0.2 11-20"]


@pytest.mark.parametrize(
    ("sibling", "first"),
    [
        # At 5 job 0 has one task waiting at the first processor and one in service at the second: 2
        # against 1 of job 2.
        (20, "1.0 0-5 2.0 5-11 0.0 11-14"),
        # The sibling ends at 5 too, and every count falls before anybody selects: 1 against 1, and
        # job 0 came first.
        (5, "1.0 0-5 0.0 5-8 2.0 8-14"),
        # It ends at 6: too late.
        (6, "1.0 0-5 2.0 5-11 0.0 11-14"),
    ],
)
def test_uncompleted_tasks_in_service_elsewhere_count(sibling: int, first: str):
    outcome = once(2, [(0, 3), (1, sibling)], [(0, 5)], [(0, 6)]).run(discipline="snutf")
    assert lines(outcome, 2)[0] == first


def test_estimates_order_and_do_not_kill():
    # By demand 0, 1, 2; by estimate 2 (1), 1 (2), 0 (3).
    demands, estimates = [4, 5, 6], [3, 2, 1]

    def script(job: int, visit: int) -> tuple[list[int], list[int], int]:
        return [demands[job]], [estimates[job]], LONG_IO

    written = once(1, *[[(0, demand)] for demand in demands])
    assert lines(written.run(discipline="stf", scripted=script), 1) == [
        "2.0 0-6 1.0 6-11 0.0 11-15"
    ]


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_ties_go_by_sequence(discipline: Discipline):
    written = once(1, [(0, 3)], [(0, 3)], [(0, 3)])
    assert lines(written.run(discipline=discipline), 1) == ["0.0 0-3 1.0 3-6 2.0 6-9"]


# ---- Routing.


def test_shortest_queue_counts_waiting_in_service_and_siblings():
    # Lowest of ties.  Job 0 (5, 5, 1): first, second, first.  Job 1 (2, 2): lengths 2, 1: second,
    # then 2, 2: first. Job 2 (1): lengths 3, 2: second.  First: 0.0 0-5, 0.2 5-6, 1.1 6-8.  Second:
    # 0.1 0-5, 1.0 5-7, 2.0 7-8.
    demands = [[5, 5, 1], [2, 2], [1]]
    written = once(2, *[[(0, demand) for demand in own] for own in demands])
    outcome = written.run(routing="shortest", ties="lowest")
    assert lines(outcome, 2) == ["0.0 0-5 0.2 5-6 1.1 6-8", "0.1 0-5 1.0 5-7 2.0 7-8"]


def test_a_returning_job_counts_tasks_in_service():
    # At 0: 0.0 (1) first, 1.0 (9) second.  Job 0 is back at 2: the first is empty (0 against 1),
    # then 1 against 1, lowest.
    visits = {
        (0, 0): ([(0, 1)], 1),
        (0, 1): ([(0, 3), (0, 4)], LONG_IO),
        (1, 0): ([(0, 9)], LONG_IO),
    }
    outcome = Written(2, visits).run(routing="shortest", ties="lowest")
    assert lines(outcome, 2) == ["0.0 0-1 0.0 2-5 0.1 5-9", "1.0 0-9"]


def test_random_ties_take_the_one_at_the_fraction_of_the_shortest():
    # Four processors, one job of four tasks, all fractions .6: of 4 the third, of 3 (0 1 3) the
    # second, of 2 (0 3) the second, of 1 the first.
    draws = Constant(0.0, [0.6] * 4)

    def script(job: int, visit: int) -> tuple[list[int], list[int], int]:
        return [10] * 4, [10] * 4, LONG_IO

    settings: dict[str, Any] = {"jobs": 1, "processors": 4, "horizon": 0.00001, "scripted": script}
    shortest = simulate(draws, routing="shortest", **settings)
    assert [task.processor for task in sorted(shortest.tasks, key=lambda task: task.task)] == [
        2,
        1,
        3,
        0,
    ]
    assert {task.processor for task in simulate(draws, **settings).tasks} == {2}


# ---- One instant.


def test_io_is_first_come_first_served_and_ties_go_by_job_number():
    # Job 2 ends at 3, jobs 0 and 1 at 4.  I/O: 2 3-8, 0 8-10, 1 10-11.  Back at 8, 10, 11.
    visits = {(0, 0): ([(0, 4)], 2), (1, 0): ([(1, 4)], 1), (2, 0): ([(2, 3)], 5)}
    outcome = Written(3, visits).run()
    assert [(each.job, each.io_start, each.io_end) for each in outcome.responses] == [
        (2, 3, 8),
        (0, 8, 10),
        (1, 10, 11),
    ]
    assert [(task.job, task.dispatched) for task in outcome.tasks if task.visit == 1] == [(2, 8)]


def test_a_job_that_joins_when_the_io_station_becomes_free_begins_at_once():
    visits = {(0, 0): ([(0, 4)], 2), (1, 0): ([(1, 6)], 3)}
    outcome = Written(2, visits).run()
    assert [(each.io_start, each.io_end) for each in outcome.responses] == [(4, 6), (6, 9)]


def test_all_tasks_of_an_instant_are_queued_before_anybody_selects():
    # At 5 job 0 comes back with a task of 1 as job 1 ends on the first processor, where job 2 (3)
    # waits: 0 goes first.
    visits = {
        (0, 0): ([(1, 2)], 3),
        (0, 1): ([(0, 1)], LONG_IO),
        (1, 0): ([(0, 5)], LONG_IO),
        (2, 0): ([(0, 8)], LONG_IO),
    }
    assert lines(Written(2, visits).run(discipline="stf"), 2) == [
        "1.0 0-5 0.0 5-6 2.0 6-14",
        "0.0 0-2",
    ]


def test_jobs_that_come_back_together_dispatch_in_order_of_job_number():
    # Job 1 ends at 1, its I/O lasts to 5; job 0 ends at 5 and needs no I/O: both are back at 5, job
    # 0 first.
    visits = {
        (0, 0): ([(0, 5)], 0),
        (0, 1): ([(0, 2)], LONG_IO),
        (1, 0): ([(1, 1)], 4),
        (1, 1): ([(0, 2)], LONG_IO),
    }
    assert lines(Written(2, visits).run(), 2) == ["0.0 0-5 0.0 5-7 1.0 7-9", "1.0 0-1"]


def test_tasks_of_no_demand_take_their_turn_in_rounds_of_one_instant():
    # First round: 0.0 0-0 on the first, 0.1 0-3 on the second.  Second: 1.0 0-0 on the first.
    # Third: job 1 ends, needs no I/O and is back with 1.0 (2) on the first: 0-2.
    visits = {
        (0, 0): ([(0, 0), (1, 3)], LONG_IO),
        (1, 0): ([(0, 0)], 0),
        (1, 1): ([(0, 2)], LONG_IO),
    }
    outcome = Written(2, visits).run()
    assert lines(outcome, 2) == ["0.0 0-0 1.0 0-0 1.0 0-2", "0.1 0-3"]
    assert outcome.responses[:2] == [
        Response(1, 0, 1, 0, 0, 0, 0),
        Response(1, 1, 1, 0, 2, 2, 1002),
    ]


def test_a_network_that_never_leaves_an_instant_is_refused():
    with pytest.raises(RuntimeError, match="stands still"):
        simulate(Constant(0.0, [0.0]), jobs=1, processors=1, demand="exponential", horizon=1)
    with pytest.raises(RuntimeError, match="stands still"):
        simulate(Constant(0.5, [0.0], interval=0.0), jobs=1, processors=1, horizon=1)


def test_the_horizon_itself_is_worked():
    written = once(1, [(0, 4)], [(0, 5)])
    outcome = written.run(horizon=4 / SECOND)
    assert (lines(outcome, 1), ends(outcome)) == (["0.0 0-4 1.0 4-9"], [(0, 4)])
    before = written.run(horizon=3 / SECOND)
    assert (lines(before, 1), ends(before)) == (["0.0 0-4"], [])


RETURN = oracle.exponential(1.0, 0.2) + oracle.exponential(0.531, 0.2)
WHOLE = 1 - math.exp(-1)
"""The fraction at which an exponential time is its mean."""


@pytest.mark.parametrize(("late", "second"), [(0, 2), (1, 1)])
def test_a_job_that_comes_back_at_a_switch_sees_the_new_number_of_tasks(late: int, second: int):
    # Four processors, fraction .2: uniform 1 + floor(.8) = 1; bounded normal P(1) = .0543: 2.
    draws = Constant(0.2, [0.1, 0.3, 0.6, 0.9], interval=WHOLE)
    interval = (RETURN + late) / SECOND
    settings: dict[str, Any] = {"jobs": 1, "processors": 4, "demand": "exponential", "horizon": 1.0}
    outcome = simulate(draws, parallelism_interval=interval, **settings)
    assert [response.tasks for response in outcome.responses][:2] == [1, second]
    assert outcome.responses[1].submitted == RETURN
    assert simulate(draws, parallelism="uniform", **settings).responses[1].tasks == 1
    assert simulate(draws, parallelism="normal", **settings).responses[0].tasks == 2


def test_a_switch_at_the_start_is_seen_by_the_first_dispatch():
    class Early(Constant):
        def parallelism_interval(self, number: int) -> float:
            return 0.0 if number == 0 else 0.9999

    draws = Early(0.2, [0.1, 0.3, 0.6, 0.9])
    outcome = simulate(draws, jobs=1, processors=4, demand="exponential", horizon=1.0)
    assert outcome.responses[0].tasks == 2


@pytest.mark.parametrize(("late", "second"), [(0, "erlang"), (1, "exponential")])
def test_a_job_that_comes_back_at_a_switch_sees_the_new_demands(late: int, second: str):
    draws = Constant(0.2, [0.1], interval=WHOLE, branch=0.1)
    outcome = simulate(
        draws, jobs=1, processors=1, demand_interval=(RETURN + late) / SECOND, horizon=1.0
    )
    demands = {
        "exponential": oracle.exponential(1.0, 0.2),
        "erlang": oracle.branching_erlang(1.0, 2.0, 0.2, 0.1, 0.2),
    }
    assert [task.end - task.start for task in outcome.tasks[:2]] == [
        demands["exponential"],
        demands[second],
    ]


# ---- Measures.


def test_measures_of_a_window_are_half_open_on_the_left():
    # One job, visits of 3 s and I/O of 1 s: service 0-3, 4-7, 8-11, ..; I/O ends at 4, 8, 12, ..
    def script(job: int, visit: int) -> tuple[list[int], list[int], int]:
        return [3 * SECOND], [3 * SECOND], SECOND

    outcome = simulate(Constant(0.0, [0.0]), jobs=1, processors=1, scripted=script, horizon=100)

    def measured(start: float, length: float) -> tuple[float, float, int | None]:
        return oracle.measures(outcome, processors=1, window_start=start, window_length=length)

    assert measured(4, 8) == (2 / 8, 6 / 8, 3 * SECOND)  # 8 and 12; busy 4-7 and 8-11
    # The I/O that ends at 4; the response that ended at 3 is not in it.
    assert measured(3, 1) == (1, 0, None)
    assert measured(2, 1) == (0, 1, 3 * SECOND)  # it began before the window
    assert (
        oracle.measures(outcome, processors=2, window_start=4, window_length=8).utilisation == 3 / 8
    )


# ---- Analytic checks.


@pytest.mark.parametrize("jobs", [1, 4])
def test_one_processor_and_the_io_station_are_a_cyclic_queue(jobs: int):
    horizon = 20000
    outcome = simulate(Seeded(3, 1), jobs=jobs, processors=1, demand="exponential", horizon=horizon)
    rate, utilisation, _ = oracle.measures(
        outcome, processors=1, window_start=0, window_length=horizon
    )
    powers = [(1 / 0.531) ** n for n in range(jobs + 1)]
    exact = sum(powers[1:]) / sum(powers)
    assert round(exact, 4) == {1: 0.6532, 4: 0.9611}[jobs]
    assert utilisation == pytest.approx(exact, rel=0.01)
    assert rate == pytest.approx(exact, rel=0.02)


def test_one_job_alone_waits_for_the_greatest_of_its_demands():
    settings: dict[str, Any] = {
        "parallelism": "uniform",
        "demand": "exponential",
        "routing": "shortest",
    }
    outcome = simulate(Seeded(5, 16), jobs=1, horizon=15000, **settings)
    responses = [response.ended - response.submitted for response in outcome.responses]
    assert sum(responses) / len(responses) / SECOND == pytest.approx(2.59202, rel=0.02)
    rate, utilisation, _ = oracle.measures(
        outcome, processors=16, window_start=0, window_length=15000
    )
    assert rate == pytest.approx(0.3202, rel=0.02)
    assert utilisation == pytest.approx(0.1701, rel=0.02)


def test_one_job_alone_has_the_same_responses_under_every_discipline():
    runs = [
        simulate(Seeded(9, 16), jobs=1, horizon=400, discipline=discipline)
        for discipline in DISCIPLINES
    ]
    assert len(runs[0].responses) > 50
    assert all(run.responses == runs[0].responses for run in runs)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_on_one_processor_the_routings_are_the_same(discipline: Discipline):
    settings: dict[str, Any] = {
        "jobs": 5,
        "processors": 1,
        "discipline": discipline,
        "horizon": 300,
        "error": 0.3,
    }
    probabilistic = simulate(Seeded(2, 1), **settings)
    assert probabilistic == simulate(Seeded(2, 1), routing="shortest", **settings)
    assert probabilistic == simulate(Seeded(2, 1), routing="shortest", ties="lowest", **settings)


def test_the_measured_policies_stand_as_the_specification_found_them():
    """N = 16, C = 2, d = 20: R003 gives .647, .878 and .708; this run is short."""

    def utilisation(**settings: Any) -> float:
        outcome = simulate(Seeded(1, 16), jobs=16, horizon=1600, **settings)
        return oracle.measures(
            outcome, processors=16, window_start=200, window_length=1400
        ).utilisation

    assert utilisation() == pytest.approx(0.647, abs=0.04)
    assert utilisation(routing="shortest") == pytest.approx(0.878, abs=0.03)
    assert utilisation(discipline="stf") == pytest.approx(0.708, abs=0.04)


# ---- Laws of every run.

RUNS: list[dict[str, Any]] = [
    {"jobs": 6, "processors": 3},
    {"jobs": 9, "processors": 4, "routing": "shortest"},
    {
        "jobs": 9,
        "processors": 4,
        "routing": "shortest",
        "ties": "lowest",
        "discipline": "lstf",
        "limit": 3,
    },
    {"jobs": 8, "processors": 5, "discipline": "stf", "error": 0.3, "variation": 4.0},
    {
        "jobs": 8,
        "processors": 5,
        "discipline": "snutf",
        "parallelism_interval": 2.0,
        "demand_interval": 3.0,
    },
    {
        "jobs": 7,
        "processors": 2,
        "discipline": "lstf",
        "parallelism": "normal",
        "demand": "erlang",
        "error": 0.1,
    },
]


def coarse(seed: int, processors: int) -> Script:
    """Return small whole times, many of them 0 and many equal, so that instants coincide."""

    def script(job: int, visit: int) -> tuple[list[int], list[int], int]:
        dice = random.Random(f"{seed} coarse {job} {visit}")
        demands = [dice.randrange(4) for _ in range(dice.randint(1, processors))]
        return demands, [dice.randrange(4) for _ in demands], dice.randrange(3)

    return script


def all_runs() -> list[tuple[dict[str, Any], Outcome]]:
    """Return runs of drawn times and runs of coarse ones."""
    runs = []
    for seed, settings in enumerate(RUNS):
        draws = Seeded(seed, settings["processors"])
        runs.append((settings, simulate(draws, horizon=100, **settings)))
        script = coarse(seed, settings["processors"])
        runs.append((settings, simulate(draws, horizon=0.0003, scripted=script, **settings)))
    return runs


@pytest.fixture(scope="module")
def runs() -> list[tuple[dict[str, Any], Outcome]]:
    return all_runs()


def test_runs_repeat(runs: list[tuple[dict[str, Any], Outcome]]):
    assert runs == all_runs()
    assert all(len(outcome.responses) > 50 for _, outcome in runs)


def test_a_processor_serves_one_task_at_a_time_and_never_rests_while_one_waits(
    runs: list[tuple[dict[str, Any], Outcome]],
):
    for settings, outcome in runs:
        for index in range(settings["processors"]):
            served = [task for task in outcome.tasks if task.processor == index]
            for earlier, later in pairwise(served):
                assert later.start >= earlier.end
                # What starts after a rest came at that instant; so did everything that is served
                # after it.
                if later.start > earlier.end:
                    assert all(
                        task.dispatched >= later.start for task in served[served.index(later) :]
                    )


def test_first_come_first_served_starts_are_those_of_the_recursion(
    runs: list[tuple[dict[str, Any], Outcome]],
):
    for settings, outcome in runs:
        if settings.get("discipline", "fcfs") == "fcfs":
            for index in range(settings["processors"]):
                free = 0
                for task in (task for task in outcome.tasks if task.processor == index):
                    assert task.start == max(free, task.dispatched)
                    free = task.end


def test_responses_are_those_of_their_tasks_and_of_the_io_station(
    runs: list[tuple[dict[str, Any], Outcome]],
):
    for _, outcome in runs:
        back = {(job, 0): 0 for job in {response.job for response in outcome.responses}}
        free = 0
        for response in sorted(outcome.responses, key=lambda each: (each.io_start, each.io_end)):
            assert response.io_start == max(response.ended, free)
            free = response.io_end
            back[response.job, response.visit + 1] = response.io_end
        for response in outcome.responses:
            tasks = [
                task
                for task in outcome.tasks
                if (task.job, task.visit) == (response.job, response.visit)
            ]
            assert sorted(task.task for task in tasks) == list(range(response.tasks))
            assert {task.dispatched for task in tasks} == {response.submitted}
            assert max(task.end for task in tasks) == response.ended
            assert back[response.job, response.visit] == response.submitted


def test_busy_time_is_the_sum_of_the_demands_drawn():
    settings: dict[str, Any] = {
        "jobs": 9,
        "processors": 4,
        "parallelism": "uniform",
        "demand": "erlang",
    }
    draws = Seeded(4, 4)
    for discipline in DISCIPLINES:
        outcome = simulate(draws, horizon=200, discipline=discipline, variation=4.0, **settings)
        drawn = [draws.visit(task.job, task.visit).tasks[task.task] for task in outcome.tasks]
        demands = [
            oracle.branching_erlang(1.0, 4.0, each.first, each.branch, each.second)
            for each in drawn
        ]
        over = sum(max(0, task.end - 200 * SECOND) for task in outcome.tasks)
        _, utilisation, _ = oracle.measures(
            outcome, processors=4, window_start=0, window_length=200
        )
        assert oracle.busy_time(outcome, 0, 200 * SECOND) == sum(demands) - over
        assert utilisation == (sum(demands) - over) / (4 * 200 * SECOND)


def test_policies_share_the_draws():
    """The same visit asks for the same demands whatever the policy, where the distributions are
    frozen."""
    settings: dict[str, Any] = {
        "jobs": 5,
        "processors": 4,
        "parallelism": "normal",
        "demand": "exponential",
    }

    def asked(**policy: Any) -> dict[tuple[int, int, int], int]:
        outcome = simulate(Seeded(8, 4), horizon=100, **policy, **settings)
        return {(task.job, task.visit, task.task): task.end - task.start for task in outcome.tasks}

    first, second = asked(), asked(routing="shortest", discipline="snutf")
    both = first.keys() & second.keys()
    assert len(both) > 100
    assert all(first[key] == second[key] for key in both)
