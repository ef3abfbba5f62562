"""Accounting files after a crash."""

from __future__ import annotations

from pathlib import Path

from qbatch.daemon.accounting_files import SPARE, AccountingFiles
from qbatch.daemon.core.state import Account


def test_records_of_the_tail_are_written_once_however_long_the_file(tmp_path: Path) -> None:
    files = AccountingFiles(tmp_path)
    files.write([Account(0, "Q", f"{number}.s", "x" * 1000) for number in range(2 * SPARE // 1000)])
    tail = [Account(1_000_000, "Q", f"{number}.t", "y") for number in range(3000)]
    files.write(tail[:2000])
    (before,) = [path.read_bytes() for path in tmp_path.iterdir()]
    files.write_missing(tail)
    (after,) = [path.read_text().splitlines() for path in tmp_path.iterdir()]
    assert after[: before.count(b"\n")] == before.decode().splitlines()
    assert [line.split(";")[2] for line in after[-3000:]] == [record.job for record in tail]
    files.write_missing(tail)
    assert len(after) == sum(path.read_bytes().count(b"\n") for path in tmp_path.iterdir())
