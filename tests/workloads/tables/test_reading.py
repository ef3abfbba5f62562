"""Tables from files and from memory: every form, and hostile ones."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from qbatch.model.errors import InputError, UsageError
from qbatch.workloads.tables import reading
from tests.workloads.tables.samples import imported, reasons, rows_of, small_map

CSV = "id,sub,beg,fin,cores,person\n2,5,10,20,4,ann\n1,5,10,30,2,bob\n7,0,0,5,1,\n"
ROWS = [[1, 0, 0, 5, 1], [2, 5, 5, 20, 2], [3, 5, 5, 10, 4]]


def file(tmp_path: Path, content: bytes | str, name: str = "table") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def heads(path: Path) -> list[list[int]]:
    return [row[:5] for row in rows_of(imported(path))]


def records() -> list[dict[str, Any]]:
    names, *lines = (line.split(",") for line in CSV.splitlines())
    return [dict(zip(names, line, strict=True)) for line in lines]


@pytest.mark.parametrize(
    "content",
    [
        CSV.encode(),
        CSV.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + CSV.encode(),
        CSV.rstrip().encode(),
        CSV.replace("ann", '"a\nn"').encode(),
        gzip.compress(CSV.encode(), mtime=0),
        lzma.compress(CSV.encode()),
        "\n".join(map(json.dumps, records())).encode(),
        json.dumps(records(), indent=2).encode(),
        gzip.compress(json.dumps(records()).encode(), mtime=0),
    ],
    ids=["csv", "crlf", "bom", "no-end", "quoted", "gz", "xz", "lines", "array", "array-gz"],
)
def test_every_form_gives_the_same_log(content: bytes, tmp_path: Path) -> None:
    assert heads(file(tmp_path, content)) == ROWS


def test_an_array_is_read_across_the_ends_of_its_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in (1, 7, 50):
        monkeypatch.setattr(reading, "_READ_BYTES", max(size, 4))
        assert heads(file(tmp_path, json.dumps(records()))) == ROWS


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "the table is empty; name a file with rows"),
        (b" \n\n", "the table is empty"),
        (CSV.splitlines()[0].encode(), "no job that ran can be made of these rows"),
        (CSV.encode("utf-16"), "not a text in UTF-8; convert it first"),
        (gzip.compress(CSV.encode() * 3000, mtime=0)[:-20], "end too early"),
        (gzip.compress(b"x" * 99, mtime=0)[:20] + b"\0" * 30, "compressed"),
        (b"BZh91AY&SY", "is a bzip2 file"),
        (CSV.replace(",bob", ',"bob').encode() + b"x" * 200_000, "is not CSV"),
        (b"PAR1 no parquet", "cannot be read as Parquet"),
        (b"[", "record 1 of the JSON array is missing: the array does not end"),
        (b'[{"a": 1}, 3]', "record 2 of the JSON array is not an object"),
        (b'[{"a": 1}, {"b"', "record 2 of the JSON array cannot be read"),
        (b"[" * 100_000, "of the JSON array"),
        (b"[]", "there are none"),
        (b"{}", "there is no column 'id'"),
        (b"{" * 100, "there is no column 'id'"),
        (CSV.replace("person", "id").encode(), "the column 'id' appears twice"),
        (CSV.replace("cores", "cpus").encode(), "there is no column 'cores'"),
    ],
)
def test_a_hostile_file_is_refused(content: bytes, part: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError) as error:
        imported(file(tmp_path, content))
    assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_lines_that_are_damaged_are_counted(tmp_path: Path) -> None:
    made = imported(file(tmp_path, CSV + "3,4\n4,5,6,7,8,9,10\n\n"))
    path = tmp_path / "table"
    assert reasons(made, "unusable") == {
        "not as many cells as the header has columns": (2, f"{path}:5")
    }
    assert (made.document["lines"], made.document["records"]) == (5, 3)
    text = "\n".join(map(json.dumps, records())) + '\n[1]\n{"id": \n'
    made = imported(file(tmp_path, text))
    assert reasons(made, "unusable") == {"not a record of JSON": (2, f"{path}:4")}


def test_a_name_that_is_not_utf_8_is_kept(tmp_path: Path) -> None:
    made = imported(file(tmp_path, CSV.encode().replace(b"ann", b"\xe9")))
    assert "; Note: user 1 is \udce9" in made.lines


def test_a_file_without_a_header_takes_that_of_the_map(tmp_path: Path) -> None:
    header, rest = CSV.split("\n", 1)
    table_map = small_map(header=header.split(","))
    for content in (rest, CSV):
        made = imported(file(tmp_path, content), table_map)
        assert [row[:5] for row in rows_of(made)] == ROWS


def test_attempts_that_are_no_list_of_attempts_lose_their_job(tmp_path: Path) -> None:
    from qbatch.workloads.tables.table_map import read_map

    good = {
        "jobid": "a_1",
        "submitted_time": "2017-10-07 01:00:00",
        "attempts": [
            {
                "start_time": "2017-10-07 01:00:00",
                "end_time": "2017-10-07 01:00:09",
                "detail": [{"ip": "m1", "gpus": ["gpu0"]}],
            }
        ],
    }
    odd = [{**good, "attempts": value} for value in (3, "x", [3], {"a": 1}, None, [{"detail": 3}])]
    odd += [{**good, "attempts": [{"detail": [{"gpus": 3}]}]}]
    made = imported(file(tmp_path, json.dumps([good, *odd])), read_map("philly"))
    assert made.document["jobs"]["written"] == 1
    assert sum(count for count, _ in reasons(made, "unusable").values()) == len(odd)


def test_parquet_without_pyarrow_and_from_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"Parquet needs pyarrow: pip install '\.\[report\]'"):
        imported(file(tmp_path, b"PAR1"))
    with pytest.raises(UsageError, match="Parquet cannot be read from a pipe"):
        reading._parquet("-", "standard input", None)


@pytest.mark.parametrize(
    ("frame", "part"),
    [
        ({"id": [1], "sub": [1, 2]}, "2 different lengths"),
        ({"id": 3}, "is no table"),
        ({"id": [[1, 2], [3, 4]]}, "there is no column"),
    ],
)
def test_a_frame_that_is_no_table_is_refused(frame: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError, match=part):
        imported(frame)
