"""Slurm accounting as ``sacct --parsable2`` (or ``--parsable``) prints it: one header line, then fields between bars.

Source: the manual page sacct(1) of Slurm 15.08 to 24.05.  The header determines the columns.  A line is a job, one job of
an array (``12_3``), the rest of an array (``12_[4-9%2]``), or a component of a heterogeneous job (``12+0``).  Or it is a step of
one of them (``12.batch``), which contains only memory and processor time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice

from qbatch.model.errors import InputError
from qbatch.workloads.accounting.record import (
    ABSENT,
    CANCELLED,
    COMPLETED,
    ENDED,
    FAILED,
    KILLED,
    REQUEUED,
    UNFINISHED,
    AccountingRecord,
    ImportTally,
    Line,
    whole_number,
)
from qbatch.workloads.accounting.times import WallClock, slurm_span
from qbatch.workloads.left_out import (
    EXCLUSIVE,
    FEATURES,
    GPUS,
    LICENCES,
    MEMORY,
    OTHERS,
    PARTITIONS,
    PRIORITY,
    QOS,
    RESERVATIONS,
    Asks,
)

COMMAND = (
    "sacct --allusers --duplicates --parsable2 --starttime 2024-01-01 --endtime now --format=JobID,User,Group,Account,"
    "JobName,Partition,State,Submit,Eligible,Start,End,Elapsed,Suspended,Timelimit,AllocCPUS,ReqCPUS,NNodes,NodeList,"
    "ReqMem,MaxRSS,NTasks,TotalCPU,ReqTRES,AllocTRES,Constraints,Licenses,QOS,Priority,Reservation,SubmitLine"
)
"""The command that prints everything that is read here."""

_NEEDED = ("jobid", "submit", "start", "end", "state")
_STATES = {
    "COMPLETED": (ENDED, COMPLETED), "RESIZING": (ENDED, COMPLETED), "FAILED": (ENDED, FAILED),
    "TIMEOUT": (ENDED, FAILED), "OUT_OF_MEMORY": (ENDED, FAILED), "DEADLINE": (ENDED, KILLED),
    "BOOT_FAIL": (ENDED, FAILED), "LAUNCH_FAILED": (ENDED, FAILED), "CANCELLED": (ENDED, KILLED),
    "REVOKED": (CANCELLED, KILLED), "NODE_FAIL": (REQUEUED, FAILED), "PREEMPTED": (REQUEUED, FAILED),
    "REQUEUED": (REQUEUED, FAILED), "SPECIAL_EXIT": (REQUEUED, FAILED), "RECONFIG_FAIL": (ENDED, FAILED),
    "PENDING": (UNFINISHED, ABSENT), "RUNNING": (UNFINISHED, ABSENT), "SUSPENDED": (UNFINISHED, ABSENT),
    "COMPLETING": (UNFINISHED, ABSENT), "CONFIGURING": (UNFINISHED, ABSENT), "STOPPED": (UNFINISHED, ABSENT),
    "SIGNALING": (UNFINISHED, ABSENT), "STAGE_OUT": (UNFINISHED, ABSENT), "RESV_DEL_HOLD": (UNFINISHED, ABSENT),
    "REQUEUE_FED": (UNFINISHED, ABSENT), "REQUEUE_HOLD": (UNFINISHED, ABSENT),
    "CA": (ENDED, KILLED), "CD": (ENDED, COMPLETED), "F": (ENDED, FAILED), "TO": (ENDED, FAILED), "OOM": (ENDED, FAILED),
    "NF": (REQUEUED, FAILED), "PR": (REQUEUED, FAILED), "RQ": (REQUEUED, FAILED), "PD": (UNFINISHED, ABSENT),
    "R": (UNFINISHED, ABSENT), "S": (UNFINISHED, ABSENT), "DL": (ENDED, KILLED), "BF": (ENDED, FAILED),
}  # fmt: skip
_KNOWN = frozenset((
    *_NEEDED, "jobidraw", "user", "group", "account", "jobname", "partition", "eligible", "elapsed", "elapsedraw",
    "suspended", "timelimit", "timelimitraw", "alloccpus", "ncpus", "reqcpus", "nnodes", "allocnodes", "reqnodes",
    "nodelist", "reqmem", "maxrss", "ntasks", "totalcpu", "alloctres", "reqtres", "cluster", "exitcode", "uid", "gid",
    "constraints", "licenses", "qos", "priority", "reservation", "submitline",
))  # fmt: skip
_KINDS_IN = {
    "alloctres": (GPUS, OTHERS), "reqtres": (GPUS, OTHERS, MEMORY), "constraints": (FEATURES,), "licenses": (LICENCES,),
    "submitline": (EXCLUSIVE,), "reqmem": (MEMORY,), "partition": (PARTITIONS,), "qos": (QOS,), "priority": (PRIORITY,),
    "reservation": (RESERVATIONS,),
}  # fmt: skip
"""The kinds, of those that a log leaves out, that a column contains."""

_IN_THE_LOG = frozenset(("cpu", "mem", "node", "billing", "energy", "pages", "vmem"))
"""Trackable resources that a log contains, or that are not limited; memory is counted by its own column."""

_EXCLUSIVE = re.compile(r"(?<!\S)--exclusive(?![\w-])")
_FEATURE = re.compile(r"[A-Za-z_][\w.:\-]*")
_JOB = re.compile(r"(\d{1,18})(?:_(\d{1,18})|_(\[.*)|\+(\d{1,9}))?\Z", re.ASCII)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTP]?)([cn]?)\Z", re.ASCII | re.IGNORECASE)
_IN_KB = {"K": 1.0, "M": 2.0**10, "G": 2.0**20, "T": 2.0**30, "P": 2.0**40}
_TRES = re.compile(r"(?:\A|,)(cpu|node|mem)=(\d{1,15}(?:\.\d{1,9})?)([KMGTP]?)", re.ASCII)
_RANGES = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?\Z", re.ASCII)
_NOTHING = frozenset(("", "Unknown", "None", "N/A", "NONE", "(null)"))
_HOSTS_MAX = 1_000_000
_FREE_TEXTS = ("jobname", "submitline", "comment", "admincomment", "systemcomment", "workdir", "reason", "extra")
_LISTED_MAX = 100_000

Row = dict[str, str]


def read_sacct(lines: Iterable[Line], clock: WallClock, tally: ImportTally) -> Iterator[AccountingRecord]:
    """Yield the records of the lines of one file; the tally counts what cannot be used.

    Raises:
        InputError: there is no header line, or it lacks required columns.
    """
    columns: list[str] = []
    words: dict[str, str] = {}
    nodes: dict[str, tuple[str, ...]] = {}
    main: AccountingRecord | None = None
    for line in lines:
        tally.lines += 1
        text = line.text.decode("utf-8", "surrogateescape")
        if not text.strip():
            continue
        if not columns or "JobID" in text[:4096]:
            found = _header(text, line)
            if found is not None:
                columns = found
                tally.met_fields({name for name in columns if name and name not in _KNOWN})
                tally.recorded.update(kind for name in columns for kind in _KINDS_IN.get(name, ()))
                continue
            if not columns:
                raise InputError(
                    f"{line.file}: line {line.number}: is not a header line of sacct; print one (no --noheader): {COMMAND}"
                )
        row = _row(text, line, columns, tally)
        if row is None:
            continue
        tally.records += 1
        identifier, dot, _ = row["jobid"].partition(".")
        if dot:
            _add_step(main, row, identifier)
            continue
        if main is not None:
            yield main
        main = _job(row, line, clock, tally, words)
        if main is not None and row.get("nodelist"):
            _hosts(main, row["nodelist"], tally, nodes)
    if main is not None:
        yield main


def _header(text: str, line: Line) -> list[str] | None:
    """Return the columns in lower case, if the line is a header."""
    columns = [name.strip().partition("%")[0].lower() for name in text.strip().split("|")]
    if "jobid" not in columns and "jobidraw" in columns:
        columns[columns.index("jobidraw")] = "jobid"
    if "jobid" not in columns or "|" not in text:
        return None
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise InputError(
            f"{line.file}: line {line.number}: no column {', '.join(missing)}; print them: {COMMAND}"
        )  # fmt: skip
    return columns


def _row(text: str, line: Line, columns: list[str], tally: ImportTally) -> Row | None:
    """Return the fields of a line by column; bars inside a job's name or another free text count as part of it."""
    if not line.is_whole:
        tally.lose("the line is cut short (no end of line, or longer than 16 MiB)", line.file, line.number)
        return None
    values = text.split("|")
    more = len(values) - len(columns)
    if not more:
        return dict(zip(columns, values, strict=True))
    for name in _FREE_TEXTS if more > 0 else ():
        if name in columns:
            place = columns.index(name)
            joined = [*values[:place], "|".join(values[place : place + more + 1]), *values[place + more + 1 :]]
            row = dict(zip(columns, joined, strict=True))
            if _looks_right(row):
                tally.adjust("bars inside a job's name or another free text: part of it", line.file, line.number)
                return row
    tally.lose("not as many fields as the header has columns", line.file, line.number)
    return None


