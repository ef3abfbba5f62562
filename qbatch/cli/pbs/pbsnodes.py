"""``pbsnodes``: show hosts, drain them (-o), put them back into service (-r)."""

from __future__ import annotations

import time

from qbatch.cli.pbs.command import TAKEN, VERSION, Call, Command, UsageFault, code_of
from qbatch.cli.pbs.format_attributes import host_attributes, torque_host_attributes
from qbatch.cli.pbs.format_full import json_document, separated
from qbatch.cli.pbs.format_nodes import block_text, host_line, host_object, summary_line, summary_object, summary_table
from qbatch.cli.pbs.text import MICROSECONDS
from qbatch.wire.records import Hosts, Outcomes
from qbatch.wire.requests import HostControl, HostStatus

USAGE = """pbsnodes [-a] [-v] [-S[j][L]] [-F json|dsv [-D sep]] [-s server] [-H] [host ...]
       pbsnodes -l [-s server]
       pbsnodes [-o|-r|-c] [-C comment] host ..."""


def _act(call: Call) -> int:
    given = call.given
    names = tuple(given.operands + (given.after_dashes or []))
    style = given.last("F").lower()
    if style not in ("", "json", "dsv", "default"):
        raise UsageFault(f"illegal -F value {style}")
    if given.has("o") and given.has("rc"):
        raise UsageFault("conflicting options.")
    if given.has("s") and not call.is_here(f"@{given.last('s')}"):
        return call.code
    if given.has("orc") or (given.has("C") and not given.has("alS")):
        return _control(call, names)
    answer = call.ask(HostStatus(hosts=names), Hosts)
    call.write(_text(call, answer, style))
    for error in answer.errors:
        call.complain(error.message or "Unknown node", code_of(error.pbs))
    return call.code


def _text(call: Call, answer: Hosts, style: str) -> str:
    given, hosts = call.given, answer.hosts
    if given.has("l"):
        return "".join(host_line(host) for host in hosts if host.state not in ("free", "job-busy", "job-exclusive"))
    is_summary, has_jobs = given.has("S"), given.has("j")
    separator = given.last("D") or "|"
    if style == "json":
        found = {
            host.name: summary_object(host, has_jobs) if is_summary else host_object(host, VERSION) for host in hosts
        }
        seconds = answer.now // MICROSECONDS or int(time.time())
        return json_document(answer.server or "qbatch", VERSION, seconds, {"nodes": found} if found else {})
    if is_summary and style != "dsv":
        return summary_table(hosts, answer.server, has_jobs, given.has("L"))
    if is_summary:
        return "".join(summary_line(host, has_jobs, separator) for host in hosts)
    if style == "dsv":
        return "".join(separated(f"Name={host.name}", host_attributes(host, VERSION), separator) for host in hosts)
    if call.here.is_torque:
        return "".join(block_text(host.name, torque_host_attributes(host, answer.now)) for host in hosts)
    return "".join(block_text(host.name, host_attributes(host, VERSION)) for host in hosts)


def _control(call: Call, names: tuple[str, ...]) -> int:
    if not names:
        raise UsageFault("no host is named")
    given = call.given
    action = "drain" if given.has("o") else "resume" if given.has("rc") else "comment"
    comment = given.last("C") if given.has("C") else None
    for outcome in call.ask(HostControl(hosts=names, action=action, comment=comment), Outcomes).outcomes:
        if outcome.error is not None:
            call.complain(f"{outcome.error.message} {outcome.name}".rstrip(), code_of(outcome.error.pbs))
    return call.code


OPTIONS = {
    "a": ("", "All hosts."),
    "c": ("", "As -r."),
    "C": ("comment", "A note about the hosts."),
    "d": TAKEN,
    "D": ("separator", "With -F dsv: what stands between attributes."),
    "F": ("format", "json or dsv."),
    "H": TAKEN,
    "j": ("", "With -S: jobs and what is free."),
    "l": ("", "Hosts that take no jobs."),
    "L": ("", "With -S: cut nothing."),
    "n": TAKEN,
    "N": ("note", "Taken; it changes nothing here."),
    "o": ("", "Drain the hosts: nothing more starts there."),
    "q": TAKEN,
    "r": ("", "Put the hosts back into service."),
    "s": ("server", "The server to ask."),
    "S": ("", "A table, one line a host."),
    "v": TAKEN,
}

pbsnodes = Command("pbsnodes", __doc__, USAGE, OPTIONS, _act)
