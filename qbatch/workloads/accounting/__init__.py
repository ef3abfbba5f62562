"""Accounting records of real batch systems, turned into a workload log.

Contents: one file per format (``pbs``, ``sacct``) that turns lines into the common
``AccountingRecord``; ``times`` for wall clocks with daylight saving.  ``assembly`` makes jobs of
records, ``swf_log`` makes the log, ``hosts_seen`` the machine, and ``importing`` does all of it in
order.  The package never guesses without reporting it, schedules, or prints.  A line that cannot be
used is counted under its reason, with the place of the first, in ``ImportCounts``; every dropped
line counts.
"""

from qbatch.workloads.accounting.importing import FORMATS, Imported, import_files
from qbatch.workloads.accounting.swf_log import ImportOptions

__all__ = ["FORMATS", "ImportOptions", "Imported", "import_files"]
