"""PBS accounting records, of Torque, OpenPBS, PBS Pro and qbatch itself: ``MM/DD/YYYY HH:MM:SS;E;id;key=value ...``.

Sources: the accounting chapters of the Torque administrator's guide and of the PBS Professional administrator's guide;
docs/spec/pbs.md section 6.  The times inside a record are seconds since 1970; the stamp before it is local time, and is
used only where a record says no other (deletions; Torque's Q and R records).  ``resources_used.walltime`` stands still while a
job is suspended (PBS Professional administrator's guide, "Suspending and Resuming Jobs").  ``requeue_reason=quantum_over`` is
qbatch's own: an attempt on trial that was thrown back into the queue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from qbatch.workloads.accounting.record import (
    ABSENT,
    CANCELLED,
    COMPLETED,
    COUNT_MAX,
    ENDED,
    FAILED,
    KILLED,
    QUEUED,
    REQUEUED,
    RESUMED,
    STARTED,
    SUSPENDED,
    TIME_MAX,
    AccountingRecord,
    ImportTally,
    Line,
    whole_number,
)
from qbatch.workloads.accounting.times import WallClock, pbs_span
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

_KINDS = {
    "Q": QUEUED, "S": STARTED, "E": ENDED, "R": REQUEUED, "D": CANCELLED, "A": CANCELLED, "z": SUSPENDED, "r": RESUMED,
}  # fmt: skip
_LETTERS = frozenset("QSERDAzrabcefghijklmnopqstuvwxyCTLMUYBFKkPHGIJNOVWXZ")
_JOB = re.compile(r"(\d{1,18})(?:\[(\d{0,18})\]|-(\d{1,18}))?(?:\.(\S*))?\Z", re.ASCII)
_RANGE = re.compile(r"\d+\[[\d,:-]*\](\.\S*)?\Z", re.ASCII)
_TOKENS = re.compile(r'(?:[^\s"]++|"[^"]*+")++|"')
_NAME = re.compile(r"[A-Za-z_][\w.\-]*\Z", re.ASCII)
_SIZE = re.compile(r"(\d{1,18})([kmgtp]?)(b|w)?\Z", re.ASCII)
_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_NCPUS = re.compile(r"(?<![\w.])ncpus=(\d{1,9})", re.ASCII)
_REMEMBERED = 4096
_BY_SERVER = frozenset((256 + 9, 256 + 15, 128 + 9, 128 + 15))

_KNOWN = frozenset((
    "user", "group", "account", "project", "jobname", "queue", "ctime", "qtime", "etime", "start", "end", "owner",
    "exec_host", "exec_vnode", "session", "Exit_status", "eligible_time", "run_count", "resvID", "resvname", "requestor",
    "array_indices", "accounting_id", "alt_id", "depend", "total_execution_slots", "unique_node_count", "submit_host",
    "submit_args", "pcap_accelerator", "pcap_node", "pgov", "resvjobID", "hosts", "pset", "reqid", "executable",
    "x", "login_node", "qos", "Priority", "priority", "estimated.start",
    "estimated.exec_vnode", "exec_host2", "topjob_ineligible", "requeue_reason",
))  # fmt: skip
_ALWAYS_TOLD = frozenset((GPUS, OTHERS, FEATURES, LICENCES, EXCLUSIVE, MEMORY, PARTITIONS, RESERVATIONS))
"""Of what that a log leaves out every job's record speaks; a priority or a QOS stands in the records of some sites only."""

_IN_THE_LOG = frozenset((
    "walltime", "min_walltime", "max_walltime", "soft_walltime", "ncpus", "ppn", "procs", "nodect", "neednodes", "mpiprocs",
    "ompthreads", "cput", "pcput", "nice", "mppwidth", "mppdepth", "mppnppn",
))  # fmt: skip
"""Resources that a log holds, or that limit nothing which jobs share."""

_MEMORIES = frozenset(("mem", "pmem", "vmem", "pvmem", "mppmem"))
_GPU = re.compile(r"n?gpus?\Z|n?accelerators?\Z")
_LICENCE = re.compile(r"software\Z|(?:.*_)?(?:lics?|licen[cs]es?|tokens?)(?:_.*)?\Z")
_AMOUNT = re.compile(r"\d+(?:\.\d+)?(?:[kmgtp]?[bw])?\Z", re.IGNORECASE)
_KNOWN_FAMILIES = ("Resource_List.", "resources_used.", "resource_assigned.", "resources_assigned.", "Resources_List.")


