"""Virtual time: the drivers that replay a workload under a policy, and the resulting schedule.

The package never contains a decision, a metric or a file.  ``run`` is the only entry: it returns
the same schedule with every driver, as the tests check.
"""

from qbatch.simulation.drivers import DRIVERS, run
from qbatch.simulation.prepare import Options, prepare

__all__ = ["DRIVERS", "Options", "prepare", "run"]
