"""The oracle of reacting sources by itself: logs small enough to see which user waits for which
job."""

from __future__ import annotations

from tests.policies.feedback_oracle import Logged, feedback_submissions, predecessors

SECOND = 1_000_000
MINUTE = 60 * SECOND


def job(
    number: int,
    submit: int,
    wait: int = 0,
    run: int = 0,
    user: int = 1,
    given: tuple[int, int] = (-1, -1),
) -> Logged:
    """Return a job of times in minutes; -1 stays -1."""

    def known(minutes: int) -> int:
        return minutes * MINUTE if minutes >= 0 else -1

    predecessor, think = given
    return Logged(number, known(submit), known(wait), known(run), user, predecessor, known(think))


def links(*jobs: Logged) -> list[tuple[int, int]]:
    """Return predecessors and think times in minutes."""
    return [(position, think // MINUTE) for position, think in predecessors(jobs)]


def test_the_predecessor_is_the_job_of_the_user_that_ended_last():
    # Job 1 ends at 10, job 2 at 8, job 3 is of another user, job 4 still runs when job 5 comes at
    # 12.
    log = [job(1, 0, 2, 8), job(2, 1, 0, 7), job(3, 2, 0, 9, user=2), job(4, 3, 4, 50), job(5, 12)]
    assert links(*log) == [(-1, 0), (-1, 0), (-1, 0), (-1, 0), (0, 2)]


def test_of_two_that_ended_together_the_later_is_the_predecessor():
    assert links(job(1, 0, 0, 10), job(2, 1, 0, 9), job(3, 11))[2] == (1, 1)
    assert links(job(2, 0, 0, 10), job(1, 0, 0, 10), job(3, 11))[2] == (0, 1)


def test_a_job_that_ends_at_a_submission_ended_before_it():
    assert links(job(1, 0, 0, 10), job(2, 10)) == [(-1, 0), (0, 0)]


def test_twenty_minutes_are_soon_enough_and_a_microsecond_more_is_not():
    first = job(1, 0, 0, 10)
    assert links(first, job(2, 30)) == [(-1, 0), (0, 20)]
    late = job(2, 30)
    assert links(first, late._replace(submit=late.submit + 1)) == [(-1, 0), (-1, 0)]


def test_the_latest_end_alone_is_tried():
    """No job that ended earlier can be nearer: the second best is never a predecessor."""
    assert links(job(1, 0, 0, 1), job(2, 0, 0, 5), job(3, 26)) == [(-1, 0), (-1, 0), (-1, 0)]


def test_jobs_without_length_at_one_instant_wait_for_the_one_before_and_never_for_one_another():
    assert links(job(1, 5), job(2, 5), job(3, 5)) == [(-1, 0), (0, 0), (1, 0)]


def test_an_unknown_wait_run_or_user_makes_no_predecessor():
    assert links(job(1, 0, -1, 5), job(2, 6)) == [(-1, 0), (-1, 0)]
    assert links(job(1, 0, 5, -1), job(2, 6)) == [(-1, 0), (-1, 0)]
    assert links(job(1, 0, 0, 5, user=-1), job(2, 6, user=-1)) == [(-1, 0), (-1, 0)]


def test_where_any_job_names_its_predecessor_nothing_is_derived():
    log = [
        job(7, 0, 0, 5),
        job(8, 6),
        job(9, 7, given=(7, 3)),
        job(10, 8, given=(8, -1)),
        job(11, 9, given=(99, 4)),
    ]
    assert links(*log) == [(-1, 0), (-1, 0), (0, 3), (1, 0), (-1, 0)]


def test_a_job_is_submitted_its_think_time_after_its_predecessor():
    # By the log job 2 comes 2 minutes after job 1, job 3 a minute after job 2; job 4 is of another
    # user.
    log = [job(1, 0, 0, 10), job(2, 12, 0, 3), job(3, 16), job(4, 17, user=2)]
    assert links(*log) == [(-1, 0), (0, 2), (1, 1), (-1, 0)]
    in_minutes = [minutes * MINUTE for minutes in (14, 25, 30, 17)]
    assert feedback_submissions(log, in_minutes) == [0, 16 * MINUTE, 26 * MINUTE, 17 * MINUTE]
    skipped = [None, *in_minutes[1:]]
    assert feedback_submissions(log, skipped) == [0, 2 * MINUTE, 26 * MINUTE, 17 * MINUTE]
