"""Commands about live jobs: delete, hold, release, move, exchange, run again, start by force,
message, signal."""

from __future__ import annotations

import re
import signal as signals

from qbatch.daemon.core import admission, explain, flow, passes, run_limits, submission
from qbatch.daemon.core.execution import executor_of
from qbatch.daemon.core.job import BatchJob, BatchState
from qbatch.daemon.core.state import Actor, Append, Core, PoolState
from qbatch.daemon.core.steps import Steps, is_enough, members_of
from qbatch.daemon.handlers.verbs import each, handles, owned, wrong_state
from qbatch.model.errors import suggestion
from qbatch.model.events import Forced
from qbatch.model.machine import fold_names
from qbatch.planning.windows import blocked_hosts
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcome, Outcomes


@handles(requests.Delete)
def delete(core: Core, actor: Actor, request: requests.Delete) -> Steps[Outcomes]:
    """End each named job (qdel): a waiting one leaves, a running one is stopped."""
    grace = core.settings.kill_delay
    if request.grace is not None:
        if not 0 <= request.grace <= 86_400:
            raise Refusal("bad-value", "the delay is not from 0 to 86400 seconds")
        grace = round(request.grace * 1e6)

    def act(name: str) -> Steps[None] | None:
        try:
            job = owned(core, actor, name)
        except Refusal as error:
            if error.code == "finished-job" and request.with_history:
                return None
            raise
        text = request.message[:200]
        return flow.delete(
            core, job, is_forced=request.is_forced, grace=grace, message=text, by=actor.user
        )

    return each(core, request.jobs, act)


def _live_with_members(core: Core, job: BatchJob) -> Steps[list[BatchJob]]:
    """Return a job; of an array, the array and its jobs that have not ended, once the commands
    before this one are done."""
    members = yield from members_of(core, job)
    return [job, *members] if job.is_array else [job]


@handles(requests.Hold)
def hold(core: Core, actor: Actor, request: requests.Hold) -> Steps[Outcomes]:
    """Hold each named job (qhold): a waiting one leaves the policy's queue; a running one is held
    if it is ever queued again."""
    bits = submission.bits_of_hold(actor, request.kinds, "place and lift")

    def act(name: str) -> Steps[None]:
        job = owned(core, actor, name)
        if not bits:
            return
        for one in (yield from _live_with_members(core, job)):
            if is_enough(core):
                yield
            if one.is_over:
                continue
            one.hold |= bits
            one.modified = core.now
            one.comment = request.comment[:200] or one.comment
            if not one.is_array and not one.holds_hosts:
                run_limits.withdraw(core, one)
                core.set_state(one, "held")
        core.happened("held", job.key)

    return each(core, request.jobs, act)


@handles(requests.Release)
def release(core: Core, actor: Actor, request: requests.Release) -> Steps[Outcomes]:
    """Take holds away from each named job (qrls); it ranks from now."""
    bits = submission.bits_of_hold(actor, request.kinds, "place and lift")

    def act(name: str) -> Steps[None]:
        job = owned(core, actor, name)
        for one in (yield from _live_with_members(core, job)):
            if is_enough(core):
                yield
            if one.is_over:
                continue
            one.hold &= ~bits
            one.modified = core.now
            if not one.is_array and one.state is BatchState.HELD and not one.hold:
                flow.settle(core, one)
        core.happened("released", job.key)

    return each(core, request.jobs, act)


