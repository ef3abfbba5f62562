"""What is written is read back as it was."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from qbatch.workloads import FIELDS, Log, read_log, write_log, write_schedule
from qbatch.workloads.swf_writer import number_text

from .samples import HEADER, comments, public_log, row, rows, same, written


def _bytes(log: Log) -> bytes:
    out = io.BytesIO()
    write_log(out, log.header, log.columns)
    return out.getvalue()


@settings(max_examples=80)
@given(comments, rows)
def test_read_write_read(
    tmp_path_factory: pytest.TempPathFactory, comments: list[str], rows: list[tuple[float, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("round")
    text = "".join(f"{line}\n" for line in comments)
    text += "".join(" ".join(number_text(value) for value in row) + "\n" for row in rows)
    first = read_log(written(folder, text))
    assert first.header.lines == tuple(comments)
    again = read_log(written(folder, _bytes(first), "again.swf"))
    assert same(first, again)
    assert _bytes(again) == _bytes(first)
    if not first.notes and first["job"].tolist() == [row[0] for row in rows]:
        assert _bytes(first).decode() == text


def test_a_canonical_file_comes_back_byte_for_byte(tmp_path: Path) -> None:
    content = (HEADER + "; Queue:  1 DSI   \n" + row(1, 0.25) + row(2, 1)).encode() + b""
    content = content.replace(b"DSI", b"D\xf6I")
    assert _bytes(read_log(written(tmp_path, content))) == content


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        (5.0, "5"),
        (-1.0, "-1"),
        (0.5, "0.5"),
        (1.1234567, "1.123457"),
        (1e-9, "0"),
        (-1e-9, "0"),
        (2.0**53, "9007199254740992"),
    ],
)
def test_numbers_are_written_short(value: float, text: str) -> None:
    assert number_text(value) == text


def test_a_missing_column_says_minus_one_and_a_hash_becomes_a_semicolon(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, "# plain\n0 10 2\n"))
    out = io.BytesIO()
    write_log(out, log.header, {"job": log["job"]})
    assert out.getvalue() == b"; plain\n1" + b" -1" * 17 + b"\n"


def test_a_schedule_keeps_the_log_and_shows_what_it_changed(tmp_path: Path) -> None:
    content = "; Version: 2.2\n; MaxJobs: 3 (of 9)\n; MaxRecords: 2\n; MaxProcs: 8\n"
    content += row(1, 5, procs=2) + row(2, 6) + row(4, 7, procs=3)
    log = read_log(written(tmp_path, content))
    out = io.BytesIO()
    write_schedule(
        out,
        log,
        np.array([0, 2]),
        wait_s=np.array([0.0, 2.5]),
        run_s=np.array([10, 4]),
        status=np.array([1, 0]),
        procs=np.array([2, 3]),
        notes=["schedule simulated by qbatch"],
    )
    written_log = read_log(written(tmp_path, out.getvalue(), "schedule.swf"))
    assert written_log.header.lines == (
        "; Version: 2.2",
        "; MaxJobs: 2",
        "; MaxRecords: 2",
        "; MaxProcs: 8",
        "; Note: MaxJobs was 3 (of 9) in the original log",
        "; Note: schedule simulated by qbatch",
    )
    assert written_log["job"].tolist() == [1, 4]
    assert written_log["wait"].tolist() == [0, 2.5]
    assert written_log["run"].tolist() == [10, 4]
    assert written_log["status"].tolist() == [1, 0]
    kept = set(FIELDS) - {"wait", "run", "status"}
    assert all(written_log[name].tolist() == log[name][[0, 2]].tolist() for name in kept)


def test_a_schedule_of_a_plain_text_log_is_valid_swf(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, "# MaxProcs: 8\n0 10 2\n"))
    out = io.BytesIO()
    one = np.array([1])
    write_schedule(out, log, np.array([0]), wait_s=one, run_s=one, status=one, procs=one)
    lines = out.getvalue().decode().splitlines()
    assert lines[:-1] == ["; MaxProcs: 8", "; Version: 2.2", "; MaxJobs: 1", "; MaxRecords: 1"]
    assert len(lines[-1].split()) == 18


def test_an_empty_schedule_has_a_header_only(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, row()))
    out, none = io.BytesIO(), np.zeros(0, dtype=np.int64)
    write_schedule(out, log, none, wait_s=none, run_s=none, status=none, procs=none)
    assert out.getvalue().splitlines() == [b"; Version: 2.2", b"; MaxJobs: 0", b"; MaxRecords: 0"]


def test_a_real_log_survives(tmp_path: Path) -> None:
    log = read_log(public_log("SDSC-SP2-1998-4.2-cln"))
    assert same(log, read_log(written(tmp_path, _bytes(log))))
