"""The filter language: what each word keeps, and what is said of a word that cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.errors import UsageError
from qbatch.tui.board import Board
from qbatch.tui.driving import next_speed, read_instant, read_until
from qbatch.tui.query import FIELDS, Query
from qbatch.wire.records import ClockRecord
from tests.tui.scene import NOW, job

ONE = job(
    17, "R", procs=16, hosts=("n3",), user="alice", name="climate-run", priority=-3, exit_status=271
)


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("", True),
        ("clim", True),
        ("CLIM", True),
        ("alice", True),
        ("n3", True),
        ("17", True),
        ("nothing", False),
        ("user=alice", True),
        ("user!=alice", False),
        ("user=al*", True),
        ("state=R", True),
        ("state=running", True),
        ("state=queued", False),
        ("procs>=16", True),
        ("procs>16", False),
        ("procs<=16 user=alice", True),
        ("procs!=16", False),
        ("walltime>=1:00:00", True),
        ("walltime<3600", False),
        ("memory=4gb", True),
        ("priority<0", True),
        ("status=271", True),
        ("name=climate-*", True),
        ("id=17", True),
        ("id=1?", True),
        ("queue=fat", False),
        ("host=n3*", True),
        ("c*run", True),
    ],
)
def test_words(text: str, is_kept: bool) -> None:
    assert Query(text).keeps(ONE) is is_kept


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("procz=3", "procs"),
        ("procs=many", "many"),
        ("user>bob", "user=bob"),
        ("walltime=soon", "soon"),
        ("=3", "known"),
    ],
)
def test_a_word_that_cannot_be_read_is_named(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Query(text)


def test_what_the_daemon_can_choose_by() -> None:
    query = Query("user=alice queue=b* procs>3")
    assert query.exact("user") == ("alice",)
    assert query.exact("queue") == ()
    assert Query("user!=alice").exact("user") == ()
    assert Query("user=a user=b").exact("user") == ()


@given(st.text(max_size=30))
def test_any_text_is_a_filter_or_a_clear_error(text: str) -> None:
    said = ""
    try:
        assert Query(text).keeps(ONE) in (True, False)
    except UsageError as error:
        said = str(error)
    assert "\n" not in said
    assert not said or any(name in said for name in FIELDS)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("+90", 90), ("-2h", -7200), ("+1:30:00", 5400), ("+15m", 900), ("-1d", -86_400), ("+2s", 2)],
)
def test_instants_from_now(text: str, seconds: int) -> None:
    assert read_instant(text, NOW, 0, 0) == NOW + seconds * 10**6


def test_instants_of_a_recording_and_of_the_calendar() -> None:
    assert read_instant("25%", NOW, 1000, 400) == 1100
    assert read_instant("2026-11-21T08:00:00+00:00", NOW, 0, 0) == 1_795_248_000 * 10**6
    for text in ("", "soon", "50%", "+", "+x", "2026-13-01"):
        with pytest.raises(UsageError, match="instant"):
            read_instant(text, NOW, 0, 0)


def test_until() -> None:
    board = Board(wall=lambda: 0.0)
    board.set_clock(ClockRecord(mode="virtual", now=NOW))
    assert read_until("end 4", board) == {"action": "until-end", "job": "4"}
    assert read_until("1 job", board) == {"action": "until-count", "count": 1}
    assert read_until("+1m", board) == {"action": "until", "at": NOW + 60 * 10**6}


def test_speeds_go_up_and_down_in_steps() -> None:
    board = Board(wall=lambda: 0.0)
    speeds = []
    for mode, speed, is_faster in (
        ("scaled", 60, True),
        ("scaled", 60, False),
        ("virtual", 1e6, True),
        ("virtual", 0, False),
        ("virtual", 0, True),
        ("scaled", 5e8, True),
        ("scaled", 0.1, False),
    ):
        board.set_clock(ClockRecord(mode=mode, now=NOW, speed=float(speed)))
        speeds.append(next_speed(board, is_faster))
    assert speeds == [100, 50, 0, 1e6, 0, 5e8, 0.1]


def test_a_job_whose_values_cannot_be_read_is_left_out() -> None:
    odd = job(1, resources={"ncpus": "x", "walltime": "zzz", "mem": "??"})
    assert not any(Query(text).keeps(odd) for text in ("procs>=1", "walltime>0", "memory>0"))
    assert Query("sim").keeps(odd)
