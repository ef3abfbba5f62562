"""How a job moves: into a queue, past the limits, to the engine and back, held and released, started and ended."""

from __future__ import annotations

import heapq
import signal

from qbatch.daemon.core import accounting, dependencies
from qbatch.daemon.core.dependencies import Doomed
from qbatch.daemon.core.emulation import run_of
from qbatch.daemon.core.job import BatchJob, Prepared
from qbatch.daemon.core.records import full_record
from qbatch.daemon.core.state import MOST_RECENT, Account, Core, Ending, Gate, Launch, Mail, QueueState, Send, Stop
from qbatch.daemon.executors.attempt import LOST
from qbatch.model.actions import Allocation
from qbatch.model.events import Finished, Withdrawn
from qbatch.model.job import Job
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import JobKey

DELETED = 271
"""Exit status of a job that was deleted while it ran: 256 + SIGTERM."""

MOST_EXCHANGED = 5000
"""Waiting jobs up to which two of them may exchange their places."""

OVER_WALLTIME = -29
"""Exit status of a job that was killed at its walltime."""

MOST_STALE = 64
"""Entries at a gate of jobs that do not wait there any more, beyond as many as jobs wait."""

PAUSE = 1_000_000
"""How long a job waits that was lost at the very instant of its start: it would be lost there again and again."""


def array_letter(core: Core, parent: BatchJob) -> str:
    """Return the state of an array that is not over, by those of its jobs: B once any has begun; before that H or W if
    all that wait are held or wait for a time, else Q."""
    if parent.started >= 0:
        return "B"
    counts = core.arrays[parent.sequence].counts
    queued, held, later = (counts.get(letter, 0) for letter in "QHW")
    if queued or (held and later):
        return "Q"
    return "H" if held else "W" if later else parent.letter


def set_letter(core: Core, job: BatchJob, letter: str) -> None:
    """Change a job's state, every count of it, and the state of its array."""
    core.set_letter(job, letter)
    if job.is_subjob:
        parent = core.jobs[job.sequence]
        if parent.letter not in "FX":
            parent.letter = array_letter(core, parent)


def gates_of(core: Core, job: BatchJob) -> list[str]:
    """Return the names of the gates that a job has to pass."""
    names = []
    if job.is_subjob:
        parent = core.jobs[job.sequence]
        if parent.slot_limit is not None:
            names.append(f"array {job.sequence}")
    queue = core.queues[job.queue]
    if queue.settings.max_running is not None or not queue.started:
        names.append(f"queue {job.queue}")
    if queue.settings.max_running_per_user is not None:
        names.append(f"user {job.queue} {job.user}")
    return names


def limit_of(core: Core, gate: str) -> int:
    """Return how many jobs a gate lets through at once."""
    kind, _, rest = gate.partition(" ")
    if kind == "array":
        parent = core.jobs.get(int(rest))
        return 1 << 60 if parent is None or parent.slot_limit is None else parent.slot_limit
    queue = core.queues[rest.partition(" ")[0]]
    if kind == "queue" and not queue.started:
        return 0
    limit = queue.settings.max_running if kind == "queue" else queue.settings.max_running_per_user
    return 1 << 60 if limit is None else limit


def settle(core: Core, job: BatchJob) -> None:
    """Give a job that is not with the engine the state that its holds, its time and its dependencies ask for."""
    if job.hold or job.unmet or (job.is_subjob and core.jobs[job.sequence].unmet):
        set_letter(core, job, "H")
    elif job.not_before > core.now:
        set_letter(core, job, "W")
        core.at(job.not_before, "release", job.key)
    else:
        set_letter(core, job, "Q")
        job.eligible = core.now
        enter(core, job)


def enter(core: Core, job: BatchJob, submit: int = -1) -> None:
    """Hand an eligible job to the engine of its pool, or let it wait at the first gate that is full.

    ``submit``: the instant of arrival by which the engine ranks it; now if none is given.
    """
    names = gates_of(core, job)
    for name in names:
        gate = core.gates.get(name)
        if (gate.used if gate is not None else 0) >= limit_of(core, name):
            job.gate = name
            gate = core.gates.setdefault(name, Gate())
            heapq.heappush(gate.waiting, (job.eligible, job.sequence, job.member))
            # All who wait at one gate are of one queue: more entries than that are stale.
            if len(gate.waiting) > 2 * core.queues[job.queue].counts.get("Q", 0) + MOST_STALE:
                _sweep(core, name)
            return
    for name in names:
        core.gates.setdefault(name, Gate()).used += 1
    job.gate = ""
    job.waits_for = "\n".join(names)
    job.is_pending = True
    request = job.prepared.request
    core.pool_of(job).pending[job.key] = Job(
        number=job.sequence,
        submit=core.now if submit < 0 else submit,
        procs=request.procs,
        estimate=job.prepared.walltime,
        memory=request.memory,
        chunks=request.chunks,
        placing=request.placing,
        is_exclusive=request.is_exclusive,
        user=core.number_of(job.user),
        group=core.number_of(job.group),
        queue=core.queues[job.queue].place,
    )
    core.is_dirty = True


