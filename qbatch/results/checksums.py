"""Checksums of a document and of the files in its folder, by which a damaged one is refused.

A sealed document holds under ``checksums`` the SHA-256 of each of its files, by name, and of
itself, under its own file name.  The latter is that of its JSON without that one entry and without
line breaks, so that its layout may change. A document without ``checksums`` is not checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qbatch.model.errors import InputError

KEY = "checksums"
"""The key of the checksums in a document."""

Document = dict[str, Any]


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file, in hex digits.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def sealed(document: Mapping[str, Any], name: str, files: Mapping[str, str]) -> Document:
    """Return a document with the checksums of its files and, under its own file ``name``, of
    itself."""
    whole = {**document, KEY: dict(files)}
    whole[KEY][name] = _own(whole, name)
    return whole


def check_document(document: Mapping[str, Any], path: Path) -> None:
    """Refuse a document that has changed since it was written.

    Raises:
        InputError: it has; the message names its path.
    """
    if KEY not in document:
        return
    known = document[KEY]
    if not isinstance(known, dict) or known.get(path.name) != _own(document, path.name):
        raise _damaged(path, path.name)


def check_file(document: Mapping[str, Any], path: Path, where: str) -> None:
    """Refuse a file of a document that has changed since the document was written; ``where``: the
    document's name.

    Raises:
        InputError: it has; the message names its path.
    """
    if KEY in document and document[KEY].get(path.name) != file_checksum(path):
        raise _damaged(path, where)


def _own(document: Mapping[str, Any], name: str) -> str:
    others = {key: value for key, value in document[KEY].items() if key != name}
    return hashlib.sha256(json.dumps({**document, KEY: others}).encode()).hexdigest()


def _damaged(path: Path, where: str) -> InputError:
    return InputError(
        f"{path}: has changed since it was written: its checksum is not the one in {where}; copy "
        "the folder again, run the "
        f"command that made it, or delete {KEY!r} from {where} to read it as it is"
    )
