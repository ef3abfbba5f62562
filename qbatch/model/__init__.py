"""The nouns: frozen values that every other package uses.

The package never contains files, sockets, clocks or decisions, and never imports another package.
Only ``record`` and ``spans`` import NumPy: the short commands import the rest.
"""
