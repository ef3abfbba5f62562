"""The common parts of all PBS commands: their surroundings, their messages on stderr, their exit
codes, their start.

A command exits with the error number of PBS modulo 256 (153 for an unknown job, 35 for a finished
one).  It exits with 2 for wrong usage and with 255 when no daemon listens.  Of several operands,
the last one that failed gives the exit code.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import IO, NamedTuple, NoReturn, TextIO, TypeVar

import msgspec

from qbatch.cli.pbs.text import plain
from qbatch.client import ClientSession, NoDaemon
from qbatch.model.errors import QbatchError
from qbatch.wire.errors import ErrorRecord, Refusal
from qbatch.wire.identifiers import expand_id
from qbatch.wire.paths import socket_path
from qbatch.wire.records import Outcome, Outcomes, Welcome
from qbatch.wire.requests import Hello, Request

VERSION = "23.06.06"
"""The version of PBS that the commands print."""

TORQUE_VERSION = "6.1.3"
"""The version in Torque's dialect; Torque prints it on stderr."""

UNKNOWN_JOB, FINISHED_JOB, NOT_PERMITTED, BAD_STATE, UNKNOWN_QUEUE = (
    15001,
    15139,
    15007,
    15016,
    15018,
)
BAD_HOST, TORQUE_BAD_STATE = 15008, 15018
NO_CONNECTION = 255
"""Exit code of a command that cannot connect to a server."""

MESSAGES = {
    UNKNOWN_JOB: "Unknown Job Id",
    FINISHED_JOB: "Job has finished",
    NOT_PERMITTED: "Unauthorized Request ",
    BAD_STATE: "Request invalid for state of job",
    UNKNOWN_QUEUE: "Unknown queue",
    15013: "Unknown/illegal signal name",
    15015: "Cannot modify attribute while job running ",
    15038: "job is not rerunnable",
    15062: "Unknown node ",
}
"""The texts of PBS for its error numbers; clients look for them."""

Options = Mapping[str, tuple[str, str]]
"""The options of a command, by letter: the name of the argument ("" if it takes none) and a line
about it.  For an option of PBS or Torque without a meaning here, the line states whether the
command ignores or refuses it."""

TAKEN = ("", "Ignored.")

FLAGS = {
    "--hosts": "Reserve the named hosts for maintenance.",
    "--quote": "Ask what would become of the job, and submit nothing.",
    "--help": "Show this page.",
    "--version": "Print the version of PBS that the command follows.",
}
"""Long options."""

Result = TypeVar("Result", bound=msgspec.Struct)


class UsageFault(Exception):  # noqa: N818 - a fault of the caller
    """The command line is wrong; the command prints the message, if any, a second line, if any, and
    the usage text, and exits with 2.  ``is_of_server``: OpenPBS leaves such a value to the server
    or to a check after all options are read, so that in a directive it is no ``directive error``."""

    def __init__(self, message: str = "", second: str = "", *, is_of_server: bool = False) -> None:
        super().__init__(message)
        self.second = second
        self.is_of_server = is_of_server


