"""Bits that flip on a disk: a command shows what it showed before, or refuses the file by name with
exit code 3."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from qbatch.cli.main import run
from qbatch.model.errors import InputError
from qbatch.model.record import Schedule
from qbatch.results.job_rows import read_job_rows, write_job_rows
from qbatch.results.reading import read_result
from qbatch.results.result import Result, write_result
from tests.reports.samples import in_pieces, random_workload, scheduled, unseal

pytest.importorskip("pyarrow")


def flipped(source: Path, target: Path, draw: random.Random) -> None:
    """Copy a file with one bit of it flipped."""
    content = bytearray(source.read_bytes())
    bit = draw.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    target.write_bytes(content)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damage") / "result"
    pieces = in_pieces(30)
    write_result(
        folder, {"seed": 3, "command": ["qbatch", "replay"]}, [pieces, scheduled(pieces.workload)]
    )
    assert len(list(folder.iterdir())) == 4
    return folder


def _facts(result: Result) -> object:
    document = {key: value for key, value in result.document.items() if key != "checksums"}
    return document, [_columns(schedule) for schedule in result.schedules]


def _columns(schedule: Schedule) -> list[object]:
    work = schedule.workload
    columns = [
        work.number,
        work.submit,
        work.procs,
        work.estimate,
        work.run,
        schedule.start,
        schedule.end,
        schedule.promise,
    ]
    pieces = None if schedule.pieces is None else schedule.pieces.tolist()
    return [
        schedule.policy,
        work.name,
        work.procs_total,
        work.clock,
        pieces,
        *(column.tolist() for column in columns),
    ]


@pytest.mark.parametrize(
    "name", ["result.json", "jobs-hand.parquet", "jobs-easy.parquet", "pieces-hand.parquet"]
)
def test_no_flipped_bit_of_a_result_is_shown(tmp_path: Path, whole: Path, name: str) -> None:
    before = _facts(read_result(whole))
    folder = tmp_path / "result"
    shutil.copytree(whole, folder)
    draw = random.Random(name)
    refused = []
    for _ in range(150):
        flipped(whole / name, folder / name, draw)
        try:
            # A document with a damaged key "checksums" has none.
            assert (
                _facts(read_result(folder)) == before
                or "checksums" not in read_result(folder).document
            )
        except InputError as error:
            refused.append(str(error))
    assert len(refused) >= (120 if name == "result.json" else 150)
    assert all(str(folder / name) in said and "\n" not in said for said in refused)


READING: dict[str, Callable[[Path], list[str]]] = {
    "plot": lambda folder: [
        "plot",
        str(folder),
        "--kind",
        "gantt",
        "-o",
        str(folder.parent / "gantt.svg"),
    ],
    "report": lambda folder: ["report", str(folder), "-o", str(folder.parent / "report.html")],
    "compare": lambda folder: ["compare", f"{folder}:easy", f"{folder}:hand"],
    "metrics": lambda folder: ["metrics", str(folder)],
    "verify": lambda folder: ["verify", f"{folder}:easy"],
    "verify rows": lambda folder: ["verify", str(folder / "jobs-easy.parquet")],
    "export": lambda folder: [
        "export",
        "swf",
        str(folder),
        "-p",
        "easy",
        "-o",
        str(folder.parent / "easy.swf"),
    ],
}


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize("name", ["result.json", "jobs-easy.parquet"])
def test_each_command_refuses_a_damaged_result(
    tmp_path: Path, whole: Path, capsys: pytest.CaptureFixture[str], command: str, name: str
) -> None:
    folder = tmp_path / "result"
    shutil.copytree(whole, folder)
    arguments = READING[command](folder)
    assert run(arguments) in (0, 1), capsys.readouterr().err
    damaged = folder / name
    content = damaged.read_bytes()
    damaged.write_bytes(
        content.replace(b'"seed": 3', b'"seed": 7')
        if name == "result.json"
        else content[:-9] + content[-8:]
    )
    capsys.readouterr()
    assert run(arguments) == 3
    said = capsys.readouterr()
    assert not said.out
    assert said.err.count("\n") == 1
    assert str(damaged) in said.err
    assert "has changed since it was written" in said.err


def test_a_result_whose_checksums_were_deleted_opens(tmp_path: Path, whole: Path) -> None:
    before = _facts(read_result(whole))
    folder = tmp_path / "result"
    shutil.copytree(whole, folder)
    unseal(folder / "result.json")
    assert _facts(read_result(folder)) == before


def test_a_document_may_be_laid_out_anew(tmp_path: Path, whole: Path) -> None:
    folder = tmp_path / "result"
    shutil.copytree(whole, folder)
    path = folder / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert _facts(read_result(folder)) == _facts(read_result(whole))


def test_a_damaged_result_may_be_replaced(tmp_path: Path, whole: Path) -> None:
    folder = tmp_path / "result"
    shutil.copytree(whole, folder)
    (folder / "result.json").write_bytes(
        (folder / "result.json").read_bytes().replace(b'"seed": 3', b'"seed": 7')
    )
    schedule = scheduled(in_pieces(30).workload)
    write_result(folder, {}, [schedule])
    assert read_result(folder).policies == ("easy",)


def test_bare_job_rows_that_are_damaged_are_refused_and_no_traceback(tmp_path: Path) -> None:
    """They have checksums of their pages only, which notice nearly all; what is left is in the
    description of the columns."""
    path = tmp_path / "rows.parquet"
    with path.open("wb") as out:
        write_job_rows(out, [scheduled(random_workload(100))], ".parquet")
    whole, draw, wrong, refused = path.rename(tmp_path / "whole.parquet"), random.Random(5), 0, []
    before = [_columns(each) for each in read_job_rows(shutil.copy(whole, path))]
    for _ in range(300):
        flipped(whole, path, draw)
        try:
            wrong += [_columns(each) for each in read_job_rows(path)] != before
        except InputError as error:
            refused.append(str(error))
    assert wrong <= 6
    assert len(refused) > 150
    assert all(str(path) in said for said in refused)


@pytest.mark.parametrize("name", ["", "result.json", "jobs-easy.parquet", "pieces-hand.parquet"])
def test_a_result_that_every_user_may_write_is_refused_and_one_of_a_group_is_read(
    tmp_path: Path, whole: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folder = tmp_path / "result"
    shutil.copytree(whole, folder)
    open_one = folder / name
    open_one.chmod(open_one.stat().st_mode | 0o020)
    assert run(["metrics", str(folder)]) == 0
    open_one.chmod(open_one.stat().st_mode | 0o002)
    capsys.readouterr()
    assert run(["metrics", str(folder)]) == 3
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith(f"qbatch: {open_one}: every user may write to it")


def test_what_is_written_under_no_umask_is_read_again(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_result(tmp_path / "result", {}, [in_pieces(30)])
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "result").iterdir()} == {0o664}
    assert read_result(tmp_path / "result").policies == ("hand",)
