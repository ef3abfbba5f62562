"""Accounting records of real batch systems, turned into a workload log: bring your own cluster.

What lives here: one file a format (``pbs``, ``sacct``) that turns lines into the common ``Record``; ``times`` for wall
clocks with daylight saving; ``assembly`` that makes jobs of records; ``names`` that gives numbers to names;
``swf_log`` that makes the log; ``files`` that brings the lines; ``importing`` that does all of it in order.  What must
never come in: guesses that are not told, scheduling, printing.  A line that cannot be used is counted under its
reason, with the place of the first, in the ``Tally``; nothing is dropped in silence.

The walk: ``files`` (lines) -> ``pbs`` | ``sacct`` (records) -> ``assembly`` (jobs) -> ``swf_log`` (header and columns).
"""

from qbatch.workloads.accounting.importing import FORMATS, Imported, ImportOptions, import_files

__all__ = ["FORMATS", "ImportOptions", "Imported", "import_files"]
