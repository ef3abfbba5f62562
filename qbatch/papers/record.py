"""What a paper hands out: tables with printed numbers beside ours, claims with verdicts, and figures to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from qbatch.metrics import Interval, interval
from qbatch.papers.replicas import Values, listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | int | float | None
Row = Mapping[str, Cell]

HOLDS = "holds"
FAILS = "does not hold"
UNCHECKED = "cannot be checked on this log"
UNDECIDED = "not decidable"
CONTRADICTED = "the paper contradicts itself"
VERDICTS = (HOLDS, FAILS, CONTRADICTED, UNCHECKED, UNDECIDED)
"""What can be said of a claim; undecided is what the replicas at hand leave open: an interval reaches over the bound.
Contradicted: a printed table says otherwise than the text, and ours is as the table."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may lie from the printed one: by this share of it or by this much, whichever is more."""

    share: float
    absolute: float = 0.0

    def verdict(self, printed: float | None, ours: float | None) -> str:
        """Return ``within``, ``outside (+12 %)``, or a dash where one of the numbers is missing."""
        if printed is None or ours is None:
            return "-"
        if abs(ours - printed) <= max(self.share * abs(printed), self.absolute):
            return "within"
        return f"outside ({100 * (ours - printed) / printed:+.0f} %)" if printed else "outside"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: the key of its cells, its heading, the decimals of its numbers."""

    key: str
    heading: str
    decimals: int = 0

    def text(self, row: Row) -> str:
        """Return the cell of a row as text; a dash for what is absent."""
        value = row.get(self.key)
        if value is None:
            return "-"
        return f"{value:.{self.decimals}f}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name (also of its file), its title, its columns, its rows, and what must be said about it."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()

    @property
    def shown(self) -> list[Column]:
        """The columns that say something in some row: what is printed of the table."""
        return [column for column in self.columns if any(column.text(row) != "-" for row in self.rows)]

    def texts(self) -> list[list[str]]:
        """Return the rows as texts, in the order of the columns that are shown."""
        return [[column.text(row) for column in self.shown] for row in self.rows]

    def document(self) -> dict[str, Any]:
        """Return the table as plain data; every row has every column, None where it has nothing."""
        columns = [{"key": one.key, "heading": one.heading, "decimals": one.decimals} for one in self.columns]
        rows = [{one.key: row.get(one.key) for one in self.columns} for row in self.rows]
        return {"name": self.name, "title": self.title, "columns": columns, "rows": rows, "notes": list(self.notes)}


def table_of(document: Mapping[str, Any]) -> Table:
    """Return the table that was made plain data."""
    columns = [Column(one["key"], one["heading"], one["decimals"]) for one in document["columns"]]
    return Table(document["name"], document["title"], columns, document["rows"], document["notes"])


def mean_cells(key: str, found: Interval, factor: float = 1.0, per: float = 1.0) -> dict[str, Cell]:
    """Return a mean and half its 95 % interval as two cells, both times a factor, or divided by one."""
    width = half(found)
    return {
        key: None if found.mean is None else found.mean * factor / per,
        f"{key}_half": None if width is None else width * factor / per,
    }


def half(found: Interval) -> float | None:
    """Return half the width of an interval; None where there is none."""
    return None if found.high is None or found.mean is None else found.high - found.mean


def pair(key: str, heading: str, decimals: int = 0) -> list[Column]:
    """Return the columns of a mean and half its interval."""
    return [Column(key, heading, decimals), Column(f"{key}_half", "+-", decimals)]


Part = tuple[Column, Cell]
"""A cell of a table with its column."""


def cell(key: str, heading: str, value: Cell, decimals: int = 0) -> list[Part]:
    """Return one cell with its column, as a part of a line."""
    return [(Column(key, heading, decimals), value)]


def means(
    key: str, heading: str, decimals: int, values: Values | Sequence[float], factor: float = 1.0, per: float = 1.0
) -> list[Part]:
    """Return the mean of values, each times a factor, and half its interval, both divided by a number, as a part of a line."""
    found = interval([factor * value for value in listed(values)])
    return list(zip(pair(key, heading, decimals), mean_cells(key, found, per=per).values(), strict=True))


def table_of_lines(name: str, title: str, lines: Sequence[Sequence[Part]], notes: Sequence[str] = ()) -> Table:
    """Return a table of lines that bring their columns, in the order in which they come."""
    columns = {column.key: column for line in lines for column, _ in line}
    return Table(name, title, list(columns.values()), [{one.key: cell for one, cell in line} for line in lines], notes)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper concludes, the verdict on this log, and the numbers that it rests on.

    ``answers``: where a claim is many comparisons, how many say what (``yes``, ``no``, ``open``).  ``together``: the same
    comparisons another way that is no part of the verdict, as text.  ``why``: the best explanation of one that does not hold.
    ``expected``: the verdict that is known for it, undecided where none is to be expected; it has no part in the verdict.
    """

    name: str
    text: str
    verdict: str
    numbers: str
    answers: Mapping[str, int] = field(default_factory=dict)
    together: str = ""
    why: str = ""
    expected: str = HOLDS

    @property
    def is_breach(self) -> bool:
        """Whether it is decided otherwise than is known: what ``--check`` fails on."""
        return self.expected != UNDECIDED and self.verdict not in (self.expected, UNDECIDED, UNCHECKED)

    @property
    def is_lost(self) -> bool:
        """Whether it is known to hold, and these runs leave it open."""
        return (self.expected, self.verdict) == (HOLDS, UNDECIDED)

    @property
    def counts(self) -> str:
        """``17 yes, 1 open``; empty for a claim of one number."""
        return ", ".join(f"{count} {answer}" for answer, count in self.answers.items())

    def document(self) -> dict[str, Any]:
        """Return the claim as plain data."""
        return {
            "name": self.name,
            "text": self.text,
            "verdict": self.verdict,
            "numbers": self.numbers,
            "answers": dict(self.answers),
            "together": self.together,
            "why": self.why,
            "expected": self.expected,
        }


def claim(name: str, text: str, is_true: bool | None, numbers: str) -> Claim:
    """Return a claim with its verdict; None is what cannot be checked."""
    return Claim(name, text, UNCHECKED if is_true is None else HOLDS if is_true else FAILS, numbers)


@dataclass(frozen=True, slots=True)
class PaperOutcome:
    """All that came out of a paper on one log; ``pictures`` are drawn when they are asked for, by name of file.

    ``method``: how a claim is judged, a paragraph each.  ``unknown``: why no verdicts of such a run are on record, as a sentence;
    empty where there are.
    """

    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pictures: dict[str, Callable[[], Figure]] = field(default_factory=dict)
    method: list[str] = field(default_factory=list)
    unknown: str = ""

    def document(self) -> dict[str, Any]:
        """Return tables, claims and notes as plain data, and the names of the pictures."""
        return {
            "notes": self.notes,
            "method": self.method,
            "pictures": list(self.pictures),
            "tables": [table.document() for table in self.tables],
            "claims": [one.document() for one in self.claims],
        }