def read_pbs(lines: Iterable[Line], clock: WallClock, tally: ImportTally) -> Iterator[AccountingRecord]:
    """Yield the records of the lines of one file; what cannot be used is counted in the tally."""
    words: dict[str, str] = {}
    latest = 0
    tally.told |= _ALWAYS_TOLD
    for line in lines:
        tally.lines += 1
        if not line.text.strip():
            continue
        record = _record(line, clock, tally, latest, words)
        if record is not None:
            latest = max(latest, record.at)
            tally.records += 1
            yield record


def _record(line: Line, clock: WallClock, tally: ImportTally, latest: int, words: dict[str, str]) -> AccountingRecord | None:
    file, number = line.file, line.number
    if not line.is_whole:
        tally.lose("the line is cut short (no end of line, or longer than 16 MiB)", file, number)
        return None
    parts = line.text.decode("utf-8", "surrogateescape").split(";", 3)
    if len(parts) < 4 or parts[1] not in _LETTERS or len(parts[0]) != 19:
        tally.lose("no accounting record (expected MM/DD/YYYY HH:MM:SS;TYPE;ID;...)", file, number)
        return None
    stamp, letter, identifier, text = parts
    if letter not in _KINDS:
        tally.skip(f"records of type {letter}, which tell of no job's start or end", file, number)
        return None
    found = _JOB.match(identifier)
    if found is None or found[2] == "":
        _without_job(identifier, letter, tally, file, number)
        return None
    instants = clock.of_stamp(stamp)
    if not instants:
        tally.lose("the time of the record is no time", file, number)
        return None
    # Stamps of one file ascend: of the two instants of a fold it is the first that does not lie before the last one.
    at = next((each for each in instants if each >= latest), instants[-1])
    if found[4]:
        tally.servers.add(found[4])
    index = found[2] or found[3]
    record = AccountingRecord(_KINDS[letter], f"{found[1]}[{index}]" if index else found[1], at, file, number)
    if text:
        _fill(record, _fields(text), tally, words)
    return record


def _without_job(identifier: str, letter: str, tally: ImportTally, file: str, number: int) -> None:
    if _RANGE.match(identifier):
        tally.skip("records of arrays as a whole; their jobs have records of their own", file, number)
    elif letter in "LBFYKkU" or (identifier[:1] in ("R", "S", "M") and identifier[1:2].isdigit()):
        tally.skip("records of reservations", file, number)
    else:
        tally.lose("the job identifier is not one of PBS", file, number)


def _fields(text: str) -> dict[str, str]:
    """Return the ``key=value`` pairs; a word without a key belongs to the value before it, quotes keep blanks."""
    fields: dict[str, str] = {}
    last = ""
    for token in _TOKENS.findall(text) if '"' in text else text.split():
        key, equals, value = token.partition("=")
        if equals and _is_name(key):
            last = key
            fields[key] = value.strip('"') if '"' in value else value
        elif last:
            fields[last] = f"{fields[last]} {token.strip(chr(34))}".strip()
    return fields


@lru_cache(maxsize=_REMEMBERED)
def _is_name(text: str) -> bool:
    return _NAME.match(text) is not None


@lru_cache(maxsize=_REMEMBERED)
def _is_known(name: str) -> bool:
    return name in _KNOWN or name.startswith(_KNOWN_FAMILIES)


