"""Functions that read and check the options of ``qsub`` and make a job's specification from them.

Options of the command line override directives.  Callers pass the environment and the working
directory.

OpenPBS passes every attribute of ``-W`` to the server (qsub.c, process_opts: ``set_attr(&attrib,
keyword, valuewd)``), so that ``-W Job_Name=x`` is ``-N x``.  Names match in upper and lower case
(attr_func.c, find_attr).  The commands refuse an attribute that the server cannot honour, and name
it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping

from qbatch.cli.pbs.command import TAKEN, CommandFault, Options
from qbatch.cli.pbs.text import MICROSECONDS
from qbatch.wire.attributes import BY_LETTER, BY_NAME, JOB_ATTRIBUTES
from qbatch.wire.deadlines import RESOURCE, with_offset
from qbatch.wire.identifiers import expand_id, parse_indices
from qbatch.wire.requests import Spec
from qbatch.wire.resources import (
    parse_demand,
    parse_duration,
    parse_resources,
    parse_size,
    split_list,
)
from qbatch.wire.staging import SANDBOXES, parse_staging

ATTRIBUTE_OPTIONS: Options = {
    **{each.letter: (each.argument, each.meaning) for each in JOB_ATTRIBUTES if each.argument},
    "l": (
        "resource_list",
        "What the job asks for: select=2:ncpus=4:mem=8gb, place=scatter, walltime=1:00:00, ...",
    ),
    "n": ("", "Torque: the job takes whole hosts."),
    "W": (
        "attribute=value",
        (
            "Further attributes: depend=afterok:12, block=true, umask=022, stagein=..., "
            "sandbox=PRIVATE, ..."
        ),
    ),
}
"""Options of ``qsub`` and ``qalter``."""

SUBMISSION_OPTIONS: Options = {
    **ATTRIBUTE_OPTIONS,
    "b": ("seconds", "Ignored (Torque: how long to try)."),
    "C": ("prefix", "The prefix of directive lines in place of #PBS; '' reads none."),
    "d": ("directory", "Torque: the directory in which the job begins."),
    "D": ("directory", "Refused, except for /: a job has no root directory of its own."),
    "E": TAKEN,
    "f": ("", "Ignored: qsub never goes into the background."),
    "F": ("arguments", "Torque: arguments of the script, in one word."),
    "G": ("", "Refused: there is no Windows here."),
    "h": ("", "Hold the job until qrls releases it."),
    "I": ("", "Refused: interactive jobs are not supported yet."),
    "J": ("X-Y[:Z][%max]", "Submit an array of jobs; at most max run at once."),
    "K": (
        "seconds",
        "Refused: the key kill_delay of the configuration sets the time between TERM and KILL.",
    ),
    "L": ("request", "Refused: write -l select or -l nodes."),
    "q": ("destination", "The queue: queue, queue@server or @server."),
    "t": ("array", "Torque: submit an array of jobs: 1-10, 1,3,5, 1-10%2."),
    "T": ("script", "Refused: there are no prologues here."),
    "V": ("", "Give the job the whole environment of qsub."),
    "w": ("directory", "Torque: the directory of the submission."),
    "x": ("", "Refused: it belongs to interactive jobs."),
    "X": ("", "Refused: it belongs to interactive jobs."),
    "z": ("", "Do not print the identifier."),
}
"""Options of ``qsub``: the union of those of OpenPBS and Torque."""

_REFUSED = {
    "accounting_id": "the server sets it",
    "comment": "the server sets it",
    "estimated": "the server sets it",
    "exit_on_full": "there is nothing here that it could change",
    "keep": "write Keep_Files or -k",
    "partition": "there is no Moab here to read it",
    "pwd": "no password is kept here",
    "cred": "no credential is kept here",
    "qos": "there is no Moab here to read it",
    "queue": "write -q",
    "x": "there is no Moab here to read it",
}

_NAMES = {name.lower(): name for name in (*BY_NAME, *_REFUSED)}
_TRUE, _FALSE = ("true", "t", "1", "y"), ("false", "f", "0", "n")
_DEPENDENCIES = {
    "after",
    "afterok",
    "afternotok",
    "afterany",
    "before",
    "beforeok",
    "beforenotok",
    "beforeany",
    "on",
    "synccount",
    "syncwith",
    "runone",
    "afterarray",
    "afterokarray",
    "afternotokarray",
    "afteranyarray",
}


def illegal(letter: str, reason: str = "") -> CommandFault:
    """Return the fault ``illegal -l value: reason``: one line, exit 2."""
    return CommandFault(f"illegal -{letter} value" + (f": {reason}" if reason else ""), 2)


def is_true(value: str) -> bool:
    """Return a truth value of PBS.

    Raises:
        CommandFault: the text is none.
    """
    if value.strip().lower() not in _TRUE + _FALSE:
        raise illegal("W", f"{value.strip()[:200]!r} is neither true nor false")
    return value.strip().lower() in _TRUE


def is_attribute(word: str) -> bool:
    """Return whether a word is ``Name=value`` with the name of an attribute."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.lower() in _NAMES


