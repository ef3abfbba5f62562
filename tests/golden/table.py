"""The file of hashes: ``POLICY on PLACE = HASH ...``, the first schedules by themselves and then
all of them together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
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


def is_of_log(case: Case) -> bool:
    """Return whether a case replays a real log."""
    return case.on.startswith(("log ", "whole log "))


def first_difference(chosen: Iterable[Case], kept: dict[Case, list[str]], most: int) -> str | None:
    """Return the first schedule that is not that of the table, of the first ``most`` of each case;
    None if all are."""
    for case in chosen:
        if "Error:" in " ".join(kept[case]):
            continue  # the table records the refusal of a whole case
        for number in range(min(case.count, most)):
            if hash_of(case, number) != kept[case][number]:
                return f"{case.policy} on {case.on}, schedule {number}"
    return None
