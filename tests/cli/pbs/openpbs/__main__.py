"""Record the answers of an OpenPBS, or show where qbatch differs from those that are recorded.

``python -m tests.cli.pbs.openpbs record FILE`` types the scripts at the PBS commands on PATH, as an
ordinary user, in the home directory, and writes what they answer.  ``python -m
tests.cli.pbs.openpbs compare [PLACE ...]`` types them at qbatch and prints what differs and is not
intended.
"""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.cli.pbs.openpbs.table import (
    PARTS,
    Difference,
    answered,
    differences,
    intended,
    recorded,
    shown,
)
from tests.cli.pbs.openpbs.typed import Site, type_all


def record(path: Path) -> None:
    """Type the scripts at the PBS of this machine, one after the other, and write the answers."""
    user = pwd.getpwuid(os.getuid())
    named = subprocess.run(["qstat", "-Bf"], capture_output=True, text=True, check=True).stdout
    server = named.partition("\n")[0].removeprefix("Server: ").strip()
    site = Site(server, os.uname().nodename, user.pw_name, Path(user.pw_dir), os.environ)
    scripts = [script for script, _ in recorded()]
    answers = type_all(site, scripts, 1, own_directories=False)
    rows = [
        {"script": script, **answer._asdict()}
        for script, answer in zip(scripts, answers, strict=True)
    ]
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def main(words: list[str]) -> int:
    """Do what the command line asks; return the exit code."""
    if words[:1] == ["record"] and len(words) == 2:
        record(Path(words[1]))
        return 0
    if words[:1] != ["compare"]:
        sys.stderr.write(f"usage: {__doc__}")
        return 2
    with tempfile.TemporaryDirectory() as directory:
        typed = answered(Path(directory))
    found = sorted(differences(typed) - set(intended()))
    chosen = [Difference(int(place), part) for place in words[1:] for part in PARTS] or found
    for each in chosen:
        sys.stdout.write(shown(*each, typed) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
