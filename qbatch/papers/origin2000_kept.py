"""The runs of Figures 3 to 10 that a folder keeps: a change of one policy leaves the runs of the others."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from qbatch.papers import origin2000_runs
from qbatch.papers.kept import CaseFolder, hash_of, modules_of_policy
from qbatch.papers.origin2000_runs import POLICIES, Case, RunFigures, machine_of_paper
from qbatch.policies import load_policy


class Kept(CaseFolder[RunFigures]):
    """Runs in a folder, a file each."""

    def __init__(self, folder: Path) -> None:
        """Keep runs in this folder; it is made if only it is missing."""
        super().__init__(folder, RunFigures)

    @staticmethod
    def name_of(case: Case) -> str:
        """Return the name of the file of a case."""
        policy = re.sub(r"[^\w*&.=-]+", "_", case.policy)
        days = "" if case.days is None else f"-{case.days}days"
        return f"{case.month}{days}-seed{case.seed}-{policy}.json"

    @staticmethod
    def sources_of(case: Case) -> str:
        """Return a hash of all that a run depends on, but for what the name of its file says."""
        return sources_hash(case.policy)


@lru_cache(maxsize=len(POLICIES))
def sources_hash(policy: str) -> str:
    """Return a hash of all that a run under a policy of the paper depends on, but for month and seed."""
    asked = POLICIES[policy]
    modules = {origin2000_runs.__name__} | modules_of_policy(load_policy(asked))
    return hash_of(f"{asked}\n{machine_of_paper()!r}", modules)
