"""The commands about reservations: ``pbs_rsub``, ``pbs_rstat`` and ``pbs_rdel``."""

from __future__ import annotations

import re
import time

from qbatch.cli.pbs.command import (
    Call,
    Command,
    CommandFault,
    Options,
    UsageFault,
    code_of,
    command,
    operands_of,
    worded,
)
from qbatch.cli.pbs.format_attributes import RESERVATION_STATES, reservation_attributes
from qbatch.cli.pbs.format_full import full_text
from qbatch.cli.pbs.submission import read_date
from qbatch.cli.pbs.text import MICROSECONDS, cell
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes, ReservationRecord, Reservations
from qbatch.wire.requests import ReservationStatus, Reserve, Unreserve
from qbatch.wire.resources import parse_duration, parse_resources

_DAYS = {
    frozenset(("MO", "TU", "WE", "TH", "FR")): "weekday",
    frozenset(("SA", "SU")): "weekend",
}
_FREQUENCIES = {"HOURLY": "hourly", "DAILY": "daily", "WEEKLY": "weekly"}

_RSUB: Options = {
    "R": ("start", "When it begins: [[[[CC]YY]MM]DD]hhmm[.SS]."),
    "E": ("end", "When it ends: [[[[CC]YY]MM]DD]hhmm[.SS]."),
    "D": ("duration", "How long it lasts: seconds or HH:MM:SS."),
    "l": ("resource_list", "What its hosts must have together, as of a job; walltime is -D."),
    "N": ("name", "A title."),
    "U": ("users", "Those who may submit to it, separated by commas (as a rule, only you)."),
    "r": (
        "rrule",
        "Repetition: FREQ=DAILY;COUNT=5; also HOURLY, WEEKLY, and BYDAY=MO,TU,WE,TH,FR.",
    ),
    "I": ("seconds", "The answer says CONFIRMED in place of UNCONFIRMED: it is known at once."),
    "q": ("server", "Ignored: there is one server."),
    "m": ("points", "Ignored: no mail is sent about reservations."),
    "M": ("users", "Ignored: no mail is sent about reservations."),
    "u": ("users", "Ignored: the owner is the user who asks."),
    "g": ("groups", "Ignored."),
    "G": ("groups", "Refused: only users may be named (-U)."),
    "H": ("hosts", "Ignored: every host of a user may ask."),
    "W": ("attributes", "Ignored."),
}


def _act_rsub(call: Call) -> int:
    """``pbs_rsub``: reserve hosts for the jobs of a queue of its own.

    The queue is named as the reservation is, such as ``R12``.  It is decided at once whether the
    hosts are free then.  A reservation has whole hosts, also where ``-l`` asks for less.  With
    ``--hosts`` the named hosts are reserved for maintenance, and no job runs there.
    """
    given = call.given
    if given.has("G"):
        raise CommandFault("groups cannot be named for a reservation (-G); name users with -U", 1)
    is_maintenance = "--hosts" in call.flags
    if bool(given.operands) is not is_maintenance:
        raise UsageFault()
    resources: dict[str, str] = {}
    for letter, value in given.options:
        if letter == "l":
            resources |= parse_resources(value)
    walltime = resources.pop("walltime", "")
    start = read_date("R", given.last("R")) if given.has("R") else None
    end = read_date("E", given.last("E")) if given.has("E") else None
    duration = _duration(given.last("D") or walltime)
    if duration is None:
        if start is None or end is None:
            raise CommandFault("Bad time specification(s): give -R and -E, or a duration (-D)", 1)
        duration = end - start
    elif start is None and end is not None:
        start = end - duration
    repeat, times = _repetition(given.last("r")) if given.has("r") else ("", 0)
    request = Reserve(
        duration=duration,
        start=start,
        hosts=tuple(given.operands),
        resources={} if is_maintenance else resources or {"select": "1:ncpus=1"},
        title=given.last("N"),
        repeat=repeat,
        times=times,
        users=tuple(user.partition("@")[0] for user in given.last("U").split(",") if user),
        is_maintenance=is_maintenance,
        ignores_jobs=is_maintenance,
    )
    made = call.ask(request, ReservationRecord)
    call.write(f"{made.id} {'CONFIRMED' if given.has('I') else 'UNCONFIRMED'}\n")
    return call.code


