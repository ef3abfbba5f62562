"""The file of hashes: ``POLICY on PLACE = HASH ...``, the first schedules by themselves and then
all of them together."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.golden.cases import FIRST, Case, hash_of

FILE = Path(__file__).parent / "schedules.txt"


def read() -> dict[Case, list[str]]:
    """Return the hashes of the file by case."""
    found = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        name, _, hashes = line.partition(" = ")
        policy, _, on = name.partition(" on ")
        found[Case(policy, on)] = hashes.split()
    return found


def line_of(case: Case) -> str:
    """Return the line of a case, computed anew."""
    hashes = [hash_of(case, number) for number in range(case.count)]
    if case.count > FIRST:
        hashes = [*hashes[:FIRST], hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:16]]
    return f"{case.policy} on {case.on} = {' '.join(hashes)}"
