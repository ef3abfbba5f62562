"""The runs of Figures 3 to 10 that a folder keeps: a change of one policy leaves the runs of the others."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from qbatch.papers import origin2000_runs
from qbatch.papers.kept import Folder, hash_of, modules_of_policy
from qbatch.papers.origin2000_runs import POLICIES, Case, RunFigures, machine_of_paper
from qbatch.policies import load_policy


class Kept(Folder[RunFigures]):
    """Runs in a folder, a file each."""

    def __init__(self, folder: Path) -> None:
        """Keep runs in this folder; it is made if only it is missing."""
        super().__init__(folder, RunFigures)

    def read(self, case: Case) -> RunFigures | None:
        """Return the run that is kept of a case; None if there is none, or if it was made by other sources."""
        found = self.find(_name(case), sources_hash(case.policy))
        if found is None or found.case != case:
            return None
        self.read_count += 1
        return found

    def write(self, one: RunFigures) -> None:
        """Keep a run in place of what was kept of its case."""
        self.put(_name(one.case), sources_hash(one.case.policy), one)


def _name(case: Case) -> str:
    policy = re.sub(r"[^\w*&.=-]+", "_", case.policy)
    days = "" if case.days is None else f"-{case.days}days"
    return f"{case.month}{days}-seed{case.seed}-{policy}.json"


@lru_cache(maxsize=len(POLICIES))
def sources_hash(policy: str) -> str:
    """Return a hash of all that a run under a policy of the paper depends on, but for month and seed."""
    asked = POLICIES[policy]
    modules = {origin2000_runs.__name__} | modules_of_policy(load_policy(asked))
    return hash_of(f"{asked}\n{machine_of_paper()!r}", modules)