def _fill(record: AccountingRecord, fields: dict[str, str], tally: ImportTally, words: dict[str, str]) -> None:
    """Put what the fields say into the record."""
    unknown = {name for name in fields if not _is_known(name)}
    if unknown:
        tally.met_fields(unknown)
    get = fields.get

    def word(name: str) -> str:
        value = get(name, "")
        return words.setdefault(value, value)

    record.submit = whole_number(get("ctime") or get("qtime"), TIME_MAX)
    record.eligible = whole_number(get("etime") or get("qtime"), TIME_MAX)
    record.start = whole_number(get("start"), TIME_MAX) or ABSENT
    record.user, record.group, record.account = word("user"), word("group"), word("account")
    record.queue, record.name = word("queue"), word("jobname")
    if record.kind not in (ENDED, REQUEUED):
        if record.kind == STARTED:
            _asked(record, fields)
            _left_out(record, fields, tally)
        return
    _left_out(record, fields, tally)
    record.end = whole_number(get("end"), TIME_MAX) or ABSENT
    record.status = _status(get("Exit_status"))
    record.is_trial = record.kind == REQUEUED and get("requeue_reason") == "quantum_over"
    _asked(record, fields)
    _allocated(record, fields, tally)
    if "resources_used.cput" in fields:
        record.cpu = pbs_span(fields["resources_used.cput"])
    if "resources_used.walltime" in fields:
        record.walltime = pbs_span(fields["resources_used.walltime"])
    record.memory_used = _kilobytes(get("resources_used.mem"))


def _status(text: str | None) -> int:
    if text is None:
        return ABSENT
    if text == "0":
        return COMPLETED
    return KILLED if whole_number(text) in _BY_SERVER else FAILED


