"""The board against a plain retelling of the events, the grid against overlaps, the series against
sums."""

from __future__ import annotations

import itertools

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.tui.board import Board
from qbatch.tui.grid import ShownHost, ShownHosts, chunks_of
from qbatch.tui.series import CAPACITY, Series
from qbatch.wire.records import ClockRecord, EventRecord, HostRecord, JobRecord
from tests.tui.scene import HOSTS, NOW, QUEUES, RUNNING, SERVER, WAITING, job

KINDS = ("submitted", "started", "suspended", "resumed", "requeued", "held", "released", "ended")
STATE = {
    "submitted": "Q",
    "started": "R",
    "suspended": "S",
    "resumed": "R",
    "requeued": "Q",
    "held": "H",
    "released": "Q",
    "ended": "F",
}


def events(choices: list[tuple[int, int, int]]) -> list[EventRecord]:
    """Return events of a few jobs, each in a state that its event leads to."""
    found = []
    states: dict[int, str] = {}
    for number, (which, kind, host) in enumerate(choices, 1):
        name = KINDS[kind]
        letter = STATE[name]
        hosts = (("n1",), ("n2", "n3"))[host] if letter in "RS" else ()
        states[which] = letter
        counts = {each: list(states.values()).count(each) for each in "QHRS"}
        record = job(which, letter, procs=4, hosts=hosts)
        found.append(
            EventRecord(
                number=number,
                at=NOW + number,
                kind=name,
                job=f"{which}.qbatch",
                record=record,
                counts=counts,
            )
        )
    return found


def lendable_of(place: ShownHost) -> list[tuple[int, int]]:
    return list(zip(place.lendable.lows, place.lendable.highs, strict=True))


def empty_board() -> Board:
    board = Board(wall=lambda: 0.0)
    board.load(SERVER, HOSTS, QUEUES, (), ())
    return board


@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.integers(0, len(KINDS) - 1), st.integers(0, 1)), max_size=60
    )
)
def test_the_board_is_what_the_last_event_of_each_job_says(
    choices: list[tuple[int, int, int]],
) -> None:
    board = empty_board()
    last: dict[str, EventRecord] = {}
    ended = 0
    for event in events(choices):
        board.apply(event)
        last[event.job] = event
        ended += event.kind == "ended"
    letters = {name: event.record.state for name, event in last.items() if event.record is not None}
    assert set(board.running) == {name for name, letter in letters.items() if letter in "RS"}
    assert set(board.waiting) == {name for name, letter in letters.items() if letter in "QH"}
    assert board.ended == ended
    # The grid: every running job has its processors, none overlap, none are lost.
    for place in board.grid.places.values():
        assert not set(place.runs) & set(place.stopped)
        assert set(place.stopped) <= {name for name, letter in letters.items() if letter == "S"}
        owned = sorted(
            [*(run for runs in place.runs.values() for run in runs), *lendable_of(place)]
        )
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(owned))
        assert place.busy + place.free.count + place.lendable.count == place.record.cpus
    running = [each for each in board.running.values() if each.state == "R"]
    wanted = sum(procs for each in running for _, procs, _ in chunks_of(each))
    if wanted <= 16:  # more than a host has cannot be dealt out
        assert board.grid.busy == wanted
    assert board.grid.busy == sum(place.busy for place in board.grid.places.values())


def cells_of(place: ShownHost) -> tuple[str, str]:
    """Return the job that runs on each processor and the suspended job that it belongs to, one
    letter each; ``.`` for none."""
    return tuple(
        "".join(
            next(
                (
                    name[0]
                    for name, runs in jobs.items()
                    if any(low <= cell < high for low, high in runs)
                ),
                ".",
            )
            for cell in range(place.record.cpus)
        )
        for jobs in (place.runs, place.stopped)
    )  # type: ignore[return-value]


