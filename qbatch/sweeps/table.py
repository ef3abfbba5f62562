"""The table of a sweep, one row per run, one column per axis or metric, in one Parquet file; and
the record next to it.

The order is that of the grid, and nothing in it depends on when or where a run was made: the same
sweep gives the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from qbatch.distribution import __version__, install_command
from qbatch.metrics import METRICS
from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.results.checksums import check_document, check_file, file_checksum, sealed
from qbatch.results.output import whole_file
from qbatch.sweeps.grid import AXES
from qbatch.sweeps.plan import SweepPlan
from qbatch.sweeps.store import RunStore
from qbatch.trust import check_not_open

SCHEMA = "qbatch.sweep/1"
DOCUMENT, TABLE = "sweep.json", "runs.parquet"
DONE, FAILED, MISSING = "done", "failed", "missing"
"""The state of a run; missing: the sweep was interrupted before it."""

_PART = 2_000
_ROW_GROUP = 50_000
_LISTED_FAILURES = 100
_COUNTS = ("jobs", "slowdown_skipped", "queue_max", "parents", "rejected_count")


def check_parquet() -> None:
    """Refuse to start if the library that writes the table is missing.

    Raises:
        UsageError: it is not installed.
    """
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise UsageError(f"a sweep needs pyarrow: {install_command('report')}")


def is_sweep(path: str | Path) -> bool:
    """Whether a path is the directory of a sweep."""
    return (Path(path) / DOCUMENT).is_file()


def _schema(inputs: str) -> Any:
    import pyarrow as pa

    axes = [
        (axis, {"load": pa.float64(), "seed": pa.int64()}.get(axis, pa.string())) for axis in AXES
    ]
    fields = [
        pa.field(name, kind)
        for name, kind in [*axes, ("status", pa.string()), ("error", pa.string())]
    ]
    fields += [
        pa.field(
            metric.name,
            pa.int64() if metric.name in _COUNTS else pa.float64(),
            metadata={"unit": metric.unit, "formula": metric.formula, "meaning": metric.meaning},
        )
        for metric in METRICS
    ]
    return pa.schema(fields, metadata={"schema": SCHEMA, "version": __version__, "inputs": inputs})


class Written(NamedTuple):
    """A summary of a table: the first failed runs as records, the numbers of failed and missing
    runs, and its checksum.

    Before a table is written, it is empty and has no checksum.
    """

    failures: list[dict[str, Any]]
    failed: int
    missing: int
    checksum: str | None = None


def write_table(plan: SweepPlan, store: RunStore, folder: Path) -> Written:
    """Write the runs of a plan, completely or not at all.

    Raises:
        OutputError: it cannot be written; an earlier table stays.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    failures: list[dict[str, Any]] = []
    failed = missing = 0
    schema = _schema(plan.inputs)
    with (
        whole_file(folder / TABLE) as file,
        pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        waiting: list[Any] = []
        for part in _parts(plan, store):
            found = [
                {name: row[name] for name in (*AXES, "error")}
                for row in part
                if row["status"] == FAILED
            ]
            failures += found[: _LISTED_FAILURES - len(failures)]
            failed += len(found)
            missing += sum(row["status"] == MISSING for row in part)
            columns = {name: [row.get(name) for row in part] for name in schema.names}
            waiting.append(pa.RecordBatch.from_pydict(columns, schema=schema))
            if sum(map(len, waiting)) >= _ROW_GROUP:
                writer.write_table(pa.Table.from_batches(waiting, schema))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, schema))
    return Written(failures, failed, missing, file_checksum(folder / TABLE))


def _parts(plan: SweepPlan, store: RunStore) -> Iterator[list[dict[str, Any]]]:
    cases = plan.cases()
    while part := list(islice(cases, _PART)):
        keys = [plan.key_of(case) for case in part]
        found = store.find(keys)
        rows = []
        for case, key in zip(part, keys, strict=True):
            run = found.get(key)
            status = MISSING if run is None else DONE if run.error is None else FAILED
            values = {} if run is None or run.value is None else run.value
            rows.append(
                {
                    **plan.row(case),
                    "status": status,
                    "error": None if run is None else run.error,
                    **values,
                }
            )
        yield rows


