from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.model.errors import InputError, UsageError
from qbatch.model.record import MICROSECONDS
from qbatch.results import job_rows as module
from qbatch.results import table
from qbatch.results.job_rows import COLUMNS, read_job_rows, write_job_rows
from tests.reports.samples import by_hand, check_read_back, random_workload, scheduled, workload

S = MICROSECONDS
SUFFIXES = (".csv", ".parquet")


def written(schedules, path):
    out = io.BytesIO()
    write_job_rows(out, schedules, path.suffix)
    path.write_bytes(out.getvalue())
    return path


def lines(*schedules):
    out = io.BytesIO()
    write_job_rows(out, schedules)
    return out.getvalue().decode("utf-8").splitlines()


def test_the_columns_are_those_that_the_outside_sees():
    begin = "job_id,submit,start,end,procs,estimate,run,wait,slowdown,bounded_slowdown,"
    begin += "kind,promise,user,group,queue,policy"
    assert ",".join(COLUMNS) == begin + ",first_promise,sequence,counted,piece_count,host"
    assert lines() == [",".join(COLUMNS)]


def test_rows_stand_in_order_of_start_and_rejected_jobs_are_left_out():
    work = workload([0, 1 * S, 2 * S, 3 * S], [1] * 4, [9 * S] * 4, [9 * S] * 4)
    rows = lines(by_hand(work, [30 * S, 20 * S, -1, 20 * S]))[1:]
    assert [row.split(",")[0] for row in rows] == ["2", "4", "1"]


def test_a_row_says_what_happened_in_the_log_s_own_seconds():
    work = workload(
        [100 * S, 100 * S], [4, 2], [60 * S, 0], [20 * S + 500_000, 0], user=np.array([7, -1])
    )
    schedule = by_hand(
        work,
        [110 * S, 130 * S + 1],
        kind=[0, 2],
        promise=[110 * S, -1],
        first_promise=[120 * S, -1],
    )
    first, second = lines(schedule)[1:]
    assert (
        first == "1,100,110,130.5,4,60,20.5,10,1.487805,1.487805,in_order,110,7,,,hand,120,0,1,0,"
    )
    assert second == "2,100,130.000001,130.000001,2,0,0,30.000001,,3,backfilled,,,,,hand,,1,1,0,"


def test_bounded_slowdown_is_not_clipped():
    work = workload([0], [1], [2 * S], [2 * S])
    cells = dict(zip(COLUMNS, lines(by_hand(work, [1 * S]))[1].split(","), strict=True))
    assert (cells["slowdown"], cells["bounded_slowdown"]) == ("1.5", "0.3")


def test_a_policy_with_commas_and_quotes_is_one_cell(tmp_path):
    schedule = by_hand(workload([0], [1], [S], [S]), [0], 'easy:a=1,b="x"\ny')
    assert '"easy:a=1,b=""x""' in lines(schedule)[1]
    for suffix in SUFFIXES:
        assert (
            read_job_rows(written([schedule], tmp_path / f"rows{suffix}"))[0].policy
            == schedule.policy
        )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_several_schedules_are_read_back_one_by_one(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ROWS", 7)
    monkeypatch.setattr(table, "_CSV_ROWS", 5)
    work = random_workload(40)
    schedules = [scheduled(work, policy) for policy in ("fcfs", "easy", "conservative")]
    read = read_job_rows(written(schedules, tmp_path / f"rows{suffix}"))
    assert len(read) == 3
    for rows, schedule in zip(read, schedules, strict=True):
        check_read_back(rows, schedule)


TIMES = st.integers(0, 2**32 * S - 1)


@st.composite
def schedules(draw):
    is_whole = draw(st.booleans())
    unit = S if is_whole else 1
    rows = draw(st.integers(0, 8))
    column = st.lists(
        TIMES.map(lambda time: time // 4 // unit * unit), min_size=rows, max_size=rows
    )
    submit, waits, run, more = (np.array(draw(column), np.int64) for _ in range(4))
    ids = st.lists(st.integers(-1, 2**40), min_size=rows, max_size=rows)
    work = workload(
        submit,
        draw(st.lists(st.integers(1, 2**31), min_size=rows, max_size=rows)),
        run + more,
        run,
        number=np.array(
            draw(st.lists(st.integers(0, 2**62), min_size=rows, max_size=rows)), np.int64
        ),
        user=np.array(draw(ids), np.int64),
        group=np.array(draw(ids), np.int64),
        queue=np.array(draw(ids), np.int64),
        counted=np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), bool),
    )
    promise = np.where(waits % 2 == 0, submit + waits, -1)
    kinds = draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows))
    return by_hand(work, submit + waits, "p", promise=promise, first_promise=promise, kind=kinds)


