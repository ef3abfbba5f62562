"""Rows of ``sacct --parsable2``: which part of which line is in which column.

Bars separate the fields, and neither a bar nor a line end inside a text is marked: a job's name, its
command (SubmitLine), a comment or ``--constraint='thin|amd'`` may hold both.  So a row may have more
parts than columns, and more than one line.  The columns of a fixed form (numbers, times, states)
are the landmarks: of all ways to divide the parts among the columns, those in which every column
looks right are kept.  Where several are left, the options in SubmitLine may decide.  A column that
has the same value in all of them is known.  The others are empty, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from qbatch.model.errors import InputError
from qbatch.workloads.accounting.record import ABSENT, ImportCounts, Kind, Line, Status

COMMAND = (
    "sacct --allusers --duplicates --parsable2 --starttime 2024-01-01 --endtime now "
    "--format=JobID,Cluster,User,Group,Account,"
    "JobName,Partition,State,Submit,Eligible,Start,End,Elapsed,Suspended,Timelimit,AllocCPUS,ReqCPUS,NNodes,NodeList,"
    "ReqMem,MaxRSS,NTasks,TotalCPU,ReqTRES,AllocTRES,Constraints,Licenses,QOS,Priority,Reservation,SubmitLine"
)
"""The command that prints everything that is read here."""

NEEDED = ("jobid", "submit", "start", "end", "state")
NOTHING = frozenset(("", "Unknown", "None", "N/A", "NONE", "(null)"))
"""What sacct prints for a value that is not there."""

JOB_ID = re.compile(r"(\d{1,18})(?:_(\d{1,18})|_(\[.*)|\+(\d{1,9}))?\Z", re.ASCII)
"""A job, a job of an array, the rest of an array (``12_[4-9%2]``, ``12_[8,10,...]``), or a component
of a heterogeneous job."""

STEP_ID = re.compile(r"(\d{1,18})(?:_(\d{1,18})|\+(\d{1,9}))?\.(\S+)\Z", re.ASCII)
"""A step of one of them; the rest of an array has none."""

REVOKED = (Kind.CANCELLED, ABSENT)
"""The state of a federated job that started on another cluster."""

STATES = {
    name: (kind, status)
    for kind, status, names in (
        (Kind.ENDED, Status.COMPLETED, "COMPLETED CD RESIZING"),
        (
            Kind.ENDED,
            Status.FAILED,
            "FAILED F TIMEOUT TO OUT_OF_MEMORY OOM BOOT_FAIL BF LAUNCH_FAILED RECONFIG_FAIL",
        ),
        (Kind.ENDED, Status.KILLED, "CANCELLED CA DEADLINE DL"),
        (*REVOKED, "REVOKED RV"),
        (Kind.REQUEUED, Status.FAILED, "NODE_FAIL NF PREEMPTED PR REQUEUED RQ SPECIAL_EXIT"),
        (
            Kind.UNFINISHED,
            ABSENT,
            "PENDING PD RUNNING R SUSPENDED S COMPLETING CONFIGURING STOPPED SIGNALING STAGE_OUT",
        ),
        (Kind.UNFINISHED, ABSENT, "RESV_DEL_HOLD REQUEUE_FED REQUEUE_HOLD"),
    )
    for name in names.split()
}

_WHOLE_MAX = 3
_LINES_MAX = 500
_BYTES_MAX = 1 << 20
_TRIED_MAX = 1_000_000
"""A row has at most so many lines with as many parts as columns, lines at all, and bytes, and takes
at most so many steps to divide."""

_BAR = "bars inside a job's name or another free text: part of it"
_LINE_END = "line ends inside a job's name or another free text: part of it"

Row = dict[str, str]


class _Form(NamedTuple):
    """What a column looks like: in one part, and, if bars may be in it, the first of several parts
    and the others."""

    alone: re.Pattern[str]
    first: re.Pattern[str] | None = None
    others: re.Pattern[str] | None = None


def _fixed(pattern: str) -> _Form:
    return _Form(re.compile(rf"[ \t]*(?:{pattern})[ \t]*\Z", re.ASCII))


def _free(alone: str, first: str, others: str = r"[\s\S]*") -> _Form:
    return _Form(*(re.compile(rf"(?:{each})\Z") for each in (alone, first, others)))


_ANY = _free(r"[\s\S]*", r"[\s\S]*")
_LINE = _fixed(r".*")
_WORD = _fixed(r"\S*")
_NUMBER = r"-?\d+(?:\.\d+)?[KMGTPE]?[cn]?"
_SPAN = r"(?:\d+-)?\d+:[\d:.]+"
_INSTANT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*|\d{1,11}"
_ANY_INSTANT = re.compile(rf"\s*(?:{_INSTANT})\s*\Z", re.ASCII).match
_COMMAND_WORD = r"(?:\S*/)?(?:sbatch|srun|salloc|scrontab)(?:\s[\s\S]*)?"


def _of(form: _Form, names: str) -> dict[str, _Form]:
    return dict.fromkeys(names.split(), form)


_NEEDED_FORMS = {
    "jobid": _fixed(f"{JOB_ID.pattern[:-2]}|{STEP_ID.pattern[:-2]}"),
    "state": _fixed(rf"(?:{'|'.join(STATES)})\+?(?: .*)?"),
    "submit": _fixed(rf"{_INSTANT}|Unknown|None|"),
} | _of(_fixed(rf"{_INSTANT}|{'|'.join(map(re.escape, NOTHING))}"), "start end eligible")
_TEXTS = _of(
    _ANY,
    "jobname comment admincomment systemcomment reason extra container stdin stdout stderr wckey "
    "constraints licenses submitline workdir",
)
"""The columns in which a bar or a line end may be."""

_EMPTY = {"": _fixed("")}
"""What is behind the last bar of ``--parsable``."""

_LOOSE = _TEXTS | _NEEDED_FORMS | _EMPTY
_STRICT = (
    _TEXTS
    | _NEEDED_FORMS
    | _EMPTY
    | _of(_fixed(rf"{_SPAN}|"), "avecpu mincpu")
    | _of(_fixed(rf"{_SPAN}|[A-Za-z_]+|"), "timelimit reserved resvcpu planned plannedcpu")
    | _of(_fixed(rf"{_SPAN}|INVALID"), "elapsed suspended cputime totalcpu usercpu systemcpu")
    | _of(_fixed(_NUMBER), "elapsedraw cputimeraw alloccpus ncpus")
    | _of(
        _fixed(rf"{_NUMBER}|"),
        "reqcpus nnodes allocnodes reqnodes ntasks uid gid priority associd dbindex qosraw wckeyid "
        "resvcpuraw plannedcpuraw timelimitraw reservationid restarts",
    )
    | _of(
        _fixed(rf"{_NUMBER}|"),
        "reqmem maxrss averss maxvmsize avevmsize maxpages avepages maxdiskread avediskread "
        "maxdiskwrite avediskwrite avecpufreq consumedenergy consumedenergyraw maxdiskreadtask "
        "maxdiskwritetask maxpagestask maxrsstask "
        "maxvmsizetask mincputask",
    )
    | _of(
        _WORD,
        "user account partition qos cluster reservation mcslabel nodelist blockid layout flags "
        "failednode qosreq maxdiskreadnode maxdiskwritenode maxpagesnode maxrssnode maxvmsizenode "
        "mincpunode reqcpufreq reqcpufreqmin reqcpufreqmax reqcpufreqgov",
    )
    | _of(_fixed(r"\S*|None assigned"), "nodelist")
    | _of(_fixed(r"\d+:\d+|"), "exitcode derivedexitcode")
    | _of(
        _fixed(r"[^\s=,]+=[^\s=,]*(?:,[^\s=,]+=[^\s=,]*)*|"),
        "alloctres reqtres tresusageinave tresusageinmax tresusageinmaxnode tresusageinmaxtask "
        "tresusageinmin tresusageinminnode tresusageinmintask tresusageintot tresusageoutave "
        "tresusageoutmax tresusageoutmaxnode tresusageoutmaxtask tresusageoutmin tresusageoutminnode "
        "tresusageoutmintask tresusageouttot",
    )
    | _of(_fixed(r"\d+(?:[_+.]\S*)?|"), "jobidraw")
    # thin|amd has no empty alternative and no blank; neither has a list of licences.
    | _of(_free(r"\S*", r"\S+", r"\S+"), "constraints licenses wckey")
    | _of(_free(rf"{_COMMAND_WORD}|", _COMMAND_WORD), "submitline")
    | _of(_free(r"/[\s\S]*|", r"/[\s\S]*"), "workdir")
)
_EMPTY_TOO = _of(
    _fixed(rf"{_SPAN}|[A-Za-z_]+|"), "elapsed suspended cputime totalcpu usercpu systemcpu"
) | _of(_fixed(rf"{_NUMBER}|"), "elapsedraw cputimeraw alloccpus ncpus")
_FORMS = (
    _STRICT,
    _STRICT | _TEXTS,
    _STRICT | _EMPTY_TOO,
    _STRICT | _EMPTY_TOO | _TEXTS,
    _LOOSE,
)
"""The forms of the columns, from those that Slurm prints to the needed columns alone.  The first hold
that a division fits."""

_OPTIONS = {
    "jobname": ("--job-name", "-J"),
    "constraints": ("--constraint", "-C"),
    "comment": ("--comment",),
    "licenses": ("--licenses", "-L"),
    "workdir": ("--chdir", "-D"),
    "wckey": ("--wckey",),
    "container": ("--container",),
    "extra": ("--extra",),
    "stdin": ("--input", "-i"),
    "stdout": ("--output", "-o"),
    "stderr": ("--error", "-e"),
}
"""The options of a command that set the values of columns."""


def rows_of(lines: Iterable[Line], counts: ImportCounts) -> Iterator[tuple[Row, Line]]:
    """Yield the rows of one file by column in lower case, each with its first line.

    Raises:
        InputError: there is no header line, or it lacks required columns.
    """
    reader: _RowReader | None = None
    for line in lines:
        counts.lines += 1
        text = line.text.decode("utf-8", "surrogateescape")
        if not text.strip() and (reader is None or not reader.is_inside):
            continue
        if reader is None or "JobID" in text[:4096]:
            titles = _header(text, line, is_first=reader is None)
            if titles is not None:
                if reader is not None:
                    yield from reader.finish()
                reader = _RowReader(titles, counts)
                continue
            if reader is None:
                raise InputError(
                    f"{line.file}: line {line.number}: is not a header line of sacct; print one "
                    f"(no --noheader): {COMMAND}"
                )
        yield from reader.feed(line, text)
    if reader is not None:
        yield from reader.finish()


def _header(text: str, line: Line, *, is_first: bool) -> list[str] | None:
    """Return the titles of the columns, if the line is a header."""
    titles = [name.strip().partition("%")[0] for name in text.strip().split("|")]
    columns = [title.lower() for title in titles]
    if "jobid" not in columns and "jobidraw" in columns:
        place = columns.index("jobidraw")
        titles[place], columns[place] = "JobID", "jobid"
    if "jobid" not in columns or "|" not in text:
        return None
    missing = [name for name in NEEDED if name not in columns]
    if missing and is_first:
        raise InputError(
            f"{line.file}: line {line.number}: no column {', '.join(missing)}; print them: "
            f"{COMMAND}"
        )
    return None if missing else titles


@dataclass(slots=True)
class _Pending:
    """A row that is complete unless a line after it, which begins no row, belongs to it.

    ``more``: such lines that are not in the row yet.
    """

    row: Row
    reasons: list[str]
    line: Line
    text: str
    more: list[tuple[Line, str]] = field(default_factory=list)


class _Divided(NamedTuple):
    """A row, and what to count of it."""

    fields: Row
    reasons: list[str]


class _RowReader:
    """Puts lines together to rows of one header."""

    def __init__(self, titles: list[str], counts: ImportCounts) -> None:
        self.columns = [title.lower() for title in titles]
        self._titles = dict(zip(self.columns, titles, strict=True))
        self._counts = counts
        self._pending: _Pending | None = None
        self._tail: list[tuple[Line, str]] = []
        id_place = self.columns.index("jobid")
        has_text_before = any(name in _TEXTS for name in self.columns[:id_place])
        self._id_place = ABSENT if has_text_before else id_place

    @property
    def is_inside(self) -> bool:
        """Whether a row has begun that is not complete."""
        return bool(self._tail)

    def feed(self, line: Line, text: str) -> Iterator[tuple[Row, Line]]:
        """Yield the rows that are known to be complete now that this line follows."""
        if not line.is_whole:
            self._counts.unusable.add(
                "the line is cut short (no end of line, or longer than 16 MiB)", line.place
            )
            return
        tail = self._tail
        if not tail and (plain := self._plain(text)) is not None:  # nearly every line
            yield from self._complete()
            self._pending = _Pending(plain, [], line, text)
            return
        if not tail and not self._may_begin(text):
            yield from self._settle([(line, text)])
            return
        tail.append((line, text))
        place, row = self._row_in_tail()
        if row is not None:
            yield from self._settle(tail[:place])
            yield from self._complete()
            text = "\n".join(part for _, part in tail[place:])
            self._pending = _Pending(row.fields, row.reasons, tail[place][0], text)
            tail.clear()
            return
        whole = sum(part.count("|") + 1 == len(self.columns) for _, part in tail)
        if (
            whole > _WHOLE_MAX
            or len(tail) > _LINES_MAX
            or sum(len(part) for _, part in tail) > _BYTES_MAX
        ):
            yield from self._settle([tail.pop(0)])

    def finish(self) -> Iterator[tuple[Row, Line]]:
        """Yield what is left when no line follows."""
        yield from self._settle(self._tail)
        self._tail = []
        yield from self._complete()

    def _row_in_tail(self) -> tuple[int, _Divided | None]:
        """Return where in the tail a row begins that ends with it, and the row, if there is one.

        The last such place, as a line that begins with a job identifier begins a row.  Where a text
        stands before the identifier, the first one, unless the last line is a row by itself.
        """
        found: tuple[int, _Divided | None] = (0, None)
        bars = 0
        for place in range(len(self._tail) - 1, -1, -1):
            text = self._tail[place][1]
            bars += text.count("|")
            if bars + 1 < len(self.columns) or not self._may_begin(text):
                continue
            row = self._divided("\n".join(part for _, part in self._tail[place:]))
            if row is not None:
                found = (place, row)
                if self._id_place >= 0 or place == len(self._tail) - 1:
                    break
        return found

    def _may_begin(self, text: str) -> bool:
        """Return whether a row can begin with this line: what is known of its job identifier."""
        if self._id_place < 0:
            return True
        parts = text.split("|", self._id_place + 1)
        return len(parts) > self._id_place + 1 and (
            _NEEDED_FORMS["jobid"].alone.match(parts[self._id_place]) is not None
        )

    def _complete(self) -> Iterator[tuple[Row, Line]]:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        for reason in pending.reasons:
            self._counts.adjusted.add(reason, pending.line.place)
        self._lose(pending.more)
        yield pending.row, pending.line

    def _lose(self, lines: list[tuple[Line, str]]) -> None:
        for line, _ in lines:
            self._counts.unusable.add("not as many fields as the header has columns", line.place)

    def _settle(self, lines: list[tuple[Line, str]]) -> Iterator[tuple[Row, Line]]:
        """Settle lines that belong to no row after them: each is more text of the row before, or is
        lost."""
        for line, text in lines:
            parts = text.split("|")
            if len(parts) == len(self.columns):  # what is wrong with it is found by its reader
                yield from self._complete()
                yield dict(zip(self.columns, parts, strict=True)), line
            elif self._pending is not None and not self._is_of_a_row(text):
                self._continue(self._pending, line, text)
            else:
                self._lose([(line, text)])

    def _continue(self, pending: _Pending, line: Line, text: str) -> None:
        """Add a line to the row before: to the text in its last column, or divide the row anew."""
        last = self.columns[-1]
        if last in _TEXTS:
            pending.row[last] += f"\n{text}"
            pending.reasons = [*(each for each in pending.reasons if each != _LINE_END), _LINE_END]
            return
        pending.more.append((line, text))
        if len(pending.more) > _WHOLE_MAX * 10:
            return
        whole = "\n".join([pending.text, *(each for _, each in pending.more)])
        row = self._divided(whole)
        if row is not None:
            self._pending = _Pending(row.fields, row.reasons, pending.line, whole)

    def _is_of_a_row(self, text: str) -> bool:
        """Return whether a line is rather a damaged row than more text of the row before."""
        if self._id_place < 0:
            return 2 * text.count("|") >= len(self.columns)
        return self._may_begin(text)

    def _plain(self, text: str) -> Row | None:
        """Return the row of one line with one part for each column that looks right."""
        parts = text.split("|")
        if len(parts) != len(self.columns) or "\n" in text:
            return None
        row = dict(zip(self.columns, parts, strict=True))
        return row if is_plausible(row) else None

    def _divided(self, text: str) -> _Divided | None:
        """Return the row of a text if all its needed columns are known, and what is odd in it."""
        plain = self._plain(text)
        if plain is not None:
            return _Divided(plain, [])
        parts = text.split("|")
        for forms in _FORMS if _has_landmarks(parts) else ():
            division = _Division(self.columns, parts, forms)
            if division.is_possible:
                break
        else:
            return None
        division.decide()
        row = division.known()
        if any(name not in row for name in NEEDED):
            return None
        reasons = [_BAR] if len(parts) > len(self.columns) else []
        reasons += [_LINE_END] if "\n" in text else []
        unknown = [name for name in self.columns if name not in row]
        if unknown:
            named = ", ".join(self._titles[name] for name in unknown)
            reasons.append(f"bars that may be in one or another of {named}: these are left empty")
        return _Divided(row | dict.fromkeys(unknown, ""), reasons)


def is_plausible(row: Row) -> bool:
    """Return whether the needed columns of a row have the form that they should have."""
    return all(_NEEDED_FORMS[name].alone.match(row[name]) for name in NEEDED)


def _has_landmarks(parts: list[str]) -> bool:
    """Return whether a state and an instant are among the parts, without which there is no row."""
    return any(map(_NEEDED_FORMS["state"].alone.match, parts)) and any(map(_ANY_INSTANT, parts))


class _Division:
    """All ways to divide the parts of a row among its columns.

    After ``i`` columns ``i + k`` parts are used, with k from 0 to the number of parts that are too
    many.  ``_ends[i][k]``: the values of k that column i may end at if it begins at k.
    """

    def __init__(self, columns: list[str], parts: list[str], forms: dict[str, _Form]) -> None:
        self._columns, self._parts = columns, parts
        self._more = len(parts) - len(columns)
        self._ends: list[dict[int, list[int]]] = []
        reached = {0}
        steps = 0
        for place, name in enumerate(columns):
            form = forms.get(name, _LINE)
            ends = {begin: self._ends_of(form, place, begin) for begin in reached}
            self._ends.append(ends)
            reached = {end for each in ends.values() for end in each}
            steps += sum(map(len, ends.values()))
            if not reached or steps > _TRIED_MAX:
                break
        self.is_possible = len(self._ends) == len(columns) and self._more in reached
        if self.is_possible:
            self._prune()

    def _ends_of(self, form: _Form, place: int, begin: int) -> list[int]:
        """Return where a column may end that begins after ``begin`` additional parts."""
        parts = self._parts
        found = [begin] if form.alone.match(parts[place + begin]) else []
        if form.first is None or form.others is None or not form.first.match(parts[place + begin]):
            return found
        for end in range(begin + 1, self._more + 1):
            if not form.others.match(parts[place + end]):
                break
            found.append(end)
        return found

    def _prune(self) -> None:
        """Leave only what a division of all parts has."""
        alive = {self._more}
        for ends in reversed(self._ends):
            for begin in list(ends):
                ends[begin] = [end for end in ends[begin] if end in alive]
                if not ends[begin]:
                    del ends[begin]
            alive = set(ends)
        alive = {0}
        for ends in self._ends:
            for begin in ends.keys() - alive:
                del ends[begin]
            alive = {end for each in ends.values() for end in each}

    def values(self, place: int) -> set[str]:
        """Return the values that a column has in all divisions."""
        return {
            "|".join(self._parts[place + begin : place + end + 1])
            for begin, ends in self._ends[place].items()
            for end in ends
        }

    def known(self) -> Row:
        """Return the columns that have one value in all divisions."""
        found = ((name, self.values(place)) for place, name in enumerate(self._columns))
        return {name: values.pop() for name, values in found if len(values) == 1}

    def decide(self) -> None:
        """Drop divisions that the options in SubmitLine contradict."""
        if "submitline" not in self._columns:
            return
        lines = self.values(self._columns.index("submitline"))
        if len(lines) != 1:
            return
        command = lines.pop()
        for place, name in enumerate(self._columns):
            values = self.values(place) if name in _OPTIONS else set()
            said = [value for value in values if len(values) > 1 and _says(command, name, value)]
            if len(said) == 1:
                ends = self._ends[place]
                for begin in ends:
                    ends[begin] = [
                        end
                        for end in ends[begin]
                        if "|".join(self._parts[place + begin : place + end + 1]) == said[0]
                    ]
                self._prune()


def _says(command: str, column: str, value: str) -> bool:
    """Return whether a command has an option for a column with exactly this value."""
    return value != "" and any(
        re.search(
            rf"(?<!\S){option}{'[= ]' if option.startswith('--') else ' ?'}([\"']?){re.escape(value)}\1(?!\S)",
            command,
        )
        for option in _OPTIONS[column]
    )
