"""The model of Lublin and Feitelson: sizes, run times and arrivals of rigid jobs.

What lives here: the three published sets of parameters and how they fit another machine (``parameters``), gamma variates and the
weights of the day (``gamma``), sizes and run times (``jobs``), arrivals of both types (``arrivals``), and a log of it all
(``model``).
What must never come in: scheduling, and anything that another machine would compute otherwise.

Source: U. Lublin and D. G. Feitelson, *The workload on parallel supercomputers: modeling the characteristics of rigid jobs*, J.
Parallel and Distributed Computing 63(11), 2003; constants and readings of its program in docs/spec/workloads.md 2.1.
"""

from qbatch.workloads.lublin.model import ESTIMATES, generate_lublin
from qbatch.workloads.lublin.parameters import BATCH, INTERACTIVE, TYPELESS, TYPES, Parameters

__all__ = ["BATCH", "ESTIMATES", "INTERACTIVE", "TYPELESS", "TYPES", "Parameters", "generate_lublin"]
