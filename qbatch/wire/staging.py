"""What is copied before and after a job: ``stagein`` and ``stageout`` as PBS writes them.

Source: OpenPBS pbs_job_attributes(7): ``local_path@host:remote_path[,...]``; the local path is where the job works, a
relative one in its staging and execution directory; the remote path on the host named, here always this machine.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

SANDBOXES = ("HOME", "O_WORKDIR", "PRIVATE")
"""Values of ``sandbox``: the job works in its user's home directory, where it was submitted, or in a directory of its own."""


class Staged(NamedTuple):
    """One part of a list: a path where the job works, a host and a path there."""

    local: str
    host: str
    remote: str


def parse_staging(text: str, hosts: Collection[str] | None = None) -> tuple[Staged, ...]:
    """Return the parts of a list; ``hosts``: the names of this machine, None if they are not to be checked.

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
            raise ValueError(f"{part.strip()!r}: files of host {host} cannot be staged, those of this machine only")
        found.append(Staged(local, host, remote))
    return tuple(found)


def names_of(host: str) -> frozenset[str]:
    """Return the names under which a machine may be called."""
    return frozenset({host, host.partition(".")[0], "localhost"} - {""})
