"""The compiled replay: the one event loop of every policy that decides by a kernel, and the closed
network in it.

It never makes decisions: policies decide in ``planning.kernels``.  The tests compare the loop with
the engine, start by start.
"""
