"""The tables of jobs: waiting, running (with bars against the walltime), and ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from qbatch.results.shown import clean, close_moment, short_span, status_of, waited
from qbatch.tui.board import Board, walltime_in
from qbatch.tui.query import Query
from qbatch.tui.row_table import RowTable, TableColumn
from qbatch.wire import pieces
from qbatch.wire.records import JobRecord
from qbatch.wire.resources import parse_size

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BAR = 12

_TONES = {"R": "good", "S": "warning", "H": "warning", "W": "muted", "E": "accent"}


def number_of(job: JobRecord) -> tuple[int, str]:
    """Return a sort key of identifiers: 9 before 10, subjobs by their index."""
    name = job.id.partition(".")[0]
    digits = name.partition("[")[0]
    index = name.partition("[")[2].rstrip("]")
    return (int(digits) if digits.isdigit() else 0, index.rjust(12))


def short_id(name: str) -> str:
    """Return an identifier without the server."""
    return name.partition(".")[0]


def walltime_of(job: JobRecord) -> int:
    """Return the walltime of a job, in microseconds; 0 if it is unknown."""
    return walltime_in(job.resources.get("walltime", ""))


def run_time(job: JobRecord, now: int) -> int:
    """Return how long a job ran on the processors that it requested, without its suspensions; 0 if
    it never started.

    Time on fewer processors counts proportionally less.
    """
    if job.started is None:
        return 0
    if job.sizes:
        return pieces.run_of(job, now)
    end = job.ended if job.ended is not None else now
    return max(
        end
        - job.started
        - sum((end if until is None else until) - since for since, until in job.pauses),
        0,
    )


def memory_of(job: JobRecord) -> int:
    """Return the bytes that a job requests, 0 for none."""
    try:
        return parse_size(job.resources.get("mem", "0"))
    except ValueError:
        return 0


def danger_of(job: JobRecord, end: int | None) -> str | None:
    """Return the state of a deadline if the job ends at ``end``.

    ``bad``: it is missed or was broken before; ``warning``: less than a tenth of the walltime is
    left; None: no danger, or none.
    """
    if job.deadline is None:
        return None
    if job.broken or (end is not None and end > job.deadline):
        return "bad"
    return "warning" if end is not None and job.deadline - end < walltime_of(job) // 10 else None


def bar(share: float, width: int = _BAR) -> str:
    """Return a share from 0 to 1 as a bar of blocks, in eighths of a cell."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(width, "·")


