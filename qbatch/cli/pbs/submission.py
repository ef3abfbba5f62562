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
from collections.abc import Callable, Mapping
from typing import ClassVar

from qbatch.cli.pbs.command import CommandFault, Options, UsageFault, code_of
from qbatch.cli.pbs.text import MICROSECONDS
from qbatch.wire.attributes import BY_LETTER, BY_NAME, JOB_ATTRIBUTES
from qbatch.wire.deadlines import RESOURCE, with_offset
from qbatch.wire.errors import CODES
from qbatch.wire.identifiers import expand_id, parse_indices
from qbatch.wire.requests import Spec
from qbatch.wire.resource_values import ResourceFault
from qbatch.wire.resources import (
    check_resources,
    format_duration,
    parse_duration,
    parse_resources,
    parse_size,
    split_list,
    whole_walltime,
)
from qbatch.wire.staging import SANDBOXES, names_of, parse_staging

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
    "b": ("seconds", "Torque: how long to try; ignored."),
    "C": ("prefix", "The prefix of directive lines in place of #PBS; '' reads none."),
    "d": ("directory", "Torque: the directory in which the job begins."),
    "D": ("directory", "Torque: refused, except for /: a job has no root directory of its own."),
    "E": ("", "Torque: ignored."),
    "f": ("", "Ignored: qsub never goes into the background."),
    "F": ("arguments", "Torque: arguments of the script, in one word."),
    "G": ("", "Torque: refused; there is no Windows here."),
    "h": ("", "Hold the job until qrls releases it."),
    "I": ("", "Refused: interactive jobs are not supported yet."),
    "J": ("X-Y[:Z][%max]", "Submit an array of jobs; at most max run at once."),
    "K": (
        "seconds",
        (
            "Torque: refused; the key kill_delay of the configuration sets the time between TERM "
            "and KILL."
        ),
    ),
    "L": ("request", "Torque: refused; write -l select or -l nodes."),
    "q": ("destination", "The queue: queue, queue@server or @server."),
    "t": ("array", "Torque: submit an array of jobs: 1-10, 1,3,5, 1-10%2."),
    "T": ("script", "Torque: refused; there are no prologues here."),
    "V": ("", "Give the job the whole environment of qsub."),
    "w": ("directory", "Torque: the directory of the submission."),
    "x": ("", "Torque: refused; it belongs to interactive jobs."),
    "X": ("", "Refused: it belongs to interactive jobs."),
    "z": ("", "Do not print the identifier."),
}
"""Options of ``qsub``: the union of those of OpenPBS and Torque."""

TORQUE_LETTERS = "bdDEFGKLntTwx"
"""The options that only Torque has; in the dialect of OpenPBS they are not known."""

_READ_ONLY = (
    "accounting_id",
    "array",
    "array_id",
    "array_index",
    "array_indices_remaining",
    "array_state_count",
    "comment",
    "ctime",
    "eligible_time",
    "estimated",
    "etime",
    "exec_host",
    "exec_vnode",
    "Exit_status",
    "history_timestamp",
    "Job_Owner",
    "job_state",
    "jobdir",
    "mtime",
    "obittime",
    "qtime",
    "queue",
    "server",
    "session_id",
    "Stageout_status",
    "stime",
    "Submit_Host",
    "substate",
)
"""The attributes that only the server sets."""

_NAMES = {name.lower(): name for name in (*BY_NAME, *_READ_ONLY)}
_TRUE, _FALSE = ("true", "t", "1", "y"), ("false", "f", "0", "n")
_DEPENDENCIES = (
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
)
_OF_ARRAYS = ("afterarray", "afterokarray", "afternotokarray", "afteranyarray")
_EARLY = "alrW"
"""The options that ``qsub`` checks while it reads them (qsub.c, process_opts)."""


def illegal(letter: str, reason: str = "") -> UsageFault:
    """Return the fault ``illegal -N value: reason``; the usage text follows, and the exit code is
    2."""
    text = f"illegal -{letter} value" + (f": {reason}" if reason else "")
    return UsageFault(text, is_of_server=letter not in _EARLY)


