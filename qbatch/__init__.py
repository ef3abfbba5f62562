"""qbatch: an emulated batch system around one scheduling engine.

What lives here: the package's version, nothing else.  Importing ``qbatch`` costs nothing, so that
the short commands start fast; every room below is imported where it is used.

The rooms, and who may import whom, are drawn in README.md and enforced by the import contracts in
``pyproject.toml``.
"""

from qbatch.distribution import __version__

__all__ = ["__version__"]
