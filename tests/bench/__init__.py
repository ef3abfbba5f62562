"""Benchmarks: ``make bench``.  Figures are quoted as ratios within one run, never asserted by a
test.

The plain-Python loop below is the yardstick that anybody has: the same EASY, written as one would
without kernels.
"""
