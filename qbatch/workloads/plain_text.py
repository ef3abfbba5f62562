"""The five-column text log, for people: ``submit run procs [estimate [user]]``.

One job per line, seconds, numbers separated by blanks; ``#`` and ``;`` begin comment lines, and SWF
header lines such as ``; MaxProcs: 16`` are understood.  A user is a number or a word; words are
numbered from 1 in order of appearance.  Job numbers count the rows from 1.  The size of each job
is in both the requested and the allocated processors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qbatch.workloads.log import FIELDS, Column, absent

FIELDS_MIN = 3
FIELDS_MAX = 5
USER_FIELD = 4

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")


class RowShape(NamedTuple):
    """The form of a log's rows: the number of fields, and which of them holds words (-1: none)."""

    fields: int
    word_column: int = -1

    @property
    def is_plain_text(self) -> bool:
        """Return whether this is the five-column format."""
        return self.fields < len(FIELDS)

    @property
    def title(self) -> str:
        """Return the name of the format for messages."""
        return "the first row" if self.is_plain_text else "SWF"


SWF_SHAPE = RowShape(len(FIELDS))


def row_shape(first_rows: Sequence[bytes]) -> RowShape:
    """Return the shape of the first rows of a log; SWF unless they are clearly plain text."""
    rows = [row.split() for row in first_rows]
    if not rows or any(len(row) == len(FIELDS) for row in rows):
        return SWF_SHAPE
    first = rows[0]
    if not FIELDS_MIN <= len(first) <= FIELDS_MAX or not all(NUMBER.match(token) for token in first[:FIELDS_MIN]):
        return SWF_SHAPE
    has_words = len(first) == FIELDS_MAX and not NUMBER.match(first[USER_FIELD])
    return RowShape(len(first), USER_FIELD if has_words else -1)


def swf_columns(raw: Sequence[Column]) -> dict[str, Column]:
    """Return the 18 columns from the three to five of a plain text log."""
    rows = len(raw[0])
    columns = {name: absent(rows) for name in FIELDS}
    columns["job"] = np.arange(1, rows + 1, dtype=np.int32)
    columns["submit"], columns["run"], columns["procs_requested"] = raw[0], raw[1], raw[2]
    columns["procs_allocated"] = raw[2]
    if len(raw) > FIELDS_MIN:
        columns["time_requested"] = raw[3]
    if len(raw) > USER_FIELD:
        columns["user"] = raw[4]
    return columns
