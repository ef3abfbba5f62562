"""The compiled inner loop of the metrics room: one sweep over the events of a finished run.

What must never come in: anything that NumPy does as well in a few whole-array steps; compile time is budgeted.
"""
