"""The lists of files that are copied before and after a job: ``stagein`` and ``stageout`` as PBS
writes them.

Source: OpenPBS pbs_job_attributes(7): ``local_path@host:remote_path[,...]``.  The local path is on
the job's host; a relative one is in its staging and execution directory.  The remote path is on the
named host, which is always this machine here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

SANDBOXES = ("HOME", "O_WORKDIR", "PRIVATE")
"""Values of ``sandbox``: the job works in its user's home directory, where it was submitted, or in
a directory of its own."""


class Staged(NamedTuple):
    """One part of a list: a path on the job's host, another host and a path there."""

    local: str
    host: str
    remote: str


def parse_staging(text: str, hosts: Collection[str] | None = None) -> tuple[Staged, ...]:
    """Return the parts of a list; ``hosts``: the names of this machine, None to check no host.

    Raises:
        ValueError: a part is not of the form, or names another host.
    """
    found = []
    for part in text.split(","):
        local, at, rest = part.strip().partition("@")
        host, colon, remote = rest.partition(":")
        if not (local and at and host and colon and remote) or "\0" in part:
            raise ValueError(f"{part.strip()!r} is not of the form local_path@host:remote_path")
        if hosts is not None and host not in hosts:
            raise ValueError(
                f"{part.strip()!r}: files of host {host} cannot be staged, only those of this "
                "machine"
            )
        found.append(Staged(local, host, remote))
    return tuple(found)


def names_of(host: str) -> frozenset[str]:
    """Return the names that a machine may be called by."""
    return frozenset({host, host.partition(".")[0], "localhost"} - {""})
