"""PBS accounting records, of Torque, OpenPBS, PBS Pro and qbatch itself: ``MM/DD/YYYY
HH:MM:SS;E;id;key=value ...``.

Sources: the accounting chapters of the Torque administrator's guide and of the PBS Professional
administrator's guide; docs/spec/pbs.md section 6.  The times inside a record are seconds since
1970; the stamp before it is local time, and is used only if a record has no other (deletions;
Torque's Q and R records).  ``resources_used.walltime`` stands still while a job is suspended (PBS
Professional administrator's guide, "Suspending and Resuming Jobs").
``requeue_reason=quantum_over`` is qbatch's own: a trial run that went back into the queue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from qbatch.model.machine import fold_names
from qbatch.workloads import left_out
from qbatch.workloads.accounting import record as records
from qbatch.workloads.accounting.pbs_requests import (
    IN_THE_LOG,
    REMEMBERED,
    Asked,
    asks_of,
    bytes_of,
    chunk_sums,
    request_of,
)
from qbatch.workloads.accounting.record import (
    ABSENT,
    COUNT_MAX,
    AccountingRecord,
    ImportCounts,
    Kind,
    Line,
    Status,
)
from qbatch.workloads.accounting.times import WallClock, pbs_span
from qbatch.workloads.resource_rows import REQUEST_COLUMNS, cells_of

_KINDS = {
    "Q": Kind.QUEUED,
    "S": Kind.STARTED,
    "E": Kind.ENDED,
    "R": Kind.REQUEUED,
    "D": Kind.CANCELLED,
    "A": Kind.CANCELLED,
    "z": Kind.SUSPENDED,
    "r": Kind.RESUMED,
}
_LETTERS = frozenset("QSERDAzrabcefghijklmnopqstuvwxyCTLMUYBFKkPHGIJNOVWXZ")
_JOB = re.compile(r"(\d{1,18})(?:\[(\d{0,18})\]|-(\d{1,18}))?(?:\.(\S*))?\Z", re.ASCII)
_RANGE = re.compile(r"\d+\[[\d,:-]*\](\.\S*)?\Z", re.ASCII)
_TOKENS = re.compile(r'(?:[^\s"]++|"[^"]*+")++|"')
_NAME = re.compile(r"[A-Za-z_][\w.\-]*\Z", re.ASCII)
_NCPUS = re.compile(r"(?<![\w.])ncpus=(\d{1,9})", re.ASCII)
_CHUNK = re.compile(r"\([^()]*\)|[^()+]+")
_LISTS_SLOTS = re.compile(r"/\d*[-,*]")
_VNODE = re.compile(r"([^()+:]+)([^()+]*)")
_CLOSING = frozenset((Kind.ENDED, Kind.REQUEUED))
_BY_SERVER = frozenset((256 + 9, 256 + 15, 128 + 9, 128 + 15))

_KNOWN = frozenset(
    (
        "user",
        "group",
        "account",
        "project",
        "jobname",
        "queue",
        "ctime",
        "qtime",
        "etime",
        "start",
        "end",
        "owner",
        "exec_host",
        "exec_vnode",
        "session",
        "Exit_status",
        "eligible_time",
        "run_count",
        "resvID",
        "resvname",
        "requestor",
        "array_indices",
        "accounting_id",
        "alt_id",
        "depend",
        "total_execution_slots",
        "unique_node_count",
        "submit_host",
        "submit_args",
        "pcap_accelerator",
        "pcap_node",
        "pgov",
        "resvjobID",
        "hosts",
        "pset",
        "reqid",
        "executable",
        "x",
        "login_node",
        "qos",
        "Priority",
        "priority",
        "estimated.start",
        "estimated.exec_vnode",
        "exec_host2",
        "topjob_ineligible",
        "requeue_reason",
    )
)
_ALWAYS_RECORDED = frozenset(left_out.KINDS) - {left_out.PRIORITY, left_out.QOS}
"""The kinds that every job's record contains although a log leaves them out; only some sites record
a priority or a QOS."""

_KNOWN_FAMILIES = (
    "Resource_List.",
    "resources_used.",
    "resource_assigned.",
    "resources_assigned.",
    "Resources_List.",
)


def read_pbs(
    lines: Iterable[Line], clock: WallClock, counts: ImportCounts
) -> Iterator[AccountingRecord]:
    """Yield the records of the lines of one file; ``counts`` gets what cannot be used."""
    words: dict[str, str] = {}
    latest = 0
    counts.recorded |= _ALWAYS_RECORDED
    for line in lines:
        counts.lines += 1
        if not line.text.strip():
            continue
        record = _record(line, clock, counts, latest, words)
        if record is not None:
            latest = max(latest, record.at)
            counts.records += 1
            yield record


def _record(
    line: Line, clock: WallClock, counts: ImportCounts, latest: int, words: dict[str, str]
) -> AccountingRecord | None:
    if not line.is_whole:
        counts.unusable.add(
            "the line is cut short (no end of line, or longer than 16 MiB)", line.place
        )
        return None
    parts = line.text.decode("utf-8", "surrogateescape").split(";", 3)
    if len(parts) < 4 or parts[1] not in _LETTERS or len(parts[0]) != 19:
        counts.unusable.add(
            "not an accounting record (expected MM/DD/YYYY HH:MM:SS;TYPE;ID;...)", line.place
        )
        return None
    stamp, letter, identifier, text = parts
    if letter not in _KINDS:
        counts.ignored.add(f"records of type {letter}, without a job's start or end", line.place)
        return None
    found = _JOB.match(identifier)
    if found is None or found[2] == "":
        if _RANGE.match(identifier):
            counts.ignored.add(
                "records of arrays as a whole; their jobs have separate records", line.place
            )
        elif letter in "LBFYKkU" or (
            identifier[:1] in ("R", "S", "M") and identifier[1:2].isdigit()
        ):
            counts.ignored.add("records of reservations", line.place)
        else:
            counts.unusable.add("the job identifier is not one of PBS", line.place)
        return None
    instants = clock.of_stamp(stamp)
    if not instants:
        counts.unusable.add("the time of the record is not a time", line.place)
        return None
    # Stamps of one file ascend: of the two instants of a fold, take the first that is not before
    # the last stamp.
    at = next((each for each in instants if each >= latest), instants[-1])
    index, server = found[2] or found[3], found[4] or ""
    counts.clusters.add(server)
    record = AccountingRecord(
        _KINDS[letter],
        f"{found[1]}[{index}]" if index else found[1],
        at,
        line.file,
        line.number,
        cluster=words.setdefault(server, server),
    )
    if text:
        _fill(record, _fields(text), counts, words)
    return record


def _fields(text: str) -> dict[str, str]:
    """Return the ``key=value`` pairs; a word without a key belongs to the value before it, quotes
    keep blanks."""
    fields: dict[str, str] = {}
    last = ""
    for token in _TOKENS.findall(text) if '"' in text else text.split():
        key, equals, value = token.partition("=")
        # The command of a job may itself have words like start=5.
        is_text = last == "submit_args" and (key in fields or not _is_known(key))
        if equals and _is_name(key) and not is_text:
            last = key
            fields[key] = value.strip('"') if '"' in value else value
        elif last:
            fields[last] = f"{fields[last]} {token.strip(chr(34))}".strip()
    return fields


@lru_cache(maxsize=REMEMBERED)
def _is_name(text: str) -> bool:
    return _NAME.match(text) is not None


@lru_cache(maxsize=REMEMBERED)
def _is_known(name: str) -> bool:
    return name in _KNOWN or name.startswith(_KNOWN_FAMILIES)


def _fill(
    record: AccountingRecord, fields: dict[str, str], counts: ImportCounts, words: dict[str, str]
) -> None:
    """Fill the record from the fields."""
    unknown = {name for name in fields if not _is_known(name)}
    if unknown:
        counts.met_fields(unknown)
    get = fields.get

    def word(name: str) -> str:
        value = get(name, "")
        return words.setdefault(value, value)

    record.submit = records.whole_number(get("ctime") or get("qtime"), records.TIME_MAX)
    record.eligible = records.whole_number(get("etime") or get("qtime"), records.TIME_MAX)
    record.start = records.whole_number(get("start"), records.TIME_MAX) or ABSENT
    record.user, record.group, record.account = word("user"), word("group"), word("account")
    record.queue, record.name = word("queue"), word("jobname")
    if record.kind not in _CLOSING and record.kind != Kind.STARTED:
        return
    _left_out(record, fields, counts)
    _asked(record, fields, counts)
    hosts = _allocated(record, fields, counts)
    if counts.keeps_requests:
        _request(record, fields, hosts, counts)
    if record.kind == Kind.STARTED:
        return
    record.end = records.whole_number(get("end"), records.TIME_MAX) or ABSENT
    record.status = _status(get("Exit_status"))
    record.is_trial = record.kind == Kind.REQUEUED and get("requeue_reason") == "quantum_over"
    if "resources_used.cput" in fields:
        record.cpu = pbs_span(fields["resources_used.cput"])
    if "resources_used.walltime" in fields:
        record.walltime = pbs_span(fields["resources_used.walltime"])
    record.memory_used = _kilobytes(get("resources_used.mem"))


def _status(text: str | None) -> int:
    if text is None:
        return ABSENT
    if text == "0":
        return Status.COMPLETED
    return Status.KILLED if records.whole_number(text) in _BY_SERVER else Status.FAILED


def _asked(record: AccountingRecord, fields: dict[str, str], counts: ImportCounts) -> None:
    """Read what the job asked for.

    Its processors are the most that a field of ``Resource_List`` names: the others are defaults of
    the server, such as ``ncpus=1`` next to ``nodes=2:ppn=4``.
    """
    get = fields.get
    if "Resource_List.walltime" in fields:
        record.limit = int(pbs_span(fields["Resource_List.walltime"]))
    in_all = max(records.whole_number(get(f"Resource_List.{name}")) for name in ("ncpus", "procs"))
    chunked = (get(f"Resource_List.{name}") for name in ("select", "nodes", "neednodes"))
    text = next((text for text in chunked if text), "")
    nodes, in_chunks = chunk_sums(text) if text else (ABSENT, ABSENT)
    cores = max(in_all, in_chunks)
    has_two = 0 < in_chunks < in_all and ("ppn=" in text or "ncpus=" in text)
    if has_two and record.kind in _CLOSING:
        counts.adjusted.add(
            "Resource_List names two numbers of processors: the larger is taken", record.place
        )
    if "Resource_List.nodect" in fields:
        nodes = records.whole_number(get("Resource_List.nodect"))
    width = records.whole_number(get("Resource_List.mppwidth"))
    if width > 0:  # on a Cray, the host in the record is only where the job was launched
        cores = min(width * max(records.whole_number(get("Resource_List.mppdepth")), 1), COUNT_MAX)
        nodes = -(-width // max(records.whole_number(get("Resource_List.mppnppn")), 1))
        record.cores, record.nodes = cores, nodes
    record.cores_asked, record.nodes_asked = cores, nodes
    record.memory_asked = _kilobytes(get("Resource_List.mem"))
    if record.memory_asked < 0 < cores and "Resource_List.pmem" in fields:
        each = _kilobytes(fields["Resource_List.pmem"])
        record.memory_asked = each * cores if each >= 0 else ABSENT


def _left_out(record: AccountingRecord, fields: dict[str, str], counts: ImportCounts) -> None:
    """Read the requests of the job that a log does not contain."""
    priority = fields.get("Priority") or fields.get("priority")
    if priority is not None:
        record.priority = records.whole_number(priority)
        counts.recorded.add(left_out.PRIORITY)
    qos = fields.get("qos") or fields.get("Resource_List.qos", "")
    if qos:
        counts.recorded.add(left_out.QOS)
    listed = tuple(
        (name.partition(".")[2], value)
        for name, value in fields.items()
        if name.startswith("Resource_List.") and name.partition(".")[2] not in IN_THE_LOG
    )
    record.asks = asks_of(listed, qos, _reservation(fields))


def _reservation(fields: dict[str, str]) -> str:
    return fields.get("resvname") or fields.get("resvID", "")


def _request(
    record: AccountingRecord, fields: dict[str, str], hosts: Iterable[str], counts: ImportCounts
) -> None:
    """Fill the cells of the job's line of resources; a job gets none if no line can say its
    request."""
    asked = _asked_for(
        tuple(
            (name.partition(".")[2], value)
            for name, value in fields.items()
            if name.startswith("Resource_List.")
        ),
        _reservation(fields),
    )
    if asked is None:
        return
    cells = cells_of(asked.request) if asked.request.procs == record.cores_asked else {}
    is_over = record.kind in _CLOSING
    if not cells and is_over:
        counts.adjusted.add(
            "chunks of different kinds, or of another number of processors than the job: without a "
            "line of resources",
            record.place,
        )
    elif not asked.is_whole and is_over:
        counts.adjusted.add(
            "a host by name, an amount with a unit, or a feature that must be absent: its line of "
            "resources names none",
            record.place,
        )
    if cells:
        cells["partitions"] = record.queue
        cells["hosts"] = ",".join(fold_names(list(hosts)))
        record.request = tuple(cells.get(name, "") for name in REQUEST_COLUMNS)


@lru_cache(maxsize=REMEMBERED)
def _asked_for(listed: tuple[tuple[str, str], ...], reservation: str) -> Asked | None:
    return request_of(dict(listed), reservation)


def _allocated(
    record: AccountingRecord, fields: dict[str, str], counts: ImportCounts
) -> Iterable[str]:
    """Read the job's processors and hosts, and return the names of these.

    ``total_execution_slots`` (Torque) decides, then ``exec_vnode``.  Without both, ``exec_host``
    decides if it lists slots (``n2/0+n2/1``, ``n2/0-3``) or counts them (``n2/0*4``).  But ``n2/4``
    is slot 4 of n2 or four slots of it: there ``Resource_List`` decides if it has more.
    """
    if record.cores > 0:
        return ()
    slots = fields.get("exec_host", "")
    on_hosts = [
        (host, _slots(text) if slash else 1)
        for part in slots.split("+")
        for host, slash, text in (part.partition("/"),)
        if host
    ]
    chunks = [
        [(name, sum(map(int, _NCPUS.findall(rest)))) for name, rest in _VNODE.findall(chunk)]
        for chunk in _CHUNK.findall(fields.get("exec_vnode", ""))
    ]
    of_chunks = [sum(count for _, count in chunk) for chunk in chunks]
    told = {
        "total_execution_slots": records.whole_number(fields.get("total_execution_slots")),
        "exec_vnode": sum(of_chunks),
        "exec_host": sum(count for _, count in on_hosts),
    }
    is_vague = max(told["total_execution_slots"], told["exec_vnode"]) <= 0 and not (
        _LISTS_SLOTS.search(slots) or len({host for host, _ in on_hosts}) < len(on_hosts)
    )
    if is_vague and 0 < told["exec_host"] < record.cores_asked:
        told = {"Resource_List": record.cores_asked, **told}
    told = {name: count for name, count in told.items() if 0 < count <= COUNT_MAX}
    decides = next(iter(told), "")
    record.cores = told.get(decides, ABSENT)
    wrong = [name for name, count in told.items() if count != record.cores]
    if wrong and record.kind in _CLOSING:
        counts.adjusted.add(
            f"{decides} has another number of processors than {' and '.join(wrong)}: it is taken",
            record.place,
        )
    if not on_hosts:
        on_hosts = [vnode for chunk in chunks for vnode in chunk]
    elif len(on_hosts) == len(chunks) and any(of_chunks):  # each chunk is on one host
        on_hosts = [(host, count) for (host, _), count in zip(on_hosts, of_chunks, strict=True)]
    hosts: dict[str, int] = {}
    for host, count in on_hosts:
        hosts[host] = hosts.get(host, 0) + count
    if len(counts.hosts) < 1_000_000:
        counts.hosts.update((record.cluster, host) for host in hosts)
    if counts.keeps_hosts:
        record.hosts = tuple(zip(hosts, _shares([*hosts.values()], record.cores), strict=True))
    unique = records.whole_number(fields.get("unique_node_count"))
    record.nodes = unique if unique > 0 else len(hosts) or ABSENT
    if 0 < unique != len(hosts) > 0 and record.kind in _CLOSING:
        counts.adjusted.add(
            "unique_node_count has another number of hosts than exec_host: it is taken",
            record.place,
        )
    return hosts


def _shares(counts: list[int], cores: int) -> list[int]:
    """Return the processors of each host, in these proportions, so that they are ``cores`` in
    all."""
    whole = sum(counts)
    if cores <= 0 or whole in (0, cores):
        return counts
    ends = [cores * sum(counts[: place + 1]) // whole for place in range(len(counts))]
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


@lru_cache(maxsize=REMEMBERED)
def _slots(text: str) -> int:
    """Return the number of processors in ``0`` (one), ``0*8`` (PBS Pro), ``0-3,5`` (Torque)."""
    if text.isdigit():
        return 1
    _, star, times = text.partition("*")
    if star:
        return max(records.whole_number(times), 0)
    count = 0
    for part in text.split(","):
        low, dash, high = part.partition("-")
        first, last = records.whole_number(low), records.whole_number(high if dash else low)
        count += last - first + 1 if 0 <= first <= last else 1
    return count


def _kilobytes(text: str | None) -> int:
    return min(size >> 10, 2**53) if (size := bytes_of(text)) >= 0 else ABSENT
