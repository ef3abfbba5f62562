"""Sweeps: thousands of runs, each made once and stored.

This package holds the grid of a sweep and its cases, the making of one run, and the store of runs
by the hash of their inputs. It also holds the executors that share them (processes here, workers of
a Dask cluster), and the table of runs with its summary and intervals.  The studies of the papers
use the same store and executors.  It never defines how policies decide, how runs are replayed or
measured (``simulation``, ``metrics``), pictures and pages (``reports``), or a terminal (``cli``).
"""
