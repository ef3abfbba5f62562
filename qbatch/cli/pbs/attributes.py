"""The attributes of a job as ``qsub -W name=value`` takes them: those with options of their own, and the others.

OpenPBS hands every attribute on to the server (qsub.c, process_opts: ``set_attr(&attrib, keyword, valuewd)``), so that
``-W Job_Name=x`` is ``-N x``.  Names count without regard to capitals (attr_func.c, find_attr).  What cannot be honoured here
is refused by its name.
"""

from __future__ import annotations

import re

from qbatch.cli.pbs.command import TAKEN, CommandFault, Options
from qbatch.wire.attributes import BY_NAME, JOB_ATTRIBUTES
from qbatch.wire.identifiers import expand_id
from qbatch.wire.staging import SANDBOXES, parse_staging

ATTRIBUTE_OPTIONS: Options = {
    **{each.letter: (each.argument, each.meaning) for each in JOB_ATTRIBUTES if each.argument},
    "l": ("resource_list", "What the job asks for: select=2:ncpus=4:mem=8gb, place=scatter, walltime=1:00:00, ..."),
    "n": ("", "Torque: the job takes whole hosts."),
    "W": ("attribute=value", "Further attributes: depend=afterok:12, block=true, umask=022, stagein=..., sandbox=PRIVATE, ..."),
}
"""Options of ``qsub`` and ``qalter``."""

SUBMISSION_OPTIONS: Options = {
    **ATTRIBUTE_OPTIONS,
    "b": ("seconds", "Taken; it changes nothing here (Torque: how long to try)."),
    "C": ("prefix", "What directive lines begin with, in place of #PBS; '' reads none."),
    "d": ("directory", "Torque: where the job begins."),
    "D": ("directory", "Refused, but for /: a job has no root directory of its own."),
    "E": TAKEN,
    "f": ("", "Taken; qsub never goes into the background."),
    "F": ("arguments", "Torque: arguments of the script, in one word."),
    "G": ("", "Refused: there is no Windows here."),
    "h": ("", "Hold the job until qrls releases it."),
    "I": ("", "Refused: interactive jobs are not supported yet."),
    "J": ("X-Y[:Z][%max]", "Submit an array of jobs; max: how many may run at once."),
    "K": ("seconds", "Refused: the key kill_delay of the configuration says how long a job has."),
    "L": ("request", "Refused: write -l select or -l nodes."),
    "q": ("destination", "The queue: queue, queue@server or @server."),
    "t": ("array", "Torque: submit an array of jobs: 1-10, 1,3,5, 1-10%2."),
    "T": ("script", "Refused: no prologues are run here."),
    "V": ("", "Give the job the whole environment of qsub."),
    "w": ("directory", "Torque: the directory of the submission."),
    "x": ("", "Refused: it belongs to interactive jobs."),
    "X": ("", "Refused: it belongs to interactive jobs."),
    "z": ("", "Do not print the identifier."),
}
"""Options of ``qsub``: the union of those of OpenPBS and Torque."""

_REFUSED = {
    "accounting_id": "the server sets it", "comment": "the server sets it", "estimated": "the server sets it",
    "exit_on_full": "there is nothing here that it could change", "keep": "write Keep_Files or -k",
    "partition": "there is no Moab here to read it", "pwd": "no password is kept here", "cred": "no credential is kept here",
    "qos": "there is no Moab here to read it", "queue": "write -q", "x": "there is no Moab here to read it",
}  # fmt: skip

_NAMES = {name.lower(): name for name in (*BY_NAME, *_REFUSED)}
_TRUE, _FALSE = ("true", "t", "1", "y"), ("false", "f", "0", "n")
_DEPENDENCIES = {
    "after", "afterok", "afternotok", "afterany", "before", "beforeok", "beforenotok", "beforeany", "on", "synccount",
    "syncwith", "runone", "afterarray", "afterokarray", "afternotokarray", "afteranyarray",
}  # fmt: skip


def illegal(letter: str, reason: str = "") -> CommandFault:
    """Return the fault ``illegal -l value: reason``: one line, exit 2."""
    return CommandFault(f"illegal -{letter} value" + (f": {reason}" if reason else ""), 2)


def is_true(value: str) -> bool:
    """Return a truth value of PBS.

    Raises:
        CommandFault: it is none.
    """
    if value.strip().lower() not in _TRUE + _FALSE:
        raise illegal("W", f"{value.strip()[:200]!r} is neither true nor false")
    return value.strip().lower() in _TRUE


def is_attribute(word: str) -> bool:
    """Return whether a word is ``Name=value`` with the name of an attribute."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.lower() in _NAMES


def read_attributes(value: str) -> dict[str, str]:
    """Return the attributes of one -W argument by their proper names; a part without ``=`` belongs to the attribute before it
    if that is a list.

    Raises:
        CommandFault: an attribute is not known or cannot be honoured, or its value is illegal.
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
        check_depend(value)
    elif name in ("block", "interactive", "release_nodes_on_stageout"):
        if is_true(value) and name == "interactive":
            raise illegal("W", "interactive jobs are not supported yet")
        if is_true(value) and name == "release_nodes_on_stageout":
            raise illegal("W", "release_nodes_on_stageout cannot be honoured: a job keeps its hosts to its end")
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


def option_value(name: str, value: str) -> str:
    """Return the value of an attribute as the option takes it that sets it too.

    Raises:
        CommandFault: the value is illegal.
    """
    if name == "Rerunable":
        return "y" if is_true(value) else "n"
    return value


def check_depend(value: str) -> None:
    """Check ``afterok:12:13,afterany:9``.

    Raises:
        CommandFault: with the part.
    """
    for part in value.split(","):
        kind, *ids = part.strip().split(":")
        if kind not in _DEPENDENCIES or not ids:
            raise illegal("W", f"depend={part.strip()!r}: known are {', '.join(sorted(_DEPENDENCIES))}")
        if kind in ("on", "synccount"):
            if not re.fullmatch(r"[0-9]{1,6}", ids[0]):
                raise illegal("W", f"depend={part.strip()!r}: a count is missing")
            continue
        for job in ids:
            try:
                expand_id(job)
            except ValueError as error:
                raise illegal("W", str(error)) from None
