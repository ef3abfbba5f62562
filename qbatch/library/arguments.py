"""Messages for callers of the library: a function names an argument where a command names an
option.

The packages below raise their errors in the words of the command line (``--from 'x': neither
seconds ...``).  Text after ``qbatch VERB`` in a message is a command to be typed, and stays as it
is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from qbatch.model.errors import QbatchError

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

_OTHER_NAMES = {
    "from": "since",
    "to": "before",
    "policy": "policies",
    "with": "replicas",
    "no-kill": "kill=False",
    "colour-by": "colour_by",
}
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)( [A-Z]{1,9}\b)?")
_COMMAND = re.compile(r"\bqbatch [a-z]+ ")
_OF_COMMANDS_ONLY = " (--skipped FILE lists them)"


def in_arguments(text: str) -> str:
    """Return a message with arguments instead of options: ``--machine FILE`` becomes
    ``machine=FILE``, ``--from`` ``since``."""
    text = text.replace(_OF_COMMANDS_ONLY, "")
    command = _COMMAND.search(text)
    end = command.start() if command else len(text)
    return _OPTION.sub(_argument, text[:end]) + text[end:]


def _argument(found: re.Match[str]) -> str:
    name = _OTHER_NAMES.get(found[1], found[1].replace("-", "_"))
    return f"{name}={found[2].strip()}" if found[2] else name


def speaks_of_arguments(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Wrap a function so that the errors it raises name its arguments instead of options."""

    @wraps(function)
    def call(*given: Parameters.args, **named: Parameters.kwargs) -> Returned:
        try:
            return function(*given, **named)
        except QbatchError as error:
            if len(error.args) == 1 and isinstance(error.args[0], str):
                error.args = (in_arguments(error.args[0]),)
            raise

    return call