def _looks_right(row: Row) -> bool:
    """Return whether the fields are in the right columns, by those that have a fixed form."""
    times = [row[name].strip() for name in ("submit", "start", "end")]
    has_times = all(text in _NOTHING or text[:4].isdigit() for text in times)
    return has_times and _state(row) is not None and _JOB.match(row["jobid"].strip().partition(".")[0]) is not None


def _state(row: Row) -> tuple[int, int] | None:
    return _STATES.get(row["state"].strip().partition(" ")[0].rstrip("+"))


def _job(row: Row, line: Line, clock: WallClock, tally: ImportTally, words: dict[str, str]) -> AccountingRecord | None:
    file, number = line.file, line.number
    found = _JOB.match(row["jobid"].strip())
    if found is None:
        tally.lose("the job identifier is not one of Slurm", file, number)
        return None
    state = _state(row)
    if state is None:
        tally.lose("the state is not one of Slurm", file, number)
        return None
    kind, status = state
    identifier = f"{found[1]}[{found[2]}]" if found[2] else found[1]
    if found[3]:
        identifier = f"{found[1]}{found[3]}"
        if kind != UNFINISHED:
            tally.adjust("rests of arrays (12_[4-9]): one row for all of each", file, number)

    def word(name: str) -> str:
        value = row.get(name, "").strip()
        return words.setdefault(value, value)

    record = AccountingRecord(
        kind, identifier, 0, file, number, status=status, user=word("user"), group=word("group"),
        account=word("account"), name=word("jobname"), queue=word("partition"),
    )  # fmt: skip
    if found[4] is not None:
        record.part = int(found[4])
    _resources(record, row)
    record.priority = whole_number(row.get("priority", "").strip())
    record.asks = _asks(
        f"{row.get('reqtres', '')},{row.get('alloctres', '')}", row.get("constraints", ""), row.get("licenses", ""),
        row.get("qos", "").strip(), row.get("reservation", "").strip(),
        _EXCLUSIVE.search(row.get("submitline", "")) is not None,
    )  # fmt: skip
    if kind != UNFINISHED and not _times(record, row, clock, tally):
        return None
    return record


