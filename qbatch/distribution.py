"""The distribution: its name where packages are installed, its version, the commands that install
its extras.

The package, the command and the repository are called ``qbatch``.  The distribution is not, because
that name belongs to another program on PyPI (CoBrALab's submitter for PBS, SGE and Slurm), which
has a package and a command of that name. The version is defined here because both programs have a
``qbatch/__init__.py``: even where the other's file replaces ours, ``python -m qbatch doctor`` must
start and report it.
"""

from __future__ import annotations

NAME = "qbatch-emulator"
"""The name of the distribution."""

TAKEN_NAME = "qbatch"
"""The name of another program on PyPI; this one used it too until version 0.1.0."""

__version__ = "0.1.0"


def install_command(extra: str) -> str:
    """Return the command that installs an extra (``report``, ``tui``) from the sources; the
    distribution is not on PyPI yet."""
    return f"pip install '.[{extra}]' in the folder of the sources"
