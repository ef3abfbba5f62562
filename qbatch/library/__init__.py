"""The library: the public functions and classes that ``qbatch`` exports, and what the commands
share with them.

It never prints, and has no command-line options and no Typer.  Decisions of policies, metrics and
formulas belong to the packages below.  This file imports nothing, so that the use of one module
loads only that module. ``qbatch/__init__.py`` lists the public names, each with its module;
``tests/library/public_names.txt`` holds their signatures.
"""
