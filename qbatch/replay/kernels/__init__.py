"""The compiled replay: the one event loop of every policy whose decisions are a kernel, and the closed network in it.

The loop advances from instant to instant, lets jobs end and arrive, and carries out what a policy decides.  Decisions
never belong here: policies decide in ``planning.kernels``.  The tests compare the loop with the engine, start by start.
"""
