"""The side file of what jobs ask for beyond the fields of SWF: nodes, memory and GPUs of each,
features, partitions (docs/spec/production.md 1.2).

It is CSV with a header.  ``job`` names a job of the log; a job without a row keeps its processors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from qbatch.model.errors import InputError, suggestion
from qbatch.model.job import FREE, SCATTER, SERVER, ChunkRequest, JobRequest
from qbatch.model.machine import parse_memory
from qbatch.model.record import BoolArray, Int64Array
from qbatch.workloads import left_out
from qbatch.workloads.log import ORIGIN, Log
from qbatch.workloads.side_file import read_side_file

COLUMNS = (
    "job",
    "nodes",
    "cpus_per_node",
    "memory_per_node",
    "gpus_per_node",
    "gpu_type",
    "features",
    "partitions",
    "exclusive",
    "server",
    "reservation",
    "hosts",
    "spread",
    "suspended",
)
"""The columns that count; ``job`` and ``nodes`` are required.  The last three say what really
happened, which a policy does not see (``qbatch verify`` does)."""

UNKNOWN = "unknown"
"""The value of ``spread`` of a job that may have had other amounts on each of its hosts than its
line says, with the same sum."""

NOT_COUNTED = ("qos", "account", "eligible", "priority")
"""Columns of the specification that a replay does not use yet."""

_MOST = 2**31 - 1


def side_file_of(log: str) -> str:
    """Return the usual name of the side file of a log: ``month.swf`` has
    ``month.resources.csv``."""
    return f"{log.removesuffix('.gz').removesuffix('.swf')}.resources.csv"


class ResourceRows(NamedTuple):
    """What the jobs of a log ask for: ``requests``, each different, and ``of``, by row of the log
    the index of its request, -1 for a job without a row.  ``not_counted``: how many rows have a
    value in each column that a replay does not use.  ``path``: the side file, as it was named;
    ``sha256``: of its bytes.  ``hosts``: by row of the log, the hosts on which the job really ran,
    as ``n[01-02]``; only for rows that name some.  ``is_spread_unknown``: the rows of which the
    amounts on each host are unknown.  ``suspended``: by row of the log, for how many seconds the
    job was suspended; None if no column says that."""

    requests: tuple[JobRequest, ...]
    of: Int64Array
    not_counted: Mapping[str, int]
    path: str
    sha256: str
    hosts: Mapping[int, str]
    is_spread_unknown: BoolArray
    suspended: Int64Array | None


def kinds_of(rows: ResourceRows) -> dict[str, int]:
    """Return for how many jobs a side file says each kind of what a log leaves out
    (:mod:`qbatch.workloads.left_out`)."""
    counts = np.bincount(rows.of[rows.of >= 0], minlength=len(rows.requests)).tolist()
    return _counted(zip(rows.requests, counts, strict=True))


def kinds_in(path: str) -> dict[str, int]:
    """Return the same for all lines of a side file.

    Raises:
        InputError: names the file, the line and the reason.
    """
    header, rows, _ = read_side_file(path)
    _check_header(path, header)
    return _counted((_request(values, line), 1) for line, values in rows)


def _counted(requests: Iterable[tuple[JobRequest, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for request, count in requests:
        has = {left_out.PARTITIONS} if request.partitions else set()
        has |= {left_out.RESERVATIONS} if request.reservation else set()
        has |= {left_out.EXCLUSIVE} if request.is_exclusive else set()
        for chunk in request.chunks:
            if chunk.host == SERVER:
                has.add(left_out.LICENCES)
                continue
            has |= {left_out.GPUS} if chunk.resources else set()
            has |= {left_out.MEMORY} if chunk.memory else set()
            has |= {left_out.FEATURES} if chunk.features else set()
        found.update(dict.fromkeys(has, count))
    return {kind: found[kind] for kind in left_out.KINDS if found[kind]}


def read_resources(path: str, log: Log) -> ResourceRows:
    """Return the requests of a log's jobs from a side file.

    Raises:
        InputError: names the file, the line and the reason.
    """
    return resources_of_jobs(path, np.asarray(log["job"], np.int64), log.name)


def resources_of_jobs(
    path: str, numbers: Int64Array, name: str, *, may_have_others: bool = False
) -> ResourceRows:
    """Return the requests of jobs with these numbers; the rows of the result are theirs.

    ``name``: what the jobs are from, for errors.  ``may_have_others``: the side file may have lines
    for other jobs.

    Raises:
        InputError: names the file, the line and the reason.
    """
    header, rows, sha256 = read_side_file(path)
    _check_header(path, header)
    places = {number: row for row, number in enumerate(numbers.tolist())}
    of, known = np.full(len(numbers), -1, np.int64), dict[JobRequest, int]()
    not_counted = dict.fromkeys((name for name in NOT_COUNTED if name in header), 0)
    hosts: dict[int, str] = {}
    is_spread_unknown = np.zeros(len(numbers), np.bool_)
    suspended = np.zeros(len(numbers), np.int64) if "suspended" in header else None
    for line, values in rows:
        number = _whole(values, "job", 0, line)
        place = places.get(number, -1)
        if place < 0 and not may_have_others:
            raise InputError(f"{line}: job {number} is not in {name}; leave the line out")
        if place >= 0 and of[place] >= 0:
            raise InputError(f"{line}: job {number} has another line before it; leave one out")
        request = _request(values, line)
        spread = values.get("spread", "")
        if spread not in ("", UNKNOWN):
            raise InputError(f"{line}: spread {spread[:40]!r} is neither empty nor {UNKNOWN}")
        pause = _whole(values, "suspended", 0, line, default=0)
        if place < 0:
            continue
        of[place] = known.setdefault(request, len(known))
        for column in not_counted:
            not_counted[column] += values[column] not in ("", "0")
        if values.get("hosts"):
            hosts[place] = values["hosts"]
        is_spread_unknown[place] = spread == UNKNOWN
        if suspended is not None:
            suspended[place] = pause
    return ResourceRows(
        tuple(known), of, not_counted, path, sha256, hosts, is_spread_unknown, suspended
    )


def resources_of(rows: ResourceRows, log: Log, made: Log) -> ResourceRows:
    """Return what the jobs of a log ask for that was made from another one.

    ``rows``: of the jobs of ``log``.  ``made``: has the number of each job there in the column
    ``ORIGIN``.
    """
    numbers, origin = (np.asarray(each, np.int64) for each in (log["job"], made[ORIGIN]))
    order = np.argsort(numbers, kind="stable")
    places = order[np.searchsorted(numbers[order], origin)]
    hosts = {new: rows.hosts[old] for new, old in enumerate(places.tolist()) if old in rows.hosts}
    return rows._replace(
        of=rows.of[places],
        hosts=hosts,
        is_spread_unknown=rows.is_spread_unknown[places],
        suspended=None if rows.suspended is None else rows.suspended[places],
    )


def rows_for(
    path: str, job: Iterable[int], origin: Iterable[int]
) -> tuple[list[str], Iterator[list[str]]]:
    """Return the header and the rows of a side file for the jobs of another log, made from its log.

    ``job``: their numbers; ``origin``: the number in the side file of each, of which it keeps the
    row.  A job without a row there gets none.

    Raises:
        InputError: the side file cannot be read.
    """
    header, rows, _ = read_side_file(path)
    known = {int(values["job"]): values for _, values in rows}
    pairs = zip(job, origin, strict=True)
    found = (known[before] | {"job": str(number)} for number, before in pairs if before in known)
    return header, (list(values.values()) for values in found)


def _check_header(path: str, header: list[str]) -> None:
    for name in header:
        if name not in COLUMNS + NOT_COUNTED:
            near = suggestion(name, COLUMNS)
            raise InputError(
                f"{path}: line 1: the column {name!r} is not known{near} "
                f"(known: {', '.join(COLUMNS + NOT_COUNTED)})"
            )
        if header.count(name) > 1:
            raise InputError(f"{path}: line 1: the column {name!r} appears twice")
    for name in ("job", "nodes"):
        if name not in header:
            raise InputError(f"{path}: line 1: no column {name}; a side file begins job,nodes")


def _request(values: dict[str, str], line: str) -> JobRequest:
    nodes = _whole(values, "nodes", 1, line)
    cpus = _whole(values, "cpus_per_node", 1, line, default=1)
    try:
        memory = parse_memory(_number_or_text(values.get("memory_per_node", "") or "0"))
    except ValueError as error:
        raise InputError(f"{line}: memory_per_node: {error}") from None
    gpus, gpu_type = _whole(values, "gpus_per_node", 0, line, default=0), values.get("gpu_type", "")
    resources: list[tuple[str, int]] = []
    if gpus:
        resources.append(("gpu", gpus))
        if gpu_type:
            resources.append((f"gpu:{gpu_type}", gpus))
    features = tuple(filter(None, values.get("features", "").split("&")))
    partitions = tuple(filter(None, values.get("partitions", "").split(",")))
    chunk = ChunkRequest(nodes, cpus, memory, resources=tuple(resources), features=features)
    server = _server_amounts(values.get("server", ""), line)
    of_server = (ChunkRequest(1, 0, host=SERVER, resources=server),) if server else ()
    return JobRequest(
        (chunk, *of_server),
        SCATTER if nodes > 1 else FREE,
        _whole(values, "exclusive", 0, line, default=0) > 0,
        partitions,
        values.get("reservation", ""),
    )


def _server_amounts(text: str, line: str) -> tuple[tuple[str, int], ...]:
    """Return the amounts of ``matlab=1;ansys=2``."""
    found: dict[str, int] = {}
    for part in filter(None, text.split(";")):
        name, _, amount = part.partition("=")
        name = name.strip()
        if not (name and amount.isascii() and amount.isdigit() and int(amount) <= _MOST):
            raise InputError(f"{line}: server {part[:40]!r} is not name=number, such as matlab=1")
        found[name] = found.get(name, 0) + int(amount)
    return tuple(sorted(found.items()))


def _number_or_text(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


def _whole(
    values: dict[str, str], name: str, least: int, line: str, default: int | None = None
) -> int:
    """Return a whole number of a column; the default if it is empty or absent."""
    text = values.get(name, "")
    if not text and default is not None:
        return default
    if not (text.isascii() and text.isdigit() and least <= int(text) <= _MOST):
        raise InputError(
            f"{line}: {name} {text[:40]!r} is not a whole number from {least} to {_MOST}"
        )
    return int(text)
