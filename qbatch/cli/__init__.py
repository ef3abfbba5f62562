"""The terminal commands: one file a command, and the renderers that they share.

What lives here: options, calls into the rooms below, tables and messages.  Data goes to stdout, talk to stderr.
What must never come in: computing.  Heavy imports (NumPy, Numba, rich) stand inside the commands that need them, so
that ``qbatch --help`` stays quick.
"""
