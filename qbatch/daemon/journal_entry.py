"""The journal's entries: the inputs of the core, each with its instant, as MessagePack arrays that
begin with a letter.

``c``: a command with its asker.  ``k``: a further step of the oldest unfinished command.  ``r``: a
report of an executor. ``p``: a pass.  ``l``: an arrival of the workload log.  ``s``: another
configuration.  The same entries in the same order give the same state.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from qbatch.daemon.config import parse_config
from qbatch.daemon.core import flow, passes, steps
from qbatch.daemon.core.reconfigure import reconfigure
from qbatch.daemon.core.state import OWNER, Actor, Core
from qbatch.daemon.executors.attempt import Ended, Report, Started
from qbatch.daemon.handlers import submit, verbs
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import AnyRequest, Order, Request, Submit

encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_decode_request = msgspec.json.Decoder(AnyRequest).decode


def command(at: int, actor: Actor, body: bytes) -> bytes:
    """Return the entry of a command."""
    return encode(("c", at, *actor, body))


def report(at: int, what: Report) -> bytes:
    """Return the entry of a report."""
    if isinstance(what, Started):
        return encode(("r", at, "started", what.key, what.session, what.at))
    return encode(
        ("r", at, "ended", what.key, what.status, what.at, what.why, what.used, what.undelivered)
    )


def one_pass(at: int) -> bytes:
    """Return the entry of a pass."""
    return encode(("p", at))


def step(at: int, *, is_last: bool = False) -> bytes:
    """Return the entry of a step of the oldest unfinished command; ``is_last``: the command is
    given up instead."""
    return encode(("k", at, is_last))


def reconfiguration(at: int, settings: str) -> bytes:
    """Return the entry of another configuration, as text."""
    return encode(("s", at, settings))


def arrival(at: int, actor: Actor, body: bytes, place: tuple[int, str, int]) -> bytes:
    """Return the entry of an arrival of the log; ``place``: how many jobs have arrived, which log,
    its offset."""
    return encode(("l", at, *actor, body, *place))


def arrive(core: Core, actor: Actor, request: Submit, place: tuple[int, str, int]) -> None:
    """Give an arrival of a source to the core.

    Raises:
        Refusal: the job is refused; the arrival counts all the same.
    """
    core.log_arrived, core.log_id, core.log_offset = place
    owner = request.spec.extra.get(OWNER)
    try:
        key = steps.whole(submit.enter(core, actor, request))
    except Refusal:
        if owner is not None:
            core.source.refused(core.now, int(owner))
        raise
    if owner is not None:
        core.source.arrived(core.now, key.sequence, int(owner))


class JournalEntry(NamedTuple):
    """A decoded entry.  ``place``: of an arrival of the log; ``report``: of an executor."""

    kind: str
    at: int
    actor: Actor | None = None
    request: Request | None = None
    place: tuple[int, str, int] | None = None
    report: Report | None = None
    settings: str = ""
    is_last: bool = False


def read(data: bytes) -> JournalEntry:
    """Decode an entry."""
    entry = _decode(data)
    kind, at = entry[0], entry[1]
    if kind in "cl":
        place = tuple(entry[7:10]) if kind == "l" else None
        return JournalEntry(kind, at, Actor(*entry[2:6]), _decode_request(entry[6]), place)
    if kind == "r":
        return JournalEntry(
            kind, at, report=Started(*entry[3:6]) if entry[2] == "started" else Ended(*entry[3:9])
        )
    if kind == "s":
        return JournalEntry(kind, at, settings=entry[2])
    return JournalEntry(kind, at, is_last=kind == "k" and entry[2])


def apply(core: Core, data: bytes) -> None:
    """Give an entry to the core again, as it was given the first time."""
    give(core, read(data))


def give(core: Core, entry: JournalEntry) -> None:
    """Give a decoded entry to the core again, as it was given the first time."""
    if entry.kind == "p":
        passes.advance(core, entry.at)
        return
    core.now = max(core.now, entry.at)
    try:
        if entry.report is not None:
            flow.reported(core, entry.report)
        elif entry.kind == "s":
            settings = parse_config(entry.settings, "the configuration in the journal")
            steps.begin(core, reconfigure(core, settings))
        elif entry.kind == "k" and entry.is_last:
            del core.works[0]
        elif entry.kind == "k":
            steps.go_on(core)
        elif entry.place is not None:
            arrive(core, entry.actor, entry.request, entry.place)  # type: ignore[arg-type]
        else:
            verbs.begin(core, entry.actor, entry.request)  # type: ignore[arg-type]
    except Refusal as error:
        # It was refused the first time too: an arrival of the log, or a fault on demand that
        # counted itself.  Any other refusal would lose an acknowledged command.
        if entry.kind != "l" and (entry.kind, error.code) != ("c", "refused-by-fault"):
            raise


def jobs_of(core: Core, request: Request) -> tuple[str, ...]:
    """Return the identifiers of the jobs that a command concerns, which has just been given to the
    core."""
    if isinstance(request, Submit):
        return (str(core.next_sequence - 1),)
    if isinstance(request, Order):
        return request.first, request.second
    return getattr(request, "jobs", ())
