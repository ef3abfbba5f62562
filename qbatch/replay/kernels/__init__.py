"""The compiled replay: the one event loop of every policy whose decisions are a kernel, and that of the closed network.

What lives here: loops over tables that advance from instant to instant, let jobs end and arrive, and carry out what a policy
decides.  What must never come in: a decision.  Whatever decides is in ``planning.kernels``; the tests hold these loops to the
engine, start for start.
"""
