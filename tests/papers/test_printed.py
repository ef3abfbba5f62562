"""The arithmetic of the printed tables (spec/papers.md, R001, rows A): typed in right, and errors where they were."""

from itertools import pairwise

import pytest

from qbatch.papers.sp2_backfilling import (
    FIGURE_11_FULL,
    FIGURE_11_JOBS,
    FIGURE_11_KILLED,
    IUCC_JOBS,
    KTH_JOBS,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    USERS,
)


def wins(pairs: list[tuple[int, int]]) -> tuple[int, int, int]:
    """Return how often EASY is better, conservative is better, and neither."""
    return (
        sum(easy < conservative for easy, conservative in pairs),
        sum(easy > conservative for easy, conservative in pairs),
        sum(easy == conservative for easy, conservative in pairs),
    )


def test_the_jobs_of_table_1_add_up_to_the_text() -> None:
    assert sum(jobs for jobs, _ in TABLE_1.values()) == IUCC_JOBS


def test_who_wins_in_table_1_is_as_the_text_says() -> None:
    on_33, _, on_58 = ([pairs[place] for _, pairs in TABLE_1.values()] for place in range(3))
    assert wins(on_33) == (4, 4, 0)
    assert wins(on_58) == (0, 4, 4)


def test_in_table_1_a_smaller_machine_is_slower_in_every_month() -> None:
    for _, pairs in TABLE_1.values():
        assert all(small[place] > large[place] for small, large in pairwise(pairs) for place in (0, 1))


def test_the_jobs_of_table_2_are_not_those_of_the_text() -> None:
    assert sum(month.jobs for month in TABLE_2) == 28290 != KTH_JOBS


def test_who_wins_in_table_2_is_as_the_text_says() -> None:
    assert wins([(month.easy, month.conservative) for month in TABLE_2]) == (7, 4, 1)


@pytest.mark.parametrize(("policy", "place", "mean"), [("easy", 0, 81.2), ("conservative", 1, 83.9)])
def test_the_mean_of_table_2_is_the_row_of_users_in_table_3(policy: str, place: int, mean: float) -> None:
    total = sum(month.jobs * getattr(month, policy) for month in TABLE_2)
    assert total / sum(month.jobs for month in TABLE_2) == pytest.approx(mean, abs=0.05)
    assert round(mean) == TABLE_3[USERS][place]


def test_table_3_says_what_the_text_concludes() -> None:
    drawn = {factor: pair for factor, pair in TABLE_3.items() if factor != USERS}
    for place in (0, 1):
        assert TABLE_3[USERS][place] > max(pair[place] for pair in drawn.values())
        assert min(drawn[factor][place] for factor in (4, 11, 31)) < drawn[1][place]
    assert all(conservative <= easy for easy, conservative in drawn.values())


def test_the_percentages_of_figure_11() -> None:
    assert round(100 * FIGURE_11_FULL / FIGURE_11_JOBS) == 16
    assert round(100 * FIGURE_11_KILLED / FIGURE_11_FULL, 1) == 99.7
