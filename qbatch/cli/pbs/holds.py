"""What ``qhold`` and ``qrls`` share: the list of kinds of hold, and the jobs."""

from __future__ import annotations

from typing import Protocol

from qbatch.cli.pbs.command import Call, Command, UsageFault, operands_of
from qbatch.wire.requests import Request


class HoldRequest(Protocol):
    """Makes a request about the holds of jobs."""

    def __call__(self, *, jobs: tuple[str, ...], kinds: str) -> Request:
        """Return the request."""
        ...


def hold_command(name: str, request: HoldRequest) -> Command:
    """Return the command that sends this request (``-h u|o|s``, user holds if none is said)."""

    def act(call: Call) -> int:
        kinds = call.given.last("h", "u").strip()
        if not kinds or set(kinds) - set("uospn") or ("n" in kinds and len(kinds) > 1):
            raise UsageFault("illegal -h value")
        jobs = operands_of(call)
        # PBS writes p for the hold of a bad password: here nobody places one; n is none.
        letters = kinds.replace("p", "").replace("n", "")
        return call.act(lambda ids: request(jobs=ids, kinds=letters), jobs) if letters else call.code

    return Command(name, "h:t:", f"{name} [-h hold_list] job_identifier ...", act)
