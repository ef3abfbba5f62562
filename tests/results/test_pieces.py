"""What a result keeps of jobs that were suspended, resized or on trial: read back, it says what the
run said."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.metrics import BREAKDOWNS, breakdown, measure
from qbatch.metrics.per_job import job_times
from qbatch.model.errors import InputError, OutputError
from qbatch.model.record import MICROSECONDS as S
from qbatch.policies import load_policy
from qbatch.reports.series import used_procs, waiting
from qbatch.results.exports.chrome import off_machine
from qbatch.results.job_rows import read_job_rows, write_job_rows
from qbatch.results.pieces import unknown_pieces
from qbatch.results.reading import read_result
from qbatch.results.result import write_result
from qbatch.simulation import Options, prepare, run
from qbatch.workloads import read_log
from qbatch.workloads.machines import load_machine
from tests.harness import size
from tests.reports.samples import changed, in_pieces, random_workload, scheduled, unseal

TRIED = ("immediate:inner=lxfw-backfill", "soon:inner=lxfw-backfill", "equispatial")


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    """The first jobs of a month of the Origin 2000, pressed together so that jobs are suspended and
    resized."""
    from qbatch.cli.main import run as run_command

    path = tmp_path_factory.mktemp("month") / "month.swf"
    assert run_command(["generate", "origin2000", "--month", "1999-12", "-o", str(path)]) == 0
    machine = load_machine("origin2000")
    work = prepare(read_log(str(path)), machine, Options(first=700, load=6.0, warmup=3600.0))
    return [run(work, machine, load_policy(name)) for name in TRIED]


def test_the_metrics_of_a_result_are_those_of_the_run(tmp_path, month):
    write_result(tmp_path / "out", {}, month)
    result = read_result(tmp_path / "out")
    for schedule, rows in zip(month, result.schedules, strict=True):
        again = rows
        assert len(schedule.pieces) > 50
        assert sorted(again.pieces.tolist()) == sorted(schedule.pieces.tolist())
        assert measure(again) == measure(schedule)
        assert (
            measure(again)["utilisation_submit"]
            < measure(replace(again, pieces=None))["utilisation_submit"]
        )
        for key in BREAKDOWNS:
            assert breakdown(again, key) == breakdown(schedule, key)
        assert np.array_equal(job_times(rows).wait, job_times(schedule).wait)
    assert set(result.document["pieces"]) == set(result.policies)
    assert set(result.document["pieces"].values()) < set(os.listdir(tmp_path / "out"))


def test_the_longest_queue_of_a_result_is_that_of_the_run(tmp_path):
    from qbatch.model.machine import one_host

    for seed in range(20):
        for name in ("fcfs", "easy", "conservative"):
            schedule = run(random_workload(60, seed), one_host(16), load_policy(name))
            write_result(tmp_path / "out", {}, [schedule])
            result = read_result(tmp_path / "out")
            assert measure(result.schedules[0]) == measure(schedule)


@settings(max_examples=size(40, 100), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_what_ran_and_what_waited_is_what_the_record_says(seed):
    schedule = in_pieces(seed, unit=1)
    rows = schedule
    lines = [] if schedule.pieces is None else schedule.pieces.tolist()
    split = {line[0] for line in lines}
    work = schedule.workload
    used, queued = used_procs(rows), waiting(rows)
    for at in range(-1, 80):
        running = sum(line[3] for line in lines if line[1] <= at < line[2])
        running += sum(
            int(work.procs[row])
            for row in range(len(work))
            if row not in split and schedule.start[row] <= at < schedule.end[row]
        )
        assert used.value(np.array([at]))[0] == running
        still = int(((work.submit <= at) & (schedule.start > at)).sum())
        for row in split:
            mine = sorted(line for line in lines if line[0] == row)
            before = [line for line in mine if line[2] <= at]
            has_more = len(before) < len(mine)
            is_running = any(line[1] <= at < line[2] for line in mine)
            still += bool(before) and has_more and not is_running and not before[-1][5]
        assert queued.value(np.array([at]))[0] == still
    for row in range(len(rows)):
        lasted = (
            sum(line[2] - line[1] for line in lines if line[0] == row)
            if row in split
            else work.run[row]
        )
        assert off_machine(rows)[row] == schedule.end[row] - schedule.start[row] - lasted


@settings(max_examples=size(40, 100), deadline=None)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_some_of_the_rows_have_their_own_pieces(seed, data):
    rows = in_pieces(seed)
    which = np.array(
        sorted(data.draw(st.lists(st.integers(0, len(rows) - 1), unique=True))), np.int64
    )
    some = rows.only(which)
    for place, job in enumerate(which.tolist()):
        whole = [] if rows.pieces is None else rows.pieces[rows.pieces[:, 0] == job][:, 1:].tolist()
        mine = (
            [] if some.pieces is None else some.pieces[some.pieces[:, 0] == place][:, 1:].tolist()
        )
        assert mine == whole
        assert len(mine) == some.piece_count[place]
    mask = np.zeros(len(rows), bool)
    mask[which] = True
    assert np.array_equal(_columns(rows.only(mask)), _columns(some))
    assert some.workload.number.tolist() == (which + 1).tolist()


def _columns(rows):
    spans = rows.spans()
    return np.stack([rows.workload.number[spans.job], spans.begin, spans.end, spans.procs])


def test_a_policy_without_pieces_has_no_file_of_them(tmp_path):
    write_result(tmp_path / "out", {}, [in_pieces(3)])
    assert sorted(os.listdir(tmp_path / "out")) == [
        "jobs-hand.parquet",
        "pieces-hand.parquet",
        "result.json",
    ]
    easy = scheduled(random_workload(20))
    write_result(tmp_path / "out", {}, [easy])
    assert sorted(os.listdir(tmp_path / "out")) == ["jobs-easy.parquet", "result.json"]
    assert "pieces" not in read_result(tmp_path / "out").document
    (tmp_path / "out" / "pieces-mine.parquet").write_text("mine")
    with pytest.raises(OutputError, match="pieces-mine"):
        write_result(tmp_path / "out", {}, [easy])


@pytest.mark.parametrize(("unit", "kind"), [(S, "int64"), (S // 2, "double")])
def test_times_are_whole_seconds_where_all_are(tmp_path, unit, kind):
    import pyarrow.parquet as pq

    schedule = in_pieces(5, unit=unit)
    write_result(tmp_path / "out", {}, [schedule])
    table = pq.read_table(tmp_path / "out" / "pieces-hand.parquet")
    assert table.column_names == ["job_id", "sequence", "begin", "end", "procs", "host", "kept"]
    assert [str(table.schema.field(name).type) for name in ("begin", "end", "kept")] == [
        kind,
        kind,
        "bool",
    ]
    assert (np.array(table["begin"]) * S == schedule.pieces[:, 1]).all()
    assert (np.array(table["job_id"]) == schedule.workload.number[schedule.pieces[:, 0]]).all()
    again = read_result(tmp_path / "out").schedules[0]
    assert again.pieces.tolist() == schedule.pieces.tolist()


def change(folder, **columns):
    """Write the pieces of a result anew with some columns changed, and its document without
    checksums; None leaves one out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "pieces-hand.parquet"
    table = {name: np.array(column) for name, column in pq.read_table(path).to_pydict().items()}
    for name, how in columns.items():
        table[name] = how(table[name]) if how is not None else None
    pq.write_table(
        pa.table({name: column for name, column in table.items() if column is not None}), path
    )
    unseal(folder / "result.json")


