"""The nouns: job, host, machine, time, events, actions, errors, and the record of a finished run.

Contents: frozen values that every other package uses.  The package never contains files, sockets,
clocks or decisions, and never imports another package.  ``qbatch.model`` itself imports no NumPy, because the short
commands import it; the columns of a finished run are in :mod:`qbatch.model.record`, which does.
"""