def refused(code: str, message: str) -> CommandFault:
    """Return the fault with the exit code of a refusal by the server, of
    :data:`qbatch.wire.errors.CODES`."""
    return CommandFault(message, code_of(CODES[code][0]))


def is_true(value: str) -> bool:
    """Return a truth value of PBS.

    Raises:
        UsageFault: the text is none.
    """
    if value.strip().lower() not in _TRUE + _FALSE:
        raise _wrong(f"{value.strip()[:200]!r} is neither true nor false")
    return value.strip().lower() in _TRUE


def _wrong(reason: str) -> UsageFault:
    """Return the fault of a value of ``-W`` that is checked after all options are read."""
    return UsageFault(f"illegal -W value: {reason}", is_of_server=True)


def is_attribute(word: str) -> bool:
    """Return whether a word is ``Name=value`` with the name of an attribute."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.lower() in _NAMES


def read_attributes(value: str, *, is_torque: bool = False) -> dict[str, str]:
    """Return the attributes of one -W argument by their names in PBS.  A part without ``=`` belongs
    to the attribute before it if that is a list.

    Raises:
        UsageFault: the text is no list of ``name=value``, or a value is illegal.
        CommandFault: an attribute is unknown, or only the server sets it.
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
            raise refused(
                "unknown-attribute",
                f"Error (15002) submitting job: -W {name.strip()} is no attribute (known: {names})",
            )
        elif part.strip() or not value.strip():
            raise illegal("W", f"{part.strip()!r} is not of the form name=value")
    for name, text in found.items():
        _check(name, text, is_torque)
    return found


def _check(name: str, value: str, is_torque: bool) -> None:
    """Refuse the value of an attribute that has no option (ecl_verify_values.c)."""
    if name in _READ_ONLY:
        raise refused(
            "read-only", f"Cannot set attribute, read only or insufficient permission  {name}"
        )
    if name == "depend":
        _check_depend(value, is_torque)
    elif name in ("block", "interactive"):
        if value.lower() not in ("true", "false"):
            raise illegal("W", f"{name} is true or false, not {value[:200]!r}")
        if value.lower() == "true" and name == "interactive":
            raise illegal("W", "interactive jobs are not supported yet")
    elif name == "release_nodes_on_stageout":
        is_true(value)
    elif name == "tolerate_node_failures" and value.lower() not in ("none", "job_start", "all"):
        raise refused(
            "bad-value",
            f"Illegal attribute or resource value {name}: one of none, job_start, all",
        )
    elif name == "umask" and not re.fullmatch(r"[0-9]{1,4}", value):
        raise _wrong("umask is an octal number")
    elif name in ("max_run_subjobs", "run_count") and not re.fullmatch(r"[0-9]{1,9}", value):
        raise _wrong(f"{name} is a number")
    elif name == "sandbox" and value.upper() not in SANDBOXES:
        raise _wrong(f"sandbox is one of {', '.join(SANDBOXES)}")
    elif name == "group_list":
        check_at_list("W", value, is_each_host_once=True)
    elif name in ("stagein", "stageout"):
        try:
            parse_staging(value)
        except ValueError as error:
            raise _wrong(f"{name}: {error}") from None


def _check_depend(value: str, is_torque: bool) -> None:
    """Check ``afterok:12:13,afterany:9`` (parse_depend.c)."""
    known = _DEPENDENCIES + (_OF_ARRAYS if is_torque else ())
    for part in value.split(","):
        kind, *ids = part.strip().split(":")
        if kind not in known or not ids or "" in ids:
            raise _wrong(f"depend={part.strip()!r}: known are {', '.join(sorted(known))}")
        if kind in ("on", "synccount"):
            if not re.fullmatch(r"[0-9]{1,6}", ids[0]):
                raise _wrong(f"depend={part.strip()!r}: a count is missing")
            continue
        for job in ids:
            if re.search(r"\[[^\]]", job) and not is_torque:
                raise UsageFault(
                    f"cannot have dependancy on subjob or range: {job} (name its array)",
                    is_of_server=True,
                )
            try:
                expand_id(job)
            except ValueError as error:
                raise _wrong(str(error)) from None


