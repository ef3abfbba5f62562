"""The machine files of the package, and the function that loads any machine file.

Contents: TOML files of machines that papers describe, each with its source, and the function that
reads them. The package never contains workloads, policies, or the meaning of a machine file
(``qbatch/model/machine.py``).
"""

from __future__ import annotations

import os
from importlib.resources import files

from qbatch.model.errors import InputError, suggestion
from qbatch.model.machine import Machine
from qbatch.model.machine_file import parse_machine

SHIPPED = ("origin2000",)
"""The names of machine files in this package."""


def load_machine(name: str) -> Machine:
    """Return the machine of a file, or the package's machine of this name if there is no such file.

    Raises:
        InputError: there is neither, or the file cannot be read or understood.
    """
    if name in SHIPPED and (not os.path.exists(name) or os.path.isdir(name)):
        return parse_machine(
            files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"), name
        )
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        hint = (
            suggestion(name, SHIPPED)
            or f"; name a file, or a machine that is shipped: {', '.join(SHIPPED)}"
        )
        raise InputError(f"{name}: machine file cannot be read ({reason}){hint}") from error
    return parse_machine(text, name)
