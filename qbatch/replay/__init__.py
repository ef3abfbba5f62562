"""Virtual time: the drivers that replay a workload under a policy, and the resulting schedule.

Contents: the sources of jobs, the event calendar around the engine, the compiled loop, the choice
between them, sweeps over many runs.  The package never contains a decision, a metric or a file.  ``run`` is
the only entry: it returns the same schedule with every driver, as the tests check.
"""

from qbatch.replay.drivers import DRIVERS, run
from qbatch.replay.prepare import Options, prepare

__all__ = ["DRIVERS", "Options", "prepare", "run"]
