"""What the referee says: a breach with its code, its instant and its jobs; and the code book."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qbatch.model.record import MICROSECONDS

CODES: dict[str, str] = {
    "early-start": "a job started before it was submitted",
    "wrong-end": "a job did not end when its start and its run time say",
    "piece-times": "the pieces of a job overlap, or do not begin with its start and end with its end",
    "piece-work": "what the pieces of a job did, without those that were thrown away, is not its processors x run time",
    "overrun": "a job ran beyond its estimate, at which it is to be killed; --no-kill allows it, as real machines did",
    "duplicate-job": "two rows have one job number",
    "capacity": "more processors were in use than the machine has; logs of real machines often say so",
    "in-pieces": "a job did not run in one go, and the policy neither suspends nor resizes nor starts on trial",
    "promise-broken": "a job started after the start that it was promised",
    "deadline-missed": "a job that was taken in ended after its deadline, though that was not taken back",
    "promise-moved": "the last promise of a job is later than its first",
    "outside-slice": "time slices: a job ran in a switch, or beyond the slice in which it began or went on",
    "idle-in-slice": "time slices: a job that had begun stood still while its class had the machine",
    "overtaken": "FCFS: a job started while an earlier one waited",
    "clairvoyant": "EASY: a backfilled job ends by the shadow time only by its run time, not by its estimate",
    "extra-misused": "EASY: backfilled jobs together took more than the extra processors of the head",
    "head-delayed": "EASY: a backfilled job neither ends by the shadow time nor fits into the extra processors",
    "guarantee": "EASY: the head started later than the shadow time at which it had become head",
    "wrong-promise": "conservative: the first promise is not the earliest start in the plan at the arrival",
    "plan-left": "conservative: a job left its reservation although no job had ended early",
    "needless-wait": "a job waited that the policy would have started",
}
"""Every code of a breach and what it means; of two at one instant, the one that stands earlier here comes first."""

_RANKS = {code: rank for rank, code in enumerate(CODES)}

NAMED_MAX = 5
"""Jobs that a sentence names before it only counts them."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One thing that a schedule owed and did not do.

    ``instant``: microseconds on the log's clock.  ``jobs``: job numbers, the offender first.
    """

    code: str
    instant: int
    jobs: tuple[int, ...]
    text: str

    @property
    def rank(self) -> tuple[int, int]:
        """What comes first: by instant, then by code in the order of the code book."""
        return self.instant, _RANKS[self.code]


def seconds(instant: int) -> str:
    """Return microseconds as a text in seconds, without needless zeros."""
    whole, rest = divmod(abs(int(instant)), MICROSECONDS)
    text = f"{whole}.{rest:06d}".rstrip("0") if rest else str(whole)
    return f"-{text} s" if instant < 0 else f"{text} s"


def job_list(numbers: Iterable[int]) -> str:
    """Return ``job 3`` or ``jobs 3, 4 and 7 more``."""
    known = [str(number) for number in numbers]
    if len(known) == 1:
        return f"job {known[0]}"
    more = f" and {len(known) - NAMED_MAX} more" if len(known) > NAMED_MAX else ""
    return f"jobs {', '.join(known[:NAMED_MAX])}{more}"


def processors(count: int) -> str:
    """Return ``1 processor`` or ``7 processors``."""
    return f"{count} processor{'' if count == 1 else 's'}"


def were(count: int) -> str:
    """Return ``1 processor was`` or ``7 processors were``."""
    return f"{processors(count)} {'was' if count == 1 else 'were'}"
