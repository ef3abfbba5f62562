"""A small map, tables for it, and their import."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from qbatch.workloads.accounting.record import ImportCounts
from qbatch.workloads.tables.importing import TableLog, TableOptions, import_tables
from qbatch.workloads.tables.reading import Table, open_table, table_of_frame
from qbatch.workloads.tables.table_map import TableMap, read_map

COLUMNS = {
    "job": "id",
    "submit": "sub",
    "start": "beg",
    "end": "fin",
    "run": {"column": "took", "optional": True},
    "limit": {"column": "lim", "unit": "min", "optional": True},
    "procs": "cores",
    "nodes": {"column": "hosts", "optional": True},
    "memory": {"column": "mem", "unit": "GB", "optional": True},
    "gpus": {"column": "gpu", "optional": True},
    "user": {"column": "person", "optional": True},
    "state": {"column": "st", "optional": True},
    "partition": {"column": "part", "optional": True},
}
STATES = {"ok": "completed", "bad": "failed", "stop": "cancelled", "now": "unfinished"}


def small_map(**changes: Any) -> TableMap:
    return read_map({"columns": COLUMNS, "state": STATES, **changes})


def imported(
    given: Path | dict[str, Any], table_map: TableMap | None = None, **options: Any
) -> TableLog:
    chosen, counts = table_map or small_map(), ImportCounts()
    table: Table = (
        table_of_frame(given, "frame")
        if isinstance(given, dict)
        else open_table(str(given), chosen, counts)
    )
    return import_tables([table], chosen, TableOptions(**options), counts)


def rows_of(made: TableLog) -> list[list[int]]:
    """Return the rows of the log, fields 1 to 18."""
    log = io.BytesIO()
    made.write(log, None)
    lines = log.getvalue().decode().splitlines()
    return [[int(cell) for cell in line.split()] for line in lines if not line.startswith(";")]


def reasons(made: TableLog, part: str) -> dict[str, tuple[int, str]]:
    """Return by reason how many, and where first."""
    return {each["reason"]: (each["count"], each["first"]) for each in made.document[part]}
