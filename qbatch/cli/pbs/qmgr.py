"""``qmgr``: show the server, queues and hosts, and set some attributes while the server runs.

A command is ``VERB OBJECT [NAMES] [ATTRIBUTE = VALUE, ...]``; its first two words may be cut short.
Commands come from ``-c`` or from standard input.  ``list`` shows attributes, ``print`` writes them
as commands.  ``set`` enables and starts queues, and sets the state and the comment of a host.  The
configuration file sets all else; ``qmgr`` refuses it and names the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from qbatch.cli.pbs.command import MESSAGES, VERSION, Call, Command, code_of, queue_of, worded
from qbatch.cli.pbs.format_attributes import (
    Attribute,
    host_attributes,
    queue_attributes,
    server_attributes,
)
from qbatch.cli.pbs.format_full import full_text
from qbatch.cli.pbs.text import plain
from qbatch.wire.errors import ErrorRecord, Refusal
from qbatch.wire.records import Hosts, Outcomes, Queues, ServerRecord
from qbatch.wire.requests import HostControl, HostStatus, QueueControl, QueueStatus, ServerStatus

USAGE = "qmgr [-a] [-c command] [-e] [-n] [-z] [server]"

HELP = """Commands (words may be cut short):
  list server | list queue [NAME,...] [ATTRIBUTE,...] | list node [NAME,...] [ATTRIBUTE,...]
  print server | print queue [NAME,...] | print node [NAME,...]        the same, as commands

  set queue NAME enabled = True|False, started = True|False
  set node NAME state = offline|free, comment = "text"; unset node NAME comment
  active queue|node NAME,...                                           the objects of later commands
  help, quit
