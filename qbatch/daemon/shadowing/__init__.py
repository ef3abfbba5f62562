"""Shadow policies as pure state machines: what other policies would have done with the same submissions.

What lives here: a mirror that follows the real server's journal, the run times that reality has shown so far, one shadow
core for each policy, and what is counted of each.  What must never come in: a clock, a socket, a file, a process (they are
in :mod:`qbatch.daemon.shadows`), and anything that reaches a job: a shadow only watches.
"""
