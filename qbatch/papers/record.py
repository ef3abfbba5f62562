"""The outcome of a paper: tables with printed numbers next to ours, claims with verdicts, and
pictures to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
"""The verdicts.  Undecided: an interval over the replicas contains the bound.  Contradicted: a
printed table differs from the text, and ours is like the table."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The largest distance of a number from the printed one: this share of it or this much,
    whichever is more."""

    share: float
    absolute: float = 0.0

    def verdict(self, printed: float | None, ours: float | None) -> str:
        """Return ``within``, ``outside (+12 %)``, or a dash if one of the numbers is missing."""
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
        """Return the cell of a row as text; a dash if it is absent."""
        value = row.get(self.key)
        if value is None:
            return "-"
        return f"{value:.{self.decimals}f}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, which its file has too, its title, its columns, its rows, and notes."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()

    @property
    def shown(self) -> list[Column]:
        """The columns that have a value in some row: only these are printed."""
        return [
            column for column in self.columns if any(column.text(row) != "-" for row in self.rows)
        ]

    def texts(self) -> list[list[str]]:
        """Return the rows as texts, in the order of the columns that are shown."""
        return [[column.text(row) for column in self.shown] for row in self.rows]

    def document(self) -> dict[str, Any]:
        """Return the table as plain data; every row has every column, None if it has no value."""
        columns = [asdict(one) for one in self.columns]
        rows = [{one.key: row.get(one.key) for one in self.columns} for row in self.rows]
        return {
            "name": self.name,
            "title": self.title,
            "columns": columns,
            "rows": rows,
            "notes": list(self.notes),
        }


def table_of(document: Mapping[str, Any]) -> Table:
    """Return the table of plain data (:meth:`Table.document`)."""
    return Table(**{**document, "columns": [Column(**one) for one in document["columns"]]})


def half(found: Interval) -> float | None:
    """Return half the width of an interval; None if there is none."""
    return None if found.high is None or found.mean is None else found.high - found.mean


Part = tuple[Column, Cell]
"""A cell of a table with its column."""


def cell(key: str, heading: str, value: Cell, decimals: int = 0) -> list[Part]:
    """Return one cell with its column, as a part of a line."""
    return [(Column(key, heading, decimals), value)]


def cells(**values: Cell) -> list[Part]:
    """Return cells with their keys as headings, as a part of a line."""
    return [(Column(key, key), value) for key, value in values.items()]


def means(
    key: str,
    heading: str,
    decimals: int,
    values: Values | Sequence[float],
    factor: float = 1.0,
    per: float = 1.0,
    unit: float = 1.0,
) -> list[Part]:
    """Return the mean of values, each times ``factor``, and half its interval, as a part of a line.

    Both are shown times ``unit``, divided by ``per``.
    """
    found = interval([factor * value for value in listed(values)])
    columns = (Column(key, heading, decimals), Column(f"{key}_half", "+-", decimals))
    shown = (None if value is None else value * unit / per for value in (found.mean, half(found)))
    return list(zip(columns, shown, strict=True))


def table_of_lines(
    name: str, title: str, lines: Sequence[Sequence[Part]], notes: Sequence[str] = ()
) -> Table:
    """Return a table of lines that contain their columns, in the order of their first
    appearance."""
    columns = {column.key: column for line in lines for column, _ in line}
    return Table(
        name,
        title,
        list(columns.values()),
        [{one.key: cell for one, cell in line} for line in lines],
        notes,
    )


@dataclass(frozen=True, slots=True)
class Claim:
    """A conclusion of a paper, the verdict on this log, and the numbers behind it.

    ``answers``: for a claim of many comparisons, the number of each answer (``yes``, ``no``,
    ``open``).  ``together``: the same comparisons in another way, as text, without influence on the
    verdict.  ``why``: the best explanation of a claim that does not hold.  ``expected``: its known
    verdict, undecided if none is known.
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
        """Whether its verdict is decided and not the known one; then ``--check`` fails."""
        return self.expected != UNDECIDED and self.verdict not in (
            self.expected,
            UNDECIDED,
            UNCHECKED,
        )

    @property
    def is_lost(self) -> bool:
        """Whether it is known to hold, but these runs do not decide it."""
        return (self.expected, self.verdict) == (HOLDS, UNDECIDED)

    @property
    def counts(self) -> str:
        """``17 yes, 1 open``; empty for a claim of one number."""
        return ", ".join(f"{count} {answer}" for answer, count in self.answers.items())

    def document(self) -> dict[str, Any]:
        """Return the claim as plain data."""
        return asdict(self)


def claim(name: str, text: str, is_true: bool | None, numbers: str) -> Claim:
    """Return a claim with its verdict; ``is_true`` is None if it cannot be checked."""
    return Claim(name, text, UNCHECKED if is_true is None else HOLDS if is_true else FAILS, numbers)


@dataclass(frozen=True, slots=True)
class PaperOutcome:
    """The whole outcome of a paper on one log; ``pictures``: by name of file, functions that draw
    them on demand.

    ``method``: paragraphs on how a claim is judged.  ``unknown``: a sentence that gives the reason
    why no verdicts of such a run are on record; empty if some are.
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
