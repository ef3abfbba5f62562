"""Send a signal to running jobs (qsig); ``suspend`` and ``resume`` stop and go on.

CONT to a suspended job is ``resume``: no signal wakes a job that the policy has suspended as well.
"""

from __future__ import annotations

import re
import signal

from qbatch.daemon.core import flow
from qbatch.daemon.core.execution import executor_of
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.states import BatchState
from qbatch.daemon.core.steps import Steps, is_enough, members_of
from qbatch.daemon.handlers.authority import each, owned
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import Signal


def number_of(name: str) -> int:
    """Return the number of ``TERM``, ``SIGTERM``, ``15``.

    Raises:
        Refusal: there is no such signal.
    """
    text = name.strip().upper()
    if re.fullmatch("[0-9]{1,3}", text) and int(text) < signal.NSIG:
        return int(text)
    text = text if text.startswith("SIG") else f"SIG{text}"
    if text == "SIGNULL":
        return 0
    try:
        return int(signal.Signals[text])
    except KeyError:
        raise Refusal("unknown-signal", f"Unknown/illegal signal name {name[:40]!r}") from None


def handle(core: Core, actor: Actor, request: Signal) -> Steps[Outcomes]:
    """Send the signal to each job that is named."""
    word = request.signal.strip().lower()
    number = 0 if word in ("suspend", "resume") else number_of(request.signal)

    def act(name: str) -> Steps[None]:
        job = owned(core, actor, name)
        members = yield from members_of(core, job)
        running = [one for one in members if one.is_running_or_suspended]
        if not running:
            identifier = core.id_of(job.key)
            raise Refusal("bad-state", f"Request invalid for state of job {identifier}", identifier)
        for one in running:
            if is_enough(core):
                yield
            if not one.is_running_or_suspended:
                continue
            if word == "suspend":
                flow.suspend(core, one)
            elif word == "resume" or (number == signal.SIGCONT and one.state is BatchState.SUSPENDED):
                flow.resume(core, one)
            elif number and executor_of(core).send(core, one, number):
                one.ending = "signal"
                flow.ended(core, one, 256 + number)

    return each(core, request.jobs, act)
