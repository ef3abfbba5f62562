"""The library: qbatch for programs and notebooks.

This package holds the public functions and classes that ``qbatch`` exports: reading, generating and transforming logs;
machines and policies; ``replay`` and ``compare``; results that display themselves; a private batch server.  The commands share
some of its modules: an experiment between reading and printing (:mod:`qbatch.library.experiment`), the sides of a comparison
(:mod:`qbatch.library.sides`), the private server (:mod:`qbatch.library.private_server`).

It never prints, and has no command-line options and no Typer.  Decisions of policies, metrics and formulas belong to the packages
below.  This file imports nothing, so that the use of one module loads only that module.

``qbatch/__init__.py`` lists the public names, each with its module; ``tests/library/public_names.txt``
holds their signatures.
"""
