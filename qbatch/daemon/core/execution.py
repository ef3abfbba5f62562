"""How the core runs its jobs: as timers of its own, or by effects in the outbox that processes
outside carry out.

Both kinds of executor keep a job's progress at the core's instant; they differ only in what else
they do.  They hold no state: the job has its progress, the core's calendar has the ends that are
due, so a snapshot contains both.  A suspension or a resize gives the progress another ``due`` and
leaves the old entry in the calendar; the entry is then void.

``launch`` returns whether the attempt is a trial that cannot go on: its host counts memory, and it
uses more than it was given there (of a process this shows while it runs).  ``stop`` (``grace``:
microseconds from TERM to KILL) and ``send`` return whether they have ended the job; if not, its end
is reported.  ``cpu_time`` is in microseconds; a process is measured when it ends.
"""

from __future__ import annotations

import signal

from qbatch.daemon.core import emulation
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Core, Launch, ResizeAttempt, SendSignal, SetWalltime, Stop
from qbatch.model.progress import NEVER, Progress

_DEADLY = (
    signal.SIGKILL,
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGABRT,
)


def go_on(core: Core, job: BatchJob) -> None:
    """Let the timer of a job run (on), and enter in the calendar when it ends, if that is known."""
    progress = job.under_way
    progress.go_on(core.now)
    if progress.due >= 0:
        core.at(progress.due, "end", job.key, job.attempts)


def set_timer(core: Core, job: BatchJob, procs: int, work: int) -> None:
    """Give a job another number of processors or amount of work (processor-microseconds); a
    suspended job stays suspended.

    A job that has done more work than that ends now.
    """
    progress = job.under_way
    is_running = progress.since >= 0
    progress.stand_still(core.now)
    progress.procs, progress.work = procs, work
    if is_running:
        go_on(core, job)


class Emulated:
    """Runs jobs as timers, which use their processors fully; a signal that is not deadly has no
    effect on them."""

    def launch(self, core: Core, job: BatchJob, procs: int, *, is_trial: bool) -> bool:
        attempt = job.present
        attempt.progress = Progress(procs, work=emulation.work_of(core, job))
        go_on(core, job)
        chunk = attempt.allocation[0]
        is_memory_counted = core.pool_of(job).machine.hosts[chunk.host].memory > 0
        is_failed = is_trial and is_memory_counted and emulation.memory_of(job) > chunk.memory
        if is_failed:
            attempt.progress.due = NEVER
        return is_failed

    def pause(self, core: Core, job: BatchJob) -> None:
        job.under_way.stand_still(core.now)

    def resume(self, core: Core, job: BatchJob) -> None:
        go_on(core, job)

    def resize(self, core: Core, job: BatchJob, procs: int) -> None:
        set_timer(core, job, procs, job.under_way.work)

    def set_walltime(self, core: Core, job: BatchJob) -> None:
        set_timer(core, job, job.under_way.procs, emulation.work_of(core, job))

    def stop(self, core: Core, job: BatchJob, grace: int) -> bool:
        return True

    def send(self, core: Core, job: BatchJob, number: int) -> bool:
        return number in _DEADLY

    def cpu_time(self, core: Core, job: BatchJob) -> int:
        return job.worked(core.now)


class Processes:
    """Runs jobs as processes: each change goes into the outbox, and ends are reported."""

    def launch(self, core: Core, job: BatchJob, procs: int, *, is_trial: bool) -> bool:
        job.under_way.go_on(core.now)
        core.outbox.append(Launch(job.key, job.attempts))
        return False

    def pause(self, core: Core, job: BatchJob) -> None:
        job.under_way.stand_still(core.now)
        core.outbox.append(SendSignal(job.file_key, signal.SIGSTOP))

    def resume(self, core: Core, job: BatchJob) -> None:
        job.under_way.go_on(core.now)
        core.outbox.append(SendSignal(job.file_key, signal.SIGCONT))

    def resize(self, core: Core, job: BatchJob, procs: int) -> None:
        set_timer(core, job, procs, job.under_way.work)
        core.outbox.append(ResizeAttempt(job.file_key, procs, job.prepared.request.procs))

    def set_walltime(self, core: Core, job: BatchJob) -> None:
        core.outbox.append(SetWalltime(job.file_key, job.prepared.walltime))

    def stop(self, core: Core, job: BatchJob, grace: int) -> bool:
        core.outbox.append(Stop(job.file_key, grace))
        return False

    def send(self, core: Core, job: BatchJob, number: int) -> bool:
        core.outbox.append(SendSignal(job.file_key, number))
        return False

    def cpu_time(self, core: Core, job: BatchJob) -> int:
        return 0


_KINDS: dict[str, Emulated | Processes] = {"emulated": Emulated(), "process": Processes()}


def executor_of(core: Core) -> Emulated | Processes:
    """Return the executor that the core's settings name."""
    return _KINDS[core.settings.executor]
