"""The table: the answers of OpenPBS, those of qbatch, and where they differ.

Our messages may say more behind P's own words: each line of P's stderr begins one of ours, in
order.  Exit codes and stdout are equal.
"""

from __future__ import annotations

import json
import os
import pwd
import secrets
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.cli.pbs.openpbs.typed import Answer, Site, normalised, type_all
from tests.daemon.harness import Daemon

HERE = Path(__file__).parent
PARTS = ("exit", "stdout", "stderr")

CONFIG = """
server = "vm"
login_shell = true
[[pool]]
hosts = "n[1-4]"
cpus = 16
memory = "64gb"
[[queue]]
name = "workq"
default_walltime = "1:00:00"
"""
"""The site at which the answers were recorded."""

_LEFT = 4
"""Held jobs that earlier scripts had left in P's queue when those scripts were typed; ``qsub
-h -z`` leaves one more."""


_LETTERS = len("/home/pbsuser1") - len("/tmp/")


class Difference(NamedTuple):
    """One input of the table where a part of the answer differs: ``exit``, ``stdout`` or
    ``stderr``."""

    place: int
    part: str


def recorded() -> list[tuple[str, Answer]]:
    """Return the scripts with the answers of OpenPBS, normalised."""
    rows = json.loads((HERE / "answers.json").read_text(encoding="utf-8"))
    there = Site("vm", "vm", "pbsuser1", Path("/home/pbsuser1"), {})
    return [
        (
            row["script"],
            normalised(there, there.home, Answer(*(row[part] for part in PARTS))),
        )
        for row in rows
    ]


def intended() -> dict[Difference, str]:
    """Return the differences that are intended, with their reasons.

    Raises:
        ValueError: an entry names another script than the one at its place.
    """
    scripts = [script for script, _ in recorded()]
    found: dict[Difference, str] = {}
    entries = tomllib.loads((HERE / "differences.toml").read_text("utf-8"))
    for entry in entries.get("difference", ()):
        for place, words in zip(entry["inputs"], entry["words"], strict=True):
            if words not in scripts[place]:
                raise ValueError(f"differences.toml: input {place} does not hold {words!r}")
            found.update({Difference(place, part): entry["reason"] for part in entry["parts"]})
    return found


@contextmanager
def our_site(place: Path, letters: int) -> Iterator[Site]:
    """Give a site with the hosts, the queue and the names of P, served by qbatch.

    The path of its home directory ends with that many letters, so that long lines are broken where
    P breaks them.
    """
    place.mkdir()
    home = Path("/tmp", secrets.token_hex(letters)[:letters])
    home.mkdir(mode=0o700)
    daemon = Daemon(place, config=CONFIG)
    daemon.home = str(home)
    daemon.start()
    user = pwd.getpwuid(os.getuid()).pw_name
    given = daemon.environment
    environment = {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "LOGNAME": user,
        "MAIL": "/var/mail/pbsuser1",
        "PATH": given["PATH"],
        "SHELL": "/bin/bash",
        "USER": user,
        **{key: value for key, value in given.items() if key.startswith(("QBATCH_", "PYTHON"))},
    }
    try:
        yield Site("vm", os.uname().nodename, user, home, environment)
    finally:
        daemon.kill()
        shutil.rmtree(home)


def answered(directory: Path) -> list[Answer]:
    """Type all scripts at qbatch and return its answers in order."""
    scripts = [script for script, _ in recorded()]
    alone = [place for place, script in enumerate(scripts) if is_alone(place, script)]
    others = [place for place in range(len(scripts)) if place not in set(alone)]
    found: dict[int, Answer] = {}

    def type_alone(site: Site) -> None:
        type_all(site, ["echo sleep 1 | qsub -h"] * _LEFT, 1, own_directories=False)
        given = type_all(site, [scripts[place] for place in alone], 1, own_directories=False)
        found.update(zip(alone, given, strict=True))

    def type_others(site: Site) -> None:
        given = type_all(site, [scripts[place] for place in others], 3)
        found.update(zip(others, given, strict=True))

    with (
        our_site(directory / "alone", _LETTERS) as one,
        our_site(directory / "others", _LETTERS - len("/s000")) as other,
        ThreadPoolExecutor(2) as pool,
    ):
        for typing in [pool.submit(type_alone, one), pool.submit(type_others, other)]:
            typing.result()
    return [found[place] for place in range(len(scripts))]


def differences(typed: list[Answer]) -> set[Difference]:
    """Return where our answers differ from those of P."""
    found = set()
    for place, ((_, theirs), ours) in enumerate(zip(recorded(), typed, strict=True)):
        same: Mapping[str, bool] = {
            "exit": theirs.exit == ours.exit,
            "stdout": theirs.stdout == ours.stdout,
            "stderr": begins(ours.stderr, theirs.stderr),
        }
        found |= {Difference(place, part) for part in PARTS if not same[part]}
    return found


def begins(ours: str, theirs: str) -> bool:
    """Return whether each line of theirs begins a line of ours, in order; where they say nothing,
    we say nothing."""
    if not theirs:
        return not ours
    lines = iter(ours.splitlines())
    return all(
        any(line.startswith(wanted.rstrip()) for line in lines) for wanted in theirs.splitlines()
    )


def shown(place: int, part: str, typed: list[Answer]) -> str:
    """Return one difference as text."""
    script, theirs = recorded()[place]
    return (
        f"--- input {place}, {part}: {script}\n"
        f"    P: {getattr(theirs, part)!r}\n    Q: {getattr(typed[place], part)!r}"
    )


def is_alone(place: int, script: str) -> bool:
    """Return whether a script shows the whole queue or the hosts: such scripts are typed one after
    the other, in a directory and on a server of their own."""
    return 172 <= place < 214 or 249 <= place < 283 or "-h -z" in script
