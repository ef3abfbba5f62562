"""Logs made from logs: steps that change the load, estimates and deadlines, or draw weeks and users anew, each a function.

What lives here: the steps, the pipeline that names them in a text (``steps``), the side file in which deadlines stand beside an
SWF file, and sets of jobs that fill a machine exactly (``packed``).  What must never come in: scheduling.  A step that needs a
reference schedule is handed what it needs of it.

Source: Islam, Balaji, Sadayappan and Panda 2003, section 4; docs/spec/papers.md 2.8, rules 15 to 17; of users' estimates:
``tsafrir``; of weeks and users drawn anew: ``resampling``.
"""

from qbatch.workloads.transform.deadlines import ARTIFICIAL, ASKED, DeadlineLog, with_artificial, with_deadlines
from qbatch.workloads.transform.estimates import exact_estimates, users_estimates
from qbatch.workloads.transform.load import duplicated, expanded, sized, taken
from qbatch.workloads.transform.packed import packed_set
from qbatch.workloads.transform.resampling import RESAMPLINGS, resampled
from qbatch.workloads.transform.side_file import read_deadlines, write_deadlines
from qbatch.workloads.transform.steps import STEPS, Step, read_steps

__all__ = [
    "ARTIFICIAL",
    "ASKED",
    "RESAMPLINGS",
    "STEPS",
    "DeadlineLog",
    "Step",
    "duplicated",
    "exact_estimates",
    "expanded",
    "packed_set",
    "read_deadlines",
    "read_steps",
    "resampled",
    "sized",
    "taken",
    "users_estimates",
    "with_artificial",
    "with_deadlines",
    "write_deadlines",
]
