"""``qstat``: show jobs (the default), queues (-Q, -q) or the server (-B).

The module imports rare formats only when they are used, because clients ask again and again for the
plain table.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from qbatch.cli.pbs.command import (
    FINISHED_JOB,
    TAKEN,
    VERSION,
    Call,
    Command,
    UsageFault,
    code_of,
    queue_of,
)
from qbatch.cli.pbs.text import MICROSECONDS
from qbatch.wire.errors import ErrorRecord, Refusal
from qbatch.wire.identifiers import is_job_id, parse_id
from qbatch.wire.records import JobRecord, Queues, ServerRecord
from qbatch.wire.requests import History, JobStatus, QueueStatus, ServerStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from qbatch.cli.pbs.format_attributes import Attribute

USAGE = """
qstat [-f] [-J] [-p] [-t] [-x] [-E] [-F format | -w] [-D delim] [ job_identifier... | destination... ]
qstat [-a|-i|-r|-H|-T] [-J] [-t] [-u user] [-n] [-s] [-G|-M] [-1] [-w]
\t[ job_identifier... | destination... ]
qstat -Q [-f] [-F format] [-D delim] [ destination... ]
qstat -q [-G|-M] [ destination... ]
qstat -B [-f] [-F format] [-D delim] [ server_name... ]"""

_ALTERNATE = "airuHnsTGM"
_IDS_A_REQUEST = 500
_KEEP_COMPLETED = 300 * MICROSECONDS


class QstatOptions(NamedTuple):
    """The letters of the options, and what they ask for."""

    letters: frozenset[str]
    style: str
    separator: str
    users: tuple[str, ...]
    states: str
    is_full: bool
    is_torque: bool

    @property
    def is_alternate(self) -> bool:
        """Whether to show the alternate table: with one of its options, but not with -f and -w
        together.

        In Torque's dialect, -f always gives the full listing (with -u, of the user's jobs).
        """
        is_full = self.is_full and (self.is_torque or "w" in self.letters)
        return bool(self.letters & set(_ALTERNATE)) and not is_full

    @property
    def is_xml(self) -> bool:
        """Whether -x asks for Torque's XML, with or without -f."""
        return self.is_torque and "x" in self.letters and not self.style

    @property
    def unit(self) -> str:
        """The unit of memory: ``g`` (-G), ``w`` (-M) or the size's own."""
        return "g" if "G" in self.letters else "w" if "M" in self.letters else ""

    @property
    def finished(self) -> str:
        """The field ``finished`` of ``JobStatus``."""
        if "H" in self.letters:
            return "only"
        return "also" if "x" in self.letters and not self.is_torque else "no"


def read_options(call: Call) -> QstatOptions:
    """Return what the options ask for.

    Raises:
        UsageFault: options contradict each other.
    """
    pairs = [*call.given.options]
    for value in [value for letter, value in pairs if letter == "W"]:
        flags, users_from, listed = value.partition("u")
        if flags.strip("airHnsqGM1 "):
            raise UsageFault(f"illegal -W value {value}")
        pairs += [(letter, "") for letter in flags]
        pairs += [("u", listed.strip())] if users_from else []
    letters = frozenset(letter for letter, _ in pairs)
    users: list[str] = []
    for letter, value in pairs:
        if letter == "u":
            users += [part.partition("@")[0].strip() for part in value.split(",") if part.strip()]
    style = call.given.last("F").lower()
    conflict = (
        len(letters & set("airHq")) > 1
        or ("M" in letters and "G" in letters)
        or ("B" in letters and letters & set("Qq" + _ALTERNATE))
        or ("Q" in letters and letters & set("q" + _ALTERNATE))
        or ("q" in letters and "f" in letters)
        or ((style or "D" in letters) and (letters & set(_ALTERNATE + "w") or "f" not in letters))
    )
    if conflict:
        raise UsageFault("conflicting options.")
    if style not in ("", "json", "dsv", "default"):
        raise UsageFault(f"illegal -F value {style}")
    states = (
        "EHQTW" if "i" in letters else "RS" if "r" in letters else "MFX" if "H" in letters else ""
    )
    separator = call.given.last("D") or "|"
    return QstatOptions(
        letters, style, separator, tuple(users), states, "f" in letters, call.here.is_torque
    )


def _act(call: Call) -> int:
    options = read_options(call)
    if "B" in options.letters:
        _show_server(call, options)
    elif options.letters & {"Q", "q"}:
        _show_queues(call, options)
    else:
        Listing(call, options).show()
    return call.code