def _times(record: AccountingRecord, row: Row, clock: WallClock, tally: ImportTally) -> bool:
    """Read the instants; if they cannot be used, count the record as lost and return False."""
    choices: dict[str, tuple[int, ...]] = {}
    for name in ("submit", "eligible", "start", "end"):
        text = row.get(name, "").strip()
        choices[name] = () if text in _NOTHING or text == "0" else clock.of_iso(text)
        if not choices[name] and text not in _NOTHING and text != "0":
            tally.lose(
                f"{name.capitalize()} is not a time (expected 2024-05-01T10:00:00 or seconds)", record.file, record.line
            )
            return False
    elapsed = slurm_span(row["elapsed"].strip()) if "elapsed" in row else ABSENT
    if elapsed < 0 and "elapsedraw" in row:
        elapsed = whole_number(row["elapsedraw"].strip())
    suspended = slurm_span(row.get("suspended", "").strip())
    record.suspended = max(int(suspended), 0)
    _settle(record, choices, elapsed, tally)
    if record.kind != REQUEUED and record.status == KILLED and _never_started(record, row, elapsed):
        record.kind, record.start = CANCELLED, ABSENT
    if record.kind in (ENDED, REQUEUED) and min(record.start, record.end, record.submit) < 0:
        named = {"Submit": record.submit, "Start": record.start, "End": record.end}
        missing = next(name for name, value in named.items() if value < 0)
        tally.lose(f"over by its state, but without a {missing} time", record.file, record.line)
        return False
    record.at = record.end if record.end > 0 else record.start if record.start > 0 else max(record.submit, 0)
    return True


