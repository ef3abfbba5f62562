"""The names of the orders in which a policy may scan the queue; this module does not import the
compiler."""

from __future__ import annotations

FCFS = 0
SJF = 1
LXF = 2
PRIORITY = 3
"""By weights; the kernels use the same numbers."""

SJF_BEHIND = 4
"""By submission up to the first job that cannot start; then shortest estimate first."""

ORDERS = {"fcfs": FCFS, "sjf": SJF, "lxf": LXF}
"""The kernels' number of each order of the whole queue that has no weights, by name."""

LOOP_ORDERS = {**ORDERS, "sjf-behind": SJF_BEHIND}
"""The same for every order without weights of a list scheduler."""
