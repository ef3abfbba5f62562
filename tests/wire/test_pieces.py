"""What a job ran, and on how many processors, from its record; against counting second by
second."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qbatch.wire.pieces import Piece, pieces_of, procs_asked, procs_now, procs_text, run_of
from qbatch.wire.records import JobRecord


def record(**fields: object) -> JobRecord:
    known = {
        "id": "1.q",
        "name": "n",
        "user": "u",
        "queue": "b",
        "state": "F",
        "resources": {"ncpus": "4"},
    }
    return JobRecord(**{**known, **fields})  # type: ignore[arg-type]


def test_a_job_that_ran_through_is_one_piece_and_one_that_never_ran_none() -> None:
    assert pieces_of(record(), 9) == []
    assert pieces_of(record(started=3, ended=7), 9) == [Piece(3, 7, 4)]
    assert pieces_of(record(started=3), 9) == [Piece(3, 9, 4)]
    assert pieces_of(record(started=3, ended=3), 9) == []


def test_suspensions_and_sizes_cut_it() -> None:
    job = record(started=0, ended=20, pauses=((5, 10),), sizes=((0, 2), (5, 1), (12, 3)))
    assert pieces_of(job, 0) == [Piece(0, 5, 2), Piece(10, 12, 1), Piece(12, 20, 3)]
    assert run_of(job, 0) == (10 + 2 + 24) // 4


def test_the_microsecond_to_which_an_end_was_rounded_up_is_no_run_time() -> None:
    """A run of 5 on the 4 processors asked for is a work of 20, on 3 of them done at 7, in which 21
    are done."""
    assert run_of(record(started=0, ended=7, sizes=((0, 3),)), 0) == 5


def test_a_suspension_that_lasts_ends_nothing() -> None:
    assert pieces_of(record(started=0, pauses=((5, None),)), 9) == [Piece(0, 5, 4)]


@given(
    st.integers(0, 30),
    st.lists(st.integers(0, 40), max_size=6),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 4))),
)
def test_it_is_what_counting_every_instant_gives(
    length: int, edges: list[int], sizes: list[tuple[int, int]]
) -> None:
    ordered = sorted(edges)
    pauses = tuple(zip(ordered[::2], ordered[1::2], strict=False))
    changes = tuple(sorted(sizes, key=lambda pair: pair[0]))
    job = record(started=0, ended=length, pauses=pauses, sizes=changes)
    total = 0
    for at in range(length):
        if not any(since <= at < until for since, until in pauses):
            total += [4, *(procs for since, procs in changes if since <= at)][-1]
    assert sum((piece.end - piece.begin) * piece.procs for piece in pieces_of(job, 0)) == total


def test_a_resized_job_on_hosts_has_its_latest_size_of_what_it_asked_for() -> None:
    resized = {"started": 0, "sizes": ((0, 2), (5, 1), (12, 3))}
    assert [procs_text(record(state=state, **resized)) for state in "RSEQF"] == ["3 of 4"] * 3 + [
        "4"
    ] * 2
    assert [procs_now(record(state=state, **resized)) for state in "RF"] == [3, 4]
    assert procs_text(record(state="R", started=0, sizes=((0, 2), (5, 4)))) == "4"
    assert procs_text(record(state="R", resources={})) == "-"
    assert procs_asked(record(resources={"ncpus": "many"})) == 1
