"""Logs made from logs: steps that change the load, estimates and deadlines, or resample weeks and
users, each a function.

Contents: the steps, the pipeline that names them in a text (``steps``), the side file of deadlines
for an SWF file, and sets of jobs that fill a machine exactly (``packed``).  The package never
schedules: a step that needs a reference schedule receives the responses from it.

Source: Islam, Balaji, Sadayappan and Panda 2003, section 4; docs/spec/papers.md 2.8, rules 15 to
17.  Users' estimates: ``tsafrir``; resampled weeks and users: ``resampling``.
"""

from qbatch.workloads.transform.deadlines import (
    ARTIFICIAL,
    ASKED,
    DeadlineLog,
    read_deadlines,
    with_artificial,
    with_deadlines,
    write_deadlines,
)
from qbatch.workloads.transform.load import (
    duplicated,
    exact_estimates,
    expanded,
    sized,
    taken,
    users_estimates,
    with_origin,
)
from qbatch.workloads.transform.packed import packed_set
from qbatch.workloads.transform.resampling import RESAMPLINGS, resampled
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
    "with_origin",
    "write_deadlines",
]
