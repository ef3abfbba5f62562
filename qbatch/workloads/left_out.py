"""What a log does not contain of the machine and the policy that really ran it.

A workload log has processors and times.  The real scheduler also went by GPUs, features, licences,
memory, partitions, priorities: an import of accounting records counts the jobs that have each, and
writes one Note per kind into the header, such as ``left out: GPUs: 37 of 400 jobs (gpu:a100 30, gpu
7)``.  ``left_out_of`` reads the Notes back, so that results from such a log are never shown without
them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from qbatch.workloads.header import Header

GPUS, OTHERS, FEATURES, LICENCES = "GPUs", "other resources", "features", "licences"
EXCLUSIVE, MEMORY = "exclusive allocation", "node memory"
PARTITIONS, QOS, PRIORITY, RESERVATIONS = "partitions", "QOS", "priority", "reservations"
CLUSTERS, PARTS = "clusters", "checkpoint parts"
HELD = "holds, dependencies and begin times"

KINDS = (
    GPUS,
    OTHERS,
    FEATURES,
    LICENCES,
    EXCLUSIVE,
    MEMORY,
    PARTITIONS,
    QOS,
    PRIORITY,
    RESERVATIONS,
)
"""What jobs asked for, in the order of the report; a kind that the records lack is named.

Before them the report has ``CLUSTERS``, if jobs are of several, and ``PARTS``: rows of a log that
are parts of a job which has a row of its own.  After them comes ``HELD``: jobs that could not start
for a part of their waits.
"""

_ONE_IS_NONE = frozenset((CLUSTERS, PARTITIONS, QOS, PRIORITY))
"""Kinds that matter only if jobs differ in them: one partition for all jobs is the machine
itself."""

_UNLISTED = frozenset((PRIORITY,))
_MOST_NAMES, _LONGEST_NAME = 5, 40
NOT_TOLD = "not in the records"
"""The text for a kind that the records do not contain."""

_NOTE = re.compile(
    rf"left out: ({'|'.join((CLUSTERS, PARTS, *KINDS, HELD))}): (?:{NOT_TOLD}|(\d+) of (\d+) jobs(?: \((.*)\))?)\Z",
    re.DOTALL,
)

Asks = tuple[tuple[str, str], ...]
"""The requests of a job that a log does not contain: pairs of a kind and a name, which may be
empty."""


class LeftOut(msgspec.Struct, frozen=True):
    """One kind of what a log does not contain: how many of its jobs have it, and under which names.

    ``jobs`` and ``of``: None if unknown.  ``names``: the most frequent ones, each with its number
    of jobs.
    """

    what: str
    jobs: int | None = None
    of: int | None = None
    names: str = ""

    @property
    def words(self) -> str:
        """The text for a reader."""
        if self.jobs is None:
            return f"{self.what}: {NOT_TOLD}"
        return (
            f"{self.what}: {self.jobs} of {self.of} jobs{f' ({self.names})' if self.names else ''}"
        )

    @property
    def note(self) -> str:
        """The Note of a log's header."""
        return f"left out: {self.words}"


def still_left_out(
    found: Iterable[LeftOut], kinds: Mapping[str, int], rows: int | None = None
) -> list[LeftOut]:
    """Return what a log leaves out and its side file does not say either: of jobs that the side
    file says some of, the number of the others, without names.

    Args:
        kinds: for how many jobs the side file says each kind.
        rows: how many rows the log has, if that is known.  A Note of another number is about
            another log, of which this one was made, so that the numbers cannot be compared.  A kind
            is then not left out if the side file says it of any job.
    """
    left = []
    for each in found:
        count, jobs = kinds.get(each.what, 0), each.jobs or 1
        if not count:
            left.append(each)
        elif count < jobs and rows in (None, each.of):
            left.append(LeftOut(each.what, jobs - count, each.of))
    return left


def count_left_out(
    asks: Iterable[Asks], recorded: Collection[str], jobs: int, hidden: Collection[str] = ()
) -> tuple[LeftOut, ...]:
    """Return what a log of this many jobs leaves out; kinds that no job has are not listed.

    Args:
        asks: of each job, or a ``Counter`` of them.
        recorded: the kinds that the records contain; the other kinds are unknown if no job has
            them.
        hidden: kinds of which the names are not written (for an anonymous log).
    """
    having: Counter[str] = Counter()
    names: dict[str, Counter[str]] = {kind: Counter() for kind in (CLUSTERS, *KINDS)}
    for pairs, count in Counter(asks).items():
        for kind in {kind for kind, _ in pairs}:
            having[kind] += count
        for kind, name in pairs:
            names[kind][name] += count
    found = []
    for kind, of_kind in names.items():
        if having[kind] and not (kind in _ONE_IS_NONE and len(of_kind) < 2):
            listed = _listed(of_kind, is_hidden=kind in hidden or kind in _UNLISTED)
            found.append(LeftOut(kind, having[kind], jobs, listed))
        elif not having[kind] and kind in KINDS and kind not in recorded:
            found.append(LeftOut(kind))
    return tuple(found)


def _listed(counts: Counter[str], *, is_hidden: bool) -> str:
    named = {
        name: count
        for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if name
    }
    several = f"{len(named)} different" if len(named) > 1 else ""
    if is_hidden or not named:
        return several
    shown = []
    for name, count in list(named.items())[:_MOST_NAMES]:
        printable = "".join(letter if letter.isprintable() else "_" for letter in name)
        shown.append(f"{printable[:_LONGEST_NAME]} {count}")
    if len(named) > _MOST_NAMES:
        shown.append(f"{len(named) - _MOST_NAMES} more")
    return f"{several}{': ' if several else ''}{', '.join(shown)}"


def left_out_of(header: Header) -> tuple[LeftOut, ...]:
    """Return what a log leaves out by the Notes of its header; empty for a log that no import
    made."""
    return tuple(
        LeftOut(found[1], int(found[2]), int(found[3]), found[4] or "")
        if found[2]
        else LeftOut(found[1])
        for note in header.notes
        if (found := _NOTE.match(note))
    )