def write_document(folder: Path, document: dict[str, Any], checksum: str | None) -> None:
    """Write the record of a sweep, completely or not at all, with its own checksum and that of its
    table, if there is one."""
    document = sealed(document, DOCUMENT, {} if checksum is None else {TABLE: checksum})
    with whole_file(folder / DOCUMENT) as file:
        file.write(
            json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).encode(
                errors="backslashreplace"
            )
            + b"\n"
        )


def read_document(folder: Path) -> dict[str, Any]:
    """Return the record of a sweep.

    Raises:
        InputError: there is none, or it is damaged.
    """
    path = folder / DOCUMENT
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(
            f"{folder}: is not a sweep ({DOCUMENT}: {error.strerror or error})"
        ) from error
    except ValueError as error:
        raise InputError(
            f"{path}: is damaged ({error}); run the sweep again, its runs are kept"
        ) from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(f"{path}: is not the record of a sweep of this version ({SCHEMA})")
    for each in (folder, path):
        check_not_open(each)
    check_document(document, path)
    grid = document.get("grid")
    if not isinstance(grid, dict) or not all(isinstance(grid.get(axis), list) for axis in AXES):
        raise InputError(
            f"{path}: grid: should name the values of each axis; run the sweep again, its runs are "
            "kept"
        )
    return document


@dataclass(frozen=True, slots=True)
class SweepTable:
    """A sweep as read: its record, and the folder of its table."""

    folder: Path
    document: dict[str, Any]

    @property
    def varying(self) -> tuple[str, ...]:
        """The axes that have several values."""
        return tuple(axis for axis in AXES if len(self.document["grid"][axis]) > 1)

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """Return the table, or some columns of it, as an Arrow table; texts are dictionaries.

        Raises:
            InputError: it is missing or damaged.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.folder / TABLE
        texts = [*(axis for axis in AXES if axis not in ("load", "seed")), "status"]
        try:
            with pq.ParquetFile(
                path, memory_map=True, read_dictionary=texts, page_checksum_verification=True
            ) as file:
                inputs = (file.schema_arrow.metadata or {}).get(b"inputs")
                if (None if inputs is None else inputs.decode()) != self.document.get("inputs"):
                    raise InputError(
                        f"{path}: does not belong to {DOCUMENT} (interrupted in between); run the "
                        "sweep again"
                    )
                check_not_open(path)
                check_file(self.document, path, DOCUMENT)
                lacking = [name for name in columns or () if name not in file.schema_arrow.names]
                if lacking:
                    raise InputError(f"{path}: has no column {lacking[0]}; run the sweep again")
                return file.read(None if columns is None else list(columns)).unify_dictionaries()
        except (OSError, KeyError, UnicodeDecodeError, pa.ArrowException) as error:
            raise InputError(
                f"{path}: cannot be read ({' '.join(str(error).split())}); run the sweep again"
            ) from error


def has_table(folder: Path, document: dict[str, Any]) -> bool:
    """Whether the table of a folder is complete and belongs to the record."""
    try:
        SweepTable(folder, document).read(["status"])
    except InputError:
        return False
    return True


def metric_named(name: str) -> str:
    """Return the full name of a metric, which may lack its unit: ``wait_mean`` is ``wait_mean_s``.

    Raises:
        UsageError: there is none.
    """
    known = [metric.name for metric in METRICS]
    for each in (name, f"{name}_s"):
        if each in known:
            return each
    raise UsageError(
        f"there is no metric {name!r}{suggestion(name, known)}; qbatch metrics lists them"
    )


def read_sweep(path: str | os.PathLike[str]) -> SweepTable:
    """Read a sweep's directory.

    Raises:
        InputError: it is not a sweep, or damaged.
    """
    check_parquet()
    folder = Path(path)
    return SweepTable(folder, read_document(folder))