def withdraw(core: Core, job: BatchJob) -> None:
    """Take a waiting job back from the engine or from the gate at which it waits; a promise to it is over."""
    for name in _take_out(core, job):
        open_gate(core, name)


def _take_out(core: Core, job: BatchJob) -> list[str]:
    """Withdraw a waiting job; return the gates whose places it gave back, which are still to be opened for others."""
    job.promised = -1
    job.gate = ""
    pool = core.pool_of(job)
    if job.is_pending:
        del pool.pending[job.key]
        job.is_pending = False
    elif job.row >= 0:
        pool.events.append(Withdrawn(job.row))
        pool.by_row[job.row] = None
        job.row = -1
        core.is_dirty = True
    return _leave_gates(core, job)


def _leave_gates(core: Core, job: BatchJob) -> list[str]:
    names, job.waits_for = job.waits_for.split("\n") if job.waits_for else [], ""
    for name in names:
        core.gates[name].used -= 1
    return names


def pass_gates_back(core: Core, job: BatchJob) -> None:
    """Give a job's places at the gates to those who wait there."""
    for name in _leave_gates(core, job):
        open_gate(core, name)


def open_gate(core: Core, name: str) -> None:
    """Let through a gate who waits there, in order, while it has room."""
    gate = core.gates.get(name)
    if gate is None:
        return
    while gate.waiting and gate.used < limit_of(core, name):
        eligible, sequence, member = heapq.heappop(gate.waiting)
        job = core.find(JobKey(sequence, member))
        if job is not None and job.gate == name and job.eligible == eligible:
            job.gate = ""
            enter(core, job)
    if not gate.used and not gate.waiting:
        del core.gates[name]


def begin(core: Core, job: BatchJob, allocation: Allocation) -> None:
    """A job starts: the engine has given it hosts."""
    set_letter(core, job, "R")
    job.attempt += 1
    job.started = job.modified = core.now
    job.allocation = allocation
    core.pool_of(job).running[job.key] = job
    job.left = -1
    job.comment = ""
    job.used = None
    if job.is_subjob:
        parent = core.jobs[job.sequence]
        if parent.started < 0:
            parent.letter = "B"
            parent.started = parent.modified = core.now
            core.happened("started", parent.key)
            _mail(core, parent, "b", "began")
            dependencies.started(core, parent.key)
    if core.settings.executor == "emulated":
        job.due = core.now + run_of(core, job)
        core.at(job.due, "end", job.key, job.attempt)
    else:
        core.effects.append(Launch(job.key, job.attempt))
    core.happened("started", job.key)
    core.effects.append(Account(core.now, "S", core.id_of(job.key), accounting.started(core, job)))
    _mail(core, job, "b", "began")
    dependencies.started(core, job.key)


def _mail(core: Core, job: BatchJob, point: str, what: str) -> None:
    points = job.spec.mail_points
    if core.settings.mail_command and point in points and (not job.is_subjob or "j" in points):
        users = job.spec.mail_users or job.user
        text = f"PBS Job Id: {core.id_of(job.key)} Job Name: {job.name}: {what}"
        core.effects.append(Mail(job.key, point, users, text))


def leave_hosts(core: Core, job: BatchJob) -> None:
    """A job that ran does not run any more: tell the engine and give its places at the gates back."""
    pool = core.pool_of(job)
    del pool.running[job.key]
    pool.events.append(Finished(job.row))
    pool.by_row[job.row] = None
    job.row = -1
    core.is_dirty = True
    pass_gates_back(core, job)


def ended(core: Core, job: BatchJob, status: int, why: str = "", used: dict[str, float] | None = None) -> None:
    """A running job ended, by itself or by force; it is queued again if that is why it was stopped."""
    job.used = used if used is not None else {"cput": 0.0, "walltime": (core.now - job.started) / 1e6}
    if why:
        job.comment = why
    is_again = job.ending in ("rerun", "host") or (status == LOST and not job.ending)
    leave_hosts(core, job)
    if is_again and (job.spec.is_rerunnable or job.ending == "rerun"):
        job.ending = ""
        job.session = 0
        job.allocation = ()
        job.comment = job.comment or "queued again"
        core.effects.append(Account(core.now, "R", core.id_of(job.key), accounting.ended(core, job, status)))
        core.happened("requeued", job.key, job.comment)
        if status == LOST and job.started == core.now:
            job.not_before = core.now + PAUSE
        job.started = job.promised = job.due = -1
        settle(core, job)
        return
    if job.ending == "deleted" and status >= 0:
        job.comment = job.comment or "terminated"
    elif job.ending == "host":
        status = LOST
    finish(core, job, status)


