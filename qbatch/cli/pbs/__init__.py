"""The PBS commands: ``qsub``, ``qstat``, ``qdel`` and their family, and the texts that they print; :mod:`.start` finds each.

What lives here: POSIX options, messages and exit codes as PBS has them (the contract is docs/spec/pbs.md), and pure
functions from :mod:`qbatch.wire.records` to text (``format_*.py``), which other commands use too.  What must never come
in: deciding anything, and any import that takes long (Typer, rich, asyncio, NumPy, argparse, dataclasses): these
commands run in loops and answer in well under a tenth of a second.
"""
