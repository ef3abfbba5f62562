"""Containment of unexpected exceptions: the command is refused, the state is read from disk, and
the daemon serves on.

The core changes in place, so its state cannot be trusted after such an exception.  Earlier commands
are in the journal or on their way there; the failed one is not, so the state on disk is the one
before it.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import OrderedDict

import msgspec
from msgspec import structs

from qbatch.daemon.core.state import Actor, Work
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import Request

log = logging.getLogger("qbatch")

REFUSED_FOR = 60.0
"""Seconds for which a failed command is refused without another try, because each try costs a
recovery."""

MOST_FAILED = 10_000
"""Failed commands that are remembered at most."""

_encode = msgspec.json.Encoder().encode


def digest_of(request: Request) -> str:
    """Return 16 hexadecimal digits that identify a request by its content without its number."""
    return hashlib.sha256(_encode(structs.replace(request, id=0))).hexdigest()[:16]


class Containment:
    """Keeps an exception of one command, report or pass from ending the daemon.

    ``is_spoiled``: the state in memory cannot be trusted; nothing may read it until it was read
    from disk. ``must_hold``: a pass failed; after the recovery the jobs of the commands since the
    last good pass are held.
    """

    def __init__(self) -> None:
        self.is_spoiled = False
        self.must_hold = False
        self._failed: OrderedDict[tuple[int, str], float] = OrderedDict()
        self._reports: set[str] = set()

    def refuse_repeated(self, actor: Actor, request: Request) -> None:
        """Refuse a command that failed a moment ago.

        Raises:
            Refusal: the command failed within the last ``REFUSED_FOR`` seconds.
        """
        if not self._failed:
            return
        known = actor.uid, digest_of(request)
        left = self._failed.get(known, 0.0) - time.monotonic()
        if left > 0:
            text = (
                f"this command (frame {known[1]}) failed just now; it is not tried again for "
                f"{left:.0f} seconds"
            )
            raise Refusal("failed", text)

    def command_failed(self, actor: Actor, request: Request, error: Exception) -> Refusal:
        """Note that a command raised; return the refusal for its asker."""
        self.is_spoiled = True
        refusal = self.question_failed(actor, request, error)
        known = actor.uid, digest_of(request)
        self._failed[known] = time.monotonic() + REFUSED_FOR
        self._failed.move_to_end(known)
        if len(self._failed) > MOST_FAILED:
            self._failed.popitem(last=False)
        return refusal

    def question_failed(self, actor: Actor, request: Request, error: Exception) -> Refusal:
        """Note that a question raised, which has changed nothing; return the refusal for its
        asker."""
        verb, digest = type(request).__name__, digest_of(request)
        log.error(
            "%s of %s (frame %s) failed; nothing has changed",
            verb,
            actor.user,
            digest,
            exc_info=error,
        )
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        text = (
            f"{verb} failed in the server ({what}); nothing has changed; see frame {digest} in "
            "the log of the server"
        )
        return Refusal("failed", text)

    def step_failed(self, work: Work, error: Exception) -> Refusal:
        """Note that a step of a command raised; return the refusal for its asker."""
        self.is_spoiled = True
        what = type(work.request).__name__ if work.request is not None else "Reload"
        log.error(
            "%s failed after some of its steps; what these did stays done", what, exc_info=error
        )
        return Refusal(
            "failed",
            f"{what} failed in the server when a part of it was done; see the log of the server",
        )

    def report_failed(self, key: str, error: Exception) -> bool:
        """Note that a report of an executor raised; return whether it is the first time for this
        attempt."""
        self.is_spoiled = True
        log.error("a report of attempt %s cannot be taken", key, exc_info=error)
        is_first = key not in self._reports
        self._reports.add(key)
        return is_first

    def has_failed(self, key: str) -> bool:
        """Return whether a report of this attempt failed."""
        return key in self._reports

    def pass_failed(self, error: Exception) -> None:
        """Note that a pass raised."""
        self.is_spoiled = self.must_hold = True
        log.error("a pass failed; the jobs of the commands before it are held", exc_info=error)
