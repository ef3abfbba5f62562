"""Virtual time: the drivers that replay a workload under a policy, and what comes of it.

What lives here: where jobs come from (sources), the event calendar around the engine, the compiled loop, the choice
between them, sweeps over many runs.  What must never come in: a decision, a metric, a file.  ``run`` is
the one door: it gives the same schedule whichever driver it takes, which the tests hold.
"""

from qbatch.replay.drivers import DRIVERS, run
from qbatch.replay.prepare import Options, prepare

__all__ = ["DRIVERS", "Options", "prepare", "run"]
