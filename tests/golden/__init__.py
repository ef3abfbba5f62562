"""Hashes of whole schedules: what every policy decides today, as one file that a change of the core
must not change.

``schedules.txt`` holds a line for each case: a policy with its parameters, a machine or a log, and
hashes of the schedules. ``python -m tests.golden`` computes them all anew (some minutes on two
cores), names each case that differs and exits with 1; ``python -m tests.golden --write`` writes the
file.

A line changes only with a decision that was wrong by the specification; the commit that changes it
says which.  The random workloads come from ``cases.py`` and from ``tests/engine/live.py``: a change
of these needs the file written anew, by a program with the old decisions.
"""