def _show_queues(call: Call, options: QstatOptions) -> None:
    operands = call.given.operands + (call.given.after_dashes or [])
    names = tuple(queue_of(operand) for operand in operands if call.is_here(operand))
    if operands and not names:
        return
    answer = call.ask(QueueStatus(queues=() if "" in names else names), Queues)
    if "q" in options.letters:
        from qbatch.cli.pbs.format_alternate import queue_limits_table

        call.write(
            queue_limits_table(answer.queues, answer.server, options.unit) if answer.queues else ""
        )
    elif options.is_full:
        from qbatch.cli.pbs.format_attributes import queue_attributes

        named = [(queue.name, queue_attributes(queue)) for queue in answer.queues]
        call.write(_full_text("Queue", named, options, answer.server, answer.now))
    else:
        from qbatch.cli.pbs.format_table import queue_table

        call.write(queue_table(answer.queues))
    for error in answer.errors:
        call.job_fault(error, "")


def _show_server(call: Call, options: QstatOptions) -> None:
    operands = call.given.operands + (call.given.after_dashes or [])
    here = [call.is_here(f"@{operand.removeprefix('@')}") for operand in operands]
    if here and not any(here):
        return
    server = call.ask(ServerStatus(), ServerRecord)
    if options.is_full:
        from qbatch.cli.pbs.format_attributes import server_attributes

        now = server.clock.now if server.clock is not None else 0
        call.write(
            _full_text(
                "Server",
                [(server.name, server_attributes(server, VERSION))],
                options,
                server.name,
                now,
            )
        )
    else:
        from qbatch.cli.pbs.format_table import server_table

        call.write(server_table(server))


def _full_text(
    kind: str,
    named: Iterable[tuple[str, list[Attribute]]],
    options: QstatOptions,
    server: str,
    now: int,
) -> str:
    """Return all attributes of named objects in the format that the options ask for."""
    from qbatch.cli.pbs.format_full import full_text, json_document, json_object, separated

    if options.style == "json":
        return json_document(
            server, VERSION, now, kind, {name: json_object(each) for name, each in named}
        )
    if options.style == "dsv":
        return "".join(
            separated(f"{kind}: {name}", each, options.separator) for name, each in named
        )
    is_wide = bool(options.letters & {"w", "1"})
    return "".join(full_text(f"{kind}: {name}", each, is_wide) for name, each in named)