@handles(requests.Move)
def move(core: Core, actor: Actor, request: requests.Move) -> Steps[Outcomes]:
    """Put each named job, which must wait, into a queue that takes jobs of its owner (qmove),
    unless it is there already."""
    queue = core.queue(request.destination.partition("@")[0] or core.settings.default_queue)
    if queue.settings.destinations:
        raise Refusal(
            "queue-access",
            f"queue {queue.settings.name} is a routing queue; name an execution queue",
        )

    def act(name: str) -> Steps[None]:
        job = owned(core, actor, name)
        members = yield from members_of(core, job)
        if job.is_subjob or any(each.holds_hosts for each in members):
            raise wrong_state(core, job)
        submission.check_server(core, request.destination.partition("@")[2], job.spec.host)
        if job.queue == queue.settings.name:
            return
        prepared = submission.prepare(core, job.spec, queue)
        owner = Actor(job.uid, job.user, job.group, "user")
        submission.check_queue(core, owner, queue, prepared, is_new=False)
        admission.check_deadline(core, queue, prepared, job.deadline)
        for one in [*members, job] if job.is_array else [job]:
            if is_enough(core):
                yield
            if not (one.is_over or one.holds_hosts):
                flow.change(
                    core, one, submission.of_task(prepared, one.member), queue.settings.name
                )
        core.happened("moved", job.key, queue.settings.name)

    return each(core, request.jobs, act)


@handles(requests.Order)
def order(core: Core, actor: Actor, request: requests.Order) -> Outcomes:
    """Exchange two waiting jobs of one queue (qorder)."""
    first, second = owned(core, actor, request.first), owned(core, actor, request.second)
    done = Outcomes(outcomes=(Outcome(name=request.first), Outcome(name=request.second)))
    if first is second and first.is_waiting:
        return done
    for job in (first, second):
        if job.state is not BatchState.QUEUED or not job.is_plain:
            raise wrong_state(core, job)
        if job.run_limit:
            raise wrong_state(
                core, job, f"it has no place yet: {explain.reason_for(core, job).text}"
            )
    if first.queue != second.queue:
        raise Refusal(
            "bad-request", f"the jobs are in different queues: {first.queue} and {second.queue}"
        )
    run_limits.exchange(core, first, second)
    return done


@handles(requests.Rerun)
def rerun(core: Core, actor: Actor, request: requests.Rerun) -> Steps[Outcomes]:
    """Stop each named job and queue it again, from its beginning (qrerun)."""

    def act(name: str) -> Steps[None]:
        job = owned(core, actor, name)
        members = yield from members_of(core, job)
        running = [
            one for one in members if one.is_running_or_suspended and one.ending != "deleted"
        ]
        if not running:
            raise wrong_state(core, job)
        if not job.spec.is_rerunnable and not request.is_forced:
            identifier = core.id_of(job.key)
            raise Refusal("not-rerunnable", f"Job is not rerunnable {identifier}", identifier)
        for one in running:
            if is_enough(core):
                yield
            if one.is_running_or_suspended and one.ending != "deleted":
                flow.stop_running(core, one, "rerun", f"run again by {actor.user}")

    return each(core, request.jobs, act)


@handles(requests.ForceStart)
def force_start(core: Core, actor: Actor, request: requests.ForceStart) -> Steps[Outcomes]:
    """Start each named job whatever the policy would do (qrun), on the named hosts, if there are
    any.

    The engine checks such a start like one of the policy: the resources must be free.  The pool
    makes its passes before the answer, which has the job's state then: first a pass for what is due
    by now, then the one in which the job starts.  The policy then plans anew from what runs;
    promises to other jobs that this breaks are recorded as broken.
    """

    def act(name: str) -> str:
        job = core.live(name)
        pool = core.pool_of(job)
        hosts = _places(core, pool, request.hosts)
        if job.is_array:
            raise wrong_state(
                core,
                job,
                f"name one of its jobs, such as {core.id_of(job.key).replace('[]', '[1]')}",
            )
        if job.state is not BatchState.QUEUED or job.run_limit:
            raise wrong_state(core, job, explain.reason_for(core, job).text)
        passes.make_pass(core, pool)
        # The policy itself has started it, or refused it.
        if (job := core.live(name)).state is not BatchState.QUEUED:
            return job.state.letter
        if job.row < 0:
            raise wrong_state(
                core, job, "a command under way has taken it from the policy; try again in a second"
            )
        allocation = pool.engine.allocation_for(job.row, hosts)
        if not allocation:
            raise _not_free(core, pool, job, hosts)
        pool.events.append(Forced(job.row, allocation))
        passes.make_pass(core, pool)
        job.comment = f"started by {actor.user} with qrun, not by policy {pool.name_of_policy}"
        return job.state.letter

    return each(core, request.jobs, act)