def check_at_list(
    letter: str, value: str, *, is_each_host_once: bool = False, is_path: bool = False
) -> None:
    """Refuse a list that is not of the form ``name[@host],...`` (parse_at.c).

    Raises:
        UsageFault: with the item and the reason.
    """
    hosts: list[str] = []
    for item in (each.strip() for each in value.split(",")):
        found = re.fullmatch(r"([^\s#@,]+)(?:@([^\s#@,]+))?", item)
        if found is None or not item.isprintable():
            reason = f"{item[:200]!r} is not of the form name[@host]"
        elif is_path and not item.startswith("/"):
            reason = f"{item[:200]!r} is no absolute path"
        elif is_each_host_once and (found[2] or "") in hosts:
            reason = f"a second item without a host, or with the same one: {item[:200]!r}"
        else:
            hosts.append(found[2] or "")
            continue
        raise UsageFault(f"illegal -{letter} value: {reason}", is_of_server=True)


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
    "c": (r"[nscw]|[cw]=[0-9]+", "n, s, c, c=MINUTES, w or w=MINUTES"),
    "j": ("oe|eo|n", "known are oe, eo, n"),
    "k": ("[oed]*[oe][oed]*|[nd]*n[nd]*", "letters of oed, d with o or e, or n"),
    "m": ("[abej]+|n", "letters of abej, or n"),
    "p": ("[+-]?[0-9]{1,5}", "a priority is a whole number from -1024 to 1023"),
    "r": ("y|n", "y or n"),
    "R": ("[oe]+", "letters of oe"),
}
_TORQUE_FORMS = {
    "c": (
        r"[nscwu]|[cw]=[0-9]{1,9}|interval=[0-9]+|enabled|shutdown|periodic|none",
        "n, s, c, c=MINUTES, w, w=MINUTES or u",
    ),
    "k": ("[oed]+|n", "letters of oedn, n alone"),
    "m": ("[abefjp]+|n", "letters of abefjpn, n alone"),
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
        self.options: dict[str, str] = {}

    def take(self, options: list[tuple[str, str]], *, is_directive: bool = False) -> None:
        """Take options in order.  A resource that a directive names twice has its first value
        (set_resource.c); everything else has its last.

        Raises:
            UsageFault, CommandFault: a value is illegal.
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
                    value = re.sub(",+", ",", _NO_PROCS.sub("", value)).strip(",")
                try:
                    given = parse_resources(value)
                except ValueError as error:
                    raise illegal("l", str(error)) from None
                resources = {**given, **resources} if is_directive else {**resources, **given}
            else:
                self._take_one(letter, value)
                self.options[letter] = value
        if "J" in self.options and self.options.get("r", "y").strip() == "n":
            raise UsageFault(" cannot submit non-rerunable Array Job")
        for name, value in resources.items() if self.is_torque else ():
            # A later select replaces an earlier nodes, and the other way round.
            other = {"select": "nodes", "nodes": "select"}.get(name, "")
            if other and other not in resources:
                self.resources.pop(other, None)
            if value.count(":") == 3 and re.fullmatch("[0-9:]+", value):  # D:H:M:S
                resources[name] = format_duration(parse_duration(value))
        deadline = resources.get(RESOURCE)
        if deadline is not None and re.fullmatch(r"[0-9]{4,12}(\.[0-9]{2})?", deadline):
            from datetime import datetime

            instant = datetime.fromtimestamp(read_date("l", deadline) // MICROSECONDS)
            resources[RESOURCE] = instant.astimezone().isoformat()
        elif deadline is not None:
            resources[RESOURCE] = with_offset(deadline)
        self.resources.update(resources)

    def check(self, options: list[tuple[str, str]]) -> None:
        """Read options without taking them.

        Raises:
            UsageFault, CommandFault: a value is illegal.
        """
        Gathered(self.directory, self.environment, is_torque=self.is_torque).take(options)

    def _take_one(self, letter: str, value: str) -> None:
        self.letters.add(letter)
        forms = {**_FORMS, **(_TORQUE_FORMS if self.is_torque else {})}
        if letter in forms:
            self._take_form(letter, value.strip(), *forms[letter])
        elif letter in self._takers:
            self._takers[letter](self, letter, value)
        elif letter in "AMPSu":
            self._take_text(letter, value)
        elif letter in _UNSUPPORTED and not (letter == "D" and value.strip() == "/"):
            raise CommandFault(
                f"-{letter} cannot be honoured: {_UNSUPPORTED[letter]}; leave it out", 2
            )
        # -n, -V, -z and -I are in ``letters``.  -b (how long to try), -E (more variables) and -f
        # have no effect here.

    def _take_form(self, letter: str, text: str, pattern: str, reason: str) -> None:
        if not re.fullmatch(pattern, text) or (letter == "p" and not -1024 <= int(text) <= 1023):
            raise illegal(letter, reason)
        self.fields[BY_LETTER[letter].field] = (
            int(text) if letter == "p" else text == "y" if letter == "r" else text
        )

    def _take_text(self, letter: str, value: str) -> None:
        text = value.strip()
        if letter in "MSu" and not self.is_torque:
            is_shell = letter == "S"
            check_at_list(letter, text, is_each_host_once=letter != "M", is_path=is_shell)
        if letter == "u":
            self.extra["user_list"] = value
        else:
            self.fields[BY_LETTER[letter].field] = text

    def _take_name(self, _letter: str, value: str) -> None:
        self.fields["name"] = _checked_name(value, self.is_torque)

    def _take_date(self, letter: str, value: str) -> None:
        self.fields[BY_LETTER[letter].field] = read_date(letter, value)

    def _take_queue(self, _letter: str, value: str) -> None:
        self.fields["queue"] = value.strip()

    def _take_hold(self, _letter: str, _value: str) -> None:
        self.fields["hold"] = "u"

    def _take_directory(self, _letter: str, value: str) -> None:
        self.extra["init_dir"] = file_path(value, self.directory, self.environment)

    def _take_arguments(self, _letter: str, value: str) -> None:
        self.extra["script_arguments"] = value

    def _take_display(self, letter: str, _value: str) -> None:
        if not self.environment.get("DISPLAY") and not self.is_torque:
            raise UsageFault("DISPLAY not set")
        raise CommandFault(_UNSUPPORTED[letter], 1)

    def _take_path(self, letter: str, value: str) -> None:
        """Take ``-o`` or ``-e``; qstat only shows the host, if any: files stay on this machine."""
        found, path = (
            _HOST_PATH.fullmatch(value.strip()),
            file_path(value, self.directory, self.environment),
        )
        if not self.is_torque and (not path or not path.isprintable()):
            raise illegal(letter, "a path is [host:]path, of letters that can be printed")
        if found is not None and not self.is_torque and not _is_host(found[1].removesuffix(":")):
            raise illegal(letter, f"there is no host {found[1].removesuffix(':')}")
        self.fields[BY_LETTER[letter].field] = (
            f"{found[1]}{path}" if found is not None and path else path
        )

    def _take_array(self, letter: str, text: str) -> None:
        """Take ``-J 1-10:2%3``, or Torque's list of indices; the server refuses an array of one
        job, if it is not lenient about it (chk_Jrange.c)."""
        if letter == "J" and not self.is_torque:
            found = re.fullmatch(
                r"([0-9]{1,7}(?:-[0-9]{1,7}(?::[0-9]{1,7})?)?)(?:%([0-9]{1,7}))?", text
            )
            if found is None:
                raise illegal(letter, f"{text!r} is not of the form 1-10, 1-10:2 or 1-10%3")
            text = text if int(found[2] or 0) else found[1]
        try:
            parse_indices(text)
        except ValueError as error:
            raise illegal(letter, str(error)) from None
        self.fields["array"], self.fields["is_torque"] = text, letter == "t"

    _takers: ClassVar[dict[str, Callable[[Gathered, str, str], None]]] = {
        "a": _take_date,
        "d": _take_directory,
        "e": _take_path,
        "F": _take_arguments,
        "h": _take_hold,
        "J": _take_array,
        "N": _take_name,
        "o": _take_path,
        "q": _take_queue,
        "t": _take_array,
        "v": lambda self, letter, value: self._take_variables(letter, value),
        "W": lambda self, letter, value: self._take_attributes(letter, value),
        "X": _take_display,
    }

    def _take_attributes(self, _letter: str, value: str) -> None:
        for name, text in read_attributes(value, is_torque=self.is_torque).items():
            if name == "Hold_Types":
                if not re.fullmatch("[uos]+|n+|p+", text):
                    raise illegal("h", "letters of uos, or n")
                self.fields["hold"] = text.replace("p", "") or "n"
            elif name == "Execution_Time":
                if not re.fullmatch(r"[0-9]{1,11}", text):
                    raise UsageFault(
                        "illegal -a value: Execution_Time is a number of seconds since 1970",
                        is_of_server=True,
                    )
                self.fields["not_before"] = int(text) * MICROSECONDS
            elif BY_NAME[name].letter:
                value_of_option = ("y" if is_true(text) else "n") if name == "Rerunable" else text
                self._take_one(BY_NAME[name].letter, value_of_option)
            elif name in ("stagein", "stageout") and name in self.attributes:
                self.attributes[name] += f",{text}"
            else:
                self.attributes[name] = text

    def _take_variables(self, _letter: str, value: str) -> None:
        """Take ``-v``; in OpenPBS the last one counts, in Torque they add up."""
        if not self.is_torque:
            self.variables.clear()
        try:
            pairs = split_list(value)
        except ValueError as error:
            raise CommandFault(f"cannot send environment with the job: -v: {error}", 1) from None
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

    def check_resources(self) -> None:
        """Refuse the values of resources that the server would refuse; round the walltime.

        Raises:
            CommandFault: with the words and the exit code of PBS.
        """
        try:
            check_resources(self.resources, is_torque=self.is_torque)
        except ResourceFault as fault:
            raise refused(fault.code, str(fault)) from None
        if "." in self.resources.get("walltime", ""):
            self.resources["walltime"] = whole_walltime(self.resources["walltime"])

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
        self.check_resources()
        inherited = printable(self.environment) if "V" in self.letters else {}
        whole = {**inherited, **variables, **self.variables, "PBS_O_WORKDIR": self.directory}
        fields = dict(self.fields)
        for name, value in self.attributes.items():
            field = BY_NAME[name].field
            if field in Spec.__struct_fields__ and not _is_no_mask(name, value):
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


_UNUSED = ("interactive",)
"""Attributes that are accepted only with the value that has no effect."""


def _is_no_mask(name: str, value: str) -> bool:
    """Return whether a umask, such as 999, is no octal number: PBS shows it, and the job has the
    default mask."""
    return name == "umask" and not re.fullmatch("0?[0-7]{1,3}", value)


def _is_host(name: str) -> bool:
    """Return whether there is a host of this name: this machine, or one that has an address."""
    if name in names_of(os.uname().nodename) | {"localhost", "localhost.localdomain"}:
        return True
    import socket

    try:
        socket.getaddrinfo(name, None)
    except (OSError, UnicodeError):
        return False
    return True


def field_value(name: str, value: str) -> object:
    """Return the value of a field for an attribute that only -W sets."""
    if name == "block":
        return is_true(value)
    if name == "umask":
        return value if _is_no_mask(name, value) else int(value, 8)
    if name == "release_nodes_on_stageout":
        return is_true(value)
    return value.upper() if name == "sandbox" else value


def _checked_name(value: str, is_torque: bool) -> str:
    """Return a job's name: in OpenPBS letters, digits and ``-_+.`` (ck_job_name.c); in Torque it
    may have slashes, for example ``project/job``."""
    if len(value) > LONGEST_NAME:
        raise CommandFault(f"Job name is too long (at most {LONGEST_NAME} letters)", 2)
    if is_torque:
        is_name = value.isprintable() and " " not in value and not value.endswith("/")
    else:
        is_name = re.fullmatch("[A-Za-z0-9_.+-]*", value) is not None
    if not value or not is_name:
        raise illegal("N", "a name has letters, digits and - _ + . only")
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
