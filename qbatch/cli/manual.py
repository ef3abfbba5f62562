"""The manual pages of all commands, made from their help when the package is built
(hatch_build.py).

``python -m qbatch.cli.manual DIRECTORY`` writes them by hand.  A page is roff with the macros of
man(7): ``qbatch.1``, ``qbatch-replay.1`` and so on for each subcommand, ``qsub.1`` and so on for
the PBS commands.  This module adds no text about a command that its help does not have.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from qbatch.cli.main import COMMANDS, app
from qbatch.cli.pbs.command import help_of
from qbatch.cli.pbs.start import command_of
from qbatch.daemon.commands import COMMANDS as INSTALLED
from qbatch.distribution import __version__

PBS_COMMANDS = tuple(name for name in INSTALLED if name != "qbatch")

EXIT_CODES = {
    "0": "done",
    "1": "the thing asked about failed, or a check found a breach",
    "2": "usage",
    "3": "input that cannot be used",
    "4": "output that cannot be written",
    "5": "no daemon there",
    "6": "no such job, queue or host",
    "7": "not permitted",
    "8": "refused by admission",
    "9": "protocol versions differ",
    "74": "storage failed",
    "75": "another daemon has this directory",
    "124": "timeout",
    "130": "interrupted",
}
"""Exit codes of ``qbatch`` (docs/design.md, "What the outside sees")."""

PBS_EXIT_CODES = {
    "0": "done",
    "2": "usage",
    "35": "the job has finished",
    "153": "unknown job",
    "159": "not permitted",
    "168": "the state of the job forbids it",
    "170": "unknown queue",
    "255": "no server there",
}
"""Exit codes of most PBS commands: the error number of PBS, modulo 256."""

_NO_SERVER = {"255": PBS_EXIT_CODES["255"]}
OWN_EXIT_CODES = {
    "qrun": {"0": "done", "2": "usage, or the server refuses a start", **_NO_SERVER},
    "qterm": {"0": "done", "2": "usage, or the server refuses to stop", **_NO_SERVER},
    "qmgr": {"0": "done", "1": "a command cannot be read", **PBS_EXIT_CODES},
    "pbsdsh": {
        "0": "done, whatever became of the tasks",
        "1": "outside of a job, or ended by a signal",
        "2": "usage",
    },
}
"""Exit codes of the other PBS commands."""

VARIABLES = {
    "QBATCH_SOCKET": "the socket of the daemon",
    "QBATCH_STATE": "the directory of the daemon, which holds its socket",
    "QBATCH_DIALECT": "torque: the PBS commands follow Torque",
}


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    found = {f"{name}.1": _pbs_page(name) for name in PBS_COMMANDS}
    command = typer.main.get_command(app)
    lines = [*_head("qbatch", str(command.help), "qbatch"), ".SH SYNOPSIS"]
    lines += ["\\fBqbatch\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR ..."]
    lines += [".SH DESCRIPTION", _marked(str(command.help)), ".SH COMMANDS"]
    lines += _terms(
        (f"\\fBqbatch\\-{escaped(name)}\\fR(1)", text) for name, (_, text) in COMMANDS.items()
    )
    lines += [".SH OPTIONS", *_parameters(command, "qbatch")]
    found["qbatch.1"] = "\n".join([*lines, *_tail(EXIT_CODES, PBS_COMMANDS)]) + "\n"
    for name, (_, summary) in COMMANDS.items():
        found[f"qbatch-{name}.1"] = _page(name, summary)
    return found


def escaped(text: str) -> str:
    """Return a text escaped for roff: it holds no requests and keeps its characters."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti").replace("`", "\\(ga")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _marked(text: str) -> str:
    """Return a text in which words between double backquotes are bold."""
    parts = text.split("``")
    return "".join(
        f"\\fB{escaped(part)}\\fR" if place % 2 else escaped(part)
        for place, part in enumerate(parts)
    )