class Listing:
    """One answer about jobs, collected operand by operand and written in one format."""

    def __init__(self, call: Call, options: QstatOptions) -> None:
        self.call = call
        self.options = options
        self.jobs: list[JobRecord] = []
        self.server = ""
        self.now = 0

    def show(self) -> None:
        """Ask for the jobs and write them."""
        operands = self.call.given.operands + (self.call.given.after_dashes or [])
        if not operands:
            self._ask_queues("")
        ids: list[str] = []
        for operand in operands:
            if is_job_id(operand):
                ids.append(operand)
                continue
            self._ask_ids(ids)
            ids = []
            self._ask_queues(operand)
        self._ask_ids(ids)
        self.call.write(self._text())

    def _status(self, finished: str, **chosen: Any) -> JobStatus:
        letters = self.options.letters
        is_table = not self.options.is_full and not self.options.is_xml and not letters & set("nsp")
        return JobStatus(
            finished=finished,
            subjobs="t" in letters,
            arrays_only="J" in letters and "t" not in letters,
            is_brief=is_table,
            with_estimates="T" in letters,
            **chosen,
        )

    def _ask_ids(self, operands: list[str]) -> None:
        ids = self.call.job_ids(operands)
        finished = "also" if self.options.is_torque or self.options.finished != "no" else "no"
        errors: list[ErrorRecord] = []
        for place in range(0, len(ids), _IDS_A_REQUEST):
            question = self._status(finished, jobs=ids[place : place + _IDS_A_REQUEST])
            errors += self._take(question)
        if "E" in self.options.letters:  # one request in OpenPBS: it fails if all of them do
            errors = [] if self.jobs else errors[-1:]
        for error in errors:
            if error.pbs == FINISHED_JOB:
                message = (
                    f"{error.job} Job has finished, use -x or -H to obtain historical "
                    "job information"
                )
                self.call.complain(message, FINISHED_JOB % 256)
            else:
                self.call.job_fault(error, error.job)

    def _ask_queues(self, destination: str) -> None:
        if not self.call.is_here(destination):
            return
        queue, options = queue_of(destination), self.options
        queues = (queue,) if queue else ()
        before = len(self.jobs)
        try:
            self._take(
                self._status(
                    options.finished, queues=queues, users=options.users, states=options.states
                )
            )
            if options.is_torque and options.finished == "no" and not options.states:
                self._take_completed(before, queues)
        except Refusal as refusal:
            if not queue or refusal.code != "unknown-queue":
                raise
            self.call.complain(f"Unknown queue destination {queue}", code_of(refusal.pbs))

    def _take(self, question: JobStatus) -> list[ErrorRecord]:
        """Add the jobs of an answer, and return its errors."""
        errors: list[ErrorRecord] = []
        for page in self.call.session.pages(question):
            self.server = page.server or self.server
            self.now = page.now or self.now
            if not page.has_history and self.options.finished != "no":
                self.call.here.err.write("qstat: PBS is not configured to maintain job history\n")
            # -J and -t together: the jobs of arrays, without the arrays.
            is_of_arrays = {"J", "t"} <= self.options.letters
            self.jobs += [
                job for job in page.jobs if not is_of_arrays or ("[" in job.id and not job.is_array)
            ]
            errors += page.errors
        return errors

    def _take_completed(self, before: int, queues: tuple[str, ...]) -> None:
        """Add the jobs that have ended lately, which Torque shows for a while."""
        users = self.options.users
        question = History(
            users=users if len(users) == 1 else (),
            queues=queues,
            since=self.now - _KEEP_COMPLETED,
            limit=1000,
        )
        known = {job.id for job in self.jobs[before:]}
        latest = (job for page in self.call.session.pages(question) for job in page.jobs)
        ended = [
            job
            for job in islice(latest, question.limit)
            if job.id not in known
            and (not users or job.user in users)
            and ("t" in self.options.letters or job.array_index is None)
            and ("J" not in self.options.letters or job.is_array)
        ]
        self.jobs[before:] = sorted(self.jobs[before:] + ended, key=lambda job: parse_id(job.id))

    def _text(self) -> str:
        options, letters, jobs, server = self.options, self.options.letters, self.jobs, self.server
        if options.is_xml or (options.is_full and not options.is_alternate):
            from qbatch.cli.pbs.format_attributes import job_attributes

            if options.style == "json":
                return self._json_text()
            named = ((job.id, job_attributes(job, server, options.is_torque)) for job in jobs)
            if not options.is_xml:
                return _full_text("Job Id", named, options, server, self.now)
            from qbatch.cli.pbs.format_full import xml_document

            return xml_document(named)
        if not options.is_alternate:
            from qbatch.cli.pbs.format_table import job_table

            return job_table(jobs, "w" in letters, "p" in letters, options.is_torque)
        from qbatch.cli.pbs.format_alternate import Look, alternate_table

        look = Look(
            unit=options.unit,
            has_hosts="n" in letters,
            has_comments="s" in letters,
            is_one_line="1" in letters and bool(letters & {"n", "s"}),
            has_estimates="T" in letters,
            is_wide="w" in letters,
            is_torque=options.is_torque,
        )
        return alternate_table(jobs, server, self.now or int(time.time() * MICROSECONDS), look)

    def _json_text(self) -> str:
        from qbatch.cli.pbs.format_attributes import job_attributes, ordered_variables
        from qbatch.cli.pbs.format_full import json_document, json_object, json_value

        found: dict[str, object] = {}
        for job in self.jobs:
            # Torque's dialect has the letters of PBS here too: readers of JSON (PSI/J) do not know
            # C.
            shown = found[job.id] = json_object(job_attributes(job, self.server))
            if job.variables:
                shown["Variable_List"] = {
                    name: json_value("", value)
                    for name, value in ordered_variables(job.variables).items()
                }
            if self.options.is_torque and "Exit_status" in shown:
                shown["exit_status"] = shown["Exit_status"]
        return json_document(self.server, VERSION, self.now, "Jobs", found)


OPTIONS = {
    "1": ("", "With -n and -s: one line for each job; with -f: do not break lines."),
    "a": ("", "Show all jobs in the alternate table."),
    "B": ("", "Show the server."),
    "c": TAKEN,
    "C": TAKEN,
    "D": ("separator", "With -F dsv: the separator of attributes, by default |."),
    "e": TAKEN,
    "E": ("", "Show the jobs that exist; report none that does not, unless none does."),
    "f": ("", "Show all attributes."),
    "F": ("format", "With -f: json or dsv."),
    "G": ("", "Show sizes in gigabytes."),
    "H": ("", "Show finished jobs only."),
    "i": ("", "Show jobs that do not run."),
    "J": ("", "Show arrays only."),
    "l": TAKEN,
    "M": ("", "Show sizes in megawords of eight bytes."),
    "n": ("", "Show the hosts of each job."),
    "p": ("", "Show the used share of the walltime in place of the time."),
    "q": ("", "Show the limits of queues."),
    "Q": ("", "Show queues."),
    "r": ("", "Show running and suspended jobs."),
    "R": TAKEN,
    "s": ("", "Show the comment of each job: why it waits."),
    "t": ("", "Show each subjob of arrays too."),
    "T": ("", "Show the expected start of waiting jobs."),
    "u": ("user_list", "Show the jobs of these users in the alternate table."),
    "w": ("", "Show wide columns."),
    "W": ("options", "Options of the alternate table as one word, as in -W an."),
    "x": ("", "Show finished jobs too; in Torque's dialect: write XML."),
}

qstat = Command("qstat", __doc__, USAGE, OPTIONS, _act, torque="cCelR")
