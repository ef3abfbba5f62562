"""Months of jobs like those of NCSA's Origin 2000, generated from what is printed about them.

Contents: the printed table and the shares to draw from (``tables``), how one class is drawn so that
its demands are met (``jobs``), a month as a log and its statistics (``month``).  The package never
contains scheduling, or anything that gives other results on another machine.
"""

from qbatch.workloads.origin2000.month import generate_month
from qbatch.workloads.origin2000.tables import CLASSES, MONTHS

__all__ = ["CLASSES", "MONTHS", "generate_month"]
