"""One policy in shadow: the batch server once more, with another policy, over the commands that reality got.

It makes its own passes.  A command takes effect at its instant, and the pass for it is made when reality made one; between
commands the shadow's own ends and timers decide.  What the shadow refuses where reality did not (the job has ended here)
has no effect here.  Reality refused before it queued: limits on how many jobs may be queued do not hold here.

Jobs that really run (``truth``) end here after the run time that reality has shown.  While that is not known the shadow
stands still: it goes only as far as the job is known to run, which is its start here plus what it has really run.  So
nothing that it has settled ever changes.  :meth:`go_on` takes it from there to the present on the assumption that jobs run
for their walltime; it uses the shadow up, so it is called on a copy.

* The real pools get another policy (qbatch policy set): the shadow keeps its own.
* Deleted, here as there: the job leaves at the instant of the command, also if it needs longer to die in reality.
* Run again (qrerun): here only if it runs here at that instant; each attempt takes the run time of the last real one.
* Host down: a job that is on that host *here* loses it.  One lost only in reality has an assumed run time (:mod:`.truth`).
* Lost: known in reality only; the job is taken to have been able to run its walltime.
* If a run time turns out shorter than what the shadow has lived through (an attempt was run again), the job ends now.
"""

from __future__ import annotations

from collections import deque

import msgspec

from qbatch.daemon.core import emulation, flow, passes, state_snapshot
from qbatch.daemon.core.execution import set_timer
from qbatch.daemon.core.job import BatchJob, BatchState
from qbatch.daemon.core.state import Core, Effect, Ending, Happening
from qbatch.daemon.handlers import verbs
from qbatch.daemon.settings import Settings
from qbatch.daemon.shadowing.mirror import Item
from qbatch.daemon.shadowing.tally import ShadowTally
from qbatch.daemon.shadowing.truth import Truth
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

_WITHOUT_LIMITS = 1 << 60


