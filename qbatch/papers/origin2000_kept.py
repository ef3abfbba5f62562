"""The runs of Figures 3 to 10 that a folder keeps: a change of one policy leaves the runs of the others."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from qbatch.papers import origin2000_runs
from qbatch.papers.origin2000_runs import POLICIES, Origin2000Figures, machine_of_paper
from qbatch.policies import load_policy
from qbatch.sweeps.code import hash_of, modules_of_policy
from qbatch.sweeps.kept import KeptCases


class KeptOrigin2000Runs(KeptCases[Origin2000Figures]):
    """Runs in a folder."""

    def __init__(self, folder: Path) -> None:
        """Keep them in this folder; it is made if only it is missing."""
        super().__init__(folder, Origin2000Figures, lambda case: sources_hash(case.policy))


@lru_cache(maxsize=len(POLICIES))
def sources_hash(policy: str) -> str:
    """Return a hash of all that a run under a policy of the paper depends on, but for month and seed."""
    asked = POLICIES[policy]
    modules = {origin2000_runs.__name__} | modules_of_policy(load_policy(asked))
    return hash_of(f"{asked}\n{machine_of_paper()!r}", modules)
