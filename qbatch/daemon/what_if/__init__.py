"""What-if policies as pure state machines: what other policies would have done with the same
submissions.

The package holds a replica that follows the real server's journal, the run times that are known so
far, one core for each what-if policy, and statistics of each.  It must never use clocks, sockets,
files or processes, which are in :mod:`qbatch.daemon.what_if_process`, nor anything that reaches a
job: a what-if policy only watches.
"""
