"""Months of jobs like those of NCSA's Origin 2000, generated from what is printed about them.

What lives here: the printed table and the shares that are drawn from (``tables``), how one class is drawn so that its demands are
met (``jobs``), when jobs arrive (``arrivals``), a month as a log (``month``), and its statistics beside the paper's
(``facts``).  What must never come in: scheduling, and anything that another machine would compute otherwise.
"""

from qbatch.workloads.origin2000.month import generate_month
from qbatch.workloads.origin2000.tables import CLASSES, MONTHS

__all__ = ["CLASSES", "MONTHS", "generate_month"]
