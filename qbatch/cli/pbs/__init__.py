"""The PBS commands, such as ``qsub``, ``qstat`` and ``qdel``, and the texts that they print;
:mod:`.start` finds each.

The package holds the POSIX options, messages and exit codes of PBS (specified in docs/spec/pbs.md),
and pure functions from :mod:`qbatch.wire.records` to text (``format_*.py``), which other commands
use too.  It decides nothing.  It never imports anything that takes long (Typer, rich, asyncio,
NumPy, argparse, dataclasses): users run these commands in loops, and each answers in well under a
tenth of a second.
"""