def finish(core: Core, job: BatchJob, status: int, doomed: list[Doomed] | None = None) -> None:
    """A job is over for good: history, dependencies, its array (``doomed``: see :func:`.dependencies.ended`)."""
    was_running = job.started >= 0 and bool(job.allocation)
    has_begun = job.started >= 0 if job.is_array else was_running
    set_letter(core, job, "X" if job.is_subjob else "F")
    job.status = status
    job.ended = job.modified = core.now
    queue = core.queues[job.queue]
    if not job.is_array:
        queue.users[job.user] = queue.users.get(job.user, 0) - 1
        if not queue.users[job.user]:
            del queue.users[job.user]
        core.user_jobs[job.user] -= 1
        core.ended_count += 1
    record = full_record(core, job)
    key = job.key
    core.recent[key] = record
    if len(core.recent) > MOST_RECENT:
        core.recent.popitem(last=False)
    core.effects.append(Ending(key, record))
    if was_running:
        core.effects.append(Account(core.now, "E", core.id_of(key), accounting.ended(core, job, status)))
    core.remember_ending(key, status)
    core.happened("ended", key)
    _mail(core, job, "e" if has_begun and not job.ending else "a", f"ended, Exit_status={status}")
    if not job.is_subjob:
        del core.jobs[job.sequence]
        core.arrays.pop(job.sequence, None)
    dependencies.ended(core, key, status, doomed)
    if job.is_subjob:
        array = core.arrays.get(job.sequence)
        if array is None:
            return
        array.live -= 1
        array.failed += status != 0
        if array.live == 0:
            parent = core.jobs[job.sequence]
            finish(core, parent, 1 if array.failed else 0, doomed)


def delete(
    core: Core, job: BatchJob, *, is_forced: bool, grace: int, message: str = "", by: str = "",
    doomed: list[Doomed] | None = None,
) -> None:  # fmt: skip
    """End one job (not an array): a waiting one at once, a running one by signals, or at once if forced.

    ``by``: the user who deletes it; its owner if none is given.
    """
    told = Account(core.now, "D", core.id_of(job.key), f"requestor={by or job.user}@{job.spec.host}")
    job.modified = core.now
    if message:
        job.comment = message
    if not job.holds_hosts:
        withdraw(core, job)
        job.ending = "deleted"
        core.effects.append(told)
        finish(core, job, DELETED, doomed)
        return
    is_emulated = core.settings.executor == "emulated"
    job.ending = "deleted"
    core.effects.append(told)
    if not is_emulated:
        core.effects.append(Stop(job.file_key, 0 if is_forced else grace))
    if is_emulated or is_forced:
        ended(core, job, DELETED)
    elif job.letter != "E":
        set_letter(core, job, "E")


def suspend(core: Core, job: BatchJob) -> None:
    """Stop the clock and the processes of a running job."""
    if core.settings.executor == "emulated":
        job.left = max(job.due - core.now, 0)
        job.due = -1
    else:
        core.effects.append(Send(job.file_key, signal.SIGSTOP))
    set_letter(core, job, "S")
    core.happened("suspended", job.key)


def resume(core: Core, job: BatchJob) -> None:
    """Let a suspended job go on."""
    set_letter(core, job, "R")
    if core.settings.executor == "emulated":
        job.due = core.now + job.left
        core.at(job.due, "end", job.key, job.attempt)
    else:
        core.effects.append(Send(job.file_key, signal.SIGCONT))
    core.happened("resumed", job.key)


def stop_running(core: Core, job: BatchJob, why: str, comment: str) -> None:
    """Stop a running job for a reason of the server's (``rerun`` or ``host``); what follows is decided when it ends.

    A job that is being deleted is stopped as well, but it stays deleted.
    """
    if job.ending == "deleted":
        core.effects.append(Stop(job.file_key, 0))
        return
    job.ending = why
    job.comment = comment
    if core.settings.executor == "emulated":
        ended(core, job, LOST if why == "host" else DELETED)
    else:
        core.effects.append(Stop(job.file_key, 0))


