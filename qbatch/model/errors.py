"""Errors that a user can cause or meet, each with its exit code.

A message is one line and names the input, the place in it, the reason and the way out.  The exit
codes are a promise (docs/design.md, "What the outside sees"); no other module sets them.
"""

from __future__ import annotations

from collections.abc import Iterable


class QbatchError(Exception):
    """The request failed, or a check found a breach (exit code 1)."""

    exit_code = 1


class UsageError(QbatchError):
    """The command line asks for something that does not exist or is contradictory (2)."""

    exit_code = 2


class InputError(QbatchError):
    """Input that cannot be used: a log, a machine file, a configuration (3)."""

    exit_code = 3


class OutputError(QbatchError):
    """Output that cannot be written (4)."""

    exit_code = 4


class DecisionError(QbatchError):
    """A policy asked for something that the engine refuses: a defect of the policy (1)."""


class AuditError(QbatchError):
    """An invariant of the engine does not hold: a defect of qbatch or of a policy (1)."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest of the ``known`` names, or an empty
    string."""
    from difflib import get_close_matches  # imported only after a mistake, because it is slow

    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
