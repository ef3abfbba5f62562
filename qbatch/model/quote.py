"""What a policy would answer to a job that is not submitted."""

from __future__ import annotations

import msgspec

from qbatch.model.reasons import Reason


class Quote(msgspec.Struct, frozen=True):
    """The answer that a job would get if it were submitted now.  Instants in microseconds, None where nothing is known.

    ``reason``: why it would be refused; None: it would be accepted.  ``start``, ``end``: when it would start and end as things
    stand, which is a forecast and no promise.  ``earliest_deadline``: the earliest deadline that would be accepted.
    ``price``: what it would cost, in millionths of a processor-hour.
    """

    reason: Reason | None = None
    start: int | None = None
    end: int | None = None
    earliest_deadline: int | None = None
    price: int | None = None
