"""Sweeps: thousands of runs, each made once and kept.

What lives here: the grid of a sweep and its cases, what makes one run, the store that keeps runs by the hash of all that they
depend on, the executors that share them (processes here, workers of a Dask cluster), the table of runs and its summary with
intervals.  The studies of the papers run on the same store and executors.  What must never come in: how a policy decides, how a
run is replayed or measured (``replay``, ``metrics``), pictures and pages (``reports``), a terminal (``cli``).
"""
