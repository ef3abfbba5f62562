"""The metrics of a finished run, each with its formula and its source, and comparisons of runs.

Contents: the metrics of one run (``measure``), of its parts (``breakdown``), the table of their
meanings (``METRICS``), and confidence intervals over several runs (``interval``,
``paired_difference``).  A run is a :class:`qbatch.model.record.Schedule`; the package does not know
how it came about.

The package never uses replay, policies, files, tables and pictures (those are the reports'), or a
heavy statistics library.

Rules of counting for all metrics:

* Metrics of jobs (waits, responses, slowdowns, shares, ``jobs``) are over the jobs that ran *and*
  are counted: a warm-up job runs but is not counted.  Metrics of the machine (makespan, throughput,
  utilisation, loss of capacity, the longest queue) are over every job that ran: processors that a
  warm-up job holds are not idle.
* Integers are summed exactly and divided once; ratios are sorted before they are summed.  So the
  order of the rows changes no digit, and every machine prints the same one.
* A percentile is a nearest rank: one of the values, never between two.
* An undefined value (a mean over no jobs, a share of no time) is None, never 0 and never NaN.
"""

from qbatch.metrics.breakdown import BREAKDOWNS, BreakdownGroup, breakdown
from qbatch.metrics.interval import Interval, interval, paired_difference
from qbatch.metrics.measure import measure
from qbatch.metrics.table import METRICS, Metric

__all__ = [
    "BREAKDOWNS",
    "METRICS",
    "BreakdownGroup",
    "Interval",
    "Metric",
    "breakdown",
    "interval",
    "measure",
    "paired_difference",
]
