"""The installed PBS commands, and a directory of links to them that jobs get on PATH."""

from __future__ import annotations

import os
import sys
import sysconfig

from qbatch.model.errors import InputError

COMMANDS = (
    "qbatch",
    "qsub",
    "qstat",
    "qdel",
    "qalter",
    "qhold",
    "qrls",
    "qmove",
    "qmsg",
    "qrerun",
    "qselect",
    "qsig",
    "pbsnodes",
    "tracejob",
    "qorder",
    "qenable",
    "qdisable",
    "qstart",
    "qstop",
    "pbsdsh",
    "qrun",
    "qterm",
    "qmgr",
    "pbs_rsub",
    "pbs_rstat",
    "pbs_rdel",
)
"""The commands that are put on PATH; only these, so that no other program of this installation
hides the user's own."""


def find_commands() -> str:
    """Return the directory of this installation's PBS commands.

    Raises:
        InputError: the commands are not there.
    """
    places = [
        os.path.dirname(sys.executable),
        sysconfig.get_path("scripts"),
        os.path.dirname(os.path.abspath(sys.argv[0])),
    ]
    for place in places:
        if all(os.access(f"{place}/{name}", os.X_OK) for name in COMMANDS):
            return os.path.abspath(place)
    lacking = [name for name in COMMANDS if not os.access(f"{places[0]}/{name}", os.X_OK)]
    raise InputError(
        f"{places[0]}: {lacking[0]} is not there; install qbatch with pip, which puts the PBS "
        "commands there"
    )


def link_commands(directory: str) -> None:
    """Make or update a directory of links to the commands.

    Raises:
        InputError: the commands are not installed.
    """
    scripts = find_commands()
    os.makedirs(directory, mode=0o700, exist_ok=True)
    for name in COMMANDS:
        link, target = f"{directory}/{name}", f"{scripts}/{name}"
        if os.path.islink(link) and os.readlink(link) == target:
            continue
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(target, link)
