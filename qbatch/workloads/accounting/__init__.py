"""Accounting records of real batch systems, turned into a workload log.

Contents: one file per format (``pbs``, ``sacct``) that turns lines into the common ``Record``; ``files`` that yields the lines;
``times`` for wall clocks with daylight saving.  ``assembly`` makes jobs of records, ``names`` numbers names, ``swf_log`` makes
the log, and ``importing`` does all of it in order.  The package never guesses without reporting it, schedules, or prints.  A
line that cannot be used is counted under its reason, with the place of the first, in the ``Tally``; every dropped line counts.

The steps: ``files`` (lines) -> ``pbs`` | ``sacct`` (records) -> ``assembly`` (jobs) -> ``swf_log`` (header and columns).
"""

from qbatch.workloads.accounting.importing import FORMATS, Imported, ImportOptions, import_files

__all__ = ["FORMATS", "ImportOptions", "Imported", "import_files"]
