"""From a log to a workload: which rows run, and with what."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.errors import InputError, UsageError
from qbatch.model.machine import Host, Machine, one_host
from qbatch.simulation import Options, prepare
from qbatch.simulation.prepare import choose_procs
from qbatch.workloads import Log, generate_log, read_log, write_log
from tests.harness import workload_of
from tests.oracle.naive import Job

HEADER = "; UnixStartTime: 843480031\n; TimeZoneString: Europe/Stockholm\n; MaxProcs: 100\n"


def log_of(tmp_path: Path, *rows: str, header: str = HEADER) -> Log:
    path = tmp_path / "log.swf"
    path.write_text(header + "".join(f"{row}\n" for row in rows))
    return read_log(str(path))


def row(
    number: int,
    submit: float,
    run: float,
    procs: int,
    asked: int = -1,
    estimate: float = -1,
    memory: int = -1,
) -> str:
    return (
        f"{number} {submit} -1 {run} {procs} -1 -1 {asked} {estimate} {memory} 1 1 1 -1 1 -1 -1 -1"
    )


def test_processors_estimates_and_kills_follow_the_design(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        row(1, 0, 10, 4, 8, 20),
        row(2, 1, 10, 4, -1, -1),
        row(3, 2, 30, 4, 4, 20),
        row(4, 3, 0, 1, 1, 0),
    )
    work = prepare(log, one_host(100))
    assert work.procs.tolist() == [8, 4, 4, 1]
    assert (work.estimate / 1e6).tolist() == [20, 10, 20, 0]
    assert (work.run / 1e6).tolist() == [10, 10, 20, 0]
    assert (work.logged_run / 1e6).tolist() == [10, 10, 30, 0]
    lifted = prepare(log, one_host(100), Options(kill=False))
    assert (lifted.estimate / 1e6).tolist() == [20, 10, 30, 0]
    assert (lifted.run / 1e6).tolist() == [10, 10, 30, 0]
    perfect = prepare(log, one_host(100), Options(estimates="perfect"))
    assert perfect.estimate.tolist() == perfect.run.tolist() == perfect.logged_run.tolist()


def test_what_cannot_run_is_skipped_counted_and_named(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        row(1, 0, 10, -1),
        row(2, 0, -1, 4),
        row(3, 0, 5, 101),
        row(4, -5, 5, 1),
        row(5, 0, 5, 1),
        row(6, 0, 5, 0),
        row(-7, 0, 5, 1),
    )
    assert log["status"][0] != 5
    work = prepare(log, one_host(100))
    assert work.number.tolist() == [5]
    left_out = {
        "negative_job_number": 1,
        "negative_submit": 1,
        "no_processors": 2,
        "negative_run": 1,
        "too_wide": 1,
    }
    assert work.skipped == left_out
    cancelled = row(2, 0, -1, 4).split()
    cancelled[10] = "5"
    again = prepare(
        log_of(tmp_path, row(5, 0, 5, 1), " ".join(cancelled) + "\n", row(7, 0, -1, 4)),
        one_host(100),
    )
    assert again.skipped == {"cancelled": 1, "negative_run": 1}
    with pytest.raises(InputError, match=r"no job in it can run .*1 too wide"):
        prepare(log_of(tmp_path, row(3, 0, 5, 101)), one_host(100))


def test_memory_counts_for_the_whole_job_where_the_machine_counts_it(tmp_path: Path) -> None:
    log = log_of(tmp_path, row(1, 0, 5, 4, 4, 9, 100), row(2, 0, 5, 2, 2, 9, 5000))
    machine = Machine((Host("a", 8, 1_000_000),), single_host=True)
    work = prepare(log, machine)
    assert work.memory.tolist() == [4 * 100 * 1024]
    assert work.skipped == {"too_much_memory": 1}
    assert prepare(log, one_host(8)).memory.tolist() == [0, 0]


def test_memory_beyond_all_numbers_is_too_much_and_does_not_wrap_around(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        row(1, 0, 5, 2, 2, 9, 1 << 52),
        row(2, 0, 5, 4, 4, 9, 1 << 52),
        row(3, 0, 5, 4, 4, 9, 100),
    )
    assert prepare(log, Machine((Host("a", 8, 1_000_000),), single_host=True)).skipped == {
        "too_much_memory": 2
    }


def test_a_span_is_half_open_in_seconds_and_in_the_logs_own_zone(tmp_path: Path) -> None:
    # 843480031 is Mon Sep 23 1996, 14:00:31 in Stockholm; the clocks went back on October 27.
    rows = [
        row(number, second, 5, 1)
        for number, second in ((1, 0), (2, 100), (3, 200), (4, 40 * 86400))
    ]
    log = log_of(tmp_path, *rows)
    assert prepare(log, one_host(8), Options(since="100", before="200")).number.tolist() == [2]
    assert prepare(log, one_host(8), Options(since="1996-09-23T14:02:11")).number.tolist() == [
        2,
        3,
        4,
    ]
    assert prepare(
        log, one_host(8), Options(before="1996-09-23T12:02:11+00:00")
    ).number.tolist() == [1]
    assert prepare(log, one_host(8), Options(since="1996-11-02T13:00:31")).number.tolist() == [4]
    with pytest.raises(InputError, match="no job in it can run"):
        prepare(log, one_host(8), Options(since="1996-11-02T13:00:32"))
    with pytest.raises(UsageError, match="neither seconds of the log nor an ISO time"):
        prepare(log, one_host(8), Options(since="yesterday"))
    with pytest.raises(UsageError, match="UnixStartTime"):
        prepare(log_of(tmp_path, *rows, header=""), one_host(8), Options(since="1996-11-02"))


def test_a_warm_up_runs_but_does_not_count(tmp_path: Path) -> None:
    log = log_of(tmp_path, *(row(number, 100 * number, 5, 1) for number in range(1, 6)))
    work = prepare(log, one_host(8), Options(warmup=200))
    assert work.counted.tolist() == [False, False, True, True, True]


def test_load_divides_the_gaps_and_keeps_the_order_of_ties(tmp_path: Path) -> None:
    log = log_of(
        tmp_path, row(9, 0, 5, 1), row(3, 0.000001, 5, 1), row(2, 50, 5, 1), row(1, 100, 5, 1)
    )
    work = prepare(log, one_host(8), Options(load=2.0))
    assert (work.submit / 1e6).tolist() == [0, 0, 25, 50]
    # What now falls on one instant is ordered by job number, as everywhere.
    assert work.number.tolist() == [3, 9, 2, 1]


@given(st.integers(2, 400), st.integers(0, 2**31))
def test_drawn_estimates_lie_between_the_run_time_and_its_multiple(factor: int, seed: int) -> None:
    log = generate_log(jobs=60, procs=16, load=0.8, seed=3)
    work = prepare(log, one_host(16), Options(estimates=f"f:{factor}", seed=seed))
    assert np.all(work.estimate >= work.logged_run)
    assert np.all(work.estimate <= work.logged_run * factor)
    again = prepare(log, one_host(16), Options(estimates=f"f:{factor}", seed=seed))
    assert work.estimate.tolist() == again.estimate.tolist()


def test_which_machine_a_log_ran_on(tmp_path: Path) -> None:
    assert choose_procs(log_of(tmp_path, row(1, 0, 5, 1)), None) == 100
    assert choose_procs(log_of(tmp_path, row(1, 0, 5, 1)), 7) == 7
    assert (
        choose_procs(log_of(tmp_path, row(1, 0, 5, 1), header="; MaxNodes: 144 (8-way)\n"), None)
        == 144
    )
    with pytest.raises(InputError, match="say how many with --procs"):
        choose_procs(log_of(tmp_path, row(1, 0, 5, 1), header=""), None)


def test_times_beyond_what_can_be_counted_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too large"):
        prepare(log_of(tmp_path, row(1, 0, 8_000_000_000, 1)), one_host(8), Options(kill=False))


def test_a_generated_log_is_read_back_as_it_was(tmp_path: Path) -> None:
    log = generate_log(jobs=50, procs=16, load=0.8, seed=3)
    out = BytesIO()
    write_log(out, log.header, log.columns)
    path = tmp_path / "again.swf"
    path.write_bytes(out.getvalue())
    one, other = prepare(log, one_host(16)), prepare(read_log(str(path)), one_host(16))
    assert one.submit.tolist() == other.submit.tolist()
    assert one.estimate.tolist() == other.estimate.tolist()


def test_used_memory_is_of_the_whole_job_and_unknown_where_the_log_says_nothing(
    tmp_path: Path,
) -> None:
    log = log_of(
        tmp_path,
        "1 0 -1 5 4 -1 100 8 9 -1 1 1 1 -1 1 -1 -1 -1",
        "2 0 -1 5 -1 -1 7 3 9 -1 1 1 1 -1 1 -1 -1 -1",
        "3 0 -1 5 4 -1 -1 4 9 -1 1 1 1 -1 1 -1 -1 -1",
        "4 0 -1 5 2 -1 0.5 2 9 -1 1 1 1 -1 1 -1 -1 -1",
        "5 0 -1 5 2 -1 9007199254740992 2 9 -1 1 1 1 -1 1 -1 -1 -1",
    )
    used = prepare(log, one_host(8)).used_memory
    assert used.tolist() == [4 * 100 * 1024, 3 * 7 * 1024, -1, 1024, 1 << 60], (
        "measured on the processors that it had"
    )
    unknown = prepare(log_of(tmp_path, row(1, 0, 5, 4), row(2, 0, 5, 4)), one_host(8)).used_memory
    assert unknown.tolist() == [-1, -1]


def test_a_workload_that_is_given_no_used_memory_knows_none() -> None:
    work = workload_of([Job(0, 0, 1, 5, 5), Job(1, 3, 1, 5, 5)], 4)
    assert work.used_memory.tolist() == [-1, -1]
    assert work.changed(used_memory=np.array([5, -1])).used_memory.tolist() == [5, -1]


@pytest.mark.parametrize("load", [1.0, 2.0])
def test_jobs_before_a_date_run_and_are_not_counted(tmp_path: Path, load: float) -> None:
    log = log_of(
        tmp_path, row(1, 100, 5, 4), row(2, 1968, 5, 4), row(3, 1969, 5, 4), row(4, 5000, 5, 4)
    )
    work = prepare(log, one_host(8), Options(counted_from="1996-09-23T14:33:20", load=load))
    assert work.counted.tolist() == [False, False, True, True]
    assert prepare(log, one_host(8), Options(counted_from="1969")).counted.tolist() == [
        False,
        False,
        True,
        True,
    ]
    both = prepare(log, one_host(8), Options(counted_from="1969", warmup=4000))
    assert both.counted.tolist() == [False, False, False, True]
    bare = log_of(tmp_path, row(1, 100, 5, 4), header="; MaxProcs: 8\n")
    with pytest.raises(UsageError, match=r"--warmup '1996-09-23'.*UnixStartTime"):
        prepare(bare, one_host(8), Options(counted_from="1996-09-23"))