class CommandFault(Exception):  # noqa: N818 - a fault of the caller
    """The command cannot be done; it prints one line on stderr."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class Parsed(NamedTuple):
    """Options in order, as (letter, argument; empty if it takes none), the operands, and those
    after ``--``."""

    options: list[tuple[str, str]]
    operands: list[str]
    after_dashes: list[str] | None

    def has(self, letters: str) -> bool:
        """Return whether any of the letters was given."""
        return any(letter in letters for letter, _ in self.options)

    def last(self, letter: str, default: str = "") -> str:
        """Return the argument of the last such option."""
        for name, value in reversed(self.options):
            if name == letter:
                return value
        return default


def parse_options(arguments: list[str], known: Options, stops_early: bool = False) -> Parsed:
    """Return the options of ``arguments``, read as the GNU C library reads them: operands may stand
    between options, and ``--`` ends them.

    Raises:
        UsageFault: with the text that getopt(3) prints.
    """
    options: list[tuple[str, str]] = []
    operands: list[str] = []
    place = 0
    while place < len(arguments):
        word = arguments[place]
        place += 1
        if word == "--":
            return Parsed(options, operands, arguments[place:])
        if len(word) < 2 or word[0] != "-":
            operands.append(word)
            if stops_early:
                return Parsed(options, operands + arguments[place:], None)
            continue
        spot = 1
        while spot < len(word):
            letter = word[spot]
            spot += 1
            if letter not in known:
                raise UsageFault(f"invalid option -- '{letter}'")
            if not known[letter][0]:
                options.append((letter, ""))
                continue
            if spot < len(word):
                options.append((letter, word[spot:]))
            elif place < len(arguments):
                options.append((letter, arguments[place]))
                place += 1
            else:
                raise UsageFault(f"option requires an argument -- '{letter}'")
            break
    return Parsed(options, operands, None)


class Surroundings(NamedTuple):
    """Where a command runs: its environment, working directory and streams; ``invoked_as`` is
    argv[0]."""

    environment: Mapping[str, str]
    directory: str
    stdin: IO[bytes] | None
    out: TextIO
    err: TextIO
    invoked_as: str = ""

    @property
    def is_torque(self) -> bool:
        """Whether the command uses Torque's dialect: ``QBATCH_DIALECT=torque``, or it was called as
        ``.../torque/qstat``."""
        dialect = self.environment.get("QBATCH_DIALECT", "")
        return (
            dialect.lower() == "torque"
            if dialect
            else "torque" in self.invoked_as.split("/")[:-1][-1:]
        )


def surroundings() -> Surroundings:
    """Return the surroundings of this process."""
    try:
        directory = os.getcwd()
    except OSError:
        directory = "/"
    stdin = sys.stdin.buffer if sys.stdin is not None else None
    return Surroundings(
        os.environ, directory, stdin, sys.stdout, sys.stderr, sys.argv[0] if sys.argv else ""
    )


class Call:
    """One run of a command: its arguments, its surroundings, its connection and its exit code."""

    def __init__(self, name: str, given: Parsed, here: Surroundings, arguments: list[str]) -> None:
        self.name = name
        self.given = given
        self.here = here
        self.arguments = arguments
        self.code = 0
        self.flags: frozenset[str] = frozenset()
        self._session: ClientSession | None = None
        self._servers: dict[str, str] = {}

    @property
    def session(self) -> ClientSession:
        """The connection to the daemon, opened when it is first needed."""
        if self._session is None:
            self._session = ClientSession(socket_path(self.here.environment))
            self._session.connect()
        return self._session

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    def ask(self, request: Request, kind: type[Result]) -> Result:
        return self.session.ask(request, kind)

    def write(self, text: str) -> None:
        self.here.out.write(text)

    def complain(self, message: str, code: int = 1) -> None:
        """Write ``NAME: message`` to stderr; the command will exit with ``code``, unless a later
        operand fails too."""
        self.here.err.write(f"{self.name}: {plain(message)}\n")
        self.code = code

    def is_here(self, operand: str) -> bool:
        """Whether the server named after an operand's ``@``, if any, is the one that answers; print
        an error if it is not."""
        server = operand.partition("@")[2]
        if server and server not in self._servers:
            try:
                self.ask(Hello(server=server), Welcome)
                self._servers[server] = ""
            except Refusal as refusal:
                if refusal.pbs != BAD_HOST:
                    raise
                self._servers[server] = str(refusal)
        message = self._servers.get(server, "")
        if message:
            self.here.err.write("Unknown Host.\n")
            self.complain(message, NO_CONNECTION)
        return not message

    def job_fault(self, error: ErrorRecord, name: str) -> None:
        """Report the error of one job in the words of PBS, and set the exit code."""
        job, text = error.job or name, error.message
        known = MESSAGES.get(error.pbs, "")
        code = code_of(error.pbs)
        if self.here.is_torque and error.pbs == FINISHED_JOB:
            message, code = (
                "Request invalid for state of job MSG=invalid state for job - COMPLETE",
                code_of(TORQUE_BAD_STATE),
            )
        elif error.pbs in (UNKNOWN_JOB, FINISHED_JOB):
            message = known
        elif known:
            message = pbs_words(known, job, text)
        else:
            message = text or error.code
        if job and not re.search(rf"(?<![\w.]){re.escape(job)}(?!\w)", message):
            message = f"{message} {job}"
        self.complain(message, code)

    def job_ids(self, operands: Iterable[str]) -> tuple[str, ...]:
        """Return the identifiers of the operands, with ranges of subjobs expanded.

        Report operands that are no identifiers or name another server.
        """
        found: list[str] = []
        for operand in operands:
            try:
                ids = expand_id(operand)
                found += ids if self.is_here(operand) else []
            except ValueError:
                self.complain(f"illegally formed job identifier: {operand[:200]}")
        return tuple(found)

    def report(self, outcomes: Iterable[Outcome]) -> None:
        """Report the outcomes that are errors, in order."""
        for outcome in outcomes:
            if outcome.error is not None:
                self.job_fault(outcome.error, outcome.name)

    def act(self, make: Callable[[tuple[str, ...]], Request], operands: Iterable[str]) -> int:
        """Send one request about the jobs that the operands name, and report its errors; return the
        exit code."""
        jobs = self.job_ids(operands)
        if jobs:
            try:
                self.report(self.ask(make(jobs), Outcomes).outcomes)
            except Refusal as refusal:
                self.job_fault(refusal.record, jobs[0] if len(jobs) == 1 else "")
        return self.code


class Command(NamedTuple):
    """A command: its name, its description (a line and further paragraphs), its usage text, its
    options and its action, which takes a call and returns the exit code.

    ``usage``: as PBS prints it behind ``usage:``.  ``flags``: long options without an argument,
    which neither POSIX nor PBS has.  ``torque``: letters that only Torque's dialect knows.
    ``usage_code``: the exit code of wrong usage.
    """

    name: str
    text: str | None
    usage: str
    options: Options
    action: Callable[[Call], int]
    stops_early: bool = False
    flags: tuple[str, ...] = ()
    torque: str = ""
    usage_code: int = 2

    def options_in(self, *, is_torque: bool) -> Options:
        """Return the options of a dialect."""
        return {
            letter: each
            for letter, each in self.options.items()
            if is_torque or letter not in self.torque
        }

    @property
    def usage_text(self) -> str:
        """What wrong usage prints: the text of PBS, then our long option."""
        blanks = self.usage[: len(self.usage) - len(self.usage.lstrip())]
        indent = blanks.strip("\n") if blanks else "       "
        first = "usage:" if blanks.startswith("\t") else "usage: "
        own = "".join(f"{indent}{self.name} {option}\n" for option in ("--version", "--help"))
        return f"{first}{self.usage}\n{own}"

    def run(self, arguments: list[str], here: Surroundings | None = None) -> int:
        """Run the command and return the exit code; errors go to stderr."""
        here = here or surroundings()
        if arguments[:1] == ["--version"]:
            if here.is_torque:
                here.err.write(f"Version: {TORQUE_VERSION}\n")
            else:
                here.out.write(f"pbs_version = {VERSION}\n")
            return 0
        if arguments[:1] == ["--help"]:
            here.out.write(help_page(self))
            return 0
        call: Call | None = None
        usage = ""
        try:
            early = self.stops_early or "POSIXLY_CORRECT" in here.environment
            end = arguments.index("--") if "--" in arguments else len(arguments)
            own = [word for word in arguments[:end] if word not in self.flags]
            call = Call(
                self.name,
                parse_options(
                    [*own, *arguments[end:]], self.options_in(is_torque=here.is_torque), early
                ),
                here,
                arguments,
            )
            call.flags = frozenset(arguments[:end]).intersection(self.flags)
            return self.action(call)
        except UsageFault as fault:
            text, code = str(fault), self.usage_code
            usage = (f"{plain(fault.second)}\n" if fault.second else "") + self.usage_text
        except CommandFault as fault:
            text, code = str(fault), fault.code
        except NoDaemon as missing:
            server = (
                here.environment.get("PBS_DEFAULT")
                or here.environment.get("PBS_SERVER")
                or "qbatch"
            )
            text, code = (
                f"cannot connect to server {server} (errno={missing.number}): {missing}",
                NO_CONNECTION,
            )
        except Refusal as refusal:
            text, code = worded(refusal), code_of(refusal.pbs)
            usage = self.usage_text if refusal.code == "illegal-option" else ""
        except QbatchError as error:
            text, code = str(error), NO_CONNECTION if error.exit_code == 5 else 1
        finally:
            if call is not None:
                call.close()
        here.err.write((f"{self.name}: {plain(text)}\n" if text or not usage else "") + usage)
        return code

    def main(self) -> NoReturn:
        gc.disable()  # The process is short; its end frees all memory.
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            code = self.run(sys.argv[1:])
            sys.stdout.flush()
        except BrokenPipeError:
            code = 0
        except KeyboardInterrupt:
            code = 130
        except OSError as error:
            sys.stderr.write(f"{self.name}: the output cannot be written: {error.strerror}\n")
            code = 4
        try:
            sys.stderr.flush()
        finally:
            # Nothing needs a clean-up, and the regular end of the interpreter takes longer than an
            # answer.
            os._exit(code)


def pbs_words(known: str, job: str, text: str) -> str:
    """Return the words of PBS and the name of the job, as PBS writes them, then what our text adds
    to them."""
    place = text.lower().find(known.strip().lower())
    if place >= 0:
        text = text[:place] + text[place + len(known.strip()) :]
    if job:
        text = re.sub(rf"(?<![\w.]){re.escape(job)}(?!\w)", "", text, count=1)
    rest = " ".join(text.split()).lstrip(" :,")
    if not job:
        return f"{known} {rest}".rstrip()
    return f"{known} {job}" + (f": {rest}" if rest else "")


def operands_of(call: Call, least: int = 1) -> list[str]:
    """Return the operands.

    Raises:
        UsageFault: there are fewer than ``least``.
    """
    operands = call.given.operands + (call.given.after_dashes or [])
    if len(operands) < least:
        raise UsageFault("an operand is missing" if operands else "")
    return operands


def worded(refusal: Refusal) -> str:
    """Return the text of a refusal: that of PBS, if there is one, then that of the daemon."""
    known, text = MESSAGES.get(refusal.pbs, "").rstrip(), str(refusal)
    if known and known.lower() not in text.lower():
        return f"{known} ({text})" if text else known
    return text or refusal.code


def code_of(pbs: int) -> int:
    """Return the exit code of a PBS error number: its low eight bits, never 0; ``NO_CONNECTION``
    for a wrong server."""
    return NO_CONNECTION if pbs == BAD_HOST else pbs % 256 or 1


def queue_of(destination: str) -> str:
    """Return the queue of ``queue``, ``queue@server`` or ``@server`` (then empty)."""
    return destination.partition("@")[0]


def command(
    usage: str, options: Options | None = None, torque: str = ""
) -> Callable[[Callable[[Call], int]], Command]:
    """Return a decorator that makes a command from an action; the action's docstring becomes the
    description."""
    return lambda action: Command(
        usage.split()[0], action.__doc__, usage, options or {}, action, torque=torque
    )


def help_of(command: Command) -> tuple[str, list[str], list[tuple[str, str, str]]]:
    """Return the help of a command: one line, further paragraphs, and its options as (option,
    argument, meaning)."""
    first, *others = (" ".join(part.split()) for part in (command.text or "").split("\n\n"))
    letters = sorted(command.options.items(), key=lambda pair: (pair[0].lower(), pair[0].isupper()))
    options = [(f"-{letter}", argument, meaning) for letter, (argument, meaning) in letters]
    options += [(flag, "", FLAGS[flag]) for flag in (*command.flags, "--help", "--version")]
    summary = first.removeprefix(f"``{command.name}``: ").rstrip(".")
    return summary[:1].lower() + summary[1:], [each for each in others if each], options


def help_page(command: Command) -> str:
    """Return the text of ``--help``."""
    import textwrap

    summary, paragraphs, options = help_of(command)
    lines = [f"usage: {command.usage.strip()}", "", f"{summary[:1].upper()}{summary[1:]}."]
    for paragraph in paragraphs:
        lines += ["", *textwrap.wrap(paragraph.replace("``", ""), 100)]
    lines += ["", "options:"]
    for option, argument, meaning in options:
        label = f"  {option} {argument}".rstrip()
        rest = textwrap.wrap(meaning, 72)
        if len(label) > 25:
            lines.append(label)
            label = ""
        lines += [f"{label:<27} {rest[0]}", *(" " * 28 + line for line in rest[1:])]
    return "\n".join(lines) + "\n"