def test_a_job_in_the_place_of_a_suspended_one_is_seen_and_gives_it_back() -> None:
    grid = ShownHosts()
    grid.load([HostRecord(name="n1", pool="p", state="free", cpus=8)], [])
    place = grid.places["n1"]
    grid.start(job(1, "R", procs=6, hosts=("n1",), id="a"))
    grid.stop("a")
    assert (cells_of(place), grid.busy) == (("........", "aaaaaa.."), 0)
    grid.start(job(2, "R", procs=2, hosts=("n1",), id="b"))  # processors that no job has come first
    grid.start(job(3, "R", procs=4, hosts=("n1",), id="c"))
    assert (cells_of(place), grid.busy, place.lent) == (
        ("ccccaabb".replace("a", "."), "aaaaaa.."),
        6,
        [(0, 4)],
    )
    again = ShownHosts()
    again.load(
        [place.record],
        [job(2, "R", procs=6, hosts=("n1",), id="b"), job(1, "S", procs=6, hosts=("n1",), id="a")],
    )
    assert cells_of(again.places["n1"]) == ("bbbb..bb", "aaaaaa..")
    grid.end("b")
    grid.resume("a")  # its own as far as no job is there, then others
    assert (cells_of(place), grid.busy) == (("ccccaaaa", "........"), 8)
    grid.end("c")
    grid.stop("a")
    grid.end("a")
    assert (cells_of(place), grid.busy, place.free.count, place.lendable.count) == (
        ("." * 8, "." * 8),
        0,
        8,
        0,
    )


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("start", "stop", "resume", "end")),
            st.integers(1, 5),
            st.integers(1, 6),
        ),
        max_size=40,
    )
)
def test_no_processor_is_lost_or_run_on_twice_through_suspensions(
    deeds: list[tuple[str, int, int]],
) -> None:
    grid = ShownHosts()
    grid.load([HostRecord(name="n1", pool="p", state="free", cpus=8)], [])
    place = grid.places["n1"]
    on = set()
    for deed, number, procs in deeds:
        name = f"{number}.qbatch"
        if deed == "start" and name not in on:
            grid.start(job(number, "R", procs=procs, hosts=("n1",)))
            on.add(name)
        elif deed == "end":
            grid.end(name)
            on.discard(name)
        elif deed in ("stop", "resume"):
            (grid.stop if deed == "stop" else grid.resume)(name)
        run_on = [
            cell for runs in place.runs.values() for low, high in runs for cell in range(low, high)
        ]
        free = [
            cell
            for low, high in zip(place.free.lows, place.free.highs, strict=True)
            for cell in range(low, high)
        ]
        lendable = [cell for low, high in lendable_of(place) for cell in range(low, high)]
        assert sorted([*run_on, *free, *lendable]) == list(range(8))
        owned = {
            cell
            for runs in place.stopped.values()
            for low, high in runs
            for cell in range(low, high)
        }
        assert set(lendable) == owned - set(run_on)
        assert grid.busy == len(run_on)
        assert set(place.runs) | set(place.stopped) == on
    for name in on:
        grid.end(name)
    assert (place.free.lows, place.free.highs, place.lendable.count) == ([0], [8], 0)


def test_a_keyframe_goes_on_by_itself() -> None:
    board = Board(wall=lambda: 0.0)
    board.load(SERVER, HOSTS, QUEUES, RUNNING, WAITING)
    duplicate = board.keyframe()
    for event in events([(1, 7, 0), (20, 0, 0), (20, 1, 1)]):
        board.apply(event)
    assert set(duplicate.running) == {each.id for each in RUNNING}
    assert duplicate.grid.busy == sum(
        procs for each in RUNNING if each.state == "R" for _, procs, _ in chunks_of(each)
    )
    again = duplicate.keyframe()
    for event in events([(1, 7, 0), (20, 0, 0), (20, 1, 1)]):
        again.apply(event)
    board.become(again)
    assert set(board.running) == set(again.running) == {f"{n}.qbatch" for n in (2, 3, 4, 5, 20)}


