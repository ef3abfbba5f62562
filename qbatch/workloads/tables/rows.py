"""From a batch of a table to rows of jobs: which of them count, and what each says.

A row of a table is lost if it lacks what a log needs.  A bad cell of another column is unknown.
All of it is counted in ``ImportCounts``, with the place of the first.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from qbatch.model.errors import InputError
from qbatch.workloads.accounting.record import ABSENT, ImportCounts, Status
from qbatch.workloads.accounting.times import WallClock
from qbatch.workloads.log import Column
from qbatch.workloads.tables.cells import (
    COUNT_LIMIT,
    NUMBER_LIMIT,
    Cells,
    NumberedWords,
    Numbers,
    hosts_of,
    instants_of,
    job_order,
    memory_of,
    numbers_of,
    spans_of,
    text_of,
)
from qbatch.workloads.tables.reading import Batch
from qbatch.workloads.tables.table_map import (
    ANY_STATE,
    COUNTS,
    INSTANTS,
    MEMORY,
    MEMORY_UNITS,
    SPAN_UNITS,
    SPANS,
    TIME_UNITS,
    WORDS,
    Bounds,
    MappedColumn,
    TableMap,
)

_WHOLE = (
    "submit",
    "job",
    "part",
    "place",
    "start",
    "end",
    "run",
    "limit",
    "procs",
    "procs_allocated",
    "nodes",
    "memory",
    "gpus",
    "eligible",
    "priority",
)

JOB_ROW = np.dtype(
    [
        *((name, np.int64) for name in _WHOLE),
        *((name, np.int32) for name in WORDS),
        ("status", "i1"),
    ]
)
"""A job.  Instants are seconds since 1970, spans seconds; ``memory`` is bytes of the whole job and
``gpus`` GPUs of all nodes.  ``job`` and ``part`` are the first numbers in its name, ``place`` is
its number among all rows read.  Words are numbers of :class:`NumberedWords`.  -1 is unknown; a
``start`` of -1: it never ran."""

JOB_ORDER = ("submit", "job", "part", "place")
"""The order of jobs: by submission, job and place in the table."""

_STATUS = {
    "completed": Status.COMPLETED,
    "failed": Status.FAILED,
    "killed": Status.KILLED,
    "cancelled": Status.KILLED,
}
_WORDS_MAX = 1_000_000
_STATES_SHOWN = 100
_LONGEST_WORD = 40


class _States(NamedTuple):
    """By row, the status of SWF, and whether the job was cancelled, or had not ended."""

    status: Column
    is_cancelled: Column
    is_unfinished: Column


class _Lose(Protocol):
    """Leaves rows out, and counts them under a reason."""

    def __call__(self, mask: Column, reason: str, *, is_wanted: bool = True) -> None: ...


class RowMaker:
    """Makes rows of jobs from batches, with one numbering of the words of all of them."""

    def __init__(self, table_map: TableMap, clock: WallClock, counts: ImportCounts) -> None:
        self._map, self._clock, self._counts = table_map, clock, counts
        self.words = {name: NumberedWords(_WORDS_MAX) for name in WORDS}
        self._states: dict[str, str] = {}
        self._read = 0
        self._bounds = {
            column: (
                -np.inf if each.low is None else self._bound(column, each.low),
                np.inf if each.high is None else self._bound(column, each.high),
            )
            for column, each in table_map.filters.items()
            if isinstance(each, Bounds)
        }

    def rows(self, batch: Batch, chosen: dict[str, str]) -> Column:
        """Return the jobs of a batch (``JOB_ROW``); ``chosen``: the column of each of our
        names."""
        count = len(batch.lines)
        self._counts.lines += count
        self._counts.records += count
        keep = np.ones(count, np.bool_)

        def lose(mask: Column, reason: str, *, is_wanted: bool = True) -> None:
            lost = keep & mask
            if lost.any():
                reasons = self._counts.unusable if is_wanted else self._counts.ignored
                reasons.add(reason, batch.place(int(lost.argmax())), int(lost.sum()))
                keep[lost] = False

        for column in self._map.filters:
            lose(
                ~self._passes(batch, column), f"left out by the filter on {column}", is_wanted=False
            )
        states = self._states_of(batch, chosen)
        lose(states.is_unfinished, "had not ended when the table was written", is_wanted=False)
        value = {
            name: self._numbers(batch, name, chosen, keep)
            for name in (*INSTANTS, *SPANS, *COUNTS, *MEMORY, "priority")
        }
        if "hosts" in chosen:
            listed = hosts_of(batch.columns[chosen["hosts"]])
            self._count_bad(batch, "hosts", chosen["hosts"], listed.bad, keep)
            value["nodes"] = np.where(np.isnan(value["nodes"]), listed.values, value["nodes"])
        made = np.zeros(count, JOB_ROW)
        self._times(batch, value, made, states, keep, lose)
        self._sizes(batch, value, made, keep, lose)
        for name in WORDS:
            made[name] = self._words(batch, name, chosen)
        made["job"], made["part"] = (
            job_order(batch.columns[chosen["job"]]) if "job" in chosen else (ABSENT, ABSENT)
        )
        made["priority"] = _whole(np.floor(value["priority"]))
        made["status"] = states.status
        made["place"] = np.arange(self._read, self._read + count)
        self._read += count
        return made[keep]

    def count_words_without_number(self) -> None:
        """Count, once all rows are made, the names of which too many differ."""
        for name, words in self.words.items():
            if words.is_full:
                self._counts.adjusted.add(
                    f"{name}: more than {_WORDS_MAX:,} different words; the others are unknown", ""
                )

    def _times(
        self,
        batch: Batch,
        value: dict[str, Column],
        made: Column,
        states: _States,
        keep: Column,
        lose: _Lose,
    ) -> None:
        submit, start, end, run = (value[name] for name in ("submit", "start", "end", "run"))
        never_ran = states.is_cancelled & np.isnan(start)
        lose(np.isnan(submit), "without a time of submission")
        lose(np.isnan(start) & ~never_ran, "without a start")
        lose(np.isnan(end) & np.isnan(run) & ~never_ran, "without an end or a run time")
        lose(end < start, "ends before it starts")
        both = end - start
        self._adjust(
            batch,
            keep & (np.abs(both - run) > 1),
            "run time and end differ by more than 1 s: the end holds",
        )
        run = np.where(np.isnan(both), run, both)
        end = np.where(np.isnan(end), start + np.floor(run), end)
        early = keep & (start < submit)
        self._adjust(batch, early, "starts before it is submitted: the start is taken for both")
        submit = np.where(early, start, submit)
        end = np.where(never_ran & (end < submit), np.nan, end)
        made["submit"], made["start"], made["end"] = map(_whole, (submit, start, end))
        made["run"] = np.where(never_ran, ABSENT, _whole(np.floor(run)))
        made["limit"] = _whole(np.ceil(np.where(value["limit"] > 0, value["limit"], np.nan)))
        made["eligible"] = _whole(value["eligible"])

    def _sizes(
        self,
        batch: Batch,
        value: dict[str, Column],
        made: Column,
        keep: Column,
        lose: _Lose,
    ) -> None:
        whole = {name: self._counted(batch, name, value[name], keep) for name in COUNTS}
        nodes = np.where(whole["nodes"] > 0, whole["nodes"], np.nan)
        procs = whole["procs"]
        procs = np.where(procs > 0, procs, nodes * whole["procs_per_node"])
        used = np.where(whole["procs_allocated"] > 0, whole["procs_allocated"], procs)
        procs = np.where(procs > 0, procs, used)
        ran = made["start"] >= 0
        lose(ran & ~(procs > 0), "without processors")
        lose(np.fmax(procs, used) > COUNT_LIMIT, "more processors than can be counted")
        gpus = np.where(np.isnan(whole["gpus"]), nodes * whole["gpus_per_node"], whole["gpus"])
        memory = value["memory"]
        memory = np.where(np.isnan(memory), nodes * value["memory_per_node"], memory)
        nodes = np.where(np.isnan(nodes) & (procs == 1), 1, nodes)
        many = nodes > procs
        self._adjust(batch, keep & many, "more nodes than processors: one node for each processor")
        nodes = np.where(many, procs, nodes)
        for name, amount in (("procs", procs), ("gpus", gpus), ("memory", memory)):
            with np.errstate(invalid="ignore"):
                uneven = keep & (nodes > 0) & (amount % nodes > 0)
            self._adjust(batch, uneven, f"uneven: {name} divided by nodes is rounded up")
        made["nodes"], made["procs"], made["gpus"] = map(_whole, (nodes, procs, gpus))
        made["procs_allocated"] = np.where(ran, _whole(used), ABSENT)
        made["memory"] = _whole(np.where(memory > 0, np.floor(memory), np.nan))

    def _counted(self, batch: Batch, name: str, values: Column, keep: Column) -> Column:
        """Return a count, rounded up to whole numbers."""
        up = np.ceil(np.round(values, 6))
        self._adjust(batch, keep & (np.abs(up - values) > 1e-6), f"{name} is not whole: rounded up")
        return up

    def _numbers(self, batch: Batch, name: str, chosen: dict[str, str], keep: Column) -> Column:
        default = self._map.defaults.get(name, np.nan)
        if name not in chosen:
            return np.full(len(batch.lines), default, np.float64)
        column = self._map.columns[name]
        read = self._converted(batch.columns[chosen[name]], name, column)
        self._count_bad(batch, name, chosen[name], read.bad, keep)
        missing = np.isnan(read.values)
        missing[list(read.bad)] = False
        return np.where(missing, default, read.values)

    def _converted(self, cells: Cells, name: str, column: MappedColumn) -> Numbers:
        if name in INSTANTS:
            unit = column.unit or self._map.time_unit
            scale = TIME_UNITS.get(unit)
            return instants_of(cells, None if scale is None else scale * column.scale, self._clock)
        if name in SPANS:
            return spans_of(cells, SPAN_UNITS[column.unit or "s"] * column.scale)
        if name in MEMORY:
            return memory_of(cells, MEMORY_UNITS[column.unit or "B"] * column.scale)
        most = NUMBER_LIMIT if name == "priority" else COUNT_LIMIT
        return numbers_of(cells, scale=column.scale, most=most)

    def _words(self, batch: Batch, name: str, chosen: dict[str, str]) -> Column:
        words, default = self.words[name], self._map.defaults.get(name, "")
        number = words[default]
        if name not in chosen:
            return np.full(len(batch.lines), number, np.int32)
        numbers = words.numbers(batch.columns[chosen[name]])
        return np.where(numbers < 0, number, numbers)

    def _states_of(self, batch: Batch, chosen: dict[str, str]) -> _States:
        count = len(batch.lines)
        if "state" not in chosen:
            unknown = np.full(count, ABSENT, np.int8)
            return _States(unknown, np.zeros(count, np.bool_), np.zeros(count, np.bool_))
        found = [
            self._state(text_of(cell), batch, row)
            for row, cell in enumerate(batch.columns[chosen["state"]])
        ]
        status = np.array([_STATUS.get(state, ABSENT) for state in found], np.int8)
        return _States(
            status,
            np.array([state == "cancelled" for state in found], np.bool_),
            np.array([state == "unfinished" for state in found], np.bool_),
        )

    def _state(self, word: str, batch: Batch, row: int) -> str:
        """Return the state of a word of the table, by the whole word or what is before its first
        blank; empty if it is unknown."""
        if word not in self._states:
            known, whole = self._map.states, word.casefold()
            state = known.get(whole) or known.get(whole.partition(" ")[0])
            if len(self._states) > _WORDS_MAX:
                return state or known.get(ANY_STATE, "")
            self._states[word] = state or (known.get(ANY_STATE, "") if word else "")
        state = self._states[word]
        if not state and word:
            shown = word[:_LONGEST_WORD] if len(self._states) <= _STATES_SHOWN else "..."
            self._counts.adjusted.add(
                f"state {shown!r} is not in the map: taken as unknown", batch.place(row)
            )
        return state

    def _passes(self, batch: Batch, column: str) -> Column:
        cells = batch.columns[column]
        wanted = self._map.filters[column]
        if isinstance(wanted, Bounds):
            low, high = self._bounds[column]
            values = self._of_filter(column, cells).values
            return (values >= low) & (values < high)
        return np.fromiter((text_of(cell) in wanted for cell in cells), np.bool_, len(cells))

    def _of_filter(self, column: str, cells: Cells) -> Numbers:
        """Return the numbers that the range of a filter is compared with: instants of a column
        that the map takes for one, the cells themselves of another."""
        for name in INSTANTS:
            mapped = self._map.columns.get(name)
            if mapped is not None and column in mapped.names:
                return self._converted(cells, name, mapped)
        return numbers_of(cells)

    def _bound(self, column: str, end: float | str) -> float:
        if not isinstance(end, str):
            return float(end)
        is_day = len(end) == 10 and "-" in end
        found = self._clock.of_iso(f"{end}T00:00:00" if is_day else end)
        if not found:
            raise InputError(
                f"{self._map.name}: the filter on {column}: {end!r} is not a number or an ISO "
                "time such as 2024-05-01T08:00:00"
            )
        return found[0]

    def _count_bad(
        self, batch: Batch, name: str, column: str, bad: dict[int, str], keep: Column
    ) -> None:
        shown = name if name == column else f"{name} ({column})"
        for row in sorted(bad):
            if keep[row]:
                self._counts.adjusted.add(
                    f"{shown}: {bad[row]}: taken as unknown", batch.place(row)
                )

    def _adjust(self, batch: Batch, mask: Column, reason: str) -> None:
        if mask.any():
            self._counts.adjusted.add(reason, batch.place(int(mask.argmax())), int(mask.sum()))


def _whole(values: Column) -> Column:
    """Return whole numbers, -1 for NaN."""
    return np.where(np.isnan(values), ABSENT, values).astype(np.int64)