def last(value):
    return lambda column: np.append(column[:-1], value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"sequence": last(99)}, "column sequence: names no job"),
        ({"job_id": last(999)}, "column job_id: is not the job"),
        ({"end": last(0)}, "column end: lies before begin"),
        ({"procs": last(0)}, "column procs: is less than 1"),
        ({"kept": lambda column: column.astype(int) + 3}, "column kept: '4' is none of"),
        ({"host": None}, "no column host"),
    ],
)
def test_damaged_pieces_are_refused_with_their_place(tmp_path, changes, says):
    write_result(tmp_path / "out", {}, [in_pieces(3)])
    change(tmp_path / "out", **changes)
    with pytest.raises(InputError, match=says):
        read_result(tmp_path / "out")


def test_pieces_and_rows_that_do_not_belong_together_are_refused(tmp_path):
    write_result(tmp_path / "out", {}, [in_pieces(3)])
    change(
        tmp_path / "out",
        **dict.fromkeys(
            ("job_id", "sequence", "begin", "end", "procs", "host", "kept"), lambda c: c[:-1]
        ),
    )
    with pytest.raises(InputError, match="do not belong together"):
        read_result(tmp_path / "out")
    os.unlink(tmp_path / "out" / "pieces-hand.parquet")
    with pytest.raises(InputError, match="cannot be read"):
        read_result(tmp_path / "out")
    document = unseal(tmp_path / "out" / "result.json")
    for wrong, says in (({"hand": "../x"}, "outside"), ([1], "should name the files")):
        (tmp_path / "out" / "result.json").write_text(json.dumps(document | {"pieces": wrong}))
        with pytest.raises(InputError, match=says):
            read_result(tmp_path / "out")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_bare_rows_show_the_wait_and_the_number_of_pieces_and_say_what_they_lack(tmp_path, suffix):
    schedule = in_pieces(4)
    with open(tmp_path / f"rows{suffix}", "wb") as out:
        write_job_rows(out, [schedule], suffix)
    bare = read_job_rows(tmp_path / f"rows{suffix}")[0]
    assert bare.piece_count.tolist() == schedule.piece_count.tolist()
    assert job_times(bare).wait.tolist() == job_times(schedule).wait.tolist()
    assert bare.pieces is None
    count = len(set(schedule.pieces[:, 0].tolist()))
    assert int(bare.lacks_pieces.sum()) == count
    assert str(unknown_pieces(bare)).startswith(f"{count} jobs under hand had execution intervals")
    assert unknown_pieces(schedule) is None
    direct, measured = (
        measure(schedule),
        measure(changed(bare, procs_total=schedule.workload.procs_total)),
    )
    assert [name for name in direct if direct[name] != measured[name]] == [
        "utilisation_submit",
        "queue_max",
    ]
    assert len(bare.queue_spans().job) == len(bare)
