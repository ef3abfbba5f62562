"""``pbsnodes``: show hosts, drain them (-o), put them back into service (-r)."""

from __future__ import annotations

from collections.abc import Iterable

from qbatch.cli.pbs.command import TAKEN, VERSION, Call, Command, UsageFault, code_of
from qbatch.cli.pbs.format_attributes import Attribute, host_attributes, torque_host_attributes
from qbatch.cli.pbs.format_full import json_document, json_object, separated
from qbatch.cli.pbs.text import cell, plain, whole_cell
from qbatch.wire.records import HostRecord, Hosts, Outcomes
from qbatch.wire.requests import HostControl, HostStatus

_Value = str | int | list[str]


NodeColumn = tuple[str, str, int]
"""A column of a summary: its name with ``-F dsv``, its name with ``-F json``, its width (negative:
flush left; 0: any width). Source: OpenPBS, pbsnodes.c, prt_node_summary."""

_HEADER = (
    "vnode           state           OS       hardware host            queue        mem     "
    "ncpus   nmics   ngpus  "
    "comment\n"
    "--------------- --------------- -------- -------- --------------- ---------- -------- ------- "
    "------- ------- "
    "---------\n"
)
_COLUMNS: tuple[NodeColumn, ...] = (
    ("vnode", "", -15),
    ("state", "State", -15),
    ("OS", "OS", -8),
    ("hardware", "hardware", -8),
    ("host", "host", -15),
    ("queue", "queue", -10),
    ("mem", "Memory", 8),
    ("ncpus", "ncpus", 7),
    ("nmics", "nmics", 7),
    ("ngpus", "ngpus", 7),
    ("comment", "comment", 0),
)
_JOBS_HEADER = (
    "                                                        mem       ncpus   nmics   ngpus\n"
    "vnode           state           njobs   run   susp      f/t        f/t     f/t     f/t   "
    "jobs\n"
    "--------------- --------------- ------ ----- ------ ------------ ------- ------- ------- "
    "-------\n"
)
_JOBS_COLUMNS: tuple[NodeColumn, ...] = (
    ("vnode", "", -15),
    ("state", "State", -15),
    ("njobs", "Total Jobs", 6),
    ("run", "Running Jobs", 5),
    ("susp", "Suspended Jobs", 6),
    ("mem(f/t)", "mem f/t", 12),
    ("ncpus(f/t)", "ncpus f/t", 7),
    ("nmics(f/t)", "nmics f/t", 7),
    ("ngpus(f/t)", "ngpus f/t", 7),
    ("jobs", "jobs", 0),
)


def block_text(name: str, attributes: Iterable[Attribute]) -> str:
    """Return one block of ``pbsnodes -a``: the name of a host, its attributes indented by five, a
    blank line."""
    lines = [plain(name)]
    lines += [f"     {plain(each.full_name)} = {plain(each.value)}" for each in attributes]
    return "\n".join(lines) + "\n\n"


def host_object(host: HostRecord) -> dict[str, object]:
    """Return a host as an object for ``-F json``; as in OpenPBS it has no resource of which nothing
    is assigned."""
    found = json_object(host_attributes(host))
    found["resources_assigned"] = json_object(
        Attribute(resource, "", value)
        for name, resource, value, _ in host_attributes(host)
        if name == "resources_assigned" and value not in ("0", "0kb")
    )
    if host.jobs:
        found["jobs"] = list(dict.fromkeys(host.jobs))
    return found


def host_line(host: HostRecord) -> str:
    """Return one line of ``pbsnodes -l``: name, state, comment."""
    return f"{whole_cell(host.name):<20} {plain(host.state)} {plain(host.comment)}".rstrip() + "\n"


