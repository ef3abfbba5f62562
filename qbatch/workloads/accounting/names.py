"""Numbers for names: by first appearance, or, for publication, by a keyed hash that cannot be undone without the key.

With a key, a name's number is the first 31 bits of HMAC-SHA256(key, kind and name), so it depends only on the key:
a later import, with other people in it, gives the same numbers.  Two names may get one number (likely only from
tens of thousands of names on); then they are numbered in order of the whole hash: the second takes the next free number.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterable

from qbatch.model.errors import InputError, OutputError

_KEY_DIGITS = 64
_NUMBER_MAX = 2**31 - 1


def numbers_of(names: Iterable[str], kind: str, key: bytes | None = None) -> dict[str, int]:
    """Return a number from 1 for each name except the empty one; with a key, by the keyed hash of ``kind`` and name."""
    distinct = list(dict.fromkeys(name for name in names if name))
    if key is None:
        return {name: number for number, name in enumerate(distinct, 1)}
    hashes = sorted((_hash(key, kind, name), name) for name in distinct)
    taken: set[int] = set()
    numbers: dict[str, int] = {}
    for digest, name in hashes:
        number = max(int.from_bytes(digest[:4], "big") >> 1, 1)
        while number in taken:
            number = number % _NUMBER_MAX + 1
        taken.add(number)
        numbers[name] = number
    return numbers


def _hash(key: bytes, kind: str, name: str) -> bytes:
    return hmac.new(key, f"{kind}\0{name}".encode("utf-8", "surrogateescape"), hashlib.sha256).digest()


def read_or_make_key(path: str) -> tuple[bytes, bool, bool]:
    """Return the key of a file, whether it was made now, and whether others may read it; a new file has mode 0600.

    Raises:
        InputError: the file exists and contains no key.
        OutputError: it cannot be made.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _read_key(path), False, bool(os.stat(path).st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    except OSError as error:
        raise OutputError(
            f"{path}: the key cannot be written ({error.strerror or error}); name another file"
        ) from error
    text = secrets.token_hex(_KEY_DIGITS // 2)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    return bytes.fromhex(text), True, False


def _read_key(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            text = file.read(4096).strip()
    except OSError as error:
        raise InputError(f"{path}: the key cannot be read ({error.strerror or error})") from error
    try:
        if len(text) != _KEY_DIGITS:
            raise ValueError
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        raise InputError(
            f"{path}: line 1: is not a key ({_KEY_DIGITS} hexadecimal digits); name a new file to make one"
        ) from None
