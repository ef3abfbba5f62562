"""Sets of jobs that fill a machine exactly, as in the paper's section 4.1 (docs/spec/papers.md 2.7
and rule 17).

A rectangle of processors and seconds is cut in two, again and again, until every part is small.
All parts together leave no hole.  In a ``static`` set all jobs arrive at 0 with the deadline (1 +
r) T.  In a ``dynamic`` set each arrives at the begin of its part, with the deadline start + (1 + r)
run.  There every job can start when it arrives, so that no job waits, and every scheme that places
jobs at their earliest admits all of them at every r.  The fall for r > 0 that the paper reports
cannot appear there.
"""

from __future__ import annotations

import numpy as np

from qbatch.model.errors import UsageError
from qbatch.workloads.draws import Draws
from qbatch.workloads.generate import generated_log
from qbatch.workloads.transform.deadlines import DeadlineLog
from qbatch.workloads.transform.load import THOUSAND, thousandths

SHORTEST_S = 60
KINDS = ("static", "dynamic")


def packed_set(kind: str, *, procs: int, span_s: int, slack: float, seed: int) -> DeadlineLog:
    """Return a packed set for ``procs`` processors and ``span_s`` seconds.

    Args:
        kind: ``static`` or ``dynamic``.
        slack: r, how much longer than necessary the deadlines allow, 0 to 100.

    Raises:
        UsageError: a value is out of range.
    """
    if kind not in KINDS or not 2 <= procs <= 1_000_000 or not 2_400 <= span_s <= 10**9:
        raise UsageError(
            f"packed: kind={kind}, procs={procs}, span={span_s}: use static or dynamic, 2 to "
            "1,000,000 processors and a "
            "span of 2,400 to 1,000,000,000 seconds"
        )
    more = thousandths(slack, "slack", 0, 100)
    pieces = np.array(_pieces(procs, span_s, Draws((seed, 3))), np.int64)
    number = Draws((seed, 4)).shuffled(len(pieces)) + 1
    start, width, run = pieces[:, 0], pieces[:, 1], pieces[:, 2]
    submit = np.zeros(len(pieces), np.int64) if kind == "static" else start
    deadline = submit + (THOUSAND + more) * (span_s if kind == "static" else run) // THOUSAND
    order = np.lexsort((number, submit))
    columns = {
        "job": number,
        "submit": submit,
        "run": run,
        "procs_allocated": width,
        "procs_requested": width,
        "time_requested": run,
        "status": np.ones(len(pieces), np.int64),
    }
    command = (
        f"qbatch transform packed:kind={kind},procs={procs},span={span_s},slack={slack:g} "
        f"--seed {seed}"
    )
    log = generated_log(
        "generated", command, {name: column[order] for name, column in columns.items()}, procs=procs
    )
    return DeadlineLog(log, deadline[order])


def _pieces(procs: int, span_s: int, draws: Draws) -> list[tuple[int, int, int]]:
    """Return start, processors and seconds of each part; the first cut is the first draw, parts
    from left to right."""
    found: list[tuple[int, int, int]] = []
    left = [(0, procs, span_s, True)]
    while left:
        start, width, seconds, may_divide = left.pop()
        is_wide, is_long = 2 * width > procs, 20 * seconds > span_s
        if not is_wide and not is_long:
            can_divide = width > 1 and seconds >= 2 * SHORTEST_S
            if not (may_divide and can_divide and int(draws.below(2, 1)[0])):
                found.append((start, width, seconds))
                continue
            parts = _cut(
                start,
                width,
                seconds,
                draws,
                is_across_procs=bool(draws.below(2, 1)[0]),
                may_divide=False,
            )
        else:
            is_across_procs = bool(draws.below(2, 1)[0]) if is_wide and is_long else is_wide
            parts = _cut(
                start, width, seconds, draws, is_across_procs=is_across_procs, may_divide=True
            )
        left += reversed(parts)
    return found


def _cut(
    start: int, width: int, seconds: int, draws: Draws, *, is_across_procs: bool, may_divide: bool
) -> list[tuple[int, int, int, bool]]:
    if is_across_procs:
        at = 1 + int(draws.below(width - 1, 1)[0])
        return [(start, at, seconds, may_divide), (start, width - at, seconds, may_divide)]
    at = SHORTEST_S + int(draws.below(seconds - 2 * SHORTEST_S + 1, 1)[0])
    return [(start, width, at, may_divide), (start + at, width, seconds - at, may_divide)]
