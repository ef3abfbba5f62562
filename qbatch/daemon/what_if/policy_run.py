"""A what-if policy: the batch server once more, with another policy, over the commands that the
real server got.

It makes its own passes.  A command takes effect at its instant, and the pass for it is made when
the real server made one; between commands its own ends and timers decide.  A command that it
refuses and the real server did not (the job has ended here) has no effect here.  The real server
refused jobs before they were queued: limits on queued jobs do not hold here.

Jobs that really run (``known_runs``) end here after their real run time.  While that is not known,
the run stands still: it goes only as far as the job is known to run, which is its start here plus
what it has really run.  So nothing that it has settled ever changes.  :meth:`PolicyRun.go_on` takes
it from there to the present on the assumption that jobs run for their walltime; it uses the run up,
so it is called on a copy.

* The real pools get another policy (qbatch policy set): the what-if policy stays.
* Deleted, here as there: the job leaves at the instant of the command, even if it really needs
  longer to end.
* Run again (qrerun): here only if it runs here at that instant; each attempt takes the run time of
  the last real one.
* Host down: a job that is on that host *here* loses it.  A job that only really lost it has an
  assumed run time.
* Lost: this happens only in reality; the job is assumed to have been able to run for its walltime.
* If a run time turns out shorter than what the run has gone through (an attempt was run again), the
  job ends now.
"""

from __future__ import annotations

from collections import deque

import msgspec

from qbatch.daemon.core import emulation, flow, passes, state_snapshot
from qbatch.daemon.core.execution import set_timer
from qbatch.daemon.core.job import BatchJob, BatchState
from qbatch.daemon.core.state import Core, Ending, Happening
from qbatch.daemon.handlers import verbs
from qbatch.daemon.what_if.replica import Item, KnownRuns
from qbatch.daemon.what_if.statistics import PolicyStatistics
from qbatch.model.events import Woken
from qbatch.model.progress import NEVER
from qbatch.planning.policy import name_of
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import ARRAY, JobKey
from qbatch.wire.records import ShadowRecord
from qbatch.wire.requests import PolicySet, Submit

_FOREVER = 1 << 61
"""An instant that does not come."""

MOST_ITEMS = 200_000
"""Commands that may wait for run times; beyond it walltimes stand for them."""

MOST_BYTES = 1 << 26
"""Bytes of such commands."""


