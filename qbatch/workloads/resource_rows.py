"""The side file of what jobs ask for beyond the fields of SWF: nodes, memory and GPUs of each,
features, partitions (docs/spec/production.md 1.2).

It is CSV with a header.  ``job`` names a job of the log; a job without a row keeps its processors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from qbatch.model.errors import InputError, suggestion
from qbatch.model.job import FREE, PLACINGS, SCATTER, SERVER, ChunkRequest, JobRequest
from qbatch.model.machine import parse_memory
from qbatch.model.record import BoolArray, Int64Array
from qbatch.workloads import left_out
from qbatch.workloads.log import ORIGIN, Log
from qbatch.workloads.side_file import SideText, read_side_file, side_bytes

REQUEST_COLUMNS = (
    "nodes",
    "cpus_per_node",
    "memory_per_node",
    "gpus_per_node",
    "gpu_type",
    "resources_per_node",
    "features",
    "partitions",
    "exclusive",
    "place",
    "server",
    "reservation",
    "hosts",
    "spread",
)
"""The columns that an import fills from a job's records."""

COLUMNS = ("job", *REQUEST_COLUMNS, "suspended", "id")
"""The columns that count; ``job`` and ``nodes`` are required.  ``hosts``, ``spread`` and ``suspended``
say what really happened, which a policy does not see (``qbatch verify`` does).  ``id`` is the
identifier that the job had on its cluster."""

UNKNOWN = "unknown"
"""The value of ``spread`` of a job that may have had other amounts on each of its hosts than its
line says, with the same sum."""

NOT_COUNTED = ("qos", "account", "eligible", "priority")
"""Columns of the specification that a replay does not use yet."""

