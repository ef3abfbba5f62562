"""The commands of several steps that are under way in a service: their next steps, and who waits for their answers."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from qbatch.daemon import journal_entry
from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.containment import Containment
from qbatch.daemon.core import steps
from qbatch.daemon.core.state import Core
from qbatch.daemon.pass_driver import PassDriver
from qbatch.wire.errors import Refusal

Asker = tuple[ConnectedClient, int] | asyncio.Future[object]
"""Who waits for an answer: a client with the number of its request, or a task of the server's own."""


class Worked(Protocol):
    """The service in which they are under way."""

    core: Core
    containment: Containment
    pass_driver: PassDriver
    is_full: bool

    def journal(self, *entries: bytes) -> None:
        """Let entries be in the next commit."""
        ...

    def collect(self) -> None:
        """Take from the core's outbox what was put there since; a commit follows."""
        ...

    def answer(self, client: ConnectedClient, number: int, result: object) -> None:
        """Answer a request when what it has done is committed."""
        ...


class WorkDriver:
    """Does the steps of the works of a service's core, one after the other.

    A full disk stops them until there is space; commands that were under way when the daemon began have nobody who waits.
    """

    def __init__(self, service: Worked) -> None:
        self._service = service
        self._askers: deque[Asker | None] = deque([None] * len(service.core.works))
        self._must_give_up = False

    def take(self, asker: Asker | None) -> None:
        """The core has one more work; ``asker`` has its answer after the last step."""
        self._askers.append(asker)

    def is_due(self) -> bool:
        """Whether there is a step to be done."""
        service = self._service
        return bool(service.core.works) and not (service.is_full or service.containment.is_spoiled)

    def step(self) -> None:
        """Do the next step of the oldest work, if there is one; after the last its answer is part of the next commit."""
        if not self.is_due():
            return
        service, core = self._service, self._service.core
        work = core.works[0]
        core.now = max(core.now, service.pass_driver.instant())
        try:
            answer = steps.go_on(core)
        except Exception as error:
            self._must_give_up = True
            self._answer(service.containment.step_failed(work, error))
            return
        service.journal(journal_entry.step(core.now))
        service.collect()
        if answer is not steps.UNFINISHED:
            service.pass_driver.is_owed = True
            self._answer(answer)

    def _answer(self, answer: object) -> None:
        asker = self._askers.popleft()
        if isinstance(asker, asyncio.Future):
            if not asker.done():
                asker.set_result(answer)
        elif asker is not None:
            self._service.answer(*asker, answer)

    def after_recovery(self) -> None:
        """The state has come from disk, with the works that were under way; one of which a step failed is given up."""
        if self._must_give_up:
            self._must_give_up = False
            core = self._service.core
            del core.works[0]
            self._service.journal(journal_entry.step(core.now, is_last=True))

    def after_full_disk(self, directory: str) -> None:
        """The state has come from disk, and what was not committed is gone: nobody waits any more; what is there goes on."""
        refusal = Refusal("storage-full", f"the disk of {directory} is full; what was begun goes on when there is space")
        for asker in self._askers:
            if isinstance(asker, asyncio.Future):
                asker.set_result(refusal)
            elif asker is not None:
                asker[0].settled()
                asker[0].fail(asker[1], refusal)
        self._askers = deque([None] * len(self._service.core.works))
