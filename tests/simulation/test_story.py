"""The story of one job: what happens to it after its start is included."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from qbatch.model.actions import Action, Chunk, Resize, Resume, Start, Suspend, WakeAt
from qbatch.model.job_class import JobClass
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.record import Workload
from qbatch.planning.policy import Policy
from qbatch.planning.view import View
from qbatch.policies import load_policy
from qbatch.simulation.story import tell_story

SECOND = 1_000_000


def work_of(jobs: list[tuple[int, int, int, int]]) -> Workload:
    """Jobs as (submit, processors, run seconds, requested seconds), in order of submission; all
    need 100 bytes."""

    def column(values: Iterable[int]) -> Any:
        return np.array(list(values), np.int64)

    runs = column(job[2] * SECOND for job in jobs)
    zeros = column(0 for _ in jobs)
    return Workload(
        "story",
        4,
        np.arange(1, len(jobs) + 1),
        column(job[0] * SECOND for job in jobs),
        column(job[1] for job in jobs),
        runs,
        runs,
        column(job[3] * SECOND for job in jobs),
        zeros + 100,
        zeros,
        zeros,
        zeros,
        np.ones(len(jobs), np.bool_),
        np.arange(len(jobs)),
    )


def story(
    jobs: list[tuple[int, int, int, int]], policy: str | Policy, job: int, machine: Machine
) -> list[str]:
    chosen = load_policy(policy) if isinstance(policy, str) else policy
    return [
        " ".join(line.split()) for line in tell_story(work_of(jobs), machine, chosen, str(job))
    ][1:]


QUANTA = [(0, 4, 1000, 2000), (100, 2, 30, 200), (200, 2, 500, 600)]


def test_a_job_that_is_suspended_for_a_quantum_and_goes_on_is_shown() -> None:
    assert story(QUANTA, "immediate:inner=easy,protect=10,quantum=60", 1, one_host(4)) == [
        "0 s arrived; 0 ahead in the queue",
        "0 s started when no job had just ended; it had waited 0 s",
        "100 s suspended for job 2, which gets a trial run; it had run for 100 s",
        "130 s resumed on 4 processors after 30 s: the trial run of job 2 is over",
        "200 s suspended for job 3, which gets a trial run; it had run for 70 s since it resumed",
        "260 s resumed on 4 processors after 60 s: the trial run of job 3 is over",
        (
            "1090 s ended 1090 s after its first start, its run time is 1000 s; it was started "
            "immediate"
        ),
    ]


def test_a_quantum_and_the_wait_after_it_are_reported() -> None:
    assert story(QUANTA, "immediate:inner=easy,protect=10,quantum=60", 3, one_host(4)) == [
        "200 s arrived; 0 ahead in the queue",
        "200 s started for a trial run of 60 s when no job had just ended; it had waited 0 s",
        "260 s its trial run is over before its end; it waits again, from the beginning",
        "260 s waits [processors] needs 2 processors, 0 are free",
        "1090 s started after the end of job 1; it had waited 890 s",
        (
            "1590 s ended 1390 s after its first start, its run time is 500 s; it was started "
            "immediate"
        ),
    ]


def test_a_trial_run_that_outgrows_its_memory_is_shown_so() -> None:
    machine = Machine((Host("a", 4, 150),), single_host=True)
    lines = story(
        [(0, 2, 100, 100), (10, 2, 50, 50)],
        "immediate:inner=easy,protect=1,quantum=60,memory=40",
        2,
        machine,
    )
    assert (
        lines[2]
        == "10 s it uses more memory than its trial run has; it waits again, from the beginning"
    )


def test_shares_that_change_are_reported() -> None:
    lines = story(QUANTA, "equispatial", 1, one_host(4))
    assert lines[2:4] == [
        "100 s has 2 processors from now on, 4 processors before",
        "130 s has 4 processors from now on, 2 processors before",
    ]


class _Slices:
    """Stops the only job by ``until``, then by itself, and makes it narrower while it sleeps."""

    name = "slices"
    is_malleable = True

    def decide(self, view: View) -> Iterable[Action]:
        if len(view.queue):
            yield Start(0, (Chunk(0, 2),), view.now + 5 * SECOND)
            return
        match view.now // SECOND:
            case 5:
                yield WakeAt(8 * SECOND)
            case 8:
                yield Resize(0, 1)
                yield Resume(0)
                yield WakeAt(9 * SECOND)
            case 9:
                yield Suspend(0)
                yield WakeAt(10 * SECOND)
            case 10:
                yield Resume(0)


def test_slices_suspensions_without_a_trial_run_and_a_size_changed_in_suspension_are_shown() -> (
    None
):
    assert story([(0, 4, 4, 10)], _Slices(), 1, one_host(4)) == [
        "0 s arrived; 0 ahead in the queue",
        "0 s started on 2 of 4 processors for 5 s when no job had just ended; it had waited 0 s",
        "5 s suspended at the end of its time; it had run for 5 s",
        "8 s resumed on 1 processor after 3 s",
        "9 s suspended; it had run for 1 s since it resumed",
        "10 s resumed on 1 processor after 1 s",
        "15 s ended 15 s after its first start, its run time is 4 s; it was started immediate",
    ]


def test_a_rejection_is_reported_with_its_reason() -> None:
    machine = Machine(
        (Host("a", 4, limits=(("any", 0),)),), single_host=True, classes=(JobClass("any"),)
    )
    printed = story([(0, 1, 10, 10)], "lsf", 1, machine)
    assert (
        printed[-1]
        == "0 s rejected [no-class] no class takes it, or no host of its class could hold it"
    )