pbs_rsub = Command(
    "pbs_rsub",
    _act_rsub.__doc__,
    "pbs_rsub [-R start] [-E end] [-D duration] [-l resource_list] [-N name] [-U users]\n"
    "                [-r rrule] [-I seconds] [--hosts host ...]",
    _RSUB,
    _act_rsub,
    flags=("--hosts",),
)


def _duration(text: str) -> int | None:
    if not text:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise CommandFault(f"Bad time specification(s): {error}", 1) from None


def _repetition(rule: str) -> tuple[str, int]:
    """Return how a reservation repeats, and how often, by a recurrence rule (RFC 5545)."""
    pairs = (part.partition("=") for part in rule.strip().upper().split(";") if part)
    parts = {name: value for name, _, value in pairs}
    frequency, days = parts.pop("FREQ", ""), parts.pop("BYDAY", "")
    count = parts.pop("COUNT", "0")
    repeat = _FREQUENCIES.get(frequency, "")
    if days:
        repeat = _DAYS.get(frozenset(days.split(",")), "") if repeat else ""
    if not repeat or parts or not re.fullmatch(r"[0-9]{1,6}", count):
        raise CommandFault(
            f"the rule {rule[:80]!r} is not known here: write FREQ=HOURLY, DAILY or WEEKLY, "
            "BYDAY=MO,TU,WE,TH,FR or BYDAY=SA,SU, and COUNT=number",
            1,
        )
    return repeat, int(count)


@command(
    "pbs_rstat [-f|-F] [-B] [-S] [reservation ...]",
    {
        "B": ("", "Show only identifiers."),
        "f": ("", "Show all attributes."),
        "F": ("", "Show all attributes."),
        "S": ("", "Show the table (the default)."),
    },
)
def pbs_rstat(call: Call) -> int:
    """Show reservations."""
    found = call.ask(ReservationStatus(reservations=tuple(call.given.operands)), Reservations)
    if call.given.has("fF"):
        for each in found.reservations:
            call.write(full_text(f"Resv ID: {each.id}", reservation_attributes(each, found.server)))
    elif call.given.has("B"):
        call.write("".join(f"Resv ID: {each.id}\n" for each in found.reservations))
    elif found.reservations:
        call.write(
            "Resv ID         Queue         User     State             Start / Duration / End\n"
            + "-" * 79
            + "\n"
            + "".join(_line(each, found.now) for each in found.reservations)
        )
    for error in found.errors:
        call.complain(error.message, code_of(error.pbs))
    return call.code


def _line(kept: ReservationRecord, now: int) -> str:
    begin, end = (_moment(at, now) for at in (kept.start, kept.end))
    state = RESERVATION_STATES[kept.state][0]
    return (
        f"{cell(kept.id, 15):15} {cell(kept.name, 13):13} {cell(kept.owner, 8):8} {state:5.5} "
        f"{begin:>17.17} / {kept.duration // MICROSECONDS} / {end}\n"
    )


def _moment(at: int | None, now: int) -> str:
    """Return an instant in at most 17 characters."""
    if at is None:
        return "-"
    then, today = time.localtime(at // MICROSECONDS), time.localtime(now // MICROSECONDS)
    if then[:3] == today[:3]:
        return time.strftime("Today %H:%M", then)
    if 0 <= at - now < 7 * 86_400 * MICROSECONDS:
        return time.strftime("%a %H:%M", then)
    return time.strftime(
        "%a %b %d %H:%M" if then.tm_year == today.tm_year else "%b %d %Y %H:%M", then
    )


@command("pbs_rdel reservation ...")
def pbs_rdel(call: Call) -> int:
    """End reservations, and delete the jobs in their queues."""
    names = tuple(operands_of(call))
    try:
        outcomes = call.ask(Unreserve(reservations=names), Outcomes).outcomes
    except Refusal as refusal:
        call.complain(worded(refusal), code_of(refusal.pbs))
        return call.code
    for outcome in outcomes:
        if outcome.error is not None:
            call.complain(outcome.error.message, code_of(outcome.error.pbs))
    return call.code
