"""The terminal commands: a file for each command or group of alike commands, and what they share.

This package holds options, calls into the packages below, tables and messages.  Data goes to
stdout, everything else to stderr.  It never computes anything.  The commands import NumPy, Numba
and rich only where they need them, so that ``qbatch --help`` starts quickly.
"""
