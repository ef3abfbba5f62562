"""The compiled kernels under every decision: the availability profile, the passes, the sweeps.

Contents: code that runs once per queued job, per running job or per profile segment, as functions
over NumPy arrays decorated with :func:`qbatch.planning.kernels.jit.kernel`.  Each also runs
uncompiled (``NUMBA_DISABLE_JIT=1``).  All times are integer microseconds, all amounts are integers.

The kernels never contain objects, strings, clocks, randomness, or floats that decide.
"""
