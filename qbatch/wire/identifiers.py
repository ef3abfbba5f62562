"""Job identifiers: ``12.qbatch``, the array ``12[].qbatch``, its subjob ``12[3].qbatch``
(docs/spec/pbs.md 2)."""

from __future__ import annotations

import re
from typing import NamedTuple

PLAIN = -1
"""``member`` of a job that is no array."""

ARRAY = -2
"""``member`` of a whole array."""

_LONGEST = 400
_MOST_SUBJOBS = 10_000
_MOST_INDICES = 1_000_000
_FORM = re.compile(r"([0-9]{1,15})(\[([0-9]{0,9})\])?(?:\.([^@\s\[\]]*))?(?:@(\S*))?")


class JobKey(NamedTuple):
    """A job's sequence number, and its index in an array as ``member`` (or ``PLAIN``,
    ``ARRAY``)."""

    sequence: int
    member: int = PLAIN


def parse_id(text: str) -> JobKey:
    """Return the key of ``123``, ``123.srv``, ``123.srv@srv``, ``123[]``, ``123[4]``; server names
    are not compared.

    Raises:
        ValueError: the text is no job identifier.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"illegally formed job identifier: {text}")
    if found[2] is None:
        return JobKey(int(found[1]))
    return JobKey(int(found[1]), int(found[3]) if found[3] else ARRAY)


def format_id(key: JobKey, server: str) -> str:
    """Return the identifier as every command prints it."""
    sequence, member = key
    inner = "" if member == PLAIN else "[]" if member == ARRAY else f"[{member}]"
    return f"{sequence}{inner}.{server}"


def is_job_id(text: str) -> bool:
    """Return whether an operand is a job identifier, which begins with a digit; any other text is a
    destination."""
    return "0" <= text[:1] <= "9"


def expand_id(text: str) -> list[str]:
    """Return ``12`` or ``12.srv`` itself, and ``12[1-3,7].srv`` as four identifiers of subjobs.

    Raises:
        ValueError: the text is no job identifier.
    """
    text = text.strip()
    if len(text) <= _LONGEST and _FORM.fullmatch(text):
        return [text]
    before, opening, rest = text.partition("[")
    inner, closing, after = rest.partition("]")
    if (
        not opening
        or not closing
        or len(text) > _LONGEST
        or not _FORM.fullmatch(f"{before}[0]{after}")
    ):
        raise ValueError(f"illegally formed job identifier: {text[:_LONGEST]}")
    indices, limit = parse_indices(inner)
    if limit is not None or len(indices) > _MOST_SUBJOBS:
        raise ValueError(f"illegally formed job identifier: {text}")
    return [f"{before}[{index}]{after}" for index in indices]


def parse_indices(text: str) -> tuple[list[int], int | None]:
    """Return the indices of ``1-10``, ``1-10:2``, ``1,3,5-9%4`` in ascending order, and the slot
    limit after ``%``.

    Raises:
        ValueError: with the reason.
    """
    ranges, percent, limit_text = text.strip().partition("%")
    limit = None
    if percent:
        if not re.fullmatch(r"[0-9]{1,7}", limit_text) or int(limit_text) < 1:
            raise ValueError(f"array limit {limit_text!r} is not a number of at least 1")
        limit = int(limit_text)
    indices: set[int] = set()
    for part in ranges.split(","):
        found = re.fullmatch(r"\s*([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?\s*", part)
        if found is None:
            raise ValueError(f"array range {part.strip()!r} is not of the form 1-10 or 1-10:2")
        low, high, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if high < low or step < 1:
            raise ValueError(f"array range {part.strip()!r} runs backwards or has no step")
        if (high - low) // step >= _MOST_INDICES:
            raise ValueError(f"an array of more than {_MOST_INDICES} jobs")
        indices.update(range(low, high + 1, step))
        if len(indices) > _MOST_INDICES:
            raise ValueError(f"an array of more than {_MOST_INDICES} jobs")
    return sorted(indices), limit


def format_indices(indices: list[int]) -> str:
    """Return ascending indices as ranges, such as ``1-3,5,7-9``, or as one range with a step if
    they are one."""
    if len(indices) > 2:
        step = indices[1] - indices[0]
        if step > 1 and indices == list(range(indices[0], indices[-1] + 1, step)):
            return f"{indices[0]}-{indices[-1]}:{step}"
    parts: list[str] = []
    begin = 0
    for place in range(1, len(indices) + 1):
        if place == len(indices) or indices[place] != indices[place - 1] + 1:
            low, high = indices[begin], indices[place - 1]
            parts.append(str(low) if low == high else f"{low}-{high}")
            begin = place
    return ",".join(parts)