def _settle(record: AccountingRecord, choices: dict[str, tuple[int, ...]], elapsed: float, tally: ImportTally) -> None:
    """Choose among the instants of folds: the end that fits the elapsed time, the order submit, eligible, start."""
    span = elapsed + record.suspended
    starts, ends = choices["start"] or (ABSENT,), choices["end"] or (ABSENT,)
    pairs = [(start, end) for start in starts for end in ends]
    submits = choices["submit"] or (ABSENT,)
    if elapsed >= 0 and len(pairs) > 1:
        pairs.sort(key=lambda pair: abs(pair[1] - pair[0] - span))
    fitting = [pair for pair in pairs if submits[0] <= pair[0] <= pair[1]]
    record.start, record.end = (fitting or pairs)[0]
    if record.start >= 0 and elapsed >= 0 and abs(record.end - record.start - span) > 1 and record.end >= 0:
        tally.adjust("End minus Start is not Elapsed: Elapsed is taken", record.file, record.line)
        record.end = record.start + int(span)
    record.submit = submits[0]
    known = choices["eligible"] or (ABSENT,)
    record.eligible = next((each for each in known if each >= record.submit), known[0])


def _never_started(record: AccountingRecord, row: Row, elapsed: float) -> bool:
    if record.start < 0:
        return True
    nodes = row.get("nodelist", "").strip()
    has_none = nodes == "None assigned" or row.get("alloccpus", row.get("ncpus", "")).strip() == "0"
    return elapsed <= 0 and record.end <= record.start and has_none


def _resources(record: AccountingRecord, row: Row) -> None:
    get = row.get
    record.cores = _first_count(row, "alloccpus", "ncpus")
    record.cores_asked = _first_count(row, "reqcpus")
    record.nodes = _first_count(row, "allocnodes", "nnodes")
    record.nodes_asked = _first_count(row, "reqnodes", "nnodes")
    allocated, asked = _tres(get("alloctres", "")), _tres(get("reqtres", ""))
    if record.cores <= 0:
        record.cores = int(allocated.get("cpu", ABSENT))
    if record.cores_asked <= 0:
        record.cores_asked = int(asked.get("cpu", ABSENT))
    if record.nodes <= 0:
        record.nodes = int(allocated.get("node", ABSENT))
    if record.nodes_asked <= 0:
        record.nodes_asked = int(asked.get("node", ABSENT))
    record.memory_asked = int(asked.get("mem", ABSENT))
    if get("reqmem"):
        record.memory_asked = _asked_kilobytes(row["reqmem"].strip(), record)
    limit = slurm_span(get("timelimit", "").strip())
    if limit < 0 and whole_number(get("timelimitraw", "").strip()) > 0:
        limit = int(row["timelimitraw"]) * 60
    record.limit = int(limit)
    if get("totalcpu"):
        record.cpu = slurm_span(row["totalcpu"].strip())
    record.memory_used = _used_kilobytes(row)


def _first_count(row: Row, *names: str) -> int:
    for name in names:
        value = whole_number(row.get(name, "").strip())
        if value > 0:
            return value
    return ABSENT