def read_attributes(value: str) -> dict[str, str]:
    """Return the attributes of one -W argument by their names in PBS.  A part without ``=`` belongs
    to the attribute before it if that is a list.

    Raises:
        CommandFault: an attribute is unknown or cannot be honoured, or its value is illegal.
    """
    found: dict[str, str] = {}
    last = ""
    for part in value.replace('"', "").replace("'", "").split(","):
        name, equals, text = part.partition("=")
        known = _NAMES.get(name.strip().lower(), "")
        if known and equals:
            last = known
            found[known] = text.strip()
        elif last in BY_NAME and BY_NAME[last].is_list:
            found[last] += f",{part.strip()}"
        elif equals and re.fullmatch(r"\w+", name.strip()):
            names = ", ".join(sorted(BY_NAME, key=str.lower))
            raise illegal("W", f"{name.strip()!r} is not known (known: {names})")
        elif part.strip():
            raise illegal("W", f"{part.strip()!r} is not of the form name=value")
    for name, text in found.items():
        _check(name, text)
    return found


def _check(name: str, value: str) -> None:
    if name in _REFUSED:
        raise illegal("W", f"{name} cannot be honoured: {_REFUSED[name]}")
    if name == "depend":
        _check_depend(value)
    elif name in ("block", "interactive", "release_nodes_on_stageout"):
        if is_true(value) and name == "interactive":
            raise illegal("W", "interactive jobs are not supported yet")
        if is_true(value) and name == "release_nodes_on_stageout":
            raise illegal(
                "W",
                "release_nodes_on_stageout cannot be honoured: a job keeps its hosts to its end",
            )
    elif name == "tolerate_node_failures" and value.lower() != "none":
        raise illegal("W", "tolerate_node_failures cannot be honoured: a job ends with its hosts")
    elif name == "umask" and not re.fullmatch(r"[0-7]{1,4}", value):
        raise illegal("W", "umask is an octal number")
    elif name in ("max_run_subjobs", "run_count") and not re.fullmatch(r"[0-9]{1,9}", value):
        raise illegal("W", f"{name} is a number")
    elif name == "sandbox" and value.upper() not in SANDBOXES:
        raise illegal("W", f"sandbox is one of {', '.join(SANDBOXES)}")
    elif name in ("stagein", "stageout"):
        try:
            parse_staging(value)
        except ValueError as error:
            raise illegal("W", f"{name}: {error}") from None


def _check_depend(value: str) -> None:
    """Check ``afterok:12:13,afterany:9``."""
    for part in value.split(","):
        kind, *ids = part.strip().split(":")
        if kind not in _DEPENDENCIES or not ids:
            raise illegal(
                "W", f"depend={part.strip()!r}: known are {', '.join(sorted(_DEPENDENCIES))}"
            )
        if kind in ("on", "synccount"):
            if not re.fullmatch(r"[0-9]{1,6}", ids[0]):
                raise illegal("W", f"depend={part.strip()!r}: a count is missing")
            continue
        for job in ids:
            try:
                expand_id(job)
            except ValueError as error:
                raise illegal("W", str(error)) from None


LONGEST_NAME = 230

_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "MAIL", "SHELL", "TZ")
_UNSUPPORTED = {
    "D": "the job would need another root directory",
    "G": "there is no Windows here",
    "K": "the server's kill_delay sets the time between TERM and KILL",
    "L": "write -l select or -l nodes",
    "T": "there are no prologues here",
    "x": "it belongs to interactive jobs",
    "X": "X11 Forwarding possible only for interactive jobs",
}
_FORMS = {
    "c": (
        r"[nscwu]|[cw]=[0-9]{1,9}|interval=[0-9]+|enabled|shutdown|periodic|none",
        "n, s, c, c=MINUTES, w, w=MINUTES or u",
    ),
    "j": ("oe|eo|n", "known are oe, eo, n"),
    "k": ("[oed]+|n", "letters of oedn, n alone"),
    "m": ("[abefjp]+|n", "letters of abefjpn, n alone"),
    "p": ("[+-]?[0-9]{1,5}", "a priority is a whole number from -1024 to 1023"),
    "r": ("y|n", "y or n"),
    "R": ("[oe]+|n", "letters of oen, n alone"),
}
"""The form of the values of options that set one field, and its description."""

