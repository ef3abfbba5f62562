"""The logs of the archive and their versions, from the catalogue, and the search of a log by
name."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

import msgspec

from qbatch.model.errors import UsageError, suggestion

CLEANED, UNFILTERED = "cleaned", "unfiltered"
KINDS = (CLEANED, UNFILTERED)
"""Versions of a log: cleaned by the archive of untypical jobs (a single user's flurries, say), or
as converted."""

_SUFFIX = re.compile(r"\.swf(\.gz)?$", re.IGNORECASE)
_SIGNS = re.compile(r"[^a-z0-9]")


class Version(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of a log: one of ``KINDS``, its name in the archive, the number of its rows; size and
    SHA-256 of the packed file.

    Unknown facts are None.
    """

    kind: str
    file: str
    jobs: int | None = None
    bytes: int | None = None
    sha256: str | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A log of the archive; unknown facts are None.

    Attributes:
        folder: the folder of its files, below the archive's address.
        source: the source of the facts.
        since, until: first and last month, as ``1996-09``.
        acknowledge: the people to thank.  citation, licence: other conditions of use.
        version: its files, the recommended one first.
    """

    name: str
    folder: str
    source: str
    system: str | None = None
    installation: str | None = None
    processors: int | None = None
    since: str | None = None
    until: str | None = None
    acknowledge: str | None = None
    citation: str | None = None
    licence: str | None = None
    note: str | None = None
    version: tuple[Version, ...] = ()

    def chosen(self, kind: str | None) -> Version:
        """Return the version of a kind; without one, the recommended version.

        Raises:
            UsageError: there is none of this kind.
        """
        if kind is None:
            return self.version[0]
        found = next((each for each in self.version if each.kind == kind), None)
        if found is None:
            there = ", ".join(each.kind for each in self.version)
            raise UsageError(
                f"{self.name}: the catalogue knows no {kind} version of it; there is: {there}"
            )
        return found


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The archive: its address, its conditions for every user, and its logs."""

    schema: int
    archive: str
    acknowledge: str
    citation: str
    log: tuple[Entry, ...]

    def find(self, name: str) -> tuple[Entry, str | None]:
        """Return the log that a name means, and the kind of its version if the name is that of a
        file.

        A name is a log's (``KTH-SP2``) or a file's (``KTH-SP2-1996-2.1-cln``), in upper or lower
        case, with any signs or none between its words.

        Raises:
            UsageError: no log has it; the message has the nearest names.
        """
        wanted = _plain(name)
        for entry in self.log:
            if wanted == _plain(entry.name):
                return entry, None
            for version in entry.version:
                if wanted == _plain(version.file):
                    return entry, version.kind
        begins = [
            entry.name for entry in self.log if wanted and _plain(entry.name).startswith(wanted)
        ]
        near = f"; did you mean {' or '.join(begins)}?" if begins else ""
        if not near:
            by_plain = {_plain(entry.name): entry.name for entry in self.log}
            guess = suggestion(wanted, by_plain)
            near = f"; did you mean {by_plain[guess.split(chr(39))[1]]}?" if guess else ""
        raise UsageError(
            f"{name[:60]!r}: the catalogue has no such log{near} (qbatch trace catalogue lists "
            "them)"
        )


def _plain(name: str) -> str:
    return _SIGNS.sub("", _SUFFIX.sub("", name).lower())


def load_catalogue() -> Catalogue:
    """Return the catalogue of this package."""
    text = files(__name__.rpartition(".")[0]).joinpath("catalogue.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Catalogue)