def _head(name: str, summary: str, manual: str) -> Iterator[str]:
    yield f'.TH "{escaped(name.upper())}" 1 "" "qbatch {__version__}" "{manual}"'
    yield from (".nh", ".ad l", ".SH NAME", f"{escaped(name)} \\- {_marked(summary.rstrip('.'))}")


def _terms(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a list of terms, each already in roff, and their descriptions."""
    for term, text in rows:
        yield from (".TP", term, _marked(text) or "\\&")


def _tail(codes: dict[str, str], names: Iterable[str]) -> Iterator[str]:
    yield ".SH EXIT STATUS"
    yield from _terms((f"\\fB{code}\\fR", meaning) for code, meaning in codes.items())
    yield ".SH ENVIRONMENT"
    yield from _terms((f"\\fB{name}\\fR", meaning) for name, meaning in VARIABLES.items())
    yield ".SH SEE ALSO"
    yield ", ".join(f"\\fB{escaped(name)}\\fR(1)" for name in names)


def _pbs_page(name: str) -> str:
    command = command_of(name)
    summary, paragraphs, options = help_of(command)
    lines = [*_head(name, summary, "PBS commands of qbatch"), ".SH SYNOPSIS", ".nf"]
    lines += [
        escaped(line) for line in re.sub(r"\n\s*", "\n    ", command.usage.strip()).splitlines()
    ]
    lines += [".fi", ".SH DESCRIPTION", _marked(f"{summary[0].upper()}{summary[1:]}.")]
    for paragraph in paragraphs:
        lines += [".PP", _marked(paragraph)]
    lines.append(".SH OPTIONS")
    lines += _terms(
        (
            f"\\fB{escaped(option)}\\fR" + (f" \\fI{escaped(argument)}\\fR" if argument else ""),
            meaning,
        )
        for option, argument, meaning in options
    )
    others = [each for each in ("qbatch", *PBS_COMMANDS) if each != name]
    return "\n".join([*lines, *_tail(OWN_EXIT_CODES.get(name, PBS_EXIT_CODES), others)]) + "\n"


def _page(name: str, summary: str) -> str:
    group: Any = typer.main.get_command(app)
    command = group.get_command(None, name)
    lines = [*_head(f"qbatch-{name}", summary, "qbatch"), ".SH SYNOPSIS"]
    parts = getattr(command, "commands", {})
    synopses = [(f"qbatch {name} {part}", each) for part, each in parts.items()] or [
        (f"qbatch {name}", command)
    ]
    for place, (words, each) in enumerate(synopses):
        usage = " ".join(each.collect_usage_pieces(_context(each, words)))
        lines += [".br"] * bool(place) + [f"\\fB{escaped(words)}\\fR {escaped(usage)}"]
    lines.append(".SH DESCRIPTION")
    lines += _paragraphs(str(command.help or summary))
    if not parts:
        lines += [".SH OPTIONS", *_parameters(command, f"qbatch {name}")]
    for part, each in parts.items():
        lines += [
            f".SH {escaped(part.upper())}",
            *_paragraphs(str(each.help)),
            *_parameters(each, f"qbatch {name} {part}"),
        ]
    return "\n".join([*lines, *_tail(EXIT_CODES, ["qbatch"])]) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    for place, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if place:
            yield ".PP"
        yield _marked(" ".join(paragraph.split()))


def _context(command: Any, words: str) -> Any:
    whole = typer.main.get_command(app).make_context("qbatch", [], resilient_parsing=True)
    return command.make_context(words, [], parent=whole, resilient_parsing=True)


def _parameters(command: Any, words: str) -> Iterator[str]:
    """Yield the arguments and options of a command, as its help shows them."""
    context = _context(command, words)
    records = (parameter.get_help_record(context) for parameter in command.get_params(context))
    yield from _terms(
        (f"\\fB{escaped(term)}\\fR", " ".join(text.split())) for term, text in filter(None, records)
    )


def write(directory: Path) -> None:
    """Write all pages into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
