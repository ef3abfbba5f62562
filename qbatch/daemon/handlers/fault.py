"""Make things go wrong on demand."""

from __future__ import annotations

import re

from qbatch.daemon.core.faults import KINDS, FaultState
from qbatch.daemon.core.state import Actor, Core
from qbatch.model.errors import suggestion
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Done
from qbatch.wire.requests import Fault


def handle(core: Core, actor: Actor, request: Fault) -> Done:
    """Add a fault, or clear all of them."""
    if request.kind == "clear":
        core.faults.clear()
        return Done(text="no faults")
    if request.kind not in KINDS:
        text = f"{request.kind[:40]!r} is no fault{suggestion(request.kind[:40], KINDS)} (known: clear, {', '.join(KINDS)})"
        raise Refusal("bad-value", text)
    try:
        re.compile(request.pattern)
    except re.error as error:
        raise Refusal("bad-value", f"pattern {request.pattern[:60]!r}: {error}") from None
    if not 0 <= request.seconds <= 3600:
        raise Refusal("bad-value", "seconds is not from 0 to 3600")
    core.faults.append(
        FaultState(request.kind, request.count, request.seconds, request.status, request.pattern, request.message[:200])
    )
    return Done(text=f"{request.kind}: {'until cleared' if request.count < 0 else f'{request.count} times'}")
