"""The mirror: the real server again, from its journal, as recovery makes it; and what of it the shadows are told."""

from __future__ import annotations

from typing import NamedTuple

from qbatch.daemon import journal_entry
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.shadowing.tally import ShadowTally
from qbatch.daemon.shadowing.truth import Truth
from qbatch.wire.identifiers import JobKey
from qbatch.wire.requests import Request, Submit


class Item(NamedTuple):
    """What a shadow is told of one entry: a command (or an arrival of the log), or that reality made a pass.

    ``sequence``: the number that a submission gets.  ``is_new``: it gave a job.  ``queue``: the queue that it got, if that
    is another than it named.  ``is_pass_due``: reality makes a pass for it, of which the shadow will be told; if not, none
    is to be waited for.  ``size``: bytes of the entry.
    """

    at: int
    actor: Actor | None
    request: Request | None
    sequence: int
    is_new: bool
    queue: str
    is_pass_due: bool
    size: int


class Mirror:
    """Follows reality.

    Args:
        core: the real server's state when the shadows begin; it is used up.
    """

    def __init__(self, core: Core) -> None:
        core.take_effects()
        self.core = core
        self.since = core.now
        self.frontier = core.now
        self.tally = ShadowTally(core, core.next_sequence)
        self.truth = Truth(core) if core.settings.executor != "emulated" else None

    def follow(self, data: bytes) -> tuple[Item | None, list[JobKey]]:
        """Apply an entry; return what the shadows are to be told, and the jobs whose run time is known since."""
        core = self.core
        said = journal_entry.read(data)
        sequence = core.next_sequence
        journal_entry.give(core, said)
        outbox = core.take_effects()
        self.tally.take(outbox)
        self.frontier = max(self.frontier, core.now)
        news = self.truth.take(outbox) if self.truth is not None else []
        if said.report is not None or said.kind in "ks":
            return None, news
        is_new = core.next_sequence > sequence
        queue = self._queue_of(said.request, sequence) if is_new else ""
        return Item(core.now, said.actor, said.request, sequence, is_new, queue, core.is_dirty, len(data)), news

    def _queue_of(self, request: Request | None, sequence: int) -> str:
        job = self.core.jobs.get(sequence)
        if job is None or not isinstance(request, Submit):
            return ""
        named = request.spec.queue.partition("@")[0] or self.core.settings.default_queue
        return "" if job.queue == named else job.queue