All else is in the configuration file (qbatch config keys), and qbatch reload puts it in force.
"""

VERBS = (
    "active",
    "create",
    "delete",
    "exit",
    "export",
    "help",
    "import",
    "list",
    "print",
    "quit",
    "set",
    "unset",
)
KINDS = {"server": "Server", "queue": "Queue", "node": "Node"}
"""The kinds of objects, and their titles in ``list``."""

_TITLES = {
    "server": "Set server attributes",
    "queue": "Create queues and set their attributes",
    "node": "Create nodes and set their properties",
}

SYNTAX = NOT_SHOWN = 1
"""The exit code of a wrong command, and of one that shows an object that does not exist."""

UNKNOWN_ATTRIBUTE, READ_ONLY, BAD_VALUE, NOT_SUPPORTED = 15002, 15003, 15014, 15029
"""Error numbers of PBS."""

QUEUE_KEYS = {
    "priority": "priority",
    "queue_type": "destinations",
    "route_destinations": "destinations",
    "acl_users": "users",
    "acl_user_enable": "users",
    "acl_groups": "groups",
    "acl_group_enable": "groups",
    "partition": "partition",
    "max_queuable": "max_queued",
    "max_queued": "max_queued",
    "max_running": "max_running",
    "max_run": "max_running",
    "max_user_run": "max_running_per_user",
    "max_user_queuable": "max_queued_per_user",
    "resources_max.ncpus": "max_procs",
    "resources_max.mem": "max_memory",
    "resources_max.walltime": "max_walltime",
    "resources_min.ncpus": "min_procs",
    "resources_min.walltime": "min_walltime",
    "resources_default.walltime": "default_walltime",
    "resources_default.mem": "default_memory",
    "kill_delay": "kill_delay",
}
SERVER_KEYS = {
    "default_queue": "default_queue",
    "managers": "managers",
    "operators": "operators",
    "job_history_enable": "history",
    "job_history_duration": "history_kept",
    "max_array_size": "max_array",
    "max_queued": "max_jobs",
    "max_user_queued": "max_jobs_per_user",
    "mailer": "mail_command",
    "kill_delay": "kill_delay",
}
NODE_KEYS = {
    "resources_available.ncpus": "cpus",
    "resources_available.mem": "memory",
    "np": "cpus",
    "pcpus": "cpus",
    "queue": "pool",
}
"""The key of the configuration for each attribute of PBS."""

_KEYS = {
    "server": (SERVER_KEYS, "at the top"),
    "queue": (QUEUE_KEYS, "of its [[queue]]"),
    "node": (NODE_KEYS, "of its [[pool]]"),
}

_SHOWN_ONLY = {
    "total_jobs",
    "state_count",
    "server_state",
    "server_host",
    "pbs_version",
    "qbatch_version",
    "qbatch_policy",
    "qbatch_slice",
    "Mom",
    "ntype",
    "pcpus",
    "jobs",
    "resources_assigned",
    "sharing",
    "qbatch_queue",
    "resv_enable",
}
"""Attributes that ``print`` leaves out: the server sets them."""

_PRINTED_OF_NODES = ("comment", "resources_available.ncpus", "resources_available.mem")
_LISTS = {"managers", "operators", "acl_users", "route_destinations"}
_NAME = r"[\w.\[\]-]*(?:@[\w.-]+)?"
_CHANGE = re.compile(r"""\s*([\w.]+)\s*(?:(\+=|-=|=)\s*("[^"]*"|'[^']*'|[^\s,"']+))?\s*(,|$)""")


class Change(NamedTuple):
    """``attribute = value`` (``sign``: also ``+=`` and ``-=``), or the attribute alone."""

    attribute: str
    sign: str
    value: str


class Directive(NamedTuple):
    """A command: the verb, the kind of object, the names (none: all) and the attributes."""

    verb: str
    kind: str = ""
    names: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()


class SyntaxFault(Exception):  # noqa: N818 - a fault of the caller
    """A command cannot be read; the message has the words of PBS, the place and the reason."""


class DirectiveFault(Exception):  # noqa: N818 - a fault of the caller
    """A command cannot be carried out; ``pbs`` is an error number of PBS."""

    def __init__(self, message: str, pbs: int) -> None:
        super().__init__(message)
        self.pbs = pbs


def _known(word: str, words: tuple[str, ...], fault: str) -> str:
    for each in words:  # the first that begins with it counts: e is exit
        if each.startswith(word.lower()):
            return each
    raise SyntaxFault(f"{fault}: {plain(word[:40])}: known are {', '.join(words)}")


def parse(line: str) -> Directive:
    """Read one command.

    Raises:
        SyntaxFault: with the place and the reason.
    """
    words = line.split(None, 2)
    verb = _known(words[0], VERBS, "Illegal operation") if words[0] != "?" else "help"
    if verb in ("exit", "quit", "help"):
        return Directive(verb)
    if len(words) < 2:
        raise SyntaxFault(f"No object type given: {verb} takes one of {', '.join(KINDS)}")
    kind = _known(words[1], (*KINDS, "hook", "resource", "sched"), "Illegal object type")
    rest = words[2] if len(words) > 2 else ""
    names: tuple[str, ...] = ()
    if kind == "server":
        # Commands about the server need no name; a name is ignored if it is not an attribute.
        found = re.match(r"(@?[\w.-]+)\s+(?=[\w.]+\s*(?:[+-]?=|$))", rest)
    else:
        found = re.match(rf"({_NAME}(?:,{_NAME})*)(?:\s+|$)(?![+-]?=)", rest)
        found = found if found is not None and found[1] else None
        names = tuple(found[1].split(",")) if found is not None else ()
    return Directive(
        verb, kind, names, _changes(rest if found is None else rest[found.end() :], verb)
    )


def _changes(rest: str, verb: str) -> tuple[Change, ...]:
    changes, place = [], 0
    while place < len(rest):
        found = _CHANGE.match(rest, place)
        if found is None or (found[4] and found.end() == len(rest)):
            raise SyntaxFault(
                "Syntax error: not of the form attribute = value, ...: "
                f"{plain(rest[place : place + 60].strip())!r}"
            )
        attribute, sign, value, _ = found.groups()
        if bool(sign) != (verb == "set") and verb in ("set", "unset", "list", "print"):
            wanted = "attribute = value" if verb == "set" else "attribute"
            raise SyntaxFault(
                f"Syntax error: {verb} takes {wanted}, not {plain(found[0].strip(' ,'))!r}"
            )
        changes.append(Change(attribute, sign or "", (value or "").strip("\"'")))
        place = found.end()
    if verb in ("set", "unset") and not changes:
        raise SyntaxFault(f"Syntax error: {verb}: an attribute is missing")
    return tuple(changes)


class Manager:
    """The commands of one call, one after the other."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.active: dict[str, tuple[str, ...]] = {}

    def carry_out(self, directive: Directive) -> None:
        """Carry out a command.

        Raises:
            DirectiveFault, Refusal: the command cannot be carried out.
        """
        verb, kind, named, changes = directive
        if not all(self.is_here(name) for name in named):
            return
        names = tuple(queue_of(name) for name in named)
        if "" in names:  # @server: all its objects
            names = tuple(name for name, _ in self.objects(kind, ()))
        names = names or self.active.get(kind, ())
        if verb == "help":
            self.call.write(HELP)
        elif verb == "active":
            self.active[kind] = names
        elif kind not in KINDS:
            raise DirectiveFault(f"there are no objects of the kind {kind} here", NOT_SUPPORTED)
        elif verb == "list":
            wanted = {change.attribute.lower() for change in changes}
            for name, attributes in self.objects(kind, names):
                shown = [
                    each
                    for each in attributes
                    if not wanted or {each.name.lower(), each.full_name.lower()} & wanted
                ]
                title = f"{KINDS[kind]} {name}".rstrip()
                self.call.write(full_text(title, shown, is_wide=True))
        elif verb == "print":
            self.call.write("".join(self.printed(kind, names)))
        elif verb in ("set", "unset"):
            self.change(kind, names, verb, changes)
        else:
            table = {
                "queue": "a table [[queue]]",
                "node": "the hosts of a [[pool]]",
                "server": "its key server",
            }[kind]
            raise DirectiveFault(
                f"{verb} {kind}: write {table} in the configuration, then qbatch reload",
                NOT_SUPPORTED,
            )

    def is_here(self, name: str) -> bool:
        """Whether ``name@server`` names the server that answers (also as ``default``); print an
        error if it does not."""
        return name.endswith("@default") or self.call.is_here(name)

    def objects(self, kind: str, names: tuple[str, ...]) -> Iterator[tuple[str, list[Attribute]]]:
        """Yield the named objects with their attributes; report those that do not exist."""
        errors: tuple[ErrorRecord, ...] = ()
        if kind == "server":
            server = self.call.ask(ServerStatus(), ServerRecord)
            yield server.name, server_attributes(server, VERSION)
        elif kind == "queue":
            queues = self.call.ask(QueueStatus(queues=names), Queues)
            errors = queues.errors
            yield from ((queue.name, queue_attributes(queue)) for queue in queues.queues)
        else:
            hosts = self.call.ask(HostStatus(hosts=names), Hosts)
            errors = hosts.errors
            yield from ((host.name, host_attributes(host)) for host in hosts.hosts)
        for error in errors:
            self.report(",".join(names), error.message, error.pbs, NOT_SHOWN)

    def printed(self, kind: str, names: tuple[str, ...]) -> Iterator[str]:
        """Yield the commands that would create these objects."""
        if kind == "server":
            yield from self.printed("queue", ())
        yield f"#\n# {_TITLES[kind]}.\n#\n"
        for name, attributes in self.objects(kind, names):
            of = "server" if kind == "server" else f"{kind} {name}"
            if kind != "server":
                yield f"#\n# Create and define {of}\n#\ncreate {of}\n"
            for each in attributes:
                # A state that jobs cause is not set by a command.
                is_set = each.full_name in _PRINTED_OF_NODES or (
                    each.name == "state" and each.value == "offline"
                )
                if each.name in _SHOWN_ONLY or (kind == "node" and not is_set):
                    continue
                parts = each.value.split(",") if each.name in _LISTS else [each.value]
                for place, part in enumerate(parts):
                    text = (
                        part
                        if re.fullmatch(r"[\w.:@/+-]+", part)
                        else '"' + part.replace('"', "'") + '"'
                    )
                    yield f"set {of} {each.full_name} {'+=' if place else '='} {text}\n"

    def change(
        self, kind: str, names: tuple[str, ...], verb: str, changes: tuple[Change, ...]
    ) -> None:
        """Set or unset attributes of each named object; change nothing if one attribute cannot be
        set."""
        if kind != "server" and not names:
            raise DirectiveFault(f"No Active {KINDS[kind]}s, nothing done.", NOT_SUPPORTED)
        requests: list[QueueControl | HostControl] = []
        flags: dict[str, bool] = {}
        for attribute, sign, given in changes:
            name, value = attribute.lower(), given.lower()
            if kind == "node" and name == "comment":
                requests.append(
                    HostControl(hosts=names, action=name, comment="" if verb == "unset" else given)
                )
            elif kind == "node" and name == "state" and verb != "unset":
                if value not in ("offline", "free") or (sign != "=" and value == "free"):
                    way_out = "(qbatch host down NAME takes a host down)"
                    raise DirectiveFault(
                        f"state is offline or free, not {plain(given[:40])!r} {way_out}", BAD_VALUE
                    )
                requests.append(
                    HostControl(
                        hosts=names,
                        action="drain" if value == "offline" and sign != "-=" else "resume",
                    )
                )
            elif kind == "queue" and name in ("enabled", "started") and verb != "unset":
                if value not in ("true", "t", "1", "y", "false", "f", "0", "n") or sign != "=":
                    raise DirectiveFault(
                        f"{attribute} is True or False, not {plain(given[:40])!r}", BAD_VALUE
                    )
                flags[name] = value in ("true", "t", "1", "y")
            else:
                raise _fault_of(kind, attribute)
        if flags:
            requests.append(QueueControl(queues=names, **flags))
        for request in requests:
            for outcome in self.call.ask(request, Outcomes).outcomes:
                if outcome.error is not None:
                    self.report(
                        outcome.name,
                        MESSAGES.get(outcome.error.pbs, outcome.error.message),
                        outcome.error.pbs,
                    )

    def report(self, name: str, message: str, pbs: int, code: int | None = None) -> None:
        """Report an error in the words of qmgr (with -z print nothing); the last error gives the
        exit code: ``code``, or that of the PBS error."""
        self.call.code = code_of(pbs) if code is None else code
        if not self.call.given.has("z"):
            self.call.here.err.write(
                f"qmgr obj={plain(name)} svr=default: {plain(message)}\n"
                f"qmgr: Error ({pbs}) returned from server\n"
            )


def _fault_of(kind: str, attribute: str) -> DirectiveFault:
    """Return the fault for an attribute that cannot be set here; its text names what sets it."""
    keys, where = _KEYS[kind]
    key = keys.get(attribute.lower())
    if key is not None:
        where = "at the top" if key == "kill_delay" else where
        text = f"{attribute} is set in the configuration: the key {key} {where}, then qbatch reload"
    elif kind == "server" and attribute.lower() == "scheduling":
        text = "the server always schedules; qstop QUEUE stops a queue, qbatch time pause the clock"
    elif attribute in _SHOWN_ONLY or attribute.lower() in ("enabled", "started", "state"):
        text = attribute
    else:
        return DirectiveFault(
            f"Undefined attribute: a {kind} has no {plain(attribute[:40])}", UNKNOWN_ATTRIBUTE
        )
    return DirectiveFault(f"Cannot set attribute, read only: {text}", READ_ONLY)


def _lines(call: Call) -> Iterator[str]:
    """Yield the command of -c, or those of standard input, in which a backslash at the end
    continues a line."""
    if call.given.has("c"):
        yield call.given.last("c")
        return
    stream = call.here.stdin
    if stream is None:
        return
    is_asked = stream.isatty()
    begun = ""
    while True:
        if is_asked and not begun:
            call.here.err.write("Qmgr: ")
            call.here.err.flush()
        line = stream.readline().decode(errors="replace")
        text = begun + line.rstrip("\r\n")
        if line and text.endswith("\\"):
            begun = text[:-1]
            continue
        begun = ""
        yield text
        if not line:
            return


def _act(call: Call) -> int:
    manager = Manager(call)
    if not all(manager.is_here(f"@{server.removeprefix('@')}") for server in call.given.operands):
        return call.code
    for line in _lines(call):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if call.given.has("e"):
            call.write(f"{plain(text)}\n")
        try:
            directive = parse(text)
            if directive.verb in ("exit", "quit"):
                break
            if not call.given.has("n"):
                manager.carry_out(directive)
        except SyntaxFault as fault:
            call.complain(str(fault), SYNTAX)
            call.here.err.write("Try 'help' if you are having trouble.\n")
        except DirectiveFault as fault:
            manager.report(",".join(directive.names), str(fault), fault.pbs)
        except Refusal as refusal:
            manager.report(",".join(directive.names), worded(refusal), refusal.pbs)
        if call.code and call.given.has("a"):
            break
    return call.code


OPTIONS = {
    "a": ("", "End at the first error."),
    "c": ("command", "Carry out this command instead of those of standard input."),
    "e": ("", "Print each command."),
    "n": ("", "Read the commands and carry out none."),
    "z": ("", "Print no messages about errors."),
}

qmgr = Command("qmgr", __doc__, USAGE, OPTIONS, _act)
