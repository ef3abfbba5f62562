"""A finished schedule in the forms that other programs read.

What lives here: one file a form (job rows as Parquet or CSV, a log in the Standard Workload Format, a trace for Perfetto,
Batsim's ``jobs.csv``, a result's directory), and the table of them.  What must never come in: running anything, reading anything
but the ``Exportable`` that is given, printing.  Each but the directory writes to a binary file that the caller opened.
"""

from qbatch.results.exports.directory import write_directory
from qbatch.results.exports.exportable import Exportable, ExportedBar
from qbatch.results.exports.forms import FORMS, Form

__all__ = ["FORMS", "Exportable", "ExportedBar", "Form", "write_directory"]
