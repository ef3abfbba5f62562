"""Each map that comes with qbatch, on a table of a dozen rows made by hand from the documented
columns of its data."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from qbatch.workloads import read_log
from qbatch.workloads.accounting.record import ImportCounts
from qbatch.workloads.resource_rows import read_resources
from qbatch.workloads.tables.importing import TableLog, TableOptions, import_tables
from qbatch.workloads.tables.reading import open_table
from qbatch.workloads.tables.table_map import SHIPPED, read_map

DATA = Path(__file__).parent / "data"
FILES = {path.stem: path for path in DATA.iterdir()}

# Fields 2 to 5, 8, 9 and 11 of the first and of the last job: submit, wait, run, processors had and
# asked for, limit, status.  Then the nodes, processors, bytes and GPUs of the first in the side file.
EXPECTED: dict[str, tuple[int, int, list[str], list[int], list[int], str]] = {
    "alcf": (
        12,
        12,
        [],
        [0, 3600, 3600, 640, 640, 7200, 1],
        [1140, 30, 120, 64, 64, 3600, 1],
        "10,64,0,0",
    ),
    "eagle": (
        10,
        9,
        ["ends before it starts", "without processors"],
        [0, 60, 3600, 36, 36, 3600, 1],
        [57, 100, 600, 360, 360, 864000, 1],
        f"1,36,{90 * 2**30},0",
    ),
    "fdata": (
        11,
        11,
        ["without a start"],
        [0, 600, 3600, 48, 48, 7200, 1],
        [600, 480, 600, 48, 48, 3600, 1],
        f"1,48,{28 * 2**30},0",
    ),
    "helios": (
        11,
        10,
        ["without processors"],
        [0, 10, 3600, 64, 64, -1, 1],
        [600, 1, 600, 8, 8, -1, 1],
        "1,64,0,8",
    ),
    "kestrel": (
        11,
        11,
        ["without a start"],
        [0, 60, 3600, 104, 104, 3600, -1],
        [300, 3600, 86400, 832, 832, 864000, -1],
        f"1,104,{246064 * 2**20},0",
    ),
    "mustang": (
        11,
        10,
        ["without processors"],
        [0, 2, 1244, 24, 24, 57600, 1],
        [1412206, 2400, 3600, 240, 240, 36000, 1],
        "1,24,0,0",
    ),
    "pai2020": (
        9,
        9,
        ["without a time of submission", "without processors"],
        [0, 0, 200, 6, 6, -1, 1],
        [80, 0, 100, 6, 6, -1, 1],
        f"1,6,{29 * 2**30},2",
    ),
    "philly": (
        9,
        8,
        ["without a time of submission", "without an end or a run time", "without processors"],
        [0, 1330, 600, 1, 1, -1, 0],
        [790, 30, 7200, 1, 1, -1, 1],
        "1,1,0,1",
    ),
    "pm100": (
        10,
        9,
        ["without a time of submission"],
        [0, 10, 30, 4, 4, 86400, 0],
        [1020, 30, 600, 4, 4, -1, 0],
        f"1,4,{8 * 2**30},1",
    ),
}
SHOWN = ("submit", "wait", "run", "procs_allocated", "procs_requested", "time_requested", "status")


def imported(path: Path, name: str) -> TableLog:
    table_map, counts = read_map(name), ImportCounts()
    return import_tables(
        [open_table(str(path), table_map, counts)], table_map, TableOptions(), counts
    )


def written(made: TableLog) -> tuple[bytes, bytes]:
    log, side = io.BytesIO(), io.BytesIO()
    made.write(log, side)
    return log.getvalue(), side.getvalue()


def test_every_map_has_a_table() -> None:
    assert sorted(FILES) == sorted(SHIPPED) == sorted(EXPECTED)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_map_reads_its_table(name: str, tmp_path: Path) -> None:
    jobs, ran, unusable, first, last, side_line = EXPECTED[name]
    made = imported(FILES[name], name)
    log, side = written(made)
    assert made.document["records"] == 12
    assert (made.document["jobs"]["written"], made.document["jobs"]["ran"]) == (jobs, ran)
    assert sorted(each["reason"] for each in made.document["unusable"]) == unusable
    (tmp_path / "log.swf").write_bytes(log)
    (tmp_path / "side.csv").write_bytes(side)
    read = read_log(str(tmp_path / "log.swf"))
    assert [int(read[field][0]) for field in SHOWN] == first
    assert [int(read[field][-1]) for field in SHOWN] == last
    assert read.header.max_procs == made.document["machine"]["procs"]
    lines = side.decode().splitlines()
    assert lines[1].startswith(f"1,{side_line},")
    rows = read_resources(str(tmp_path / "side.csv"), read)
    assert int((rows.of >= 0).sum()) == len(lines) - 1


@pytest.mark.parametrize("name", ["fdata", "kestrel", "pm100"])
def test_parquet_gives_the_log_of_the_same_table_in_csv(name: str, tmp_path: Path) -> None:
    pyarrow_csv = pytest.importorskip("pyarrow.csv")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow_csv.read_csv(FILES[name])
    assert "timestamp" in str(table.schema)
    path = tmp_path / f"{name}.parquet"
    parquet.write_table(table, path, row_group_size=5)
    assert written(imported(path, name)) == written(imported(FILES[name], name))


def test_eagle_counts_its_dates_like_its_milliseconds(tmp_path: Path) -> None:
    import json

    records: list[dict[str, Any]] = [
        json.loads(line) for line in FILES["eagle"].read_text(encoding="utf-8").splitlines()
    ]
    from datetime import UTC, datetime

    for record in records:
        for key in ("submit_time", "start_time", "end_time"):
            if record[key] is not None:
                record[key] = datetime.fromtimestamp(record[key] / 1000, UTC).isoformat()
    path = tmp_path / "eagle.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    assert written(imported(path, "eagle")) == written(imported(FILES["eagle"], "eagle"))


def test_a_table_of_tasks_has_its_jobs_submission_where_it_is_joined(tmp_path: Path) -> None:
    path = tmp_path / "joined.csv"
    path.write_text(
        "job_name,job_start_time,user,inst_num,status,start_time,end_time,plan_cpu\n"
        "j1,50,ann,1,Terminated,100,200,600\n",
        encoding="utf-8",
    )
    log, _ = written(imported(path, "pai2020"))
    assert log.splitlines()[-1].startswith(b"1 0 50 100 6 ")
