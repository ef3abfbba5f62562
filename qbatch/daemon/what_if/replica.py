"""The replica of the real server, made from its journal as recovery makes it, and the run times
that are known from it."""

from __future__ import annotations

from typing import NamedTuple

from qbatch.daemon import journal_entry
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Actor, Core, Effect, Ending, Happening
from qbatch.daemon.executors.attempt import LOST
from qbatch.daemon.what_if.statistics import PolicyStatistics
from qbatch.wire.identifiers import ARRAY, JobKey
from qbatch.wire.requests import Request, Submit


class KnownRun(NamedTuple):
    """How long a job ran (microseconds) and its exit status; ``is_assumed``: it would have run on
    for an unknown time."""

    run: int
    status: int
    is_assumed: bool


class KnownRuns:
    """The run times of jobs that really run: none is known before its job has ended.

    * A job that ended by itself, or was killed at its walltime, has a known run time from its end
      on.
    * A job that runs has run for some time already; only that much is known.
    * If a job was deleted, never ran, or ended early by a host, a loss or a signal of the server,
      its run time will never be known.  It is assumed to be the walltime, or what the job has run
      if that is longer.
    * A job that is run again begins anew: its last attempt counts.

    Args:
        core: the replica of the real server, with the jobs that run at the beginning.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._running: dict[JobKey, BatchJob] = {
            key: job for pool in core.pools for key, job in pool.running.items()
        }
        self.known: dict[JobKey, KnownRun] = {}

    def lived(self, key: JobKey, at: int) -> int:
        """Return how long a job has really run by an instant, 0 if it has not started."""
        job = self._running.get(key)
        return 0 if job is None else job.walltime_used(at)

    def take(self, outbox: list[Effect]) -> list[JobKey]:
        """Note what has really happened; return the jobs of which the run time has become known."""
        news = []
        for effect in outbox:
            if (
                not isinstance(effect, Ending | Happening)
                or effect.key is None
                or effect.key.member == ARRAY
            ):
                continue
            key = effect.key
            if isinstance(effect, Ending):
                job, status = self._running.pop(key, None), effect.record.exit_status or 0
                if job is None:
                    self.known[key] = KnownRun(0, 0, True)
                else:
                    is_cut = job.ending in ("deleted", "host", "rerun") or status == LOST
                    self.known[key] = KnownRun(
                        job.walltime_used(self._core.now), 0 if is_cut else status, is_cut
                    )
                news.append(key)
            elif effect.kind == "started" and (started := self._core.find(key)) is not None:
                self._running[key] = started
            elif effect.kind == "requeued":
                self._running.pop(key, None)
        return news


class Item(NamedTuple):
    """One entry for the what-if policies: a command or an arrival of the log, or (no ``request``) a
    pass of the real server.

    ``sequence``: the number that a submission gets.  ``is_new``: it gave a job.  ``queue``: the
    queue that it got, if that differs from the named one.  ``is_pass_due``: the real server makes a
    pass for it, which comes as a later item.  ``size``: bytes of the entry.
    """

    at: int
    actor: Actor | None
    request: Request | None
    sequence: int
    is_new: bool
    queue: str
    is_pass_due: bool
    size: int


class Replica:
    """Follows the real server.

    Args:
        core: the real server's state when the what-if policies begin; it is used up.
    """

    def __init__(self, core: Core) -> None:
        core.take_effects()
        self.core = core
        self.since = core.now
        self.frontier = core.now
        self.statistics = PolicyStatistics(core, core.next_sequence)
        self.known_runs = KnownRuns(core) if core.settings.executor != "emulated" else None

    def follow(self, data: bytes) -> tuple[Item | None, list[JobKey]]:
        """Apply an entry; return the item for the what-if policies, and the jobs of which the run
        time has become known."""
        core, entry = self.core, journal_entry.read(data)
        sequence = core.next_sequence
        journal_entry.give(core, entry)
        outbox = core.take_effects()
        self.statistics.take(outbox)
        self.frontier = max(self.frontier, core.now)
        news = self.known_runs.take(outbox) if self.known_runs is not None else []
        if entry.report is not None or entry.kind in "ks":
            return None, news
        is_new, queue = core.next_sequence > sequence, ""
        job = core.jobs.get(sequence) if is_new else None
        if job is not None and isinstance(entry.request, Submit):
            named = entry.request.spec.queue.partition("@")[0] or core.settings.default_queue
            queue = "" if job.queue == named else job.queue
        return Item(
            core.now, entry.actor, entry.request, sequence, is_new, queue, core.is_dirty, len(data)
        ), news
