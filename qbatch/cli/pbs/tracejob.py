"""``tracejob``: show all events of jobs, one on each line."""

from __future__ import annotations

import time

from qbatch.cli.pbs.command import TAKEN, Call, Command, UsageFault, operands_of
from qbatch.cli.pbs.text import MICROSECONDS, plain
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Trails
from qbatch.wire.requests import Trail

USAGE = (
    "tracejob [-a] [-s] [-l] [-m] [-v] [-z] [-n days] [-w columns] [-f filter] [-c count] "
    "job_identifier ..."
)

_HIDDEN = {"a": "A", "s": "S", "l": "L", "m": "M"}


def trail_text(trail: Trails, hidden: str = "") -> str:
    """Return the lines of one job, ``MM/DD/YYYY HH:MM:SS  S    text``, without entries of the ``hidden`` kinds."""
    lines = [f"\nJob: {plain(trail.job)}\n"]
    for entry in trail.entries:
        if entry.kind not in hidden:
            stamp = time.strftime("%m/%d/%Y %H:%M:%S", time.localtime(entry.at // MICROSECONDS))
            lines.append(f"{stamp:<20} {plain(entry.kind):<4} {plain(entry.text)}")
    return "\n".join(lines) + "\n"


def _act(call: Call) -> int:
    days = call.given.last("n", "0")
    if not days.isdecimal() or len(days) > 6:
        raise UsageFault("illegal -n value")
    hidden = "".join(kind for letter, kind in _HIDDEN.items() if call.given.has(letter))
    for job in call.job_ids(operands_of(call)):
        try:
            call.write(trail_text(call.ask(Trail(job=job, days=int(days)), Trails), hidden))
        except Refusal as refusal:
            call.job_fault(refusal.record, job)
    return call.code


OPTIONS = {
    "a": ("", "Leave out the accounting."),
    "c": ("count", "Ignored."),
    "f": ("filter", "Ignored."),
    "F": ("filter", "Ignored."),
    "l": ("", "Leave out the scheduler's actions."),
    "m": ("", "Leave out the hosts' actions."),
    "n": ("days", "Show only the last days."),
    "p": ("path", "Ignored."),
    "s": ("", "Leave out the server's actions."),
    "v": TAKEN,
    "w": ("columns", "Ignored; lines are not broken."),
    "z": TAKEN,
}

tracejob = Command("tracejob", __doc__, USAGE, OPTIONS, _act)