class ShadowRun:
    """A policy in shadow.

    Args:
        core: a copy of its own of the real state (:func:`copy_of`).
        truth: the run times of real jobs; None where they follow from the jobs themselves.
    """

    def __init__(self, core: Core, truth: Truth | None) -> None:
        self.core = core
        self.tally = ShadowTally(core, core.next_sequence)
        self.missed = 0
        self.given_up = 0
        self._truth = truth
        self._items: deque[Item] = deque()
        self._bytes = 0
        self._frontier = core.now
        self._until = _FOREVER
        self._waits_for_pass = False
        self._is_assuming = False
        self._unknown: dict[JobKey, BatchJob] = {}
        self._supposed: dict[JobKey, int] = {}
        self._provisional = [0] * len(core.pools)
        if truth is not None:
            core.runs = self
            self._adopt_running()

    def _adopt_running(self) -> None:
        """Jobs that run already end when reality says so; those that are being ended leave now."""
        core = self.core
        for pool in core.pools:
            for job in list(pool.running.values()):
                if job.state is BatchState.EXITING or job.ending:
                    flow.ended(core, job, flow.DELETED)
                else:
                    self._unknown[job.key] = job
        self._note()

    # How long jobs run (qbatch.daemon.core.job.Runs)

    def run_of(self, job: BatchJob) -> int:
        """Return the run time of a job that starts, ``NEVER`` while reality has not shown it."""
        truth = self._truth
        assert truth is not None
        known = truth.known.get(job.key)
        if known is not None and not known.is_assumed:
            return known.run
        if known is None and not self._is_assuming:
            return NEVER
        lived = truth.lived(job.key, self._frontier) if known is None else known.run
        self._supposed[job.key] = self.core.now + lived
        return max(job.prepared.walltime, lived)

    def status_of(self, job: BatchJob) -> int:
        """Return the exit status that a job had in reality, 0 if that is not known."""
        known = self._truth.known.get(job.key) if self._truth is not None else None
        return 0 if known is None else known.status

    def learn(self, key: JobKey) -> None:
        """The run time of a job is known now."""
        job = self._unknown.pop(key, None)
        if job is not None:
            self._set_run(job)

    def _set_run(self, job: BatchJob) -> None:
        """Give a job that runs with no end in sight the end that it has."""
        core, progress = self.core, job.under_way
        begun = progress.end_of(0, core.now)
        set_timer(core, job, progress.procs, emulation.work_of(core, job))
        if job.key in self._supposed:
            self._supposed[job.key] += begun - core.now

    # Following

    def take(self, item: Item) -> None:
        """Take a command; it has effect when its instant comes."""
        self._items.append(item)
        self._bytes += item.size

    def settle(self, frontier: int) -> None:
        """Go as far as run times are known, at most to before ``frontier``: the instant up to which reality is known."""
        self._frontier = max(self._frontier, frontier)
        self._go()
        while len(self._items) > MOST_ITEMS or self._bytes > MOST_BYTES:
            blocking = [job for job in self._unknown.values() if job.state is BatchState.RUNNING]
            if not blocking:
                return
            self._suppose(min(blocking, key=self._known_until))
            self.given_up += 1
            self._go()

    def go_on(self, frontier: int) -> None:
        """Go to before ``frontier`` on the assumption that a job whose run time is not known runs for its walltime."""
        self._frontier = max(self._frontier, frontier)
        self._is_assuming = True
        for job in list(self._unknown.values()):
            self._suppose(job)
        self._go()

    @property
    def is_settled(self) -> bool:
        """Whether it is where reality is: it waits for no run time."""
        return not self._unknown and not self._items

    def records(self, at: int) -> list[ShadowRecord]:
        """Return what this policy would have done by an instant, pool by pool."""
        provisional = list(self._provisional)
        for key, certain in self._supposed.items():
            job = self.core.find(key)
            if job is not None and at > certain:
                provisional[self.core.queues[job.queue].pool] += 1
        return self.tally.records(at, provisional, is_real=False)

    def _suppose(self, job: BatchJob) -> None:
        """Let a job run for its walltime, whatever reality will say."""
        was, self._is_assuming = self._is_assuming, True
        del self._unknown[job.key]
        self._set_run(job)
        self._is_assuming = was

    def _known_until(self, job: BatchJob) -> int:
        """Return the instant before which a running job is known not to end."""
        assert self._truth is not None
        lived = self._truth.lived(job.key, self._frontier) * job.prepared.request.procs
        return job.under_way.end_of(lived, self.core.now)

    def _go(self) -> None:
        running = (job for job in self._unknown.values() if job.state is BatchState.RUNNING)
        self._until = min((self._known_until(job) for job in running), default=_FOREVER)
        while self._step():
            pass

    def _step(self) -> bool:
        """Handle one instant, if it is known all that falls before it; tell whether."""
        core = self.core
        item = self._items[0] if self._items else None
        limit = self._frontier if item is None else item.at
        due = passes.next_due(core)
        is_due = due is not None and due < min(limit, _FOREVER)
        # Commands of one instant have one pass, which follows them; so has what they change at other instants.
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
                request = msgspec.structs.replace(request, spec=msgspec.structs.replace(request.spec, queue=item.queue))
        if not isinstance(request, PolicySet):  # that is for the real pools: a shadow keeps its policy
            try:
                assert item.actor is not None, "a command has its asker"
                verbs.carry_out(core, item.actor, request)
            except Refusal:
                self.missed += item.is_new
        if self._truth is not None:
            core.faults.clear()  # they have struck already: the exit statuses of reality tell of it
        self._waits_for_pass = item.is_pass_due

    def _note(self) -> None:
        """Note what has happened in the shadow."""
        outbox = self.core.take_effects()
        if not outbox:
            return
        self.tally.take(outbox)
        if self._truth is not None:
            for effect in outbox:
                self._note_one(effect)

    def _note_one(self, effect: Effect) -> None:
        if isinstance(effect, Ending):
            self._unknown.pop(effect.key, None)
            certain = self._supposed.pop(effect.key, None)
            if certain is not None and (effect.record.ended or 0) > certain:
                self._provisional[self.core.queues[effect.record.queue].pool] += 1
        elif isinstance(effect, Happening) and effect.key is not None and effect.key.member != ARRAY:
            job = self.core.find(effect.key)
            if effect.kind == "requeued":
                self._unknown.pop(effect.key, None)
                self._supposed.pop(effect.key, None)
            elif (
                job is not None
                and job.state is BatchState.RUNNING
                and effect.kind in ("started", "resumed")
                and job.under_way.work < 0
            ):
                self._unknown[effect.key] = job
                self._until = min(self._until, self._known_until(job))


def copy_of(core: Core, data: bytes, policy: str) -> Core:
    """Return a copy of the real state in which a policy decides in every pool; its jobs are emulated.

    ``data``: the state as :func:`qbatch.daemon.core.state_snapshot.dump` writes it.  A pool that has this policy really keeps its
    plan; in another the policy begins with what runs and waits there.

    Raises:
        QbatchError: a pool refuses the policy.
    """
    copy = state_snapshot.load(data, core.settings, core.load_policy)
    copy.settings = _settings(core.settings, policy)
    for pool, settings in zip(copy.pools, copy.settings.pools, strict=True):
        other = core.load_policy(policy)
        pool.settings = settings
        if name_of(other) != pool.name_of_policy:
            pool.policy = other
            pool.engine.exchange_policy(other)
            pool.events.append(Woken())
            copy.is_dirty = True
    for queue in copy.settings.queues:
        copy.queues[queue.name].settings = queue
    return copy


def _settings(settings: Settings, policy: str) -> Settings:
    replace = msgspec.structs.replace
    return replace(
        settings,
        executor="emulated",
        pools=tuple(replace(pool, policy=policy) for pool in settings.pools),
        queues=tuple(replace(queue, max_queued=None, max_queued_per_user=None) for queue in settings.queues),
        max_jobs=_WITHOUT_LIMITS,
        max_jobs_per_user=None,
        mail_command=(),
    )
