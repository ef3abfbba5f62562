"""The model of Lublin and Feitelson: sizes, run times and arrivals of rigid jobs.

Contents: the three published sets of parameters and their fit to another machine (``parameters``), gamma variates and the
weights of the day (``gamma``), sizes and run times (``jobs``).  Also arrivals of both types (``arrivals``), and a log of it all
(``model``).  The package never contains scheduling, or anything that gives other results on another machine.

Source: U. Lublin and D. G. Feitelson, *The workload on parallel supercomputers: modeling the characteristics of rigid jobs*, J.
Parallel and Distributed Computing 63(11), 2003; constants and readings of its program in docs/spec/workloads.md 2.1.
"""

from qbatch.workloads.lublin.model import ESTIMATES, generate_lublin
from qbatch.workloads.lublin.parameters import BATCH, INTERACTIVE, TYPELESS, TYPES, Parameters

__all__ = ["BATCH", "ESTIMATES", "INTERACTIVE", "TYPELESS", "TYPES", "Parameters", "generate_lublin"]
