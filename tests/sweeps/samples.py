"""Small logs, policies that misbehave, and a sweep of a few runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qbatch.sweeps.executors import Place
from qbatch.sweeps.grid import grid_of
from qbatch.sweeps.plan import SweepPlan, plan_of
from qbatch.sweeps.sweep import SweepDone, run_sweep
from qbatch.workloads.generate import generate_log
from qbatch.workloads.swf_writer import write_log

HERE = Place(1)

MODULE = """
import os
from pathlib import Path
from qbatch.policies import load_policy

class Late:
    '''EASY that fails, or takes its process with it, when row 60 comes to the queue.'''
    def __init__(self, how="raise"):
        self.name, self.inner, self.how = f"late-{how}", load_policy("easy"), how
    def decide(self, view):
        if 60 in view.arrived:
            if self.how == "kill":
                os._exit(9)
            raise ValueError("job 60 is not to my liking")
        return self.inner.decide(view)

class Never:
    name = "never"
    def decide(self, view):
        raise KeyError("nothing works")

class Ending:
    name = "ending"
    def decide(self, view):
        os._exit(0)
"""


def write_sample(path: Path, *, jobs: int = 120, seed: int = 1) -> str:
    """Write a log of a few weeks, with users."""
    log = generate_log(jobs=jobs, procs=16, load=0.9, seed=seed)
    with path.open("wb") as file:
        write_log(file, log.header, log.columns)
    return str(path)


def planned(log: str, **axes: Any) -> SweepPlan:
    """Return the plan of a grid over one log."""
    return plan_of(grid_of({"log": log, **axes}, "test"))


def swept(folder: Path, log: str, place: Place = HERE, **axes: Any) -> SweepDone:
    """Run a sweep over one log."""
    return run_sweep(planned(log, **axes), folder, place)
