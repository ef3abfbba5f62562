"""Reasons of refusals and waits: a code, the numbers behind it, and its author (law 4: every "no"
has a name)."""

from __future__ import annotations

import msgspec

COULD_START = "could-start-now"
"""The code that no explanation may carry after a pass."""

INSTANTS = ("next_slice", "slice_end", "planned", "shadow", "expected_end", "at", "not_before")
"""Names of numbers that are instants: a text gives them in seconds of the clock, as ``{number /
1e6:.15g} s``."""

SPANS = ("estimate", "predicted")
"""Names of numbers that are durations, given in the same way."""


class Reason(msgspec.Struct, frozen=True):
    """A refusal or a wait.

    ``code``: one word, stable.  ``said_by``: the policy, ``"engine"`` or ``"admission"``.
    ``text``: one sentence with the numbers.  ``numbers``: the same numbers by name (instants and
    spans in microseconds); ``blocked_by``: rows of the jobs that prevent the start.
    """

    code: str
    said_by: str
    text: str
    numbers: dict[str, int] = {}
    blocked_by: tuple[int, ...] = ()
