"""Start waiting jobs whatever the policy would do (qrun).

The engine checks such a start as it checks one of the policy: a job never starts where there is no room for it.  The pool's
passes are made before the answer, which tells whether the job has started: first one for what is due by now, then the one in
which the job starts.  The policy then plans anew from what runs; promises to other jobs that this breaks are recorded as
broken.
"""

from __future__ import annotations

from qbatch.daemon.core import passes
from qbatch.daemon.core.explain import reason_for
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Actor, Core, PoolState
from qbatch.daemon.core.states import BatchState
from qbatch.daemon.core.steps import Steps
from qbatch.daemon.handlers.authority import each
from qbatch.model.errors import suggestion
from qbatch.model.events import Forced
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import ForceStart


def handle(core: Core, actor: Actor, request: ForceStart) -> Steps[Outcomes]:
    """Start each job that is named, on the hosts that are named, if there are any."""

    def act(name: str) -> str:
        job = core.live(name)
        pool = core.pool_of(job)
        hosts = _places(core, pool, request.hosts)
        _check_waiting(core, job)
        passes.make_pass(core, pool)
        if job.state is not BatchState.QUEUED:  # the policy itself has started it, or refused it
            core.live(name)
            return job.state.letter
        if job.row < 0:
            identifier, why = core.id_of(job.key), "a command under way has taken it from the policy; try again in a second"
            raise Refusal("bad-state", f"Request invalid for state of job {identifier}: {why}", identifier)
        allocation = pool.engine.room_for(job.row, hosts)
        if not allocation:
            raise _no_room(core, pool, job, hosts)
        pool.events.append(Forced(job.row, allocation))
        passes.make_pass(core, pool)
        job.comment = f"started by {actor.user} with qrun, not by policy {pool.name_of_policy}"
        return job.state.letter

    return each(core, request.jobs, act)


def _places(core: Core, pool: PoolState, names: tuple[str, ...]) -> frozenset[int] | None:
    """Return the places in the pool of the hosts that are named, None if none is."""
    if not names:
        return None
    for name in names:
        if name not in core.host_places:
            raise Refusal("unknown-host", f"Unknown node {name[:80]}{suggestion(name[:80], core.host_places)}")
        if core.pools[core.host_places[name][0]] is not pool:
            raise Refusal("bad-value", f"host {name} is not in pool {pool.settings.name}, where the job waits")
    return frozenset(core.host_places[name][1] for name in names)


def _check_waiting(core: Core, job: BatchJob) -> None:
    """Refuse a job that the policy does not know: it is held, waits at a run limit, or runs."""
    if job.state is BatchState.QUEUED and not job.is_array and not job.run_limit:
        return
    identifier = core.id_of(job.key)
    why = f"name one of its jobs, such as {identifier.replace('[]', '[1]')}" if job.is_array else reason_for(core, job).text
    raise Refusal("bad-state", f"Request invalid for state of job {identifier}: {why}", identifier)


def _no_room(core: Core, pool: PoolState, job: BatchJob, hosts: frozenset[int] | None) -> Refusal:
    view, request = pool.engine.view(), job.prepared.request
    places = range(len(pool.machine.hosts)) if hosts is None else sorted(hosts)
    free = sum(view.free[place] for place in places)
    where = "" if hosts is None else f" on {', '.join(pool.machine.hosts[place].name for place in places)}"
    kept = f"; what {len(view.suspended)} suspended jobs had is kept for them" if view.suspended else ""
    text = f"there is no room for it now: it asks for {request.procs} processors, {free} are free{where}{kept}"
    numbers = {"procs": request.procs, "free": free}
    return Refusal("no-room", f"Resources temporarily unavailable: {text}", core.id_of(job.key), numbers=numbers)