def _places(core: Core, pool: PoolState, names: tuple[str, ...]) -> frozenset[int] | None:
    """Return the places in the pool of the named hosts; None if no host is named."""
    if not names:
        return None
    for name in names:
        if name not in core.host_places:
            raise Refusal(
                "unknown-host", f"Unknown node {name[:80]}{suggestion(name[:80], core.host_places)}"
            )
        if core.pools[core.host_places[name][0]] is not pool:
            raise Refusal(
                "bad-value", f"host {name} is not in pool {pool.settings.name}, where the job waits"
            )
    return frozenset(core.host_places[name][1] for name in names)


def _not_free(core: Core, pool: PoolState, job: BatchJob, hosts: frozenset[int] | None) -> Refusal:
    view, request = pool.engine.view(), job.prepared.request
    places = range(len(pool.machine.hosts)) if hosts is None else sorted(hosts)
    free = sum(view.free[place] for place in places)
    where = (
        ""
        if hosts is None
        else f" on {', '.join(pool.machine.hosts[place].name for place in places)}"
    )
    blocked = blocked_hosts(view.windows, view.machine, view.jobs[job.row], view.now)
    if blocked := blocked.intersection(places):
        names = ", ".join(fold_names([pool.machine.hosts[place].name for place in sorted(blocked)]))
        return Refusal(
            "no-room",
            "Resources temporarily unavailable: it cannot start now: reservations keep it from "
            f"{names} during its walltime",
            core.id_of(job.key),
        )
    kept = (
        f"; what {len(view.suspended)} suspended jobs had is kept for them"
        if view.suspended
        else ""
    )
    text = (
        f"it cannot start now: it asks for {request.procs} processors, {free} are free{where}{kept}"
    )
    numbers = {"procs": request.procs, "free": free}
    return Refusal(
        "no-room",
        f"Resources temporarily unavailable: {text}",
        core.id_of(job.key),
        numbers=numbers,
    )


@handles(requests.Message)
def message(core: Core, actor: Actor, request: requests.Message) -> Steps[Outcomes]:
    """Append a line to the files of each named job, which must run (qmsg)."""

    def act(name: str) -> None:
        job = owned(core, actor, name)
        if not job.holds_hosts:
            raise wrong_state(core, job)
        core.outbox.append(Append(job.key, request.files, request.text[:4096]))

    return each(core, request.jobs, act)


@handles(requests.Signal)
def signal(core: Core, actor: Actor, request: requests.Signal) -> Steps[Outcomes]:
    """Send a signal to each named job, which must run (qsig); ``suspend`` and ``resume`` stop it
    and let it go on.

    CONT to a suspended job is ``resume``: no signal wakes a job that the policy has suspended as
    well.
    """
    word = request.signal.strip().lower()

    def act(name: str) -> Steps[None]:
        job = owned(core, actor, name)
        members = yield from members_of(core, job)
        running = [one for one in members if one.is_running_or_suspended]
        if not running:
            raise wrong_state(core, job)
        number = 0 if word in ("suspend", "resume") else _signal_number(request.signal)
        for one in running:
            if is_enough(core):
                yield
            if not one.is_running_or_suspended:
                continue
            if word == "suspend":
                flow.suspend(core, one)
            elif word == "resume" or (
                number == signals.SIGCONT and one.state is BatchState.SUSPENDED
            ):
                flow.resume(core, one)
            elif number and executor_of(core).send(core, one, number):
                one.ending = "signal"
                flow.ended(core, one, 256 + number)

    return each(core, request.jobs, act)


def _signal_number(name: str) -> int:
    """Return the number of ``TERM``, ``SIGTERM``, ``15``."""
    text = name.strip().upper()
    if re.fullmatch("[0-9]{1,3}", text) and int(text) < signals.NSIG:
        return int(text)
    text = text if text.startswith("SIG") else f"SIG{text}"
    if text == "SIGNULL":
        return 0
    try:
        return int(signals.Signals[text])
    except KeyError:
        raise Refusal("unknown-signal", f"Unknown/illegal signal name {name[:40]!r}") from None