@lru_cache(maxsize=4096)
def _asks(tres: str, constraints: str, licences: str, qos: str, reservation: str, is_exclusive: bool) -> Asks:
    """Return what a job asks for, or has, that a log does not contain."""
    amounts = [part.strip().partition("=") for part in tres.split(",")]
    names = {name for name, _, amount in amounts if name and amount not in ("", "0")} - _IN_THE_LOG
    gpus = {name for name in names if name.partition(":")[0] == "gres/gpu"}
    licensed = {name for name in names if name.startswith("license/")}
    typed = {name for name in gpus if ":" in name} or gpus  # gres/gpu=2,gres/gpu:a100=2 are two and not four
    words = [re.split(r"[:*=]", each.strip())[0] for each in re.split(r"[,;|]", licences)]
    asks = {(GPUS, name.removeprefix("gres/")) for name in typed}
    asks |= {(OTHERS, name) for name in names - gpus - licensed}
    asks |= {(LICENCES, name) for name in (*words, *(name.removeprefix("license/") for name in licensed))
             if name and name not in _NOTHING}  # fmt: skip
    asks |= {(FEATURES, name) for name in _FEATURE.findall(constraints) if constraints.strip() not in _NOTHING}
    asks |= {(kind, name) for kind, name in ((QOS, qos), (RESERVATIONS, reservation)) if name not in _NOTHING}
    return tuple(sorted(asks | ({(EXCLUSIVE, "")} if is_exclusive else set())))


@lru_cache(maxsize=4096)
def _tres(text: str) -> dict[str, float]:
    """Return cpu, node and mem (KB; a bare number is MB) of ``cpu=4,mem=16G,node=1,gres/gpu=1``."""
    return {
        name: float(value) * (_IN_KB[unit.upper() or "M"] if name == "mem" else 1)
        for name, value, unit in _TRES.findall(text)
    }


def _asked_kilobytes(text: str, record: AccountingRecord) -> int:
    """Return KB of the job for ``4Gc`` (a processor), ``4Gn`` (a host), ``16G`` (the job; a bare number is MB)."""
    found = _SIZE.match(text)
    if found is None:
        return record.memory_asked
    times = 1
    if found[3].lower() == "c":
        times = max(record.cores, record.cores_asked, 1)
    elif found[3].lower() == "n":
        times = max(record.nodes, record.nodes_asked, 1)
    size = float(found[1]) * _IN_KB[found[2].upper() or "M"] * times
    return int(size) if 0 < size < 2**53 else ABSENT


def _used_kilobytes(row: Row) -> int:
    """Return KB of a step: the most memory of one task (a bare number is bytes), times its tasks."""
    found = _SIZE.match(row.get("maxrss", "").strip())
    if found is None:
        return ABSENT
    unit = _IN_KB[found[2].upper()] if found[2] else 1 / 1024
    size = float(found[1]) * unit * max(whole_number(row.get("ntasks", "").strip()), 1)
    return int(size) if size < 2**53 else ABSENT


def _add_step(main: AccountingRecord | None, row: Row, identifier: str) -> None:
    """Add the memory of a step to its job, which comes before it."""
    found = _JOB.match(identifier)
    if main is None or found is None:
        return
    job = f"{found[1]}[{found[2]}]" if found[2] else found[1]
    if (main.job, main.part) == (job, int(found[4]) if found[4] else ABSENT):
        main.memory_used = max(main.memory_used, _used_kilobytes(row))


def _hosts(record: AccountingRecord, text: str, tally: ImportTally, known: dict[str, tuple[str, ...]]) -> None:
    if len(tally.hosts) >= _HOSTS_MAX or text.strip() in ("None assigned", ""):
        return
    if text not in known:
        if len(known) > 100_000:
            known.clear()
        known[text] = tuple(host_names(text.strip()))
        tally.hosts.update(known[text])
    names = known[text]
    if record.nodes < 0 < len(names):
        record.nodes = len(names)
    if tally.keeps_hosts and names and record.cores > 0:
        # The share of each host is not recorded: divide as equally as possible, the first ones get more.
        each, more = divmod(record.cores, len(names))
        record.hosts = tuple((name, each + (place < more)) for place, name in enumerate(names))


def host_names(text: str) -> list[str]:
    """Return the names of ``n[01-03,7],login1``, at most 100,000; a name that is not understood is returned as it is."""
    parts = re.findall(r"[^,\[]*(?:\[[^\]]*\][^,\[]*)*", text)
    return list(islice(chain.from_iterable(_expanded(part) for part in parts if part), _LISTED_MAX))


def _expanded(name: str) -> Iterator[str]:
    """Yield the names of one part: its first bracket replaced by each of its items, and so on for later brackets."""
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
