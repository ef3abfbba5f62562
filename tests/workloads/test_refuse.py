"""A log that cannot be used is refused in one line: which log, where, why, and the way out."""

import gzip
import io
import lzma
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.model.errors import InputError
from qbatch.workloads import findings, log_hash, read_log
from qbatch.workloads import swf as swf_module

from .samples import HEADER, refused, row, written

GOOD = (HEADER + "".join(row(n, n) for n in range(500))).encode()


def test_no_such_file_names_the_nearest(tmp_path: Path) -> None:
    written(tmp_path, GOOD, "kth.swf.gz")
    path = str(tmp_path / "kth.swf")
    assert "no such file; did you mean 'kth.swf.gz'?" in refused(path)
    assert "no such file; check the path" in refused(str(tmp_path / "nowhere" / "x"))
    with pytest.raises(InputError, match="no such file"):
        log_hash(path)


def test_a_directory(tmp_path: Path) -> None:
    assert "is a directory" in refused(str(tmp_path))


def test_no_permission(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    path = written(tmp_path, GOOD)
    os.chmod(path, 0)
    assert "no permission" in refused(path)


def test_an_impossible_path() -> None:
    for path in ("x" * 5000, "nul\0byte"):
        with pytest.raises(InputError, match="cannot be read"):
            read_log(path)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("kept", [8, 100, -1])
def test_truncated_compression(tmp_path: Path, pack: object, kept: int) -> None:
    stored = pack(GOOD)[:kept]  # type: ignore[operator]
    assert "the compressed data end too early" in refused(written(tmp_path, stored))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_corrupt_compression(tmp_path: Path, pack: object) -> None:
    stored = bytearray(pack(GOOD))  # type: ignore[operator]
    for place in range(len(stored) // 2, len(stored) // 2 + 20):
        stored[place] ^= 0xFF
    message = refused(written(tmp_path, bytes(stored)))
    assert "corrupt" in message or "end too early" in message


def test_junk_behind_the_compressed_data(tmp_path: Path) -> None:
    assert "corrupt" in refused(written(tmp_path, gzip.compress(GOOD) + b"junk"))


def test_other_compressions_are_named(tmp_path: Path) -> None:
    assert "is a zip file; unpack it first" in refused(written(tmp_path, b"PK\x03\x04rest"))
    assert "is a bzip2 file" in refused(written(tmp_path, b"BZh91AY"))


@pytest.mark.parametrize("stored", [b"", gzip.compress(b"", mtime=0), b"\n\n", b"\xef\xbb\xbf"])
def test_an_empty_log(tmp_path: Path, stored: bytes) -> None:
    message = refused(written(tmp_path, stored))
    assert "the file is empty" in message or "no job in it" in message


def test_empty_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO()))
    assert "the file is empty" in refused("-")


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert "is closed; pipe a log into it" in refused("-")


def test_comments_only(tmp_path: Path) -> None:
    assert "no job in it (2 lines, 2 of them comments)" in refused(written(tmp_path, HEADER))


def test_binary_junk(tmp_path: Path) -> None:
    path = written(tmp_path, b"\x7fELF\x02\x01\x00\x00\x00 \x9c\n" + bytes(range(256)))
    assert "line 1: binary data" in refused(path)
    assert "no job in it" in refused(path, lenient=True)


def test_prose(tmp_path: Path) -> None:
    message = refused(written(tmp_path, "this is no log\n"))
    assert "line 1: 4 fields where SWF has 18; use --lenient" in message


@pytest.mark.parametrize("fields", [1, 2, 17, 19, 40])
def test_a_wrong_number_of_fields(tmp_path: Path, fields: int) -> None:
    wrong = " ".join(["1"] * fields) + "\n"
    message = refused(written(tmp_path, HEADER + row(1) + wrong + row(2)))
    assert (
        f"line 4: {fields} field{'s' if fields > 1 else ''} where SWF has 18; use --lenient"
        in message
    )


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("nan", "'nan', which is not a number"),
        ("inf", "'inf', which is not a number"),
        ("-Infinity", "not a number"),
        ("1_000", "not a number"),
        ("0x10", "not a number"),
        ("12abc", "not a number"),
        ("--5", "not a number"),
        ("-", "not a number"),
        (".", "not a number"),
        ("1.2.3", "not a number"),
        ("1e", "not a number"),
        ("1\u0662", "not a number"),
        ("\0", "not a number"),
        ("x" * 1000, "..."),
        ("9007199254740993", "beyond what a log can hold"),
        ("9007199254740992.5", "beyond what a log can hold"),
        ("9" * 400, "beyond what a log can hold"),
        ("1e400", "beyond what a log can hold"),
        ("-1e16", "beyond what a log can hold"),
    ],
)
def test_a_token_that_is_no_number(tmp_path: Path, token: str, reason: str) -> None:
    path = written(tmp_path, row(1) + row(2).replace(" 100 ", f" {token} "))
    message = refused(path)
    assert "line 2: field 9 (time_requested) is " in message
    assert reason in message
    assert message.endswith("; use --lenient to skip such rows")
    assert len(message) < 300 + len(path)


def test_lenient_skips_counts_and_says_where(tmp_path: Path) -> None:
    content = HEADER + row(1) + "1 2 3\n" + row(2, "nan") + row(3) + "x\n" * 6  # type: ignore[arg-type]
    log = read_log(written(tmp_path, content), lenient=True)
    assert log["job"].tolist() == [1, 3]
    assert (log.bad_rows, log.bad_lines) == (8, (4, 5, 7, 8, 9, 10, 11, 12))
    assert log.notes == ["8 unreadable rows were skipped (lines 4, 5, 7, 8, 9, ...)"]


def test_a_bad_first_row_does_not_hide_the_format(tmp_path: Path) -> None:
    path = written(tmp_path, "1 2 3 4\n" + row(1))
    assert "line 1: 4 fields where SWF has 18" in refused(path)
    assert read_log(path, lenient=True)["job"].tolist() == [1]


def test_an_endless_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swf_module, "LINE_BYTES_MAX", 10_000)
    assert "a line of more than" in refused(written(tmp_path, b"1 " * 20_000), chunk_bytes=1000)


@settings(max_examples=150)
@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_make_anything_but_a_log_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, lenient: bool
) -> None:
    path = written(tmp_path_factory.mktemp("junk"), content)
    try:
        assert len(read_log(path, lenient=lenient)) > 0
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("1,0,10,60,4\n2,0,10,60,4\n", "1 field where SWF has 18: '1,0,10,60,4'"),
        ("1e0 2 3 4 5 6 7\n", "7 fields where SWF has 18: '1e0 2 3 4 5 6 7'"),
        (f"{'1 ' * 10}x{' 1' * 7}\n", "field 11 (status) is 'x', which is not a number: '1 1 1"),
    ],
)
def test_a_log_of_which_no_row_can_be_read_says_why(tmp_path: Path, rows: str, reason: str) -> None:
    message = refused(written(tmp_path, f"; a comment\n{rows}"), lenient=True)
    assert f"the first on line 2: {reason}" in message
    assert "18 numbers (SWF) or 3 to 5 columns, separated by blanks" in message


def test_validate_names_the_first_reason(tmp_path: Path) -> None:
    good = " ".join(["1"] * 18)
    log = read_log(written(tmp_path, f"{good}\n1 2\n{good}\n"), lenient=True)
    found = next(each for each in findings(log) if each.code == "bad_row")
    assert "the first: 2 fields where SWF has 18" in found.text
