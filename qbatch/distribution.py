"""The distribution: its name where packages are installed, its version, the commands that install its extras.

The package, the command and the repository are called ``qbatch``; the distribution is not, because that name belongs to
another program on PyPI (CoBrALab's submitter for PBS, SGE and Slurm), which brings a package and a command of that name.
The version stands here and not in ``qbatch/__init__.py``: that is the one file which both have, and where the other's lies
over ours, ``python -m qbatch doctor`` must still start and say so.
"""

from __future__ import annotations

NAME = "qbatch-emulator"
"""The name of the distribution."""

TAKEN_NAME = "qbatch"
"""The name under which another program is on PyPI; until version 0.1.0 this one was installed under it too."""

__version__ = "0.1.0"


def install_command(extra: str) -> str:
    """Return the command that installs an extra (``report``, ``tui``), and where: the distribution is not published yet."""
    return f"pip install '.[{extra}]' in the folder of the sources"
