"""The machines that are shipped, as machine files, and the way to any machine file.

What lives here: TOML files of machines that papers describe, each with its source, and the one function that reads them.
What must never come in: workloads, policies, and what a machine file means (``qbatch/model/machine.py``).
"""

from __future__ import annotations

import os
from importlib.resources import files

from qbatch.model.errors import InputError, suggestion
from qbatch.model.machine import Machine
from qbatch.model.machine_file import parse_machine

SHIPPED = ("origin2000",)
"""Names that stand for a machine file of this package."""


def load_machine(name: str) -> Machine:
    """Return the machine of a file, or the shipped one of this name where there is no such file.

    Raises:
        InputError: there is neither, or the file cannot be read or understood.
    """
    if name in SHIPPED and (not os.path.exists(name) or os.path.isdir(name)):
        return parse_machine(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"), name)
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        hint = suggestion(name, SHIPPED) or f"; name a file, or a machine that is shipped: {', '.join(SHIPPED)}"
        raise InputError(f"{name}: machine file cannot be read ({reason}){hint}") from error
    return parse_machine(text, name)