def delete_array(
    core: Core, parent: BatchJob, *, is_forced: bool, grace: int, message: str = "", by: str = "",
    doomed: list[Doomed] | None = None,
) -> None:  # fmt: skip
    """End every job of an array that has not ended."""
    parent.ending = "deleted"
    for job in core.members(parent):
        delete(core, job, is_forced=is_forced, grace=grace, message=message, by=by, doomed=doomed)


def change(core: Core, job: BatchJob, prepared: Prepared, queue: str) -> None:
    """Give a waiting job (or an array as a whole) another request or queue; it ranks anew."""
    if job.is_array:
        job.prepared = prepared
        job.queue = queue
        return
    if job.holds_hosts:
        job.prepared = prepared
        return
    withdraw(core, job)
    if queue != job.queue:
        for name, sign in ((job.queue, -1), (queue, 1)):
            of_queue = core.queues[name]
            of_queue.counts[job.letter] = of_queue.counts.get(job.letter, 0) + sign
            of_queue.users[job.user] = of_queue.users.get(job.user, 0) + sign
            if not of_queue.users[job.user]:
                del of_queue.users[job.user]
    job.prepared = prepared
    job.queue = queue
    job.queued = job.modified = core.now
    settle(core, job)


def exchange(core: Core, first: BatchJob, second: BatchJob) -> None:
    """Exchange the places of two waiting jobs.

    The engine ranks by arrival: all that wait in the pool leave it and arrive again, in their order but for the two.

    Raises:
        Refusal: too many jobs wait for that.
    """
    pool = core.pool_of(first)
    waiting = [job for job in pool.by_row if job is not None and job.letter == "Q"]
    waiting += [job for job in (core.find(key) for key in pool.pending) if job is not None]
    if len(waiting) > MOST_EXCHANGED:
        raise Refusal("bad-state", f"{len(waiting)} jobs wait; places are exchanged where at most {MOST_EXCHANGED} do")
    order = {job.key: place for place, job in enumerate(waiting)}
    order[first.key], order[second.key] = order.get(second.key, len(order)), order.get(first.key, len(order))
    left: dict[str, None] = {}
    for job in waiting:
        left.update(dict.fromkeys(_take_out(core, job)))
    begin = core.now - len(order)
    for job in sorted({job.key: job for job in [*waiting, first, second]}.values(), key=lambda job: order[job.key]):
        enter(core, job, max(begin + order[job.key], 0))
    for name in left:
        open_gate(core, name)


def set_started(core: Core, queue: QueueState, started: bool) -> None:
    """Start or stop a queue: jobs of a stopped one wait at its gate."""
    queue.started = started
    regate(core, [queue.settings.name])


def set_slot_limit(core: Core, parent: BatchJob, limit: int) -> None:
    """Change how many jobs of an array may run at once; those that run count."""
    parent.slot_limit = limit
    _regate(core, core.members(parent))


def regate(core: Core, queue_names: list[str]) -> None:
    """Make the jobs of these queues hold the gates that :func:`gates_of` names now.

    Running jobs count even above a limit; waiting ones leave the engine and come again, in the order in which they
    became eligible.
    """
    found = []
    for job in core.jobs.values():
        if job.queue in queue_names:
            found += [each for each in core.members(job) if not each.is_array]
    _regate(core, found)


def _regate(core: Core, jobs: list[BatchJob]) -> None:
    waiting = [job for job in jobs if job.letter == "Q"]
    running = [job for job in jobs if job.holds_hosts]
    left: dict[str, None] = {}
    for job in waiting:
        left.update(dict.fromkeys(_take_out(core, job)))
    for job in running:
        left.update(dict.fromkeys(_leave_gates(core, job)))
    for name in list(core.gates):
        _sweep(core, name)
    for job in running:
        names = gates_of(core, job)
        job.waits_for = "\n".join(names)
        for name in names:
            core.gates.setdefault(name, Gate()).used += 1
    waiting.sort(key=lambda job: (job.eligible, job.sequence, job.member))
    for place, job in enumerate(waiting):
        enter(core, job, max(core.now - len(waiting) + place, 0))
    for name in left:
        open_gate(core, name)


def _sweep(core: Core, name: str) -> None:
    """Forget at a gate who does not wait there any more, and the gate if nobody uses it."""
    gate = core.gates[name]
    kept = []
    for eligible, sequence, member in gate.waiting:
        job = core.find(JobKey(sequence, member))
        if job is not None and job.gate == name and job.eligible == eligible:
            kept.append((eligible, sequence, member))
    gate.waiting = sorted(dict.fromkeys(kept))
    if not gate.used and not gate.waiting:
        del core.gates[name]
