"""The rules of time slices: classes, lengths, shares (no kernels: the referee reads them too)."""

from __future__ import annotations

import msgspec

SECOND = 1_000_000

NAMES = ("short", "medium", "long")
"""The classes, in the order in which they have their slices."""

SHORT, MEDIUM, LONG = range(3)

MEDIUM_FROM, LONG_FROM = 600 * SECOND, 10_800 * SECOND
"""The least estimates of medium and of long jobs, microseconds."""


class SliceRules(msgspec.Struct, frozen=True):
    """What tells one time-shared policy from another.

    ``lengths``: of the slices of short, medium and long jobs, and ``switch``: of a switch, microseconds.  ``shares``: of the
    time, in thousandths, that the classes have (estimated responses reckon with them).  ``is_easy``: backfilling inside a slice
    keeps one reservation, not one for every job.  ``is_smart``: jobs of other classes use what a class leaves.  ``class_by``:
    ``estimate``, ``queue`` (numbers 1, 2, 3) or ``none`` (all are of one class, which has the machine for itself).
    """

    lengths: tuple[int, int, int]
    switch: int
    shares: tuple[int, int, int]
    is_easy: bool = False
    is_smart: bool = True
    class_by: str = "estimate"

    def class_of(self, estimate: int, queue: int) -> int:
        """Return the class of a job (rule 1)."""
        if self.class_by == "none":
            return LONG
        if self.class_by == "queue":
            return min(max(queue, 1), 3) - 1
        return SHORT if estimate < MEDIUM_FROM else MEDIUM if estimate < LONG_FROM else LONG


def slice_rules(
    cycle: int, switch: int, short: int, medium: int, long: int, class_by: str, *, is_easy: bool, is_smart: bool
) -> SliceRules:
    """Return rules by the parameters of a policy: seconds, and the shares of medium and long jobs in thousandths (rule 2).

    Every slice lasts a second at least, also where short ones leave nothing of the cycle.
    """
    rest = max(cycle - short, 2)
    middle = min(max(rest * medium // (medium + long), 1), rest - 1)
    lengths = (short * SECOND, middle * SECOND, (rest - middle) * SECOND)
    shares = (1000, 1000, 1000) if class_by == "none" else (1000 - medium - long, medium, long)
    return SliceRules(lengths, switch * SECOND, shares, is_easy, is_smart, class_by)