def short_size(size: int) -> str:
    """Return bytes in at most three digits: ``64gb``."""
    kilobytes, letters = -(-size // 1024), "kmgtp"
    place = 0
    while kilobytes > 999 and place < len(letters) - 1:
        kilobytes = (kilobytes % 1024 + kilobytes) >> 10
        place += 1
    return f"{kilobytes}{letters[place]}b"


def _summary(host: HostRecord, has_jobs: bool) -> list[tuple[NodeColumn, _Value]]:
    """Return the columns of a host's summary with their values."""
    gpus = host.resources.get("gpu", 0)
    if has_jobs:
        jobs = list(dict.fromkeys(host.jobs))
        memory = f"{short_size(max(host.memory - host.memory_used, 0))}/{short_size(host.memory)}"
        processors = f"{host.cpus - host.cpus_used}/{host.cpus}"
        found: list[_Value] = [
            host.name,
            host.state,
            len(jobs),
            len(jobs),
            0,
            memory,
            processors,
            "0/0",
            f"{gpus - host.resources_used.get('gpu', 0)}/{gpus}",
            jobs,
        ]
        return list(zip(_JOBS_COLUMNS, found, strict=True))
    queue = host.own_queue or "--"
    memory, comment = short_size(host.memory), host.comment or "--"
    found = [
        host.name,
        host.state,
        "--",
        "--",
        host.name,
        queue,
        memory,
        host.cpus,
        0,
        gpus,
        comment,
    ]
    return list(zip(_COLUMNS, found, strict=True))


def summary_table(
    hosts: Iterable[HostRecord], server: str, has_jobs: bool = False, is_long: bool = False
) -> str:
    """Return the table of ``pbsnodes -S`` (``-Sj`` with jobs; ``-L`` without cutting texts)."""

    def shown(value: _Value, width: int) -> str:
        if isinstance(value, list):  # jobs, without the name of this server
            return ",".join(whole_cell(job.removesuffix(f".{server}")) for job in value) or "--"
        if width < 0:
            return f"{whole_cell(str(value)) if is_long else cell(str(value), -width):<{-width}}"
        return f"{plain(str(value)):>{width}}" if width else plain(str(value))

    rows = [
        " ".join(shown(value, width) for (_, _, width), value in _summary(host, has_jobs)) + "\n"
        for host in hosts
    ]
    return (_JOBS_HEADER if has_jobs else _HEADER) + "".join(rows)


def summary_line(host: HostRecord, has_jobs: bool, separator: str) -> str:
    """Return the record of ``pbsnodes -S -F dsv`` (``-Sj`` with jobs)."""
    words = []
    for (name, _, _), value in _summary(host, has_jobs):
        text = ",".join(value) or "--" if isinstance(value, list) else str(value)
        words.append(f"{name}={plain(text)}")
    return separator.join(words) + "\n"


def summary_object(host: HostRecord, has_jobs: bool) -> dict[str, object]:
    """Return a host as an object for ``pbsnodes -S -F json`` (``-Sj`` with jobs), without its name,
    which is the key."""
    return {name: value for (_, name, _), value in _summary(host, has_jobs) if name}


USAGE = """\tpbsnodes [-{o|r}][-C comment][-s server] host host ...
\tpbsnodes -l [-s server]
\tpbsnodes [-s server] -v vnode vnode ...
\tpbsnodes -a[v][S[j][L]][-F format][-D delim][-s server]
\tpbsnodes -[H][S[j][L]][-F format][-D delim] host host ..."""


def _act(call: Call) -> int:
    given = call.given
    names = tuple(given.operands + (given.after_dashes or []))
    style = given.last("F").lower()
    if style not in ("", "json", "dsv", "default"):
        raise UsageFault(f"illegal -F value {style}")
    if given.has("o") and given.has("rc"):
        raise UsageFault("conflicting options.")
    if not (given.options or names or call.here.is_torque):
        raise UsageFault
    if given.has("s") and not call.is_here(f"@{given.last('s')}"):
        return call.code
    if given.has("orc") or (given.has("C") and not given.has("alS")):
        if not names:
            raise UsageFault("no host is named")
        action = "drain" if given.has("o") else "resume" if given.has("rc") else "comment"
        comment = given.last("C") if given.has("C") else None
        for outcome in call.ask(
            HostControl(hosts=names, action=action, comment=comment), Outcomes
        ).outcomes:
            if outcome.error is not None:
                call.complain(
                    f"{outcome.error.message} {outcome.name}".rstrip(), code_of(outcome.error.pbs)
                )
        return call.code
    answer = call.ask(HostStatus(hosts=names), Hosts)
    call.write(_text(call, answer, style))
    for error in answer.errors:
        name, _, more = error.message.removeprefix("Unknown node ").partition("; ")
        call.here.err.write(f"Node: {plain(name)},  Error: Unknown node {plain(more)}\n")
        call.code = 1
    return call.code


def _text(call: Call, answer: Hosts, style: str) -> str:
    given, hosts = call.given, answer.hosts
    if given.has("l"):
        return "".join(
            host_line(host)
            for host in hosts
            if host.state not in ("free", "job-busy", "job-exclusive")
        )
    is_summary, has_jobs = given.has("S"), given.has("j")
    separator = given.last("D") or "|"
    if style == "json":
        found = {
            host.name: summary_object(host, has_jobs) if is_summary else host_object(host)
            for host in hosts
        }
        return json_document(answer.server, VERSION, answer.now, "nodes", found)
    if is_summary and style != "dsv":
        return summary_table(hosts, answer.server, has_jobs, given.has("L"))
    if is_summary:
        return "".join(summary_line(host, has_jobs, separator) for host in hosts)
    if style == "dsv":
        return "".join(
            separated(f"Name={host.name}", host_attributes(host), separator) for host in hosts
        )
    if call.here.is_torque:
        return "".join(
            block_text(host.name, torque_host_attributes(host, answer.now)) for host in hosts
        )
    return "".join(block_text(host.name, host_attributes(host)) for host in hosts)


OPTIONS = {
    "a": ("", "Show all hosts."),
    "c": ("", "As -r."),
    "C": ("comment", "Set a comment of the hosts."),
    "d": TAKEN,
    "D": ("separator", "With -F dsv: the separator of attributes."),
    "F": ("format", "json or dsv."),
    "H": TAKEN,
    "j": ("", "With -S: show jobs and free resources."),
    "l": ("", "Show hosts that take no jobs."),
    "L": ("", "With -S: do not cut texts."),
    "n": TAKEN,
    "N": ("note", "Ignored."),
    "o": ("", "Drain the hosts: no more jobs start there."),
    "q": TAKEN,
    "r": ("", "Put the hosts back into service."),
    "s": ("server", "The server to ask."),
    "S": ("", "Show a table, one line for each host."),
    "v": TAKEN,
}

pbsnodes = Command("pbsnodes", __doc__, USAGE, OPTIONS, _act, torque="cdnNq", usage_code=1)
