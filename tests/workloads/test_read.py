"""What is read from a log, from every kind of file, whatever its looks."""

import gzip
import hashlib
import io
import lzma
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.workloads import FIELDS, log_hash, machine_procs, read_bytes_chunks, read_log
from qbatch.workloads import swf as swf_module
from qbatch.workloads.kernels import swf_parse

from .samples import HEADER, row, same, written


def test_the_eighteen_fields_in_order(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, " ".join(str(n) for n in range(18)) + "\n"))
    assert len(FIELDS) == 18
    assert [log[name].tolist() for name in FIELDS] == [[n] for n in range(18)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_compression_is_recognised_by_content(tmp_path: Path, pack: object) -> None:
    stored = pack((HEADER + row(1) + row(2)).encode())  # type: ignore[operator]
    path = written(tmp_path, stored, "no-suffix")
    log = read_log(path)
    assert log["job"].tolist() == [1, 2]
    assert log.sha256 == log_hash(path) == hashlib.sha256(stored).hexdigest()


def test_a_gzip_of_several_members_with_padding(tmp_path: Path) -> None:
    stored = gzip.compress(row(1).encode()) + gzip.compress(row(2).encode()) + b"\0" * 10
    log = read_log(written(tmp_path, stored))
    assert log["job"].tolist() == [1, 2]
    assert log.sha256 == hashlib.sha256(stored).hexdigest()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, pack: object) -> None:
    stored = pack(row(7).encode())  # type: ignore[operator]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(stored)))
    log = read_log("-")
    assert (log.name, log["job"].tolist()) == ("-", [7])
    assert log.sha256 == hashlib.sha256(stored).hexdigest()
    assert log_hash("-") is None


def test_bytes_come_in_pieces(tmp_path: Path) -> None:
    path = written(tmp_path, b"abcdefg")
    assert list(read_bytes_chunks(path, 3)) == [b"abc", b"def", b"g"]


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + row(1) + row(2),
        (row(1) + row(2)).replace("\n", "\r\n"),
        (row(1) + row(2)).replace(" ", "\t \t"),
        "   " + row(1) + "\n\n \t\n" + "  " + row(2),
        (row(1) + row(2)).rstrip("\n"),
        row(1).replace(" ", " " * 100_000, 1) + row(2),
        ("+" + row(1) + row(2)).replace("100", "00100.000"),
    ],
)
def test_looks_do_not_matter(tmp_path: Path, content: str) -> None:
    log = read_log(written(tmp_path, content))
    assert log["job"].tolist() == [1, 2]
    assert log["time_requested"].tolist() == [100, 100]
    assert log.notes == []


def test_comments_anywhere_are_kept(tmp_path: Path) -> None:
    content = f"; one\n{row(1)};two  \r\n  ; MaxProcs: 9\n{row(2)}\n;\n# last"
    log = read_log(written(tmp_path, content))
    assert log.header.lines == ("; one", ";two  ", "  ; MaxProcs: 9", ";", "# last")
    assert machine_procs(log.header) == 9
    assert log.line.tolist() == [2, 5]


def test_columns_are_as_small_as_is_exact(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, row(1, 2**31 - 1, 0.5) + row(2, 2**31, 1)))
    assert log["job"].dtype == np.int32
    assert log["submit"].dtype == np.int64
    assert log["run"].dtype == np.float64
    assert log["wait"].strides == (0,)
    assert log["wait"].tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("token", "value"),
    [
        ("9007199254740992", 2**53),
        ("-9007199254740992", -(2**53)),
        ("999999999999999", 999999999999999),
        ("142.00", 142),
        ("0.1", 0.1),
        ("123456789.123456", 123456789.123456),
        ("0.30000000000000004", 0.30000000000000004),
        ("1e3", 1000),
        ("1.5E-2", 0.015),
        (".5", 0.5),
        ("5.", 5),
        ("-0", 0),
        ("-2.5", -2.5),
        ("00000000000000000000000012", 12),
        ("0." + "1" * 200, float("0." + "1" * 200)),
    ],
)
def test_numbers_are_exact(tmp_path: Path, token: str, value: float) -> None:
    log = read_log(written(tmp_path, row(1).replace(" 100 ", f" {token} ")))
    assert log["time_requested"].tolist() == [value]


