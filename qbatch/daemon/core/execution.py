"""How the core runs its jobs: as timers of its own, or by effects in the outbox that processes outside carry out.

Each kind of executor keeps a job's progress at the core's instant; they differ only in what else they do.  They hold no state:
the job has its progress, the core's calendar has the ends that are due, so a snapshot contains both.

``launch`` returns whether the attempt is a trial that cannot go on.  ``stop`` (``grace``: microseconds from TERM to KILL) and
``send`` return whether they have ended the job; if not, its end is reported.  ``cpu_time`` is in microseconds, as far as known.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from qbatch.daemon.core import emulation
from qbatch.daemon.core.state import Allow, Fit, Launch, Send, Stop

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob
    from qbatch.daemon.core.state import Core

_DEADLY = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT)


class Emulated:
    """Runs jobs as timers; the core's emulated executor decides when each ends."""

    def launch(self, core: Core, job: BatchJob, procs: int, *, is_trial: bool) -> bool:
        """Start a timer; a trial that uses more memory than it has ends as soon as it begins."""
        attempt = job.present
        attempt.progress = core.timers.launch(job, procs, emulation.work_of(core, job), core.now)
        if not is_trial:
            return False
        machine = core.pool_of(job).machine
        if not core.timers.fails_trial(machine, attempt.allocation, emulation.memory_of(job)):
            return False
        core.timers.give_up(attempt.progress)
        return True

    def pause(self, core: Core, job: BatchJob) -> None:
        """Stop the timer."""
        core.timers.pause(job.under_way, core.now)

    def resume(self, core: Core, job: BatchJob) -> None:
        """Let the timer go on."""
        core.timers.resume(job, job.under_way, core.now)

    def resize(self, core: Core, job: BatchJob, procs: int) -> None:
        """Let the timer run faster or slower."""
        core.timers.resize(job, job.under_way, procs, core.now)

    def set_walltime(self, core: Core, job: BatchJob) -> None:
        """Give the timer the work that the new walltime allows."""
        core.timers.set_work(job, job.under_way, emulation.work_of(core, job), core.now)

    def stop(self, core: Core, job: BatchJob, grace: int) -> bool:
        """Return True: a timer ends at once."""
        return True

    def send(self, core: Core, job: BatchJob, number: int) -> bool:
        """Return whether the signal ends the timer; it has no other effect."""
        return number in _DEADLY

    def cpu_time(self, core: Core, job: BatchJob) -> int:
        """Return the work done: a timer uses its processors fully."""
        return job.worked(core.now)


class Processes:
    """Runs jobs as processes: each change goes into the outbox, and ends are reported."""

    def launch(self, core: Core, job: BatchJob, procs: int, *, is_trial: bool) -> bool:
        """Launch an attempt; whether a trial can go on shows while it runs."""
        job.under_way.go_on(core.now)
        core.outbox.append(Launch(job.key, job.attempts))
        return False

    def pause(self, core: Core, job: BatchJob) -> None:
        """Stop all processes."""
        job.under_way.stand_still(core.now)
        core.outbox.append(Send(job.file_key, signal.SIGSTOP))

    def resume(self, core: Core, job: BatchJob) -> None:
        """Continue all processes."""
        job.under_way.go_on(core.now)
        core.outbox.append(Send(job.file_key, signal.SIGCONT))

    def resize(self, core: Core, job: BatchJob, procs: int) -> None:
        """Send an attempt the number of its processors."""
        core.timers.resize(job, job.under_way, procs, core.now)
        core.outbox.append(Fit(job.file_key, procs, job.prepared.request.procs))

    def set_walltime(self, core: Core, job: BatchJob) -> None:
        """Send an attempt its walltime."""
        core.outbox.append(Allow(job.file_key, job.prepared.walltime))

    def stop(self, core: Core, job: BatchJob, grace: int) -> bool:
        """End an attempt; its end is reported."""
        core.outbox.append(Stop(job.file_key, grace))
        return False

    def send(self, core: Core, job: BatchJob, number: int) -> bool:
        """Send a signal; an end that follows is reported."""
        core.outbox.append(Send(job.file_key, number))
        return False

    def cpu_time(self, core: Core, job: BatchJob) -> int:
        """Return 0: a process is measured when it ends."""
        return 0


_KINDS: dict[str, Emulated | Processes] = {"emulated": Emulated(), "process": Processes()}


def executor_of(core: Core) -> Emulated | Processes:
    """Return the executor that the core's settings name."""
    return _KINDS[core.settings.executor]