def _asked(record: AccountingRecord, fields: dict[str, str]) -> None:
    get = fields.get
    if "Resource_List.walltime" in fields:
        record.limit = int(pbs_span(fields["Resource_List.walltime"]))
    nodes, cores = ABSENT, whole_number(get("Resource_List.ncpus"))
    for name in ("Resource_List.select", "Resource_List.nodes"):
        if name in fields:
            nodes, found = _chunks(fields[name])
            cores = max(found, cores) if name.endswith("select") else found
            break
    else:
        if "Resource_List.procs" in fields:
            cores = whole_number(fields["Resource_List.procs"])
    if "Resource_List.nodect" in fields:
        nodes = whole_number(get("Resource_List.nodect"))
    width = whole_number(get("Resource_List.mppwidth"))
    if width > 0:  # of a Cray: the host in the record is only where the job was launched
        cores = min(width * max(whole_number(get("Resource_List.mppdepth")), 1), COUNT_MAX)
        nodes = -(-width // max(whole_number(get("Resource_List.mppnppn")), 1))
        record.cores, record.nodes = cores, nodes
    record.cores_asked, record.nodes_asked = cores, nodes
    record.memory_asked = _kilobytes(get("Resource_List.mem"))
    if record.memory_asked < 0 < cores and "Resource_List.pmem" in fields:
        each = _kilobytes(fields["Resource_List.pmem"])
        record.memory_asked = each * cores if each >= 0 else ABSENT


def _left_out(record: AccountingRecord, fields: dict[str, str], tally: ImportTally) -> None:
    """Read what a log does not hold of the job."""
    priority = fields.get("Priority") or fields.get("priority")
    if priority is not None:
        record.priority = whole_number(priority)
        tally.told.add(PRIORITY)
    qos = fields.get("qos") or fields.get("Resource_List.qos", "")
    if qos:
        tally.told.add(QOS)
    listed = tuple(
        (name.partition(".")[2], value) for name, value in fields.items()
        if name.startswith("Resource_List.") and name.partition(".")[2] not in _IN_THE_LOG
    )  # fmt: skip
    record.asks = _asks(listed, qos, fields.get("resvname") or fields.get("resvID", ""))


@lru_cache(maxsize=_REMEMBERED)
def _asks(listed: tuple[tuple[str, str], ...], qos: str, reservation: str) -> Asks:
    """Return what the resources that a job lists, its QOS and its reservation come to."""
    asks = {(kind, name) for kind, name in ((QOS, qos), (RESERVATIONS, reservation)) if name}
    for name, value in listed:
        if name in ("select", "nodes"):
            chunks, _, rest = value.partition("#")
            asks |= {ask for chunk in chunks.split("+") for ask in _asks_of_chunk(chunk)}
            asks |= {(EXCLUSIVE, "")} if "excl" in rest else set()
        elif name == "place":
            asks |= {(EXCLUSIVE, "")} if "excl" in value else set()
        elif name == "naccesspolicy":
            asks |= {(EXCLUSIVE, "")} if value.lower().startswith("single") else set()
        elif name != "qos":
            asks |= _ask(name, value)
    return tuple(sorted(asks))


def _asks_of_chunk(chunk: str) -> set[tuple[str, str]]:
    """Return what ``2:ncpus=4:ngpus=1`` (select), ``2:ppn=4:gpus=1:bigmem`` or ``n7:ppn=4`` (nodes) ask for."""
    asks: set[tuple[str, str]] = set()
    for part in chunk.split(":"):
        name, equals, value = part.strip().partition("=")
        if equals:
            asks |= _ask(name, value)
        elif name and not name.isdigit():
            asks.add((FEATURES, name))
    return asks


def _ask(name: str, value: str) -> set[tuple[str, str]]:
    """Return what one resource is: amounts are consumed, words tell hosts apart."""
    if name in _IN_THE_LOG or value == "0":
        return set()
    if name in _MEMORIES:
        return {(MEMORY, "")}
    if _GPU.match(name):
        return {(GPUS, name)}
    if _LICENCE.match(name):
        return {(LICENCES, value if name == "software" else name)}
    return {(OTHERS, name)} if _AMOUNT.match(value) else {(FEATURES, name if value == "True" else f"{name}={value}")}


@lru_cache(maxsize=_REMEMBERED)
def _chunks(text: str) -> tuple[int, int]:
    """Return the chunks and the processors of ``2:ncpus=4+1`` (select) or ``2:ppn=4+n7`` (nodes)."""
    nodes = cores = 0
    for part in text.partition("#")[0].split("+"):
        first, *others = part.split(":")
        count = whole_number(first.strip())
        if count < 0:
            others, count = ([*others, first] if "=" in first else others), 1
        each = 1
        for other in others:
            name, _, value = other.partition("=")
            if name in ("ppn", "ncpus"):
                each = max(whole_number(value), 0)
        nodes += count
        cores += count * each
    return (nodes, cores) if 0 < cores <= COUNT_MAX and nodes <= COUNT_MAX else (ABSENT, ABSENT)


def _allocated(record: AccountingRecord, fields: dict[str, str], tally: ImportTally) -> None:
    """Read the processors and hosts that the job had, from ``exec_vnode``, else from ``exec_host``."""
    if record.cores > 0:
        return
    hosts: dict[str, int] = {}
    cores = 0
    for part in fields.get("exec_host", "").split("+"):
        host, slash, slots = part.partition("/")
        if host:
            count = _slots(slots) if slash else 1
            hosts[host] = hosts.get(host, 0) + count
            cores += count
    vnodes = fields.get("exec_vnode")
    if vnodes:
        of_vnodes = sum(map(int, _NCPUS.findall(vnodes)))
        cores = of_vnodes or cores
        if not hosts:
            hosts = _of_vnodes(vnodes)
    if len(tally.hosts) < 1_000_000:
        tally.hosts |= hosts.keys()
    if tally.keeps_hosts:
        record.hosts = tuple(hosts.items())
    record.cores = cores if 0 < cores <= COUNT_MAX else ABSENT
    record.nodes = len(hosts) or ABSENT


def _of_vnodes(vnodes: str) -> dict[str, int]:
    """Return the processors by virtual node, where no host is told."""
    found: dict[str, int] = {}
    for part in vnodes.split("+"):
        name = part.strip("()").partition(":")[0]
        if name:
            found[name] = found.get(name, 0) + sum(map(int, _NCPUS.findall(part)))
    return found


@lru_cache(maxsize=_REMEMBERED)
def _slots(text: str) -> int:
    """Return how many processors ``0`` (one), ``0*8`` (PBS Pro), ``0-3,5`` (Torque) are."""
    if text.isdigit():
        return 1
    _, star, times = text.partition("*")
    if star:
        return max(whole_number(times), 0)
    count = 0
    for part in text.split(","):
        low, dash, high = part.partition("-")
        first, last = whole_number(low), whole_number(high if dash else low)
        count += last - first + 1 if 0 <= first <= last else 1
    return count


@lru_cache(maxsize=_REMEMBERED)
def _kilobytes(text: str | None) -> int:
    """Return KB for ``100mb``, ``512kb``, ``1234b``, ``12gw`` (words of eight bytes); ``ABSENT`` for anything else."""
    found = _SIZE.match(text.lower()) if text else None
    if found is None:
        return ABSENT
    size = int(found[1]) * _SIZES[found[2]] * (8 if found[3] == "w" else 1)
    return min(size >> 10, 2**53)