@settings(max_examples=60, deadline=None)
@given(schedule=schedules())
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_back_to_the_microsecond(tmp_path_factory, suffix, schedule):
    path = written([schedule], tmp_path_factory.mktemp("rows") / f"rows{suffix}")
    read = read_job_rows(path)
    assert len(read) == min(len(schedule.start), 1)
    for rows in read:
        check_read_back(rows, schedule)


def test_whole_seconds_are_integers_in_parquet_and_others_floats(tmp_path):
    import pyarrow.parquet as pq

    for run, expected in ((S, "int64"), (S + 1, "double")):
        path = written([by_hand(workload([0], [1], [run], [run]), [0])], tmp_path / "rows.parquet")
        schema = pq.read_schema(path)
        assert schema.names == list(COLUMNS)
        assert str(schema.field("end").type) == expected
        table_read = pq.read_table(path).to_pylist()[0]
        assert (table_read["promise"], table_read["user"], table_read["kind"]) == (
            None,
            None,
            "in_order",
        )


def test_other_columns_and_another_order_are_read(tmp_path):
    path = tmp_path / "others.csv"
    path.write_text(
        "nodes,procs,run,start,submit,job_id\nx,2,1e1,5.25,0,7\n\ny,1,0.5,6,+1,8\n",
        encoding="utf-8-sig",
    )
    (rows,) = read_job_rows(path)
    assert rows.policy == "others"
    assert rows.workload.number.tolist() == [7, 8]
    assert rows.start.tolist() == [5_250_000, 6 * S]
    assert rows.end.tolist() == [15_250_000, 6_500_000]
    assert rows.workload.estimate.tolist() == rows.workload.run.tolist() == [10 * S, 500_000]
    assert rows.workload.user.tolist() == rows.promise.tolist() == rows.kind.tolist() == [-1, -1]
    assert rows.workload.counted.all()


def test_rows_in_any_order_are_put_into_order_of_sequence(tmp_path):
    path = tmp_path / "rows.csv"
    listing = "job_id,submit,start,end,procs,sequence\n5,7,9,9,1,8\n3,2,4,6,1,4\n9,2,3,5,1,3\n"
    path.write_text(listing)
    (read,) = read_job_rows(path)
    assert read.workload.number.tolist() == [9, 3, 5]
    assert read.workload.sequence.tolist() == [3, 4, 8]  # a part of a file keeps what it said
    assert read.in_order_of_start().tolist() == [0, 1, 2]
    assert [line.split(",")[17] for line in lines(read)[1:]] == ["3", "4", "8"]
    # None, not that of the submissions, not of all.
    for sequences in (("", "", ""), ("0", "2", "1"), ("0", "1", "")):
        rows = zip(listing.splitlines(), ("sequence", *sequences), strict=True)
        path.write_text(
            "".join(f"{line.rpartition(',')[0]},{sequence}\n" for line, sequence in rows)
        )
        assert read_job_rows(path)[0].workload.number.tolist() == [3, 9, 5]


