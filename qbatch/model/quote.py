"""A policy's answer to a job that is not submitted."""

from __future__ import annotations

import msgspec

from qbatch.model.reasons import Reason


class Quote(msgspec.Struct, frozen=True):
    """The answer that a job would get if it were submitted now.  Instants in microseconds, None if
    unknown.

    ``reason``: why it would be refused; None: it would be accepted.  ``start``, ``end``: its start
    and end by the current state, a forecast and not a promise.  ``earliest_deadline``: the earliest
    deadline that would be accepted. ``price``: in millionths of a processor-hour.
    """

    reason: Reason | None = None
    start: int | None = None
    end: int | None = None
    earliest_deadline: int | None = None
    price: int | None = None
