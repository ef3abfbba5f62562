"""The chart pass by pass names what a policy did to jobs that do not run in one go."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qbatch.model.actions import Action, Start
from qbatch.model.machine import one_host
from qbatch.planning.view import View
from qbatch.policies import load_policy
from qbatch.simulation.steps import draw_steps
from tests.harness import workload_of
from tests.oracle.naive import Job

SECOND = 1_000_000
JOBS = [
    Job(row, submit * SECOND, procs, estimate * SECOND, run * SECOND)
    for row, (submit, procs, run, estimate) in enumerate(
        [(0, 4, 1000, 2000), (100, 2, 30, 200), (200, 2, 500, 600)]
    )
]


def happened(policy: str) -> list[str]:
    return [
        lines[0].partition(" s: ")[2]
        for lines in draw_steps(workload_of(JOBS, 4), one_host(4), load_policy(policy)).passes
    ]


def test_quanta_suspensions_and_the_way_back_to_the_queue_are_named() -> None:
    assert happened("immediate:inner=easy,protect=10") == [
        "arrived 1(1); started 1(1)",
        "arrived 2(2); started 2(2) for a trial run; suspended 1(1)",
        "ended 2(2); resumed 1(1)",
        "arrived 3(3); started 3(3) for a trial run; suspended 1(1)",
        "waits again after its trial run 3(3); resumed 1(1)",
        "ended 1(1); started 3(3)",
        "ended 3(3)",
    ]


def test_a_resized_job_is_named_with_its_processors() -> None:
    assert happened("equispatial")[1:3] == [
        "arrived 2(2); started 2(2); resized 1(1) to 2 of 4",
        "ended 2(2); resized 1(1) to 4 of 4",
    ]


QUEUED = [
    Job(row, submit * SECOND, procs, estimate * SECOND, run * SECOND)
    for row, (submit, procs, run, estimate) in enumerate(
        [(0, 3, 120, 240), (10, 4, 60, 120), (20, 2, 30, 60), (30, 1, 30, 60)]
    )
]


def charts(policy: str) -> list[list[str]]:
    """Return what is drawn of each processor, the last first, at each pass."""
    drawn = draw_steps(workload_of(QUEUED, 4), one_host(4), load_policy(policy)).passes
    return [[line.partition("|")[2] for line in lines if "|" in line] for lines in drawn]


def test_reservations_are_hatched_where_they_are_planned() -> None:
    # At 20 s: 2 is to start at 240 s on 4 processors, 3 after it at 360 s on 2.
    planned = charts("conservative")[2]
    assert [line.count("/") > 5 and "2//" in line for line in planned] == [True] * 4
    assert ["3" in line for line in planned] == [False, False, True, True]
    assert planned[3].index(".") < planned[3].index("2") < planned[3].index("3")
    for policy in ("easy", "hybrid:depth=1", "sjf-backfill"):
        assert any("/" in line for line in charts(policy)[1]), policy
    assert not any("/" in line for chart in charts("fcfs") for line in chart)


def test_only_the_head_has_a_reservation_under_easy_and_two_jobs_with_depth_two() -> None:
    assert [any(f"{job}/" in line for line in charts("easy")[2]) for job in (2, 3)] == [True, False]
    assert [any(f"{job}/" in line for line in charts("hybrid:depth=2")[2]) for job in (2, 3)] == [
        True,
        True,
    ]


def test_the_last_pass_is_that_of_the_last_end() -> None:
    for policy in ("conservative", "easy", "slack"):
        last = draw_steps(workload_of(QUEUED, 4), one_host(4), load_policy(policy)).passes[-1]
        assert "; " not in last[0], policy
        assert last[0].partition(" s: ")[2].startswith("ended "), policy


def test_a_job_that_is_rejected_after_the_last_end_or_with_no_other_is_reported() -> None:
    for submit in (0, 500):
        jobs = [
            Job(0, 0, 4, 60 * SECOND, 60 * SECOND),
            Job(1, submit * SECOND, 4, 60 * SECOND, 60 * SECOND),
        ]
        work = workload_of(jobs, 4).changed(
            deadline=np.array([1_000 * SECOND if submit else SECOND, (submit + 1) * SECOND])
        )
        drawn = draw_steps(work, one_host(4), load_policy("qops")).passes
        assert "rejected 2(2)" in drawn[-1][0], submit


def test_every_line_fits_a_terminal_of_eighty_columns_and_the_signs_are_explained() -> None:
    drawn = draw_steps(workload_of(QUEUED, 4), one_host(4), load_policy("conservative"))
    assert (
        max(
            len(line)
            for lines in drawn.passes
            for line in lines
            if not line.startswith(("t = ", "  waiting: "))
        )
        <= 80
    )
    assert max(map(len, drawn.heading)) <= 80
    assert all(
        sign in "\n".join(drawn.heading[1:]) for sign in ("CCC", "...", "C//", "^", "8x40 by 90")
    )


class WithDepth:
    """A policy of a user's own that has a number of the name of what is asked for elsewhere."""

    name = "with-depth"
    reservations = 3

    def decide(self, view: View) -> Iterator[Action]:
        free = view.free_now()
        for job in view.waiting:
            if not free.take(job):
                return
            yield Start(job.row)


def test_a_policy_of_a_users_own_is_drawn_too() -> None:
    assert draw_steps(workload_of(QUEUED, 4), one_host(4), WithDepth()).passes