HEAD = "job_id,submit,start,end,procs,user,kind\n"
REFUSED = {
    "": "is empty",
    "\n": "line 1: names no columns",
    "job_id,submit\n1,2\n": "no column start, procs, end or run",
    "job_id,job_id\n": "'job_id' twice",
    HEAD + "1,0,0,9,1,,\n2,0,0,9\n": "line 3: has 4 fields, but the header names 7",
    HEAD + "1,0,0,9,1,,\n\n2,0,0,9,1,,,\n": "line 4: has 8 fields",
    HEAD + "1,0,0,9,1,,\n2,0,nan,9,1,,\n": "line 3, column start: 'nan' is not a number",
    HEAD + "1,0,x,9,1,,\n": "line 2, column start: 'x' is not a number",
    HEAD + "1,0,0,9,,,\n": "line 2, column procs: is empty",
    HEAD + "1,0,0,9,0,,\n": "line 2, column procs: is less than 1",
    HEAD + "1,0,0,9,1.5,,\n": "column procs: '1.5' is not a whole number",
    HEAD + "1,-5,0,9,1,,\n": "line 2, column submit: '-5' is negative",
    HEAD + "1,-1,0,9,1,,\n": "line 2, column submit: '-1' is negative",
    HEAD + "1,0,0,9,1,-3,\n": "line 2, column user: '-3' is negative",
    HEAD + "1,0,0,99999999999999999,1,,\n": "column end: '99999999999999999' is too large",
    HEAD + "1,0,0,1e999,1,,\n": "column end: '1e999' is too large",
    HEAD + "1,0,0,1_0,1,,\n": "'1_0' is not a number",
    HEAD + "1,5,4,9,1,,\n": "line 2, column start: lies before submit",
    HEAD + "1,0,4,3,1,,\n": "line 2, column end: lies before start",
    HEAD + "1,0,4,9,1,,backfiled\n": (
        "'backfiled' is none of in_order, immediate, backfilled, rejected; did you mean"
    ),
    HEAD + '"1\n",0,4,9,1,,\n2,0,4,x,1,,\n': "line 4, column end",
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_a_file_that_cannot_be_used_is_refused_with_place_and_reason(tmp_path, text, reason):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_job_rows(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "junk", [b"\x00\xff\xfe" * 50, b"PAR1" + b"\x07" * 60, b"\x89PNG\r\n\x1a\n\x00", b"PAR1", b"\0"]
)
def test_binary_junk_is_refused(tmp_path, junk):
    path = tmp_path / "junk.csv"
    path.write_bytes(junk)
    with pytest.raises(InputError, match="junk"):
        read_job_rows(path)


def test_a_file_that_is_not_there_or_a_directory_is_refused(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_job_rows(path)


PARQUET_REFUSED = {
    "row 2, column start: is empty": {"start": [0, None]},
    "column start: is empty": {"start": [None, None]},
    "row 1, column start: is NaN": {"start": [float("nan"), 1.0]},
    "row 2, column start: is too large": {"start": [1.0, float("inf")]},
    "row 2, column end: is negative": {"end": [1, -7]},
    "column procs: holds string values": {"procs": ["a", "b"]},
    "row 1, column procs: is not a whole number": {"procs": [1.5, 2]},
    "row 2, column user: is negative": {"user": [-1, -2]},
    "column kind: holds list": {"kind": [[1], [2]]},
}


@pytest.mark.parametrize(("reason", "columns"), PARQUET_REFUSED.items())
def test_parquet_is_checked_alike(tmp_path, reason, columns):
    import pyarrow as pa
    import pyarrow.parquet as pq

    good = {"job_id": [1, 2], "submit": [0, 0], "start": [0, 0], "end": [1, 1], "procs": [1, 1]}
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(good), path)
    assert len(read_job_rows(path)[0]) == 2
    pq.write_table(pa.table(good | columns), path)
    with pytest.raises(InputError) as caught:
        read_job_rows(path)
    assert reason in str(caught.value)


def test_floats_of_other_tools_say_absent_by_nan(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "job_id": [1.0],
        "submit": [0.1],
        "start": [0.3],
        "end": [1e6 + 0.000001],
        "procs": [1],
        "queue": [float("nan")],
    }
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    (rows,) = read_job_rows(tmp_path / "rows.parquet")
    assert (rows.workload.submit[0], rows.start[0], rows.end[0], rows.workload.queue[0]) == (
        100_000,
        300_000,
        10**12 + 1,
        -1,
    )


def test_an_unknown_form_is_refused():
    with pytest.raises(UsageError, match=r"\.csv or \.parquet, not as \.json"):
        write_job_rows(io.BytesIO(), [], ".json")


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(
        UsageError, match=r"pip install '\.\[report\]' in the folder of the sources"
    ):
        write_job_rows(io.BytesIO(), [], ".parquet")
