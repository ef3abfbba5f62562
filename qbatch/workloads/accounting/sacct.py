"""Slurm accounting as ``sacct --parsable2`` (or ``--parsable``) prints it: one header line, then
fields between bars.

Source: the manual page sacct(1) of Slurm 15.08 to 24.05.  The header determines the columns.  A
line is a job, one job of an array (``12_3``), the rest of an array (``12_[4-9%2]``), or a component
of a heterogeneous job (``12+0``).  Or it is a step of one of them (``12.batch``), which contains
only memory and processor time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice

from qbatch.model.job import FREE
from qbatch.workloads import left_out
from qbatch.workloads.accounting.record import (
    ABSENT,
    AccountingRecord,
    ImportCounts,
    Kind,
    Line,
    Status,
    whole_number,
)
from qbatch.workloads.accounting.sacct_rows import COMMAND as COMMAND
from qbatch.workloads.accounting.sacct_rows import (
    JOB_ID,
    NEEDED,
    NOTHING,
    REVOKED,
    STATES,
    STEP_ID,
    Row,
    rows_of,
)
from qbatch.workloads.accounting.times import WallClock, slurm_span
from qbatch.workloads.left_out import Asks
from qbatch.workloads.resource_rows import REQUEST_COLUMNS, UNKNOWN

_KNOWN = frozenset(
    (
        *NEEDED,
        "jobidraw",
        "user",
        "group",
        "account",
        "jobname",
        "partition",
        "eligible",
        "elapsed",
        "elapsedraw",
        "suspended",
        "timelimit",
        "timelimitraw",
        "alloccpus",
        "ncpus",
        "reqcpus",
        "nnodes",
        "allocnodes",
        "reqnodes",
        "nodelist",
        "reqmem",
        "maxrss",
        "ntasks",
        "totalcpu",
        "alloctres",
        "reqtres",
        "cluster",
        "exitcode",
        "uid",
        "gid",
        "constraints",
        "licenses",
        "qos",
        "priority",
        "reservation",
        "submitline",
    )
)
_KINDS_IN = {
    "alloctres": (left_out.GPUS, left_out.OTHERS),
    "reqtres": (left_out.GPUS, left_out.OTHERS, left_out.MEMORY),
    "constraints": (left_out.FEATURES,),
    "licenses": (left_out.LICENCES,),
    "submitline": (left_out.EXCLUSIVE,),
    "reqmem": (left_out.MEMORY,),
    "partition": (left_out.PARTITIONS,),
    "qos": (left_out.QOS,),
    "priority": (left_out.PRIORITY,),
    "reservation": (left_out.RESERVATIONS,),
}
"""The kinds, of those that a log leaves out, that a column contains."""

_IN_THE_LOG = frozenset(("cpu", "mem", "node", "billing", "energy", "pages", "vmem"))
"""Trackable resources that a log contains, or that are not limited; memory is counted by its own
column."""

_RESERVATION = re.compile(r"(?<!\S)--reservation[= ]([\w.-]+)")
_NICE = re.compile(r"(?<!\S)--nice(?:=(-?\d{1,10}))?(?!\S)")
_EXCLUSIVE = re.compile(r"(?<!\S)--exclusive(?![\w-])")
_OF_ONE_USER = re.compile(r"(?<!\S)--exclusive=(?:user|mcs)\b")
_TASKS = re.compile(r"(?<!\S)(?:--ntasks[= ]|-n ?)(\d{1,9})(?!\S)", re.ASCII)
_TASKS_PER_NODE = re.compile(r"(?<!\S)--ntasks-per-node[= ](\d{1,9})(?!\S)", re.ASCII)
_PARTITIONS = re.compile(r"(?<!\S)(?:--partition[= ]|-p ?)([\w.,-]+)(?!\S)")
_NODES = re.compile(r"(?<!\S)(?:--nodes[= ]|-N ?)(\d{1,9})(?:-(\d{1,9}))?(?!\S)", re.ASCII)
_CPUS_OF_TASK = re.compile(r"(?<!\S)(?:--cpus-per-task[= ]|-c ?)(\d{1,9})(?!\S)", re.ASCII)
_MEMORY_OF_NODE = re.compile(r"(?<!\S)--mem[= ]")
_GPUS_OF_JOB = re.compile(r"(?<!\S)(?:--gpus[= ]|-G)")
_CHOICE = re.compile(r"[|\[*]")
_FEATURE = re.compile(r"[A-Za-z_][\w.:\-]*")
_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,9})?)([KMGTP]?)([cn]?)\Z", re.ASCII | re.IGNORECASE)
_IN_KB = {"K": 1, "M": 2**10, "G": 2**20, "T": 2**30, "P": 2**40}
_TRES = re.compile(r"(?:\A|,)(cpu|node)=(\d{1,15})(?=,|\s*\Z)", re.ASCII)
_GPUS = re.compile(r"(?:\A|,)gres/gpu(?::[^=,]*)?=(\d{1,9})", re.ASCII)
_MEMORY = re.compile(r"(?:\A|,)mem=([^,\s]*)")
_PROCESSOR_BITS = (2**31 << 10, 2**63 << 10)
"""By which bit of a number of MB an older and a newer Slurm mark the memory of a processor; in
KB."""

_RANGES = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?\Z", re.ASCII)
_HOSTS_MAX = 1_000_000
_LISTED_MAX = 100_000


def read_sacct(
    lines: Iterable[Line], clock: WallClock, counts: ImportCounts
) -> Iterator[AccountingRecord]:
    """Yield the records of the lines of one file; ``counts`` gets what cannot be used.

    Raises:
        InputError: there is no header line, or it lacks required columns.
    """
    words: dict[str, str] = {}
    nodes: dict[tuple[str, str], tuple[str, ...]] = {}
    main: AccountingRecord | None = None
    columns: dict[str, str] = {}
    for row, line in rows_of(lines, counts):
        if row.keys() != columns.keys():
            columns = row
            counts.met_fields({name for name in columns if name and name not in _KNOWN})
            counts.recorded.update(kind for name in columns for kind in _KINDS_IN.get(name, ()))
        counts.records += 1
        step = STEP_ID.match(row["jobid"].strip())
        if step is not None:  # its memory is added to its job, which comes before it
            job = f"{step[1]}[{step[2]}]" if step[2] else step[1]
            part = int(step[3]) if step[3] else ABSENT
            of = row.get("cluster", "").strip()
            if main is not None and (main.cluster, main.job, main.part) == (of, job, part):
                main.memory_used = max(main.memory_used, _used_kilobytes(row))
            continue
        if main is not None:
            yield main
        main = _job(row, line, clock, counts, words)
        if main is not None and row.get("nodelist"):
            _hosts(main, row["nodelist"], counts, nodes)
    if main is not None:
        yield main


def _state(row: Row) -> tuple[Kind, int] | None:
    return STATES.get(row["state"].strip().partition(" ")[0].rstrip("+"))


def _job(
    row: Row, line: Line, clock: WallClock, counts: ImportCounts, words: dict[str, str]
) -> AccountingRecord | None:
    found = JOB_ID.match(row["jobid"].strip())
    if found is None:
        counts.unusable.add("the job identifier is not one of Slurm", line.place)
        return None
    state = _state(row)
    if state is None:
        counts.unusable.add("the state is not one of Slurm", line.place)
        return None
    if state == REVOKED:
        counts.ignored.add("revoked: another cluster of the federation took the job", line.place)
        return None
    kind, status = state
    identifier = f"{found[1]}[{found[2]}]" if found[2] else found[1]
    if found[3]:
        identifier = f"{found[1]}{found[3]}"
        if kind != Kind.UNFINISHED:
            counts.adjusted.add("rests of arrays (12_[4-9]): one row for all of each", line.place)

    def word(name: str) -> str:
        value = row.get(name, "").strip()
        return words.setdefault(value, value)

    record = AccountingRecord(
        kind,
        identifier,
        0,
        line.file,
        line.number,
        status=status,
        user=word("user"),
        group=word("group"),
        account=word("account"),
        name=word("jobname"),
        queue=word("partition"),
        cluster=word("cluster"),
    )
    counts.clusters.add(record.cluster)
    record.part = int(found[4] or ABSENT)
    _resources(record, row, counts)
    record.priority = whole_number(row.get("priority", "").strip())
    record.asks = _asks(
        f"{row.get('reqtres', '')},{row.get('alloctres', '')}",
        row.get("constraints", ""),
        row.get("licenses", ""),
        row.get("qos", "").strip(),
        row.get("reservation", "").strip(),
        _EXCLUSIVE.search(row.get("submitline", "")) is not None,
    )
    if counts.keeps_requests:
        record.request = _request(
            row.get("reqtres", "") or row.get("alloctres", ""),
            max(record.nodes, record.nodes_asked, 1),
            row.get("constraints", "").strip(),
            _partitions(row) if counts.keeps_tasks else row.get("partition", "").strip(),
            _is_exclusive(row),
            _reservation(row),
            row.get("nodelist", "").strip(),
        )
        if record.request:
            record.request += (_spread(record, row), "", "")
            if counts.keeps_tasks:
                record.request = _as_tasks(record.request, row)
        record.qos = word("qos")
        found_nice = _NICE.search(row.get("submitline", ""))
        record.nice = int(found_nice[1] or 100) if found_nice else 0
        if _CHOICE.search(row.get("constraints", "")):
            counts.adjusted.add(
                "a choice of features (a|b): its line of resources names none", record.place
            )
    if kind == Kind.UNFINISHED:
        record.submit = next(iter(clock.of_iso(row["submit"].strip())), ABSENT)
        record.at = max(record.submit, 0)
    elif not _times(record, row, clock, counts):
        return None
    return record


def _times(record: AccountingRecord, row: Row, clock: WallClock, counts: ImportCounts) -> bool:
    """Read the instants; if they cannot be used, count the record as lost and return False."""
    choices: dict[str, tuple[int, ...]] = {}
    for name in ("submit", "eligible", "start", "end"):
        text = row.get(name, "").strip()
        choices[name] = () if text in NOTHING or text == "0" else clock.of_iso(text)
        if not choices[name] and text not in NOTHING and text != "0":
            counts.unusable.add(
                f"{name.capitalize()} is not a time (expected 2024-05-01T10:00:00 or seconds)",
                record.place,
            )
            return False
    elapsed = slurm_span(row["elapsed"].strip()) if "elapsed" in row else ABSENT
    if elapsed < 0 and "elapsedraw" in row:
        elapsed = whole_number(row["elapsedraw"].strip())
    suspended = slurm_span(row.get("suspended", "").strip())
    record.suspended = max(int(suspended), 0)
    _settle(record, choices, elapsed, counts)
    if record.kind != Kind.REQUEUED and record.status in (Status.KILLED, Status.FAILED):
        # AllocCPUS of a job that never had nodes may be what it asked for.
        has_no_host = row.get("nodelist", "").strip() == "None assigned"
        has_none = has_no_host or any(
            row.get(name, "").strip() == "0" for name in ("alloccpus", "ncpus", "allocnodes")
        )
        if record.start < 0 or (elapsed <= 0 and record.end <= record.start and has_none):
            record.kind, record.start = Kind.CANCELLED, ABSENT
    if (
        record.kind in (Kind.ENDED, Kind.REQUEUED)
        and min(record.start, record.end, record.submit) < 0
    ):
        named = {"Submit": record.submit, "Start": record.start, "End": record.end}
        missing = next(name for name, value in named.items() if value < 0)
        counts.unusable.add(f"over by its state, but without a {missing} time", record.place)
        return False
    record.at = (
        record.end
        if record.end > 0
        else record.start
        if record.start > 0
        else max(record.submit, 0)
    )
    return True


def _settle(
    record: AccountingRecord,
    choices: dict[str, tuple[int, ...]],
    elapsed: float,
    counts: ImportCounts,
) -> None:
    """Choose among the instants of folds: the end that fits the elapsed time, the order submit,
    eligible, start."""
    span = elapsed + record.suspended
    starts, ends = choices["start"] or (ABSENT,), choices["end"] or (ABSENT,)
    pairs = [(start, end) for start in starts for end in ends]
    submits = choices["submit"] or (ABSENT,)
    if elapsed >= 0 and len(pairs) > 1:
        pairs.sort(key=lambda pair: abs(pair[1] - pair[0] - span))
    fitting = [pair for pair in pairs if submits[0] <= pair[0] <= pair[1]]
    record.start, record.end = (fitting or pairs)[0]
    if (
        record.start >= 0
        and elapsed >= 0
        and abs(record.end - record.start - span) > 1
        and record.end >= 0
    ):
        counts.adjusted.add("End minus Start is not Elapsed: Elapsed is taken", record.place)
        record.end = record.start + int(span)
    record.submit = submits[0]
    known = choices["eligible"] or (ABSENT,)
    record.eligible = next((each for each in known if each >= record.submit), known[0])


def _resources(record: AccountingRecord, row: Row, counts: ImportCounts) -> None:
    """Read sizes, limit, memory and processor time.

    Slurm derives its counts from the trackable resources, so those decide where both are there.
    NNodes is what a job has, or what it asks for until it has some.
    """
    get = row.get
    tres = {name: _tres(get(name, "")) for name in ("alloctres", "reqtres")}
    for attribute, source, name, same, instead in (
        ("cores", "alloctres", "cpu", ("AllocCPUS", "NCPUS"), ()),
        ("cores_asked", "reqtres", "cpu", ("ReqCPUS",), ()),
        ("nodes", "alloctres", "node", ("AllocNodes", "NNodes"), ()),
        ("nodes_asked", "reqtres", "node", ("ReqNodes",), ("NNodes",)),
    ):
        traced = int(tres[source].get(name, ABSENT))
        for title in same if traced > 0 else ():
            if 0 < whole_number(get(title.lower(), "").strip()) != traced:
                of = {"alloctres": "AllocTRES", "reqtres": "ReqTRES"}[source]
                counts.adjusted.add(f"{title} is not {name} of {of}: {of} is taken", record.place)
        found = traced if traced > 0 else _first_count(row, *same, *instead)
        setattr(record, attribute, found)
    record.memory_asked = _asked_kilobytes(record, row, counts)
    limit = slurm_span(get("timelimit", "").strip())
    if limit < 0 and whole_number(get("timelimitraw", "").strip()) > 0:
        limit = int(row["timelimitraw"]) * 60
    record.limit = int(limit)
    if get("totalcpu"):
        record.cpu = slurm_span(row["totalcpu"].strip())
    record.memory_used = _used_kilobytes(row)


def _first_count(row: Row, *titles: str) -> int:
    for title in titles:
        value = whole_number(row.get(title.lower(), "").strip())
        if value > 0:
            return value
    return ABSENT


@lru_cache(maxsize=4096)
def _asks(
    tres: str, constraints: str, licences: str, qos: str, reservation: str, is_exclusive: bool
) -> Asks:
    """Return what a job asks for, or has, that a log does not contain."""
    amounts = [part.strip().partition("=") for part in tres.split(",")]
    names = {name for name, _, amount in amounts if name and amount not in ("", "0")} - _IN_THE_LOG
    gpus = {name for name in names if name.partition(":")[0] == "gres/gpu"}
    licensed = {name for name in names if name.startswith("license/")}
    # gres/gpu=2,gres/gpu:a100=2 are two and not four.
    typed = {name for name in gpus if ":" in name} or gpus
    words = [re.split(r"[:*=]", each.strip())[0] for each in re.split(r"[,;|]", licences)]
    asks = {(left_out.GPUS, name.removeprefix("gres/")) for name in typed}
    asks |= {(left_out.OTHERS, name) for name in names - gpus - licensed}
    asks |= {
        (left_out.LICENCES, name)
        for name in (*words, *(name.removeprefix("license/") for name in licensed))
        if name and name not in NOTHING
    }
    asks |= {
        (left_out.FEATURES, name)
        for name in _FEATURE.findall(constraints)
        if constraints.strip() not in NOTHING
    }
    asks |= {
        (kind, name)
        for kind, name in ((left_out.QOS, qos), (left_out.RESERVATIONS, reservation))
        if name not in NOTHING
    }
    return tuple(sorted(asks | ({(left_out.EXCLUSIVE, "")} if is_exclusive else set())))


@lru_cache(maxsize=4096)
def _request(
    tres: str,
    nodes: int,
    constraints: str,
    partition: str,
    is_exclusive: bool,
    reservation: str,
    hosts: str,
) -> tuple[str, ...]:
    """Return the cells of a job's line of resources, after its number; none if the trackable
    resources name no processors.

    ``nodes``: those that it had, if they are more than it asked for: ``--ntasks=12`` asks for one,
    and gets as many as it needs.  Amounts are of a node; what cannot be divided is rounded up.
    """
    amounts = {
        name.strip(): amount
        for name, _, amount in (part.partition("=") for part in tres.split(","))
    }
    cpus = whole_number(amounts.get("cpu", ""))
    if cpus <= 0:
        return ()
    size = _SIZE.match(amounts.get("mem", ""))
    memory = int(float(size[1]) * _IN_KB[size[2].upper() or "M"]) << 10 if size else 0
    typed = next((name for name in amounts if name.startswith("gres/gpu:")), "gres/gpu")
    gpus = max(whole_number(amounts.get(typed, "")), 0)
    features = "" if _CHOICE.search(constraints) or constraints in NOTHING else constraints
    return (
        str(nodes),
        *(str(-(-amount // nodes)) for amount in (cpus, memory, gpus)),
        typed.partition(":")[2],
        "",
        "&".join(_FEATURE.findall(features)),
        partition,
        str(int(is_exclusive)),
        "",
        ";".join(
            f"{name.removeprefix('license/')}={amount}"
            for name, amount in sorted(amounts.items())
            if name.startswith("license/") and whole_number(amount) > 0
        ),
        reservation,
        "" if hosts in NOTHING or hosts == "None assigned" else hosts,
    )


def _partitions(row: Row) -> str:
    """Return the partitions that a job may run in: those of its command line if the one of its record
    is among them.  The record has only the one in which it ran last."""
    name = row.get("partition", "").strip()
    named = _PARTITIONS.search(row.get("submitline", ""))
    return named[1] if named and name in named[1].split(",") else name


def _as_tasks(request: tuple[str, ...], row: Row) -> tuple[str, ...]:
    """Return the request of a job that asks for tasks, whatever hosts they are on (``--ntasks`` without
    tasks by node): as many chunks, and the hosts that ``--nodes`` says.

    A job that asks for GPUs, for memory by node or for whole nodes keeps nodes.
    """
    command = row.get("submitline", "")
    tasks, nodes = _TASKS.search(command), _NODES.search(command)
    by_node = _TASKS_PER_NODE.search(command) or _MEMORY_OF_NODE.search(command)
    _, _, memory, gpus, _, _, _, _, exclusive, *_ = request
    if tasks is None or by_node or gpus != "0" or exclusive != "0":
        return request
    many, cpus = int(tasks[1]), _CPUS_OF_TASK.search(command)
    each = int(cpus[1]) if cpus else 1
    asked = row.get("reqtres", "") or row.get("alloctres", "")
    if many < 2 or many * each != _tres(asked).get("cpu", 0):
        return request  # whole cores or sockets
    cells = dict(zip(REQUEST_COLUMNS, request, strict=True))
    cells |= {"nodes": str(many), "cpus_per_node": str(each), "place": FREE}
    cells["memory_per_node"] = str(-(-int(memory) * int(request[0]) // many))
    if nodes is not None:
        cells |= {"min_nodes": nodes[1], "max_nodes": nodes[2] or nodes[1]}
    return tuple(cells.values())


def _is_exclusive(row: Row) -> bool:
    """Return whether no other job may be on the hosts of a job; ``--exclusive=user`` lets those of
    the same user be there."""
    command = row.get("submitline", "")
    return _EXCLUSIVE.search(command) is not None and _OF_ONE_USER.search(command) is None


def _spread(record: AccountingRecord, row: Row) -> str:
    """Return whether each host of a job has the amounts of its line of resources: empty, or
    ``UNKNOWN``.

    Slurm records the sums alone, and may give the hosts different shares.  They are equal on one
    host, with one processor on each, and where the command says how many tasks each host has and
    the processors of the job are those of so many.
    """
    nodes = max(record.nodes, record.nodes_asked, 1)
    if nodes == 1:
        return ""
    command = row.get("submitline", "")
    asked = row.get("reqtres", "") or row.get("alloctres", "")
    cpus = max(_tres(asked).get("cpu", 0), record.cores)
    if nodes != record.nodes_asked or cpus % nodes or _GPUS_OF_JOB.search(command):
        return UNKNOWN
    memory = _MEMORY.search(asked)
    size = _SIZE.match(memory[1]) if memory else None
    if size and round(float(size[1]) * _IN_KB[size[2].upper() or "M"] * 1024) % nodes:
        return UNKNOWN
    if any(int(amount) % nodes for amount in _GPUS.findall(asked)):
        return UNKNOWN
    each, tasks = _TASKS_PER_NODE.search(command), _TASKS.search(command)
    is_even = (
        each is not None
        and int(each[1]) > 0
        and cpus % (int(each[1]) * nodes) == 0
        and (tasks is None or int(tasks[1]) == int(each[1]) * nodes)
    )
    return "" if cpus == nodes or is_even else UNKNOWN


def _reservation(row: Row) -> str:
    """Return the reservation that a job names: of its own field, which some versions of Slurm leave
    empty for a job that ended, else of its command line."""
    name = row.get("reservation", "").strip()
    if name not in NOTHING:
        return name
    found = _RESERVATION.search(row.get("submitline", ""))
    return found[1] if found else ""


@lru_cache(maxsize=4096)
def _tres(text: str) -> dict[str, int]:
    """Return cpu and node of ``cpu=4,mem=16G,node=1,gres/gpu=1``."""
    return {name: whole_number(value) for name, value in _TRES.findall(text)}


def _asked_kilobytes(record: AccountingRecord, row: Row, counts: ImportCounts) -> int:
    """Return KB of the job by ``mem`` of ReqTRES, which is of the job, else by ReqMem: ``4Gc`` (a
    processor), ``4Gn`` (a host), ``16G`` (the job).  A bare number is MB.

    An older Slurm marks the memory of a processor by a bit of the number.  A newer sacct, which
    uses another bit, prints that as memory of a host: ``2147486448Mn`` is 2800 MB of a processor.
    """
    traced = _MEMORY.search(row.get("reqtres", ""))
    asked = ABSENT
    for text in (traced[1] if traced else "", row.get("reqmem", "").strip()):
        found = _SIZE.match(text)
        if found is None:
            continue
        size = int((float if "." in found[1] else int)(found[1]) * _IN_KB[found[2].upper() or "M"])
        scope = found[3].lower()
        flag = next((bit for bit in _PROCESSOR_BITS if bit <= size < 2 * bit), 0)
        if flag:
            counts.adjusted.add(
                "memory with the bit by which Slurm marks that of a processor: the bit is no size",
                record.place,
            )
            # No value and no limit are the last numbers before the next bit.
            size, scope = (size - flag if size < 2 * flag - (16 << 10) else 0), "c"
        if scope == "c":
            size *= max(record.cores, record.cores_asked, 1)
        elif scope == "n":
            size *= max(record.nodes, record.nodes_asked, 1)
        if asked < 0 < size < 2**53:
            asked = size
    return asked


def _used_kilobytes(row: Row) -> int:
    """Return KB of a step: the most memory of one task (a bare number is bytes), times its
    tasks."""
    found = _SIZE.match(row.get("maxrss", "").strip())
    if found is None:
        return ABSENT
    unit = _IN_KB[found[2].upper()] if found[2] else 1 / 1024
    size = float(found[1]) * unit * max(whole_number(row.get("ntasks", "").strip()), 1)
    return int(size) if size < 2**53 else ABSENT


def _hosts(
    record: AccountingRecord,
    text: str,
    counts: ImportCounts,
    known: dict[tuple[str, str], tuple[str, ...]],
) -> None:
    if len(counts.hosts) >= _HOSTS_MAX or text.strip() in ("None assigned", ""):
        return
    key = (record.cluster, text)
    if key not in known:
        if len(known) > 100_000:
            known.clear()
        known[key] = tuple(host_names(text.strip()))
        counts.hosts.update((record.cluster, name) for name in known[key])
    names = known[key]
    if record.nodes < 0 < len(names):
        record.nodes = len(names)
    if counts.keeps_hosts and names and record.cores > 0:
        # The share of each host is not recorded: divide as equally as possible, the first ones get
        # more.
        each, more = divmod(record.cores, len(names))
        record.hosts = tuple((name, each + (place < more)) for place, name in enumerate(names))


def host_names(text: str) -> list[str]:
    """Return the names of ``n[01-03,7],login1``, at most 100,000; a name that is not understood is
    returned as it is."""
    parts = re.findall(r"[^,\[]*(?:\[[^\]]*\][^,\[]*)*", text)
    return list(islice(chain.from_iterable(_expanded(part) for part in parts if part), _LISTED_MAX))


def _expanded(name: str) -> Iterator[str]:
    """Yield the names of one part: its first bracket replaced by each of its items, and so on for
    later brackets."""
    head, bracket, rest = name.partition("[")
    if not bracket:
        yield name
        return
    inside, _, tail = rest.partition("]")
    for part in inside.split(","):
        ends = _RANGES.match(part)
        low, high = (int(ends[1]), int(ends[2] or ends[1])) if ends else (0, 0)
        for one in range(low, high + 1):
            text = str(one).zfill(len(ends[1])) if ends else part.replace("[", "")
            for more in _expanded(tail):
                yield head + text + more
