"""Executors run jobs for real, each script under a supervisor.  (Emulated jobs are timers:
``daemon/core/execution.py``.)

The package launches, signals and watches attempts, and reports how they ended.  It must never use
the job table, the store or decisions: an executor knows only attempts and run directories.
"""
