"""A deadline as a resource of a job: ``-l deadline=VALUE`` is the instant by which it should end.

``+TIME`` counts from the submission, with ``TIME`` as in a walltime (``+2:00:00``).  Everything
else is an instant: ``[[CC]YY]MMDDhhmm[.SS]`` as in ``qsub -a``, or ISO 8601 (``2026-11-24T10:00``,
with or without an offset).  A command writes an instant as ISO 8601 with the offset of its own time
zone; the protocol and ``qstat`` use that form.
"""

from __future__ import annotations

from datetime import datetime

from qbatch.wire.resources import MICROSECONDS, parse_duration

RESOURCE = "deadline"
"""The name of the resource."""

LATEST = 1 << 60
"""No deadline lies after this instant (microseconds since 1970)."""

_FORM = "write +TIME after now, such as +2:00:00, or an instant such as 2026-11-24T10:00"


def deadline_of(text: str, now: int) -> int:
    """Return a deadline in microseconds since 1970; ``now`` is the instant of the submission, in
    the same unit.

    Raises:
        ValueError: the text is no deadline, or lies too far away.
    """
    if text.startswith("+"):
        found = now + parse_duration(text[1:])
    else:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{text[:60]!r} is no deadline; {_FORM}") from None
        if moment.tzinfo is None:
            raise ValueError(f"{text[:60]!r} has no offset from UTC, such as +01:00 or Z; {_FORM}")
        found = round(moment.timestamp()) * MICROSECONDS + moment.microsecond
    if not 0 <= found < LATEST:
        raise ValueError(f"{text[:60]!r} lies too far away")
    return found


def with_offset(text: str) -> str:
    """Add the local time zone's offset to an ISO 8601 instant that has none; return other texts
    unchanged."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return text if moment.tzinfo is not None else moment.astimezone().isoformat()
