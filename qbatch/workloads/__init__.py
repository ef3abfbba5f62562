"""The sources of jobs: logs, and the models that generate them.

Contents:

- logs: reading and writing of the Standard Workload Format and of the five-column text format, the
  header of a log;
- accounting files (``accounting/``), public logs (``catalogue/``), logs made from logs
  (``transform/``), machine files (``machines/``);
- models: a small generator, the model of Lublin and Feitelson (``lublin``), the months of the
  Origin 2000 (``origin2000/``), users' estimates (``tsafrir``) and the models of them for a replay
  (``estimates``).

The package never contains scheduling, policies or clocks.  A log is data: this package reads it,
orders it and reports what is odd about it; the replay decides which of its rows become jobs of a
machine.

The steps: ``source`` (bytes) -> ``swf`` (rows, by the kernel in ``kernels/swf_parse.py``) ->
``log`` (columns); ``header`` reads the comment lines, ``swf_writer`` goes the opposite way.
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
