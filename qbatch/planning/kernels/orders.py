"""The names of the orders in which a policy may look at the queue, without the compiler behind them."""

from __future__ import annotations

FCFS = 0
SJF = 1
LXF = 2

ORDERS = {"fcfs": FCFS, "sjf": SJF, "lxf": LXF}
"""Name of each order and the number that the kernels know it by."""
