"""The compiled inner loop of the metrics: one sweep over the events of a finished run.

It never does what NumPy does as well in a few whole-array steps, because compile time is limited.
"""
