"""The compiled replay: the one event loop of every policy that decides by a kernel, and the closed network in it.

The loop advances from instant to instant, ends and submits jobs, and carries out the decisions of a policy.  It never
makes decisions: policies decide in ``planning.kernels``.  The tests compare the loop with the engine, start by start.
"""
