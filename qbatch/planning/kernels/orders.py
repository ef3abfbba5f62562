"""The names of the orders in which a policy may look at the queue, without the compiler behind them."""

from __future__ import annotations

FCFS = 0
SJF = 1
LXF = 2
PRIORITY = 3
"""By weights; the numbers are those of the kernels."""

SJF_BEHIND = 4
"""By submission up to the first job that cannot start; behind it the shortest estimate first."""

ORDERS = {"fcfs": FCFS, "sjf": SJF, "lxf": LXF}
"""Name of each order of the whole queue that has no weights, and the number that the kernels know it by."""

LOOP_ORDERS = {**ORDERS, "sjf-behind": SJF_BEHIND}
"""The same of every order without weights that a list scheduler can have."""
