"""Where jobs come from: logs, and the models that generate them.

What lives here: reading and writing of the Standard Workload Format and of the five-column text
format, the header of a log, accounting files (``accounting/``), a small generator, the model of Lublin and Feitelson
(``lublin/``), the months of the Origin 2000 (``origin2000/``), users' estimates (``tsafrir``) and the models of them that a
replay takes (``estimates``), logs made from logs (``transform/``), the public logs (``catalogue/``) and machine files
(``machines/``).  What must never come in: scheduling, policies, clocks.  A log is data: this room reads it, orders it and
says what is odd about it; which of its rows become jobs of a machine is decided by who replays it.

The walk: ``source`` (bytes) -> ``swf`` (rows, by the kernel in ``kernels/swf_parse.py``) -> ``log``
(columns); ``header`` reads the comment lines, ``plain_text`` says how the five columns become 18,
``swf_writer`` goes the way back.
"""

from qbatch.workloads.findings import Finding, findings
from qbatch.workloads.generate import generate_log
from qbatch.workloads.header import Header, machine_procs, parse_header
from qbatch.workloads.log import FIELDS, Log, facts
from qbatch.workloads.source import log_hash, read_bytes_chunks
from qbatch.workloads.swf import read_log
from qbatch.workloads.swf_writer import write_log, write_schedule

__all__ = [
    "FIELDS",
    "Finding",
    "Header",
    "Log",
    "facts",
    "findings",
    "generate_log",
    "log_hash",
    "machine_procs",
    "parse_header",
    "read_bytes_chunks",
    "read_log",
    "write_log",
    "write_schedule",
]