def test_the_window_holds_so_many_and_counts_show_the_rest() -> None:
    board = empty_board()
    board.window = 3
    for number in range(1, 8):
        board.apply(
            EventRecord(
                number=number, at=NOW, kind="submitted", record=job(number), counts={"Q": number}
            )
        )
    assert (len(board.waiting), board.waiting_total, board.is_window) == (3, 7, True)
    board.more_waiting([job(6), job(7), job(1, "R", hosts=("n1",))])
    assert set(board.waiting) == {f"{n}.qbatch" for n in (1, 2, 3, 6, 7)}


def test_a_late_comer_does_not_stand_before_those_that_are_not_loaded() -> None:
    board = empty_board()
    board.more_waiting([job(1), job(2)])
    board.apply(EventRecord(number=1, at=NOW, kind="submitted", record=job(99), counts={"Q": 50}))
    assert set(board.waiting) == {"1.qbatch", "2.qbatch"}
    assert board.waiting_total == 50
    board.window = 1 << 60  # a recording has nothing to load later
    board.apply(EventRecord(number=2, at=NOW, kind="submitted", record=job(100), counts={"Q": 51}))
    assert "100.qbatch" in board.waiting


def test_the_clock_goes_on_as_the_server_says() -> None:
    wall = [100.0]
    board = Board(wall=lambda: wall[0])
    board.set_clock(ClockRecord(mode="scaled", now=NOW, speed=60.0))
    wall[0] += 2
    assert board.now() == NOW + 120 * 10**6
    board.set_clock(msgspec.structs.replace(board.clock, now=NOW, is_paused=True))
    wall[0] += 2
    assert board.now() == NOW
    board.set_clock(ClockRecord(mode="virtual", now=NOW, speed=0.0))
    wall[0] += 2
    assert board.now() == NOW
    board.apply(EventRecord(number=1, at=NOW + 5, kind="host", host="n1"))
    assert board.now() == NOW + 5  # in virtual time events move it
    board.apply(
        EventRecord(number=1, at=NOW, kind="clock", clock=ClockRecord(mode="real", now=NOW + 9))
    )
    wall[0] += 1
    assert board.now() == NOW + 9 + 10**6
    board.is_stale = True
    assert board.now() == NOW + 9


def test_hosts_and_arrays() -> None:
    board = empty_board()
    board.set_hosts([HostRecord(name="n1", pool="cluster", state="down", cpus=16)])
    assert board.grid.places["n1"].record.state == "down"
    parent = JobRecord(id="9[].qbatch", name="a", user="u", queue="batch", state="B", is_array=True)
    board.apply(EventRecord(number=1, at=NOW, kind="started", record=parent, counts={"B": 1}))
    assert board.running == {}
    board.apply(
        EventRecord(
            number=2,
            at=NOW,
            kind="ended",
            job="9[].qbatch",
            record=msgspec.structs.replace(parent, state="F"),
        )
    )
    assert board.ended == 0


def test_chunks_are_read_from_both_texts() -> None:
    assert chunks_of(job(1, "R", procs=8, hosts=("n1", "n2"))) == [
        ("n1", 4, 4 << 30),
        ("n2", 4, 4 << 30),
    ]
    assert chunks_of(job(1, "R", exec_host="n1/0*4+n2/1", exec_vnode="")) == [
        ("n1", 4, 0),
        ("n2", 1, 0),
    ]
    assert chunks_of(job(1)) == []


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 9), st.integers(0, 9), st.integers(0, 3)),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 3),
)
def test_the_series_keeps_every_sum_whatever_it_merges(
    steps: list[tuple[int, int, int, int]], power: int
) -> None:
    series = Series(width=10)
    at, areas, levels, ended = 1000, [0, 0], (0, 0), 0
    for passed, busy, waiting, ends in steps:
        passed *= 10**power
        areas = [area + level * passed for area, level in zip(areas, levels, strict=True)]
        at += passed
        levels, ended = (busy, waiting), ended + ends
        series.note(at, busy, waiting, ends)
    assert sum(series.busy) == areas[0]
    assert sum(series.waiting) == areas[1]
    assert sum(series.ended) == ended
    assert len(series.busy) == len(series.ended) <= CAPACITY
    means = series.means()[0]
    assert all(0 <= mean <= 9 for mean in means)