class PolicyRun:
    """The run of a what-if policy.

    Args:
        core: a copy of its own of the real state (:func:`copy_of`).
        known_runs: the run times of real jobs; None if they follow from the jobs themselves.
    """

    def __init__(self, core: Core, known_runs: KnownRuns | None) -> None:
        self.core = core
        self.statistics = PolicyStatistics(core, core.next_sequence)
        self.missed = self.given_up = 0
        self._known_runs = known_runs
        self._items: deque[Item] = deque()
        self._bytes = 0
        self._frontier, self._until = core.now, _FOREVER
        self._waits_for_pass = self._is_assuming = False
        self._unknown: dict[JobKey, BatchJob] = {}
        # Jobs with an assumed run time, and the instants until which it is certain.
        self._supposed: dict[JobKey, int] = {}
        self._provisional = [0] * len(core.pools)
        if known_runs is not None:
            core.runs = self
            # Jobs that run already end when the real ones do; those that are being ended leave now.
            for pool in core.pools:
                for job in list(pool.running.values()):
                    if job.state is BatchState.EXITING or job.ending:
                        flow.ended(core, job, flow.DELETED)
                    else:
                        self._unknown[job.key] = job
            self._note()

    # How long jobs run (qbatch.daemon.core.job.Runs)

    def run_of(self, job: BatchJob) -> int:
        """Return the run time of a job that starts, ``NEVER`` while it is not known."""
        runs = self._known_runs
        assert runs is not None
        known = runs.known.get(job.key)
        if known is not None and not known.is_assumed:
            return known.run
        if known is None and not self._is_assuming:
            return NEVER
        lived = runs.lived(job.key, self._frontier) if known is None else known.run
        self._supposed[job.key] = self.core.now + lived
        return max(job.prepared.walltime, lived)

    def status_of(self, job: BatchJob) -> int:
        """Return the exit status that a job really had, 0 if it is not known."""
        known = self._known_runs.known.get(job.key) if self._known_runs is not None else None
        return 0 if known is None else known.status

    def learn(self, key: JobKey, *, is_assumed: bool = False) -> None:
        """Give a running job of which the end was not known its run time; if ``is_assumed``, its
        walltime."""
        job = self._unknown.pop(key, None)
        if job is None:
            return
        core, progress = self.core, job.under_way
        begun = progress.end_of(0, core.now)
        was, self._is_assuming = self._is_assuming, self._is_assuming or is_assumed
        set_timer(core, job, progress.procs, emulation.work_of(core, job))
        self._is_assuming = was
        if key in self._supposed:
            self._supposed[key] += begun - core.now

    # Following

    def take(self, item: Item) -> None:
        """Take a command, which has effect when its instant comes."""
        self._items.append(item)
        self._bytes += item.size

    def settle(self, frontier: int) -> None:
        """Go as far as run times are known, at most to before ``frontier``, up to which the real
        server is followed."""
        self._frontier = max(self._frontier, frontier)
        self._go()
        while len(self._items) > MOST_ITEMS or self._bytes > MOST_BYTES:
            blocking = [job for job in self._unknown.values() if job.state is BatchState.RUNNING]
            if not blocking:
                return
            self.learn(min(blocking, key=self._known_until).key, is_assumed=True)
            self.given_up += 1
            self._go()

    def go_on(self, frontier: int) -> None:
        """Go to before ``frontier`` on the assumption that a job with an unknown run time runs for
        its walltime."""
        self._frontier = max(self._frontier, frontier)
        self._is_assuming = True
        for key in list(self._unknown):
            self.learn(key)
        self._go()

    @property
    def is_settled(self) -> bool:
        """Whether it has come as far as the real server: it waits for no run time."""
        return not self._unknown and not self._items

    def records(self, at: int) -> list[ShadowRecord]:
        """Return the results of this policy up to an instant for each pool."""
        provisional = list(self._provisional)
        for key, certain in self._supposed.items():
            job = self.core.find(key)
            if job is not None and at > certain:
                provisional[self.core.queues[job.queue].pool] += 1
        return self.statistics.records(at, provisional, is_real=False)

    def _known_until(self, job: BatchJob) -> int:
        """Return the instant before which a running job is known not to end."""
        assert self._known_runs is not None
        lived = self._known_runs.lived(job.key, self._frontier) * job.prepared.request.procs
        return job.under_way.end_of(lived, self.core.now)

    def _go(self) -> None:
        running = (job for job in self._unknown.values() if job.state is BatchState.RUNNING)
        self._until = min((self._known_until(job) for job in running), default=_FOREVER)
        while self._step():
            pass

    def _step(self) -> bool:
        """Handle one instant, if all that falls before it is known; return whether it was
        handled."""
        core = self.core
        item = self._items[0] if self._items else None
        limit = self._frontier if item is None else item.at
        due = passes.next_due(core)
        is_due = due is not None and due < min(limit, _FOREVER)
        # The commands of one instant have one pass, which follows them, and so have their changes
        # at other instants.
        if core.is_dirty and (is_due or not self._waits_for_pass) and core.now < limit:
            at, item = core.now, None
        elif is_due and due is not None:
            at, item = due, None
        elif item is not None:
            at = item.at
        else:
            return False
        if at >= self._until:
            return False
        if item is None:
            passes.advance(core, at)
            self._waits_for_pass = False
        else:
            self._items.popleft()
            self._bytes -= item.size
            self._apply(item)
        self._note()
        return True

    def _apply(self, item: Item) -> None:
        core = self.core
        core.now = max(core.now, item.at)
        if item.request is None:
            due = passes.next_due(core)
            if core.is_dirty or (due is not None and due <= core.now):
                passes.advance(core, core.now)
            self._waits_for_pass = False
            return
        request = item.request
        if isinstance(request, Submit):
            if not item.is_new and not core.faults:
                return
            core.next_sequence = item.sequence
            if item.queue:
                request = msgspec.structs.replace(
                    request, spec=msgspec.structs.replace(request.spec, queue=item.queue)
                )
        if not isinstance(request, PolicySet):  # it is for the real pools
            try:
                assert item.actor is not None, "every command has a user"
                verbs.carry_out(core, item.actor, request)
            except Refusal:
                self.missed += item.is_new
        if self._known_runs is not None:
            core.faults.clear()  # they have struck already: the real exit statuses show it
        self._waits_for_pass = item.is_pass_due

    def _note(self) -> None:
        """Take note of what has happened at this instant."""
        outbox = self.core.take_effects()
        if outbox:
            self.statistics.take(outbox)
        if self._known_runs is None:
            return
        for effect in outbox:
            if isinstance(effect, Ending):
                self._unknown.pop(effect.key, None)
                certain = self._supposed.pop(effect.key, None)
                if certain is not None and (effect.record.ended or 0) > certain:
                    self._provisional[self.core.queues[effect.record.queue].pool] += 1
            elif (
                not isinstance(effect, Happening)
                or effect.key is None
                or effect.key.member == ARRAY
            ):
                continue
            elif effect.kind == "requeued":
                self._unknown.pop(effect.key, None)
                self._supposed.pop(effect.key, None)
            elif effect.kind in ("started", "resumed"):
                job = self.core.find(effect.key)
                if job is not None and job.state is BatchState.RUNNING and job.under_way.work < 0:
                    self._unknown[effect.key] = job
                    self._until = min(self._until, self._known_until(job))


def copy_of(core: Core, data: bytes, policy: str) -> Core:
    """Return a copy of the real state in which a policy decides in every pool; its jobs are
    emulated.

    ``data``: the state as :func:`qbatch.daemon.core.state_snapshot.dump` writes it.  A pool that
    really has this policy keeps its plan; in another the policy begins with what runs and waits
    there.

    Raises:
        QbatchError: a pool refuses the policy.
    """
    replace, settings = msgspec.structs.replace, core.settings
    copy = state_snapshot.load(data, settings, core.load_policy)
    copy.settings = replace(
        settings,
        executor="emulated",
        max_jobs=1 << 60,
        max_jobs_per_user=None,
        mail_command=(),
        pools=tuple(replace(pool, policy=policy) for pool in settings.pools),
        queues=tuple(
            replace(queue, max_queued=None, max_queued_per_user=None) for queue in settings.queues
        ),
    )
    for pool, own in zip(copy.pools, copy.settings.pools, strict=True):
        other = core.load_policy(policy)
        pool.settings = own
        if name_of(other) != pool.name_of_policy:
            pool.policy = other
            pool.engine.exchange_policy(other)
            pool.events.append(Woken())
            copy.is_dirty = True
    for queue in copy.settings.queues:
        copy.queues[queue.name].settings = queue
    return copy
