"""The rules of time slices: classes, lengths, shares (no kernels, because the referee imports them
too)."""

from __future__ import annotations

import msgspec

SECOND = 1_000_000
HOUR = 3600 * SECOND

NAMES = ("short", "medium", "long")
"""The classes, in the order in which they have their slices."""

SHORT, MEDIUM, LONG = range(3)

MEDIUM_FROM, LONG_FROM = 600 * SECOND, 10_800 * SECOND
"""The least estimates of medium and of long jobs, microseconds."""


class SliceRules(msgspec.Struct, frozen=True):
    """The parameters of one time-shared policy.

    ``lengths``: of the slices of short, medium and long jobs, and ``switch``: of a switch,
    microseconds.  ``shares``: of the time, in thousandths, that the classes have (for estimated
    responses).  ``is_easy``: backfilling inside a slice keeps one reservation, not one for every
    job.  ``is_smart``: jobs of other classes use what a class leaves.  ``class_by``: ``estimate``,
    ``queue`` (numbers 1, 2, 3) or ``none`` (all are of one class, which has the machine alone).
    ``night``: the hours of the day between which other lengths and shares hold, with these.
    """

    lengths: tuple[int, int, int]
    switch: int
    shares: tuple[int, int, int]
    is_easy: bool = False
    is_smart: bool = True
    class_by: str = "estimate"
    night: tuple[int, int] | None = None
    night_lengths: tuple[int, int, int] = (0, 0, 0)
    night_shares: tuple[int, int, int] = (0, 0, 0)

    def is_night(self, now: int) -> bool:
        """Return whether the night's shares hold: from one hour of the day to another, by the clock
        of the instants."""
        if self.night is None:
            return False
        hour, (begin, end) = now // HOUR % 24, self.night
        return begin <= hour < end if begin <= end else hour >= begin or hour < end

    def length(self, kind: int, now: int) -> int:
        """Return the length of a slice of a class that begins at an instant."""
        return (self.night_lengths if self.is_night(now) else self.lengths)[kind]

    def share(self, kind: int, now: int) -> int:
        """Return a class's share of the time at an instant, in thousandths."""
        return (self.night_shares if self.is_night(now) else self.shares)[kind]

    def class_of(self, estimate: int, queue: int) -> int:
        """Return the class of a job (rule 1)."""
        if self.class_by == "none":
            return LONG
        if self.class_by == "queue":
            return min(max(queue, 1), 3) - 1
        return SHORT if estimate < MEDIUM_FROM else MEDIUM if estimate < LONG_FROM else LONG


def slice_rules(
    cycle: int,
    switch: int,
    short: int,
    medium: int,
    long: int,
    class_by: str,
    night: tuple[int, int, int],
    *,
    is_easy: bool,
    is_smart: bool,
) -> SliceRules:
    """Return rules from the parameters of a policy: seconds, and the shares of medium and long jobs
    in thousandths (rule 2).

    Every slice lasts at least a second, even if short slices leave nothing of the cycle.

    Args:
        night: the share of medium jobs at night (0: the same as at daytime), with the rest for long
            ones, and the hours at which the night begins and ends.
    """
    by_day = _lengths(cycle, short, medium, long)
    shares = (1000, 1000, 1000) if class_by == "none" else (1000 - medium - long, medium, long)
    rules = SliceRules(by_day, switch * SECOND, shares, is_easy, is_smart, class_by)
    share, begin, end = night
    if not share:
        return rules
    share = min(share, medium + long - 1)
    at_night = _lengths(cycle, short, share, medium + long - share)
    other = shares if class_by == "none" else (shares[0], share, medium + long - share)
    return msgspec.structs.replace(
        rules, night=(begin, end), night_lengths=at_night, night_shares=other
    )


def _lengths(cycle: int, short: int, medium: int, long: int) -> tuple[int, int, int]:
    rest = max(cycle - short, 2)
    middle = min(max(rest * medium // (medium + long), 1), rest - 1)
    return short * SECOND, middle * SECOND, (rest - middle) * SECOND
