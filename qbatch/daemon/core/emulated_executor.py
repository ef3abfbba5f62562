"""The emulated executor: it runs a job as a timer, because it knows how much work the job takes.

What a job has done is its :class:`~qbatch.model.progress.Progress`,
which the caller keeps (a snapshot holds it); an instant at which an end falls due is entered in the caller's calendar.
An entry that a suspension or a resize has overtaken is not taken back: it is void, since the progress has another ``due``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from qbatch.model.actions import Allocation
from qbatch.model.machine import Machine
from qbatch.model.progress import NEVER, Progress, time_left

Key = TypeVar("Key")
"""By what the caller knows a job."""


class EmulatedExecutor(Generic[Key]):
    """Runs jobs as timers.

    Args:
        note: enters into the caller's calendar at which instant (microseconds) the end of which job falls due.
    """

    __slots__ = ("_note",)

    def __init__(self, note: Callable[[int, Key], object]) -> None:
        self._note = note

    def launch(self, key: Key, procs: int, work: int, at: int) -> Progress:
        """Start a job that takes ``work`` processor-microseconds, ``NEVER`` if its end is not known; return its progress."""
        if work < 0:
            return Progress(procs, at, 0, work)
        due = at + time_left(work, procs)
        self._note(due, key)
        return Progress(procs, at, 0, work, due)

    def pause(self, progress: Progress, at: int) -> None:
        """Let a job stand still."""
        progress.stand_still(at)

    def resume(self, key: Key, progress: Progress, at: int) -> None:
        """Let a job run on."""
        progress.go_on(at)
        if progress.due >= 0:
            self._note(progress.due, key)

    def resize(self, key: Key, progress: Progress, procs: int, at: int) -> None:
        """Give a job another number of processors; one that stands still goes on standing still."""
        is_running = progress.since >= 0
        progress.stand_still(at)
        progress.procs = procs
        if is_running:
            self.resume(key, progress, at)

    def set_work(self, key: Key, progress: Progress, work: int, at: int) -> None:
        """Let a job take another amount of work in all; one that has done more ends now."""
        progress.work = work
        self.resize(key, progress, progress.procs, at)

    def fails_trial(self, machine: Machine, allocation: Allocation, used_memory: int) -> bool:
        """Tell whether a trial cannot go on: its host counts memory, and the job uses more than it was given there."""
        chunk = allocation[0]
        return machine.hosts[chunk.host].memory > 0 and used_memory > chunk.memory

    def give_up(self, progress: Progress) -> None:
        """The end of a run does not come: its trial has failed."""
        progress.due = NEVER
