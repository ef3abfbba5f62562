"""The names of the orders in which a policy may look at the queue, without the compiler behind them."""

from __future__ import annotations

FCFS = 0
SJF = 1
LXF = 2
PRIORITY = 3
"""By weights; the numbers are those of the kernels."""

ORDERS = {"fcfs": FCFS, "sjf": SJF, "lxf": LXF}
"""Name of each order that has no weights and the number that the kernels know it by."""