_MOST = 2**31 - 1
_MOST_NAMED = 5


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
    job was suspended; None if no column says that.  ``ids``: by job number, the identifier of the
    job on its cluster, where the file has it."""

    requests: tuple[JobRequest, ...]
    of: Int64Array
    not_counted: Mapping[str, int]
    path: str
    sha256: str
    hosts: Mapping[int, str]
    is_spread_unknown: BoolArray
    suspended: Int64Array | None
    ids: Mapping[int, str] = MappingProxyType({})


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


def read_resources(side: str | SideText, log: Log) -> ResourceRows:
    """Return the requests of a log's jobs from a side file.

    Raises:
        InputError: names the file, the line and the reason.
    """
    return resources_of_jobs(side, np.asarray(log["job"], np.int64), log.name)


def resources_of_jobs(
    side: str | SideText, numbers: Int64Array, name: str, *, may_have_others: bool = False
) -> ResourceRows:
    """Return the requests of jobs with these numbers; the rows of the result are theirs.

    ``name``: what the jobs are from, for errors.  ``may_have_others``: the side file may have lines
    for other jobs.

    Raises:
        InputError: names the file, the line and the reason.
    """
    header, rows, sha256 = read_side_file(side)
    path = side if isinstance(side, str) else side.name
    _check_header(path, header)
    places = {number: row for row, number in enumerate(numbers.tolist())}
    of, known = np.full(len(numbers), -1, np.int64), dict[JobRequest, int]()
    not_counted = dict.fromkeys((name for name in NOT_COUNTED if name in header), 0)
    hosts: dict[int, str] = {}
    ids: dict[int, str] = {}
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
        if values.get("id"):
            ids[number] = values["id"]
        if values.get("hosts"):
            hosts[place] = values["hosts"]
        is_spread_unknown[place] = spread == UNKNOWN
        if suspended is not None:
            suspended[place] = pause
    return ResourceRows(
        tuple(known), of, not_counted, path, sha256, hosts, is_spread_unknown, suspended, ids
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
        ids={
            new: rows.ids[old]
            for new, old in zip(np.asarray(made["job"]).tolist(), origin.tolist(), strict=True)
            if old in rows.ids
        },
    )


def ids_in_words(numbers: Iterable[int], ids: Mapping[int, str]) -> str:
    """Return which jobs these were on their cluster: ``job 3 is 1207 on the cluster``; empty if the
    file names none of them."""
    named = [f"job {number} is {ids[number]}" for number in numbers if number in ids]
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return f"{', '.join(named[:_MOST_NAMED])}{more} on the cluster" if named else ""


def side_for(made: Log, side: SideText) -> SideText:
    """Return the side file of a log that was made from another one, of the side file of that one.

    A job of ``made`` keeps the row of its job before, of which the column ``ORIGIN`` has the
    number.  A job without a row there gets none.

    Raises:
        InputError: the side file cannot be read.
    """
    header, rows, _ = read_side_file(side)
    known = {int(values["job"]): values for _, values in rows}
    numbers = (np.asarray(made[name], np.int64).tolist() for name in ("job", ORIGIN))
    found = (
        known[before] | {"job": str(number)}
        for number, before in zip(*numbers, strict=True)
        if before in known
    )
    return SideText(side.name, side_bytes(header, (list(values.values()) for values in found)))


def cells_of(request: JobRequest) -> dict[str, str]:
    """Return the cells of a request by the name of their column, without those of the default; none
    if a line cannot say it, because its chunks differ or ask for a certain host."""
    chunks = [chunk for chunk in request.chunks if chunk.host != SERVER]
    first = chunks[0]
    if first.host >= 0 or any(replace(chunk, count=first.count) != first for chunk in chunks):
        return {}
    nodes = sum(chunk.count for chunk in chunks)
    amounts = dict(first.resources)
    gpu = next((name for name in amounts if name.startswith("gpu:")), "gpu")
    usual = SCATTER if nodes > 1 else FREE
    of_server = [
        each for chunk in request.chunks if chunk.host == SERVER for each in chunk.resources
    ]
    cells = {
        "nodes": str(nodes),
        "cpus_per_node": str(first.procs),
        "memory_per_node": str(first.memory or ""),
        "gpus_per_node": str(amounts.get(gpu, "")),
        "gpu_type": gpu.partition(":")[2],
        "resources_per_node": _amounts_text(
            each for each in first.resources if each[0].partition(":")[0] != "gpu"
        ),
        "features": "&".join(first.features),
        "partitions": ",".join(request.partitions),
        "exclusive": "1" if request.is_exclusive else "",
        "place": request.placing if nodes > 1 and request.placing != usual else "",
        "server": _amounts_text(of_server),
        "reservation": request.reservation,
    }
    return {name: cell for name, cell in cells.items() if cell}


def _amounts_text(amounts: Iterable[tuple[str, int]]) -> str:
    return ";".join(f"{name}={amount}" for name, amount in amounts)


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
    resources += _amounts(values, "resources_per_node", line)
    features = tuple(filter(None, values.get("features", "").split("&")))
    partitions = tuple(filter(None, values.get("partitions", "").split(",")))
    chunk = ChunkRequest(nodes, cpus, memory, resources=tuple(resources), features=features)
    server = _amounts(values, "server", line)
    usual = SCATTER if nodes > 1 else FREE
    place = values.get("place", "") or usual
    if place not in PLACINGS:
        near = suggestion(place, PLACINGS)
        raise InputError(f"{line}: place {place[:40]!r} is none of {', '.join(PLACINGS)}{near}")
    of_server = (ChunkRequest(1, 0, host=SERVER, resources=server),) if server else ()
    return JobRequest(
        (chunk, *of_server),
        place if nodes > 1 else FREE,
        _whole(values, "exclusive", 0, line, default=0) > 0,
        partitions,
        values.get("reservation", ""),
    )


def _amounts(values: dict[str, str], column: str, line: str) -> tuple[tuple[str, int], ...]:
    """Return the amounts of ``matlab=1;ansys=2`` in a column."""
    found: dict[str, int] = {}
    for part in filter(None, values.get(column, "").split(";")):
        name, _, amount = part.partition("=")
        name = name.strip()
        if not (name and amount.isascii() and amount.isdigit() and int(amount) <= _MOST):
            raise InputError(f"{line}: {column} {part[:40]!r} is not name=number, such as matlab=1")
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