class JobTable(RowTable):
    """A table of jobs; it knows the instant, for ages and bars."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "v",
            "mark",
            "Mark",
            show=False,
            tooltip="Mark this job: h, r, d, m, p and y then act on all marked jobs",
        ),
        Binding(
            "V", "mark_all", "Mark all", show=False, tooltip="Mark all jobs that are shown, or none"
        ),
    ]

    def __init__(
        self, board: Board, columns: Sequence[TableColumn], empty: str, **given: Any
    ) -> None:
        super().__init__(columns, key=lambda job: job.id, empty=empty, **given)
        self.board = board
        self.query_filter = Query()
        self._count = ""

    def show(self, jobs: Sequence[JobRecord], total: int | None = None) -> None:
        """Show the jobs that pass the filter."""
        kept = (
            [job for job in jobs if self.query_filter.keeps(job)]
            if self.query_filter.text
            else list(jobs)
        )
        self.fill(kept)
        count = len(jobs) if total is None else total
        self._count = f"{len(kept):,} of {count:,}" if len(kept) != count else f"{count:,}"
        self.marks_changed()

    def marks_changed(self) -> None:
        """Show the numbers of jobs and of marked jobs, and the filter."""
        marked = f" · {len(self.marked):,} marked" if self.marked else ""
        note = f" · {self.query_filter.text}" if self.query_filter.text else ""
        self.border_subtitle = f"{self._count}{marked}{clean(note)}".replace("[", "\\[")
        self.refresh()


def hosts_text(job: JobRecord) -> str:
    """Return the hosts of a job, each once with its processors: ``n1*4 n2*4``."""
    counts: dict[str, int] = {}
    for part in job.exec_host.split("+") if job.exec_host else ():
        name, _, slot = part.partition("/")
        count = slot.partition("*")[2]
        counts[name] = counts.get(name, 0) + (int(count) if count.isdigit() else 1)
    return (
        " ".join(f"{name}*{count}" if count > 1 else name for name, count in counts.items()) or "-"
    )


_COMMON = (
    TableColumn("id", "job", 8, lambda job: short_id(job.id), number_of),
    TableColumn("name", "name", 12, lambda job: clean(job.name), lambda job: job.name),
    TableColumn("user", "user", 9, lambda job: clean(job.user), lambda job: job.user, gives_way=2),
    TableColumn(
        "procs", "procs", 5, lambda job: str(pieces.procs_now(job)), pieces.procs_now, is_right=True
    ),
)
_STATE = TableColumn(
    "state",
    "st",
    2,
    lambda job: job.state,
    lambda job: job.state,
    tone=lambda job: _TONES.get(job.state),
)
_MEMORY = TableColumn(
    "memory", "memory", 7, lambda job: job.resources.get("mem", "-"), memory_of, is_right=True
)
_HOSTS = TableColumn("hosts", "hosts", 24, hosts_text, lambda job: job.exec_host)
_QUEUE = TableColumn("queue", "queue", 9, lambda job: clean(job.queue), lambda job: job.queue)


def waiting_table(board: Board, **given: Any) -> JobTable:
    """Return the table of the waiting jobs."""

    def since(job: JobRecord) -> int:
        return waited(job, board.now()) or 0

    def danger(job: JobRecord) -> str | None:
        return danger_of(
            job, None if job.estimated_start is None else job.estimated_start + walltime_of(job)
        )

    return JobTable(
        board,
        [
            *_COMMON,
            TableColumn(
                "walltime",
                "walltime",
                8,
                lambda job: short_span(walltime_of(job) or None),
                walltime_of,
                is_right=True,
                gives_way=1,
            ),
            _STATE,
            TableColumn(
                "waited",
                "waited",
                7,
                lambda job: short_span(since(job)),
                since,
                is_right=True,
                gives_way=3,
            ),
            TableColumn(
                "expected",
                "expected",
                11,
                lambda job: close_moment(job.estimated_start, board.now()),
                lambda job: job.estimated_start or 1 << 62,
                is_vital=True,
            ),
            TableColumn(
                "promised",
                "promised",
                11,
                lambda job: close_moment(job.promised, board.now()),
                lambda job: job.promised or 1 << 62,
                is_vital=True,
            ),
            TableColumn(
                "deadline",
                "deadline",
                11,
                lambda job: close_moment(job.deadline, board.now()),
                lambda job: job.deadline or 1 << 62,
                tone=danger,
            ),
            _MEMORY,
            _QUEUE,
            TableColumn(
                "priority",
                "prio",
                5,
                lambda job: str(job.priority),
                lambda job: job.priority,
                is_right=True,
            ),
            TableColumn(
                "comment", "comment", 50, lambda job: clean(job.comment), lambda job: job.comment
            ),
        ],
        "no job waits",
        **given,
    )


def running_table(board: Board, **given: Any) -> JobTable:
    """Return the table of the running jobs."""

    def run(job: JobRecord) -> int:
        return run_time(job, board.now())

    def share(job: JobRecord) -> float:
        walltime = walltime_of(job)
        return run(job) / walltime if walltime else 0.0

    def progress(job: JobRecord) -> str:
        return f"{bar(share(job))} {min(100 * share(job), 999):3.0f}%"

    def tone(job: JobRecord) -> str:
        if job.state != "R":
            return _TONES.get(job.state, "")
        return "bad" if share(job) >= 1 else "warning" if share(job) >= 0.9 else "good"

    return JobTable(
        board,
        [
            *_COMMON,
            TableColumn("progress", "of its walltime", _BAR + 5, progress, share, tone=tone),
            TableColumn("ran", "ran", 7, lambda job: short_span(run(job)), run, is_right=True),
            TableColumn(
                "left",
                "left",
                7,
                lambda job: short_span(walltime_of(job) - run(job)),
                lambda job: walltime_of(job) - run(job),
                is_right=True,
            ),
            _STATE,
            _HOSTS,
            _MEMORY,
            _QUEUE,
        ],
        "no job runs",
        **given,
    )


def history_table(board: Board, **given: Any) -> JobTable:
    """Return the table of the ended jobs."""

    def ran(job: JobRecord) -> int:
        return run_time(job, board.now())

    return JobTable(
        board,
        [
            *_COMMON,
            TableColumn(
                "status",
                "exit",
                9,
                status_of,
                lambda job: job.exit_status or 0,
                is_right=True,
                tone=lambda job: "bad" if job.exit_status else "good",
            ),
            TableColumn(
                "waited",
                "waited",
                7,
                lambda job: short_span(waited(job, board.now())),
                lambda job: waited(job, board.now()) or 0,
                is_right=True,
            ),
            TableColumn("ran", "ran", 7, lambda job: short_span(ran(job)), ran, is_right=True),
            TableColumn(
                "ended",
                "ended",
                11,
                lambda job: close_moment(job.ended, board.now()),
                lambda job: job.ended or 0,
            ),
            TableColumn(
                "submitted",
                "submitted",
                11,
                lambda job: close_moment(job.submitted, board.now()),
                lambda job: job.submitted or 0,
            ),
            _QUEUE,
            _HOSTS,
            TableColumn(
                "comment", "comment", 40, lambda job: clean(job.comment), lambda job: job.comment
            ),
        ],
        "no job has ended yet; type to search, / to filter",
        **given,
    )
