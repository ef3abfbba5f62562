"""Weeks and users drawn anew: against a plain oracle, with the load, the cycles and the dependences
that they keep."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from qbatch.model.errors import InputError, UsageError
from qbatch.model.machine import one_host
from qbatch.simulation.prepare import reasons_to_skip
from qbatch.workloads import Log, generate_log, read_log, write_log
from qbatch.workloads.draws import Draws
from qbatch.workloads.feedback import feedback_of
from qbatch.workloads.transform import RESAMPLINGS, resampled
from tests.workloads.samples import comments, public_log, written
from tests.workloads.samples import rows as any_rows

WEEK = 7 * 86_400
# September 1996 and March 1997: within weeks of both changes of the clock.
SUMMER, WINTER = 842_000_000, 858_000_000


def log_of(
    folder: Path, rows: list[list[int]], start: int | None = WINTER, zone: str = "Europe/Stockholm"
) -> Log:
    header = (
        "; MaxProcs: 8\n"
        if start is None
        else f"; MaxProcs: 8\n; UnixStartTime: {start}\n; TimeZoneString: {zone}\n"
    )
    path = folder / "log.swf"
    path.write_text(header + "".join(" ".join(map(str, each)) + "\n" for each in rows))
    return read_log(str(path))


def row(number: int, submit: float, user: int = 1, before: int = -1, think: int = -1) -> list:
    return [
        number,
        submit,
        5,
        100 + number,
        1 + number % 7,
        -1,
        -1,
        -1,
        4000,
        -1,
        1,
        user,
        1,
        1,
        1,
        1,
        before,
        think,
    ]


def random_rows(rng: random.Random, weeks: float, *, jobs: int = 120) -> list[list]:
    """Return rows with gaps in the numbers, ties, jobs without user, and preceding jobs of any
    kind."""
    times = sorted(
        rng.choice([rng.randint(0, int(weeks * WEEK)), 3600 * rng.randint(0, int(weeks * 168))])
        for _ in range(jobs)
    )
    numbers = sorted(rng.sample(range(1, 5 * jobs), jobs))
    rows = []
    for number, time in zip(numbers, times, strict=True):
        before = rng.choice([-1, -1, number, rng.choice(numbers), 10**6])
        rows.append(
            row(number, time, rng.choice([-1, 3, 5, 6, 11, 40]), before, rng.choice([-1, 0, 60]))
        )
    return rows


def wall(start: int | None, zone: str, second: float) -> datetime:
    if start is None:
        return datetime(2000, 1, 1) + timedelta(seconds=second)
    return (
        datetime.fromtimestamp(start + second, UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    )


def second_of(start: int | None, zone: str, time: datetime) -> float:
    if start is None:
        return (time - datetime(2000, 1, 1)).total_seconds()
    return time.replace(tzinfo=ZoneInfo(zone)).timestamp() - start


class Oracle:
    """The definition, job by job, with the calendar of the standard library.

    A copy is a list of rows that came together; ``jobs`` are (copy, row, second, user).
    """

    def __init__(self, log: Log, how: str, seed: int, start: int | None, zone: str) -> None:
        walls = [wall(start, zone, second) for second in log["submit"].tolist()]
        midnight = walls[0].replace(hour=0, minute=0, second=0, microsecond=0)
        weeks = int(((max(walls) - midnight).total_seconds() + 86_400) // WEEK)
        users = log["user"].tolist()
        self.jobs: list[tuple[int, int, float, int]] = []
        if how == "weeks":
            for place, week in enumerate(Draws((seed, 8)).below(weeks, weeks).tolist()):
                for index, each in enumerate(walls):
                    if (each - midnight) // timedelta(weeks=1) == week:
                        moved = second_of(start, zone, each + timedelta(weeks=place - week))
                        own = log["submit"][index].item()
                        self.jobs.append(
                            (place, index, own if place == week else moved, users[index])
                        )
            return
        known = sorted({user for user in users if user >= 0})
        draws = Draws((seed, 9))
        drawn = [known[place] for place in sorted(draws.below(len(known), len(known)).tolist())]
        shifts = draws.below(weeks - 1, len(known)).tolist()
        self.jobs += [
            (-1, index, log["submit"][index].item(), -1)
            for index, user in enumerate(users)
            if user < 0
        ]
        fresh = known[-1]
        for copy, user in enumerate(drawn):
            is_again = user in drawn[:copy]
            fresh += is_again
            for index, each in enumerate(walls):
                if users[index] == user:
                    later = each
                    if is_again:
                        later = each + timedelta(weeks=1 + shifts[copy])
                        while later >= midnight + timedelta(weeks=weeks):
                            later -= timedelta(weeks=weeks)
                    moved = (
                        log["submit"][index].item()
                        if later == each
                        else second_of(start, zone, later)
                    )
                    self.jobs.append((copy, index, moved, fresh if is_again else user))


@pytest.mark.parametrize("how", sorted(RESAMPLINGS))
@pytest.mark.parametrize(
    ("start", "zone"),
    [
        (SUMMER, "Europe/Stockholm"),
        (WINTER, "Europe/Stockholm"),
        (WINTER, "US/Pacific"),
        (SUMMER, "UTC"),
        (None, "UTC"),
    ],
)
@pytest.mark.parametrize("seed", range(8))
def test_a_resampled_log_is_that_of_the_definition(
    how: str, start: int | None, zone: str, seed: int, tmp_path: Path
) -> None:
    rng = random.Random(f"{how} {zone} {start} {seed}")
    rows = random_rows(rng, rng.uniform(2, 9))
    log = log_of(tmp_path, rows, start, zone)
    found = resampled(log, how, seed)
    jobs = sorted(
        Oracle(log, how, seed, start, zone).jobs, key=lambda each: (each[2], each[1], each[0])
    )
    earlier = 0 if start is None else start - found.header.unix_start_time
    assert earlier in (0, 86_400)
    assert found["submit"].tolist() == [second + earlier for _, _, second, _ in jobs]
    assert found["job"].tolist() == list(range(1, len(jobs) + 1))
    assert found["user"].tolist() == [user for *_, user in jobs]
    for name in ("wait", "run", "procs_allocated", "time_requested", "group", "queue"):
        assert found[name].tolist() == [log[name][index].item() for _, index, _, _ in jobs], name
    # A preceding job is the same row of the log in the same copy; one that now comes later is none,
    # unless it always did.
    number_of = {(copy, index): number for number, (copy, index, _, _) in enumerate(jobs, 1)}
    row_of = {each: index for index, each in reversed(list(enumerate(log["job"].tolist())))}
    wanted, thinks = [], []
    for number, (copy, index, _, _) in enumerate(jobs, 1):
        source = row_of.get(log["preceding_job"][index].item(), -1)
        before = number_of.get((copy, source), -1) if source >= 0 else -1
        if (before > number and source < index) or source == index:
            before = -1
        wanted.append(before)
        thinks.append(log["think_time"][index].item() if before > 0 else -1)
    assert found["preceding_job"].tolist() == wanted
    assert found["think_time"].tolist() == thinks


@pytest.mark.parametrize("how", sorted(RESAMPLINGS))
def test_a_job_keeps_its_weekday_and_its_hour_whatever_the_clock_does(
    how: str, tmp_path: Path
) -> None:
    # Every hour of ten weeks in which the clock goes back; then of ten in which it goes forward.
    for start in (SUMMER, WINTER):
        log = log_of(
            tmp_path,
            [row(number + 1, 3600 * number, number % 9) for number in range(10 * 168)],
            start,
        )
        found = resampled(log, how, 7)
        zone = "Europe/Stockholm"
        source = {
            (100 + number): wall(start, zone, 3600 * (number - 1))
            for number in range(1, 10 * 168 + 1)
        }
        moved = 0
        for run, second in zip(found["run"].tolist(), found["submit"].tolist(), strict=True):
            now, then = wall(found.header.unix_start_time, zone, second), source[run]
            shift = (now - then) % timedelta(weeks=1)
            if shift == timedelta(hours=1):
                moved += 1  # the hour that the clock leaves out
                assert (now.month, now.hour) == (3, 3)
            else:
                assert shift == timedelta(0)
        assert moved <= 9


def work_of(log: Log) -> float:
    return float((np.maximum(log["run"], 0).astype(np.float64) * np.maximum(log.procs, 0)).sum())


def offered(log: Log, how: str) -> float:
    """Return the work a second over whole weeks: of all of them, or of the span of the log."""
    submit = log["submit"]
    span = float(submit[-1] - submit[0])
    return work_of(log) / (round((span + 43_200) / WEEK) * WEEK if how == "weeks" else span)


def check_load(log: Log, how: str, seeds: int) -> None:
    kept = log
    if how == "weeks":  # what is drawn from: whole weeks
        whole = int((log["submit"][-1] - log["submit"][0] + 86_400) // WEEK)
        rows = np.flatnonzero(log["submit"] < log["submit"][0] // 86_400 * 86_400 + whole * WEEK)
        kept = Log(
            log.name,
            log.sha256,
            log.header,
            {name: log[name][rows] for name in log.columns},
            log.line[rows],
        )
    loads = [offered(resampled(log, how, seed), how) for seed in range(seeds)]
    error = np.std(loads, ddof=1) / seeds**0.5
    assert np.mean(loads) == pytest.approx(offered(kept, how), abs=4 * error)
    assert error < 0.05 * np.mean(loads)


@pytest.mark.parametrize("how", sorted(RESAMPLINGS))
def test_the_load_is_that_of_the_log_on_average(how: str) -> None:
    # A span of whole weeks, so that the load of a log is its work alone.
    log = generate_log(jobs=4000, procs=64, load=0.8, seed=5)
    check_load(log, how, 300)


@pytest.mark.parametrize("how", sorted(RESAMPLINGS))
def test_the_load_of_a_real_log_is_kept_too(how: str) -> None:
    check_load(read_log(public_log("KTH-SP2-1996-2.1-cln")), how, 100)


def test_every_week_and_every_user_is_drawn_once_on_average() -> None:
    log = generate_log(jobs=3000, procs=64, load=0.8, seed=6)
    weeks = Counter((log["submit"] // WEEK).tolist())
    sizes = Counter[int]()
    first = {
        week: log["run"][np.flatnonzero(log["submit"] // WEEK == week)].tolist() for week in weeks
    }
    for seed in range(400):
        found = resampled(log, "weeks", seed)
        runs = found["run"][found["submit"] < WEEK].tolist()
        sizes[next(week for week, each in first.items() if each == runs)] += 1
    whole = len(sizes)
    assert whole >= 3
    # The first week is each of them in 400 / whole draws.
    assert all(abs(each - 400 / whole) < 5 * (400 / whole) ** 0.5 for each in sizes.values())
    users = Counter[int]()
    for seed in range(400):
        drawn = set(resampled(log, "users", seed)["user"].tolist())
        users.update(drawn & set(log["user"].tolist()))
    # A user of N is missed with probability (1 - 1/N)^N.
    count = len(set(log["user"].tolist()))
    share = 1 - (1 - 1 / count) ** count
    assert np.mean(list(users.values())) / 400 == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("how", sorted(RESAMPLINGS))
def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_log(
    how: str, tmp_path: Path
) -> None:
    log = log_of(tmp_path, random_rows(random.Random(1), 5.3))
    texts = []
    for seed in (4, 4, 5):
        out = BytesIO()
        made = resampled(log, how, seed)
        write_log(out, made.header, made.columns)
        texts.append(out.getvalue())
    assert texts[0] == texts[1] != texts[2]
    path = tmp_path / "again.swf"
    path.write_bytes(texts[0])
    again, made = read_log(str(path)), resampled(log, how, 4)
    assert {name: again[name].tolist() for name in again.columns} == {
        name: made[name].tolist() for name in made.columns
    }


def test_the_header_says_what_was_drawn_and_from_which_log(tmp_path: Path) -> None:
    rows = [
        row(1, 0, 1),
        row(2, 3 * 86_400, 1, before=1, think=9),
        row(3, 8 * 86_400, 2, before=2),
        row(4, 13 * 86_400, 2),
    ]
    log = log_of(tmp_path, [*rows, row(5, 15 * 86_400, 2)], start=None)
    found = resampled(log, "weeks", 0)
    note = found.header.notes[-1]
    assert note.startswith(
        "resampled by weeks, seed=0: 2 whole weeks, 1 job outside them left out; "
    )
    assert note.endswith(f"of the log with sha256 {log.sha256}")
    assert found.sha256 not in (
        log.sha256,
        resampled(log, "weeks", 1).sha256,
        resampled(log, "users", 0).sha256,
    )
    assert (found.header.max_jobs, found.header.max_records) == (len(found), len(found))
    assert found.header.max_procs == 8
    users = resampled(log, "users", 0).header.notes[-1]
    assert users.startswith("resampled by users, seed=0: 2 users drawn, ")


def test_dependences_across_weeks_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = [
        row(1, 0, 1),
        row(2, 3 * 86_400, 1, before=1, think=9),
        row(3, 8 * 86_400, 2, before=2),
        row(4, 13 * 86_400, 2),
    ]
    log = log_of(tmp_path, rows, start=None)
    for seed in range(20):
        found = resampled(log, "weeks", seed)
        second_weeks = found["run"].tolist().count(103)
        plural = "preceding job" if second_weeks == 1 else "preceding jobs"
        assert f"; {second_weeks} {plural} dropped; of the log" in found.header.notes[-1]
        for before, think, run in zip(
            *(found[name].tolist() for name in ("preceding_job", "think_time", "run")), strict=True
        ):
            assert (before > 0, think) == ((True, 9) if run == 102 else (False, -1))


@pytest.mark.parametrize("how", sorted(RESAMPLINGS))
def test_users_that_wait_can_be_replayed_from_a_resampled_log(how: str, tmp_path: Path) -> None:
    for seed in range(10):
        rows = random_rows(random.Random(seed), 4)
        for each in rows:
            if each[16] >= each[0]:
                each[16] = -1  # no job waits for one that comes later
        found = resampled(log_of(tmp_path, rows), how, seed)
        follows = feedback_of(found)
        assert follows.is_told == bool((found["preceding_job"] > 0).any())
        assert (follows.predecessor < np.arange(len(found))).all()


@pytest.mark.parametrize(
    ("rows", "how", "seed", "error", "said"),
    [
        (
            [row(1, 0), row(2, 30 * 86_400)],
            "months",
            0,
            UsageError,
            r"'months': use one of weeks, users",
        ),
        ([row(1, 0), row(2, 30 * 86_400)], "week", 0, UsageError, r"did you mean 'weeks'"),
        (
            [row(1, 0), row(2, 30 * 86_400)],
            "weeks",
            -1,
            UsageError,
            r"the seed is -1; use 0 or more",
        ),
        (
            [row(1, 0), row(2, 9 * 86_400)],
            "weeks",
            0,
            InputError,
            r"span 9.0 days; resampling by weeks needs two whole weeks",
        ),
        (
            [row(1, 0)],
            "users",
            0,
            InputError,
            r"span 0.0 days; resampling by users needs two whole weeks",
        ),
        ([row(1, -5)], "users", 0, InputError, r"span 0.0 days"),
        (
            [row(1, 0), row(2, 10**15)],
            "weeks",
            0,
            InputError,
            r"1.65e\+09 weeks; 100,000 can be resampled",
        ),
        (
            [row(1, 0, -1), row(2, 30 * 86_400, -1)],
            "users",
            0,
            InputError,
            r"has no user for any job .* by weeks",
        ),
    ],
)
def test_what_cannot_be_resampled_is_refused(
    rows: list, how: str, seed: int, error: type[Exception], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        resampled(log_of(tmp_path, rows, start=None), how, seed)


def test_weeks_without_a_job_alone_are_refused(tmp_path: Path) -> None:
    log = log_of(tmp_path, [row(1, 0), row(2, 31 * WEEK - 1)], start=None)
    counts = Counter[int]()
    for seed in range(40):
        try:
            counts[len(resampled(log, "weeks", seed))] += 1
        except InputError as error:
            counts[0] += f"the weeks drawn with seed {seed} have no job" in str(error)
    # Neither of two among 31 weeks is drawn in (29/31)^31 = 13 % of the draws.
    assert counts.total() == 40
    assert 0 < counts[0] < 20


def test_submissions_in_fractions_of_a_second_stay_so_and_negative_ones_are_left_out(
    tmp_path: Path,
) -> None:
    rows = [
        row(1, -7),
        row(2, 0.25),
        row(3, 86_400.5),
        row(4, 8 * 86_400 + 0.125),
        row(5, 13.5 * 86_400),
    ]
    log = log_of(tmp_path, rows, start=None)
    fractions = {0.25, 0.5, 0.125, 0.0}
    for how in RESAMPLINGS:
        found = resampled(log, how, 3)
        assert set((found["submit"] % 1).tolist()) <= fractions
        assert found["submit"].min() >= 0


@pytest.mark.parametrize("how", sorted(RESAMPLINGS))
def test_no_job_is_lost_where_the_log_begins_after_midnight(how: str, tmp_path: Path) -> None:
    # A job an hour for six weeks from a second 0 in the afternoon: the first week begins hours
    # before it.
    log = log_of(
        tmp_path, [row(number + 1, 3600 * number, number % 9) for number in range(6 * 168)]
    )
    early = 0
    for seed in range(8):
        found = resampled(log, how, seed)
        assert found["submit"].min() >= 0
        assert found.header.unix_start_time == WINTER - 86_400
        assert found.header.start_time is None
        path = tmp_path / "resampled.swf"
        with path.open("wb") as file:
            write_log(file, found.header, found.columns)
        assert "negative_submit" not in reasons_to_skip(read_log(str(path)), one_host(8))
        early += int((found["submit"] < 86_400).sum())
    assert early > 0


def test_a_log_that_begins_at_midnight_keeps_its_second_0(tmp_path: Path) -> None:
    clock = wall(WINTER, "Europe/Stockholm", 0)
    midnight = WINTER - (3600 * clock.hour + 60 * clock.minute + clock.second)
    log = log_of(tmp_path, random_rows(random.Random(3), 4), midnight)
    assert resampled(log, "weeks", 1).header.unix_start_time == midnight


def test_a_job_that_names_itself_as_preceding_has_none(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        [row(1, 0, before=1, think=5), row(2, 13.5 * 86_400, before=2, think=5)],
        start=None,
    )
    for how in RESAMPLINGS:
        for seed in range(5):
            found = resampled(log, how, seed)
            assert set(found["preceding_job"].tolist()) == {-1}
            assert set(found["think_time"].tolist()) == {-1}


_times = st.integers(0, 5 * WEEK)
_hostile = st.lists(
    st.tuples(st.one_of(_times, _times, st.floats(0, 5 * WEEK)), st.integers(0, 30)), max_size=30
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(any_rows, _hostile, comments, st.sampled_from(sorted(RESAMPLINGS)), st.integers(0, 2**40))
def test_any_log_that_can_be_read_is_resampled_or_refused(
    tmp_path: Path, rows: list, times: list, said: list[str], how: str, seed: int
) -> None:
    # Rows of any numbers whatever, some of them moved to instants of a few weeks.
    moved = [
        [row[0], round(time, 3), *row[2:11], user, *row[12:]]
        for row, (time, user) in zip(rows, times, strict=False)
    ]
    text = (
        "\n".join(["; MaxProcs: 8", *said, *(" ".join(map(str, each)) for each in moved or rows)])
        + "\n"
    )
    try:
        log = read_log(written(tmp_path, text.encode("utf-8", "surrogateescape")))
        found = resampled(log, how, seed)
    except InputError:
        return
    event("resampled")
    assert found["submit"].min() >= 0
    out = BytesIO()
    write_log(out, found.header, found.columns)
    again = read_log(written(tmp_path, out.getvalue(), "again.swf"))
    assert len(again) == len(found)
    assert (np.diff(found["submit"]) >= 0).all()
    assert found["job"].tolist() == list(range(1, len(found) + 1))
    assert (
        set(found["preceding_job"].tolist()) <= {-1, *range(1, len(found) + 1)}
        or not (log["preceding_job"] > 0).any()
    )


def test_a_long_log_takes_well_under_a_second() -> None:
    import time

    log = generate_log(jobs=250_000, procs=256, load=0.8, seed=1)
    for how in RESAMPLINGS:
        took = []
        for seed in range(3):
            begin = time.process_time()
            resampled(log, how, seed)
            took.append(time.process_time() - begin)
        assert min(took) < 0.9, how
