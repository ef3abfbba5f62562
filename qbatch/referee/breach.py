"""A breach with its code, its instant and its jobs; and the table of codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from qbatch.model.record import MICROSECONDS

CODES: dict[str, str] = {
    "early-start": "a job started before it was submitted",
    "wrong-end": "the end of a job is not its start plus its run time",
    "piece-times": (
        "the execution intervals of a job overlap, or do not begin with its start and "
        "end with its end"
    ),
    "piece-work": (
        "the work of a job's execution intervals, without discarded ones, is not its "
        "processors x run time"
    ),
    "overrun": (
        "a job ran beyond its estimate, at which it must be killed; --no-kill allows it, "
        "as "
        "real machines did"
    ),
    "duplicate-job": "two rows have one job number",
    "capacity": (
        "more processors were in use than the machine has; logs of real machines often do so"
    ),
    "unknown-host": "a job ran on a host that the machine does not have",
    "outside-partition": "a job ran on a host outside of its partitions",
    "partition-limit": "a job is above a limit of each of its partitions, or below one",
    "missing-feature": "a job ran on a host without a feature that it asks for",
    "host-overfull": (
        "jobs had more processors, memory or named resources on a host than the host has"
    ),
    "server-overfull": "jobs had more of an amount of the whole server, such as licences, than there is",
    "not-alone": "another job was on a host that a job has alone",
    "reserved-host": "a job started on a host of a reservation during it, without naming it",
    "closed-host": "a job started on a host while the file of outages has it closed",
    "outside-reservation": (
        "a job that names a reservation started outside of its times, or ran on other hosts"
    ),
    "in-pieces": (
        "a job has several execution intervals, but the policy has no suspension, "
        "resizing or trial runs"
    ),
    "promise-broken": "a job started after its promised start",
    "deadline-missed": (
        "an accepted job ended after its deadline, although the policy did not withdraw the promise"
    ),
    "promise-moved": "the last promise of a job is later than its first",
    "outside-slice": (
        "time slices: a job ran during a switch, or beyond the slice in which it started or resumed"
    ),
    "idle-in-slice": "time slices: a started job did not run while its class had the machine",
    "overtaken": "FCFS: a job started while an earlier one waited",
    "clairvoyant": (
        "EASY: a backfilled job ends by the shadow time by its run time only, not by its estimate"
    ),
    "extra-misused": (
        "EASY: backfilled jobs together took more than the extra processors of the head"
    ),
    "head-delayed": (
        "EASY: a backfilled job neither ends by the shadow time nor fits into the extra processors"
    ),
    "guarantee": (
        "EASY: the head started later than the shadow time of the instant at which it became head"
    ),
    "wrong-promise": (
        "conservative: the first promise is not the earliest start in the plan at the arrival"
    ),
    "plan-left": "conservative: a job left its reservation although no job ended early",
    "needless-wait": "a job waited although the policy would have started it",
}
"""Every code of a breach and its meaning; of two at one instant, the one that is earlier in this
table comes first."""

_RANKS = {code: rank for rank, code in enumerate(CODES)}

NAMED_MAX = 5
"""Number of jobs that a sentence names; it only counts the others."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One breach of a rule by a schedule.

    ``instant``: microseconds on the log's clock.  ``jobs``: job numbers, the offender first.
    """

    code: str
    instant: int
    jobs: tuple[int, ...]
    text: str

    @property
    def rank(self) -> tuple[int, int]:
        """The sort key of a breach: its instant, then its code in the order of the table."""
        return self.instant, _RANKS[self.code]


@dataclass(slots=True)
class Findings:
    """The findings about one schedule so far; ``on_hosts``: the amounts that were checked on each
    host, empty for none."""

    breaches: list[Breach] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    on_hosts: str = ""


def jobs_counted(count: int) -> str:
    """Return ``1 job`` or ``1,234 jobs``."""
    return "1 job" if count == 1 else f"{count:,} jobs"


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
