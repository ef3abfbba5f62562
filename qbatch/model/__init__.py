"""The nouns: job, host, machine, time, events, actions, errors, and the record of a finished run.

What lives here: frozen values that every other room speaks of.  What must never come in: files, sockets,
clocks, decisions, and any import of another room.  ``qbatch.model`` itself imports no NumPy, because the short
commands import it; the columns of a finished run stand in :mod:`qbatch.model.record`, which does.
"""