@given(st.lists(st.decimals(-(10**9), 10**9, places=6), min_size=1, max_size=50))
def test_decimals_are_correctly_rounded(
    tmp_path_factory: pytest.TempPathFactory, values: list[object]
) -> None:
    content = "".join(
        row(n, submit=0).replace(" 100 ", f" {value:f} ") for n, value in enumerate(values)
    )
    log = read_log(written(tmp_path_factory.mktemp("decimals"), content))
    assert log["time_requested"].tolist() == [float(str(value)) for value in values]


def test_rows_are_ordered_by_submit_job_line(tmp_path: Path) -> None:
    content = row(3, 10) + row(2, 10) + row(1, 5) + row(9, 20) + row(2, 10, run=11)
    log = read_log(written(tmp_path, content))
    assert log["job"].tolist() == [1, 2, 2, 3, 9]
    assert log.line.tolist() == [3, 2, 5, 1, 4]
    assert log["run"].tolist() == [10, 10, 11, 10, 10]
    assert log.notes == ["2 rows were out of order of submission; sorted"]


def test_ties_out_of_job_order_are_no_note(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, row(2) + row(1)))
    assert log["job"].tolist() == [1, 2]
    assert log.notes == []


def test_odd_values_are_kept(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, row(-5, -100, -7, 10_000_000)))
    assert [log[name].item() for name in ("job", "submit", "run", "procs_requested")] == [
        -5,
        -100,
        -7,
        10_000_000,
    ]


def test_progress_shows_the_stored_bytes(tmp_path: Path) -> None:
    content = "".join(row(n) for n in range(100))
    seen: list[int] = []
    read_log(written(tmp_path, content), progress=seen.append, chunk_bytes=1000)
    assert seen == sorted(seen)
    assert seen[-1] == len(content)


def test_a_log_longer_than_the_blocks_of_the_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = "".join(f";{n}\n" + row(n, n, "1e1" if n % 3 else "x") for n in range(200))  # type: ignore[arg-type]
    path = written(tmp_path, content)
    whole = read_log(path, lenient=True)
    monkeypatch.setattr(swf_module, "_BLOCK_ROWS", 7)
    monkeypatch.setattr(swf_module, "_MARKS", 23)
    assert same(read_log(path, lenient=True), whole)
    assert (len(whole), whole.bad_rows) == (133, 67)


_pieces = st.lists(
    st.sampled_from(
        [
            row(1),
            row(2, 7.25),
            row(3, 3).replace("\n", "\r\n"),
            "; Note: x\n",
            "\n",
            "1 2 3\n",
            row(4, "1e2"),
            "\t",  # type: ignore[arg-type]
            row(5).rstrip("\n"),
            row(6, "nan"),
            "junk\n",
            "5 " * 30 + "\n",
        ]  # type: ignore[arg-type]
    ),
    max_size=15,
)


@settings(max_examples=60)
@given(_pieces, st.integers(1, 300))
def test_any_chunk_size_gives_the_same_log(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], chunk_bytes: int
) -> None:
    path = written(tmp_path_factory.mktemp("chunks"), row(1) + "".join(pieces) + "\n" + row(9))
    whole = read_log(path, lenient=True)
    pieced = read_log(path, lenient=True, chunk_bytes=chunk_bytes)
    assert same(whole, pieced)
    assert (whole.line.tolist(), whole.notes, whole.bad_lines) == (
        pieced.line.tolist(),
        pieced.notes,
        pieced.bad_lines,
    )


@settings(max_examples=100)
@given(
    st.one_of(_pieces.map("".join).map(str.encode), st.binary(max_size=200)), st.integers(-1, 17)
)
def test_the_kernel_says_the_same_uncompiled(content: bytes, word_column: int) -> None:
    data = np.frombuffer(bytearray(content + b"\n"), dtype=np.uint8)
    answers = []
    plain = getattr(swf_parse.parse_rows, "py_func", swf_parse.parse_rows)
    for parse in (plain, swf_parse.parse_rows):
        block = swf_parse.new_row_block(18, 8, 40)
        position, line = 0, 0
        said: list[object] = []
        while position < data.size:
            position, line, rows, marked = parse(data, position, line, word_column, block)
            said += [position, line, block.values[:, :rows].tolist(), block.lines[:rows].tolist()]
            said.append(block.marks[:marked].tolist())
        answers.append(said)
    assert answers[0] == answers[1]
