"""Refusals as they go over the socket: a code, one line, the PBS error number and the exit code of
``qbatch``."""

from __future__ import annotations

import msgspec

from qbatch.model.errors import QbatchError

CODES: dict[str, tuple[int, int]] = {
    "unknown-job": (15001, 6),
    "finished-job": (15139, 6),
    "unknown-queue": (15018, 6),
    "unknown-host": (15062, 6),
    "not-permitted": (15007, 7),
    "policy-not-listed": (15007, 7),
    "bad-request": (15004, 2),
    "bad-value": (15014, 2),
    "bad-select": (15089, 2),
    "bad-time": (15086, 2),
    "illegal-option": (15106, 2),
    "unknown-attribute": (15002, 2),
    "read-only": (15003, 7),
    "unknown-verb": (15006, 2),
    "unknown-signal": (15013, 2),
    "bad-state": (15016, 1),
    "modify-running": (15015, 1),
    "not-rerunnable": (15038, 1),
    "queue-disabled": (15021, 8),
    "queue-access": (15022, 8),
    "queue-limit": (15028, 8),
    "too-many-jobs": (15046, 8),
    "resource-limit": (15036, 8),
    "unknown-resource": (15035, 8),
    "bad-user": (15023, 8),
    "bad-group": (15045, 8),
    "unknown-server": (15008, 8),
    "resource-beside-select": (15109, 2),
    "place-beside-nodes": (15110, 2),
    "not-in-chunk": (15108, 2),
    "duplicate-resource": (15116, 2),
    "array-too-large": (15107, 8),
    "place-without-select": (15111, 2),
    "never-fits": (15044, 8),
    "no-room": (15044, 1),
    "unknown-reservation": (15084, 6),
    "reservation-exists": (15080, 8),
    "reservation-denied": (15081, 8),
    "bad-dependency": (15054, 8),
    "unsupported": (15029, 8),
    "refused-by-fault": (15010, 8),
    "refused-by-policy": (15039, 8),
    "busy": (15033, 1),
    "stopping": (15033, 5),
    "failed": (15011, 1),
    "unusable": (15014, 3),
    "storage": (15010, 74),
    "storage-full": (15010, 74),
    "protocol-version": (15031, 9),
    "too-large": (15031, 2),
    "timeout": (15033, 124),
}
"""The PBS error number of each code (docs/spec/pbs.md 1; the PBS commands exit with it modulo 256)
and the exit code of ``qbatch`` (docs/design.md).  PBS has no 15106: it stands for what its commands
refuse before they ask a server, with exit code 2."""


class ErrorRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A refusal: ``code`` is stable; ``message`` is one line that names the input, the reason and
    the way out.

    ``reason`` and ``numbers``: if the policy refuses a job, the policy's own code and the numbers
    behind it.
    """

    code: str
    message: str
    pbs: int = 15011
    exit: int = 1
    job: str = ""
    reason: str = ""
    numbers: dict[str, int] = {}


class Refusal(QbatchError):  # noqa: N818 - it is an answer of the daemon, not a fault
    """The daemon refuses a command and changes nothing; a job that the policy refuses keeps its
    number and its record."""

    def __init__(
        self,
        code: str,
        message: str,
        job: str = "",
        reason: str = "",
        numbers: dict[str, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.job, self.reason, self.numbers = code, job, reason, numbers or {}
        self.pbs, self.exit_code = CODES[code]

    @property
    def record(self) -> ErrorRecord:
        """The refusal as it goes over the socket: one line without control characters."""
        line = " ".join(str(self).split())
        shown = (
            line
            if line.isprintable()
            else "".join(letter if letter.isprintable() else "?" for letter in line)
        )
        return ErrorRecord(
            self.code, shown, self.pbs, self.exit_code, self.job, self.reason, self.numbers
        )


def refusal_of(record: ErrorRecord) -> Refusal:
    """Return the refusal that a daemon sent; an unknown code becomes ``failed``."""
    code = record.code if record.code in CODES else "failed"
    return Refusal(code, record.message, record.job, record.reason, record.numbers)
