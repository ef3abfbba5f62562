"""Tables of jobs (CSV, JSON, Parquet, data frames), turned into a workload log.

Source: docs/spec/production.md, section 8.  ``table_map`` says what the columns mean, and ``maps/``
has the maps of public data.  ``reading`` yields batches of rows, ``cells`` converts their columns,
and ``rows`` makes jobs.  ``disk_sort`` orders them with little memory.  ``importing`` does all of it
and writes the log.  As in :mod:`qbatch.workloads.accounting`, nothing is guessed without
a report: a row or a cell that cannot be used is counted under its reason, with the place of the
first.  The package never prints.
"""
