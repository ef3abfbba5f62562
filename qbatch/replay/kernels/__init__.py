"""The compiled replay loops: the whole event loop of a kernel-only policy as one compiled function.

What lives here: loops over arrays that keep the calendar (arrivals, completions, planned starts) and call the
same pass and plan kernels as the live policies.  What must never come in: a decision.  Whatever decides is in
``planning.kernels``; the tests hold these loops to the engine, start for start.
"""