_NO_PROCS = re.compile(r"(?<![^,])procs=(?![^,])")  # signac-flow 0.29 writes it for one processor
_SURROGATE = re.compile("[\ud800-\udfff]")
_HOST_PATH = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*:)(.*)", re.DOTALL)


class Gathered:
    """The options read so far; each further list of options overrides them.  ``letters``: those
    that were given."""

    def __init__(
        self, directory: str, environment: Mapping[str, str], *, is_torque: bool = False
    ) -> None:
        self.directory = directory
        self.is_torque = is_torque
        self.environment = environment
        self.fields: dict[str, object] = {}
        self.resources: dict[str, str] = {}
        self.variables: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        self.extra: dict[str, str] = {}
        self.letters: set[str] = set()

    def take(self, options: list[tuple[str, str]]) -> None:
        """Take options in order.

        Raises:
            CommandFault: a value is illegal.
        """
        resources: dict[str, str] = {}
        for value in [value for letter, value in options if letter == "w"]:
            # Torque: the directory of the submission, also for relative paths; the job begins there
            # unless -d names another.
            self.directory = file_path(value, self.directory, self.environment)
            self.extra.setdefault("init_dir", self.directory)
        for letter, value in options:
            if letter == "l":
                if self.is_torque:
                    value = _NO_PROCS.sub("", value)
                try:
                    resources.update(parse_resources(value))
                except ValueError as error:
                    raise illegal("l", str(error)) from None
            else:
                self._take_one(letter, value)
        # A later select replaces an earlier nodes, and the other way round.
        for one, other in (("select", "nodes"), ("nodes", "select")):
            if one in resources and other not in resources:
                self.resources.pop(other, None)
        deadline = resources.get(RESOURCE)
        if deadline is not None and re.fullmatch(r"[0-9]{4,12}(\.[0-9]{2})?", deadline):
            from datetime import datetime

            instant = datetime.fromtimestamp(read_date("l", deadline) // MICROSECONDS)
            resources[RESOURCE] = instant.astimezone().isoformat()
        elif deadline is not None:
            resources[RESOURCE] = with_offset(deadline)
        self.resources.update(resources)

    def _take_one(self, letter: str, value: str) -> None:
        fields, text = self.fields, value.strip()
        self.letters.add(letter)
        if letter == "N":
            fields["name"] = _checked_name(value, self.is_torque)
        elif letter in _FORMS:
            pattern, reason = _FORMS[letter]
            if not re.fullmatch(pattern, text) or (
                letter == "p" and not -1024 <= int(text) <= 1023
            ):
                raise illegal(letter, reason)
            fields[BY_LETTER[letter].field] = (
                int(text) if letter == "p" else text == "y" if letter == "r" else text
            )
        elif letter in "AMPS":
            fields[BY_LETTER[letter].field] = text
        elif letter == "a":
            fields[BY_LETTER[letter].field] = read_date(letter, value)
        elif letter == "q":
            fields["queue"] = text
        elif letter in "oe":
            # qstat only shows the host, if any: files stay on this machine.
            host, path = (
                _HOST_PATH.fullmatch(text),
                file_path(value, self.directory, self.environment),
            )
            fields[BY_LETTER[letter].field] = (
                f"{host[1]}{path}" if host is not None and path else path
            )
        elif letter == "h":
            fields["hold"] = "u"
        elif letter == "v":
            self._take_variables(value)
        elif letter == "W":
            self._take_attributes(value)
        elif letter in "Jt":
            try:
                parse_indices(value)
            except ValueError as error:
                raise illegal(letter, str(error)) from None
            fields["array"], fields["is_torque"] = text, letter == "t"
        elif letter == "d":
            self.extra["init_dir"] = file_path(value, self.directory, self.environment)
        elif letter in "Fu":
            self.extra["script_arguments" if letter == "F" else "user_list"] = value
        elif letter in _UNSUPPORTED and not (letter == "D" and text == "/"):
            raise CommandFault(
                f"-{letter} cannot be honoured: {_UNSUPPORTED[letter]}; leave it out", 2
            )
        # -n, -V, -z and -I are in ``letters``.  -b (how long to try), -E (more variables) and -f
        # have no effect here.

    def _take_attributes(self, value: str) -> None:
        for name, text in read_attributes(value).items():
            if name == "Hold_Types":
                if not re.fullmatch("[uos]+|n", text):
                    raise illegal("W", "letters of uosn, n alone")
                self.fields["hold"] = text
            elif name == "Execution_Time":
                if not re.fullmatch(r"[0-9]{1,11}", text):
                    raise illegal("W", "Execution_Time is a number of seconds since 1970")
                self.fields["not_before"] = int(text) * MICROSECONDS
            elif BY_NAME[name].letter:
                value_of_option = ("y" if is_true(text) else "n") if name == "Rerunable" else text
                self._take_one(BY_NAME[name].letter, value_of_option)
            elif name in ("stagein", "stageout") and name in self.attributes:
                self.attributes[name] += f",{text}"
            else:
                self.attributes[name] = text

    def _take_variables(self, value: str) -> None:
        try:
            pairs = split_list(value)
        except ValueError as error:
            raise illegal("v", str(error)) from None
        for name, given in pairs:
            if given is not None:
                self.variables[name] = given
            elif name in self.environment:
                self.variables[name] = self.environment[name]
            elif not name.startswith("PBS_O_") and not self.is_torque:
                raise CommandFault(
                    f"cannot send environment with the job: -v {name}, and no such variable is set",
                    1,
                )

    def take_own(self, words: list[str]) -> None:
        """Take the words of a ``#QBATCH`` line: ``runtime=SECONDS``, ``memory=SIZE``,
        ``exit=STATUS``.

        Raises:
            CommandFault: a word is none of them, or its value is illegal.
        """
        kinds = {"runtime": ("runtime", parse_duration), "memory": ("used_memory", parse_size)}
        for word in words:
            name, _, value = word.partition("=")
            if name in kinds:
                field, parse = kinds[name]
                try:
                    self.fields[field] = parse(value)
                except ValueError as error:
                    raise CommandFault(f"illegal #QBATCH {name}: {error}", 2) from None
            elif name == "exit" and re.fullmatch(r"[0-9]{1,3}", value) and int(value) < 512:
                self.fields["fate"] = int(value)
            else:
                known = "runtime=SECONDS, memory=SIZE and exit=STATUS"
                raise CommandFault(f"illegal #QBATCH directive {word!r}: known are {known}", 2)

    def specification(self, variables: Mapping[str, str]) -> dict[str, object]:
        """Return the fields of the specification; ``variables``: the standard ones of a submission.

        Raises:
            CommandFault: the resources cannot be read.
        """
        asked = self.resources
        if "n" in self.letters and "select" in asked:  # Torque: the job takes whole hosts
            place = asked.get("place", "")
            if "excl" not in place:
                asked["place"] = f"{place}:excl" if place else "excl"
        elif "n" in self.letters:
            nodes = asked.get("nodes", f"1:ppn={asked['ncpus']}" if "ncpus" in asked else "1")
            asked["nodes"] = nodes if "#excl" in nodes else f"{nodes}#excl"
        try:
            parse_demand(asked)
        except ValueError as error:
            raise illegal("l", str(error)) from None
        inherited = printable(self.environment) if "V" in self.letters else {}
        whole = {**inherited, **variables, **self.variables, "PBS_O_WORKDIR": self.directory}
        fields = dict(self.fields)
        for name, value in self.attributes.items():
            field = BY_NAME[name].field
            if field in Spec.__struct_fields__:
                fields[field] = field_value(name, value)
            elif name not in _UNUSED:
                self.extra[name] = str(field_value(name, value))
        slots = self.extra.pop("max_run_subjobs", "")
        if slots and fields.get("array") and "%" not in str(fields["array"]):
            fields["array"] = f"{fields['array']}%{slots}"
        variables = {name: value for name, value in whole.items() if "\0" not in name + value}
        return {
            **fields,
            "resources": asked,
            "variables": variables,
            "extra": self.extra,
            "directory": self.directory,
        }


def printable(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables in UTF-8; the protocol cannot carry others."""
    # Bytes of the system that are not UTF-8 are surrogates in a text.
    return {
        name: value for name, value in environment.items() if not _SURROGATE.search(name + value)
    }


def standard_variables(
    environment: Mapping[str, str], directory: str, queue: str
) -> dict[str, str]:
    """Return the ``PBS_O_...`` variables of a submission."""
    given = printable(environment)
    found = {f"PBS_O_{name}": given[name] for name in _INHERITED if given.get(name)}
    system = os.uname()
    found["PBS_O_HOST"] = system.nodename
    found["PBS_O_WORKDIR"] = directory
    found["PBS_O_SYSTEM"] = system.sysname
    if queue.partition("@")[0]:
        found["PBS_O_QUEUE"] = queue.partition("@")[0]
    return found


def file_path(value: str, directory: str, environment: Mapping[str, str]) -> str:
    """Return the absolute path without its host.  A slash at its end stays, and so do
    ``$PBS_JOBID`` and ``^array_index^``, which are known only when the job starts."""
    found = _HOST_PATH.fullmatch(value.strip())
    path = found[2] if found is not None else value.strip()
    if not path:
        return ""
    begin, _, rest = path.partition("/")
    is_home, is_work = (
        begin in ("~", "$HOME", "${HOME}", "$PBS_O_HOME"),
        begin in ("$PBS_O_WORKDIR", "${PBS_O_WORKDIR}"),
    )
    place = environment.get("HOME", "") if is_home else directory if is_work else ""
    if place and "/" in path:
        return f"{place}/{rest}"
    return (
        path if path.startswith("/") else f"{directory.rstrip('/')}/{path.removeprefix('./') or ''}"
    )


_UNUSED = ("interactive", "release_nodes_on_stageout", "tolerate_node_failures")
"""Attributes that are accepted only with the value that has no effect."""


def field_value(name: str, value: str) -> object:
    """Return the value of a field for an attribute that only -W sets."""
    if name == "block":
        return is_true(value)
    if name == "umask":
        return int(value, 8)
    return value.upper() if name == "sandbox" else value


def _checked_name(value: str, is_torque: bool) -> str:
    """Return a job's name; in Torque it may have slashes, for example ``project/job``."""
    if not value or len(value) > LONGEST_NAME:
        raise illegal("N", f"a name has 1 to {LONGEST_NAME} letters")
    if (
        ("/" in value and not is_torque)
        or value.endswith("/")
        or " " in value
        or not value.isprintable()
    ):
        raise illegal("N", "a name has no blanks, slashes or control characters")
    return value


def read_date(letter: str, value: str, now: float | None = None) -> int:
    """Return the instant of ``[[CC]YY]MMDDhhmm[.SS]``, ``DDhhmm`` or ``hhmm``.  Missing parts are
    those of now, or of the next day, month or year if the instant would be past.

    Raises:
        CommandFault: the text is no date.
    """
    found = re.fullmatch(
        r"\s*([0-9]{4}|[0-9]{6}|[0-9]{8}|[0-9]{10}|[0-9]{12})(?:\.([0-9]{2}))?\s*", value
    )
    if found is None:
        raise illegal(letter, "a date is [[CC]YY]MMDDhhmm[.SS]")
    digits, second = found[1], int(found[2] or 0)
    current = time.time() if now is None else now
    today = time.localtime(current)
    year, month, day = today.tm_year, today.tm_mon, today.tm_mday
    minute, hour = int(digits[-2:]), int(digits[-4:-2])
    if len(digits) >= 6:
        day = int(digits[-6:-4])
    if len(digits) >= 8:
        month = int(digits[-8:-6])
    if len(digits) >= 10:
        short = int(digits[-10:-8])
        year = int(digits[:4]) if len(digits) == 12 else short + (2000 if short < 69 else 1900)
    is_date = 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 62
    if not is_date:
        raise illegal(letter, "a date is [[CC]YY]MMDDhhmm[.SS]")
    steps = {4: (0, 0, 1), 6: (0, 1, 0), 8: (1, 0, 0)}.get(len(digits), (0, 0, 0))
    try:
        instant = time.mktime((year, month, day, hour, minute, second, 0, 0, -1))
        if instant < current - 60 and any(steps):
            instant = time.mktime(
                (year + steps[0], month + steps[1], day + steps[2], hour, minute, second, 0, 0, -1)
            )
    except (OverflowError, ValueError):
        raise illegal(letter, "the date cannot be counted") from None
    return int(instant) * MICROSECONDS
