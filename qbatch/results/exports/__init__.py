"""A finished schedule in the formats of other programs.

Each format is one file (job rows as Parquet or CSV, a log in the Standard Workload Format, a trace
for Perfetto, Batsim's ``jobs.csv``, a result's directory), and one table lists them.  This package
never runs or prints anything, and reads only the given ``Exportable``.  Each format but the
directory writes to a binary file that the caller opened.
"""

from qbatch.results.exports.exportable import Exportable, ExportedBar
from qbatch.results.exports.forms import FORMS, Form, write_directory

__all__ = ["FORMS", "Exportable", "ExportedBar", "Form", "write_directory"]
