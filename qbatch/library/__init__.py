"""The library: what a program or a notebook does with qbatch in a few lines.

What lives here: the public functions and classes that ``qbatch`` exports (reading, generating and transforming logs; machines and
policies; ``replay``, ``compare``; results that show themselves; a private batch server), and what they share with the commands:
an experiment between its reading and its printing (:mod:`qbatch.library.experiment`), the sides of a comparison
(:mod:`qbatch.library.sides`), the private server (:mod:`qbatch.library.private_server`).

What must never come in: printing, options of a command line, Typer; a decision of a policy, a metric, a formula: those have rooms
of their own below.  This file imports nothing, so that what needs one module of the room pays for that one only.

The public names stand in ``qbatch/__init__.py``, each with its module; ``tests/library/public_names.txt``
holds their signatures.
"""
