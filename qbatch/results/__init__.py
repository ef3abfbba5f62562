"""Finished runs as files: job rows, result directories, execution intervals, recorded logs, exports
to other formats.

This package writes and reads the outcome of a run, and decides which results may be compared.  It
never computes a schedule, judges one, or draws pictures and pages.
"""
