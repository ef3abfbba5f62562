"""A disk that forgets: from a trace of system calls, what would be in a directory had the power
gone at a moment.

The model is the strict one of POSIX.  Of a file only what was synced survives.  A name that was
made, changed or removed survives once its directory was synced; so does the name of a directory.
What lies in a directory that did not survive is lost. All processes that the trace follows write
to the one disk, supervisors and jobs too.  ``chance``: with a seed, each write that was not synced
survives or not as it falls, in pieces of 512 bytes: disks keep no order among them.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CALLS = (
    "openat,write,pwrite64,ftruncate,fallocate,fsync,fdatasync,mkdir,mkdirat,rename,renameat,"
    "renameat2,rmdir,unlink,unlinkat,sendto"
)
SECTOR = 512

_LINE = re.compile(r"^(?P<thread>\d+) +(?P<text>.*)$")
_BYTES = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_PATHS = re.compile(r'(?:<([^<>]*)>, )?"((?:\\x[0-9a-f]{2})*)"')
"""Paths of a call, each with the directory to which it is relative, where there is one."""

_HIDDEN = re.compile(r"<((?:\\x[0-9a-f]{2})+)>")


@dataclass
class File:
    """One file: its bytes as programs see them, as they are on the disk, and the writes in
    between."""

    content: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    unsynced: list[tuple[int, bytes]] = field(default_factory=list)

    def write(self, at: int, data: bytes) -> None:
        """Write bytes at a place."""
        if len(self.content) < at:
            self.content.extend(bytes(at - len(self.content)))
        self.content[at : at + len(data)] = data
        self.unsynced.append((at, data))

    def truncate(self, size: int) -> None:
        """Cut or lengthen the file."""
        del self.content[size:]
        self.content.extend(bytes(size - len(self.content)))
        self.unsynced.append((-size - 1, b""))

    def sync(self) -> None:
        """Make what was written last."""
        self.synced, self.unsynced = bytes(self.content), []

    def after_loss(self, chance: random.Random | None) -> bytes:
        """Return what is on the disk when the power comes back."""
        if chance is None:
            return self.synced
        left = File(bytearray(self.synced))
        for at, data in self.unsynced:
            if at < 0:
                if chance.random() < 0.5:
                    left.truncate(-at - 1)
                continue
            for offset in range(0, len(data), SECTOR):
                if chance.random() < 0.5:
                    left.write(at + offset, data[offset : offset + SECTOR])
        return bytes(left.content)


class Directory(File):
    """A directory: nothing but its name can be lost."""


class Disk:
    """The files of one directory tree, as a trace shows them."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.names: dict[str, File] = {}
        self.kept: dict[str, File] = {}
        self.replies = 0
        self._places: dict[str, int] = {}

    def take(self, call: str, words: str, result: int) -> bool:
        """Take a system call that has returned; return whether it was a sync."""
        if call == "sendto":
            self.replies += r"\x22\x69\x64\x22" in words  # "id"
            return False
        path = words.partition("<")[2].partition(">")[
            0
        ]  # of the descriptor; descriptors of several processes have equal numbers
        if call == "openat":
            self._opened(words)
        elif call.startswith(("mkdir", "rename", "rmdir", "unlink")):
            self._named(call, _paths(words))
        elif not path.startswith(self.root):
            return False
        elif call in ("fsync", "fdatasync"):
            if path == self.root or isinstance(self.names.get(path), Directory):
                self._sync_names(path)
            elif path in self.names:
                self.names[path].sync()
            return True
        elif path in self.names:
            self._written(call, path, words, result)
        return False

    def _opened(self, words: str) -> None:
        path = _paths(words)[0]
        if (
            not path.startswith(self.root)
            or "O_DIRECTORY" in words
            or isinstance(self.names.get(path), Directory)
        ):
            return
        if path not in self.names:
            if "O_CREAT" not in words:
                return
            self.names[path] = File()
        file = self.names[path]
        if "O_TRUNC" in words and file.content:
            file.truncate(0)
        self._places[path] = len(file.content) if "O_APPEND" in words else 0

    def _named(self, call: str, paths: list[str]) -> None:
        old, new = paths[0], paths[-1]
        if not old.startswith(self.root):
            return
        if call.startswith("mkdir"):
            self.names[old] = Directory()
        elif call.startswith("rename"):
            for path in [path for path in self.names if path == old or path.startswith(f"{old}/")]:
                moved = new + path.removeprefix(old)
                self.names[moved], self._places[moved] = (
                    self.names.pop(path),
                    self._places.pop(path, 0),
                )
        else:
            self.names.pop(old, None)

    def _sync_names(self, directory: str) -> None:
        def inside(path: str) -> bool:
            return path.rpartition("/")[0] == directory.rstrip("/")

        self.kept = {path: file for path, file in self.kept.items() if not inside(path)}
        self.kept |= {path: file for path, file in self.names.items() if inside(path)}

    def _written(self, call: str, path: str, words: str, result: int) -> None:
        file = self.names[path]
        if call == "ftruncate":
            file.truncate(int(words.rpartition(",")[2]))
        elif call == "fallocate":
            offset, _, length = words.rpartition(",")
            file.truncate(max(len(file.content), int(offset.rpartition(",")[2]) + int(length)))
        elif call in ("write", "pwrite64"):
            found = _BYTES.search(words)
            assert found is not None
            assert not found[2], "the trace is cut"
            data = bytes.fromhex(found[1].replace("\\x", ""))[:result]
            at = int(words.rpartition(",")[2]) if call == "pwrite64" else self._places[path]
            file.write(at, data)
            if call == "write":
                self._places[path] = at + len(data)

    def after_loss(self, chance: random.Random | None) -> dict[str, bytes]:
        """Return the files that are there when the power comes back, by their path below the
        root."""
        kept = (
            self.kept
            if chance is None
            else {**self.kept, **(self.names if chance.random() < 0.5 else {})}
        )
        return {
            path.removeprefix(self.root): file.after_loss(chance)
            for path, file in kept.items()
            if not isinstance(file, Directory) and self._is_reached(path, kept)
        }

    def _is_reached(self, path: str, kept: dict[str, File]) -> bool:
        """Return whether every directory on the way to a path is there."""
        while (path := os.path.dirname(path)) != self.root:
            if not isinstance(kept.get(path), Directory):
                return False
        return True


def _paths(words: str) -> list[str]:
    """Return the paths that a call names, whole."""
    return [
        os.path.normpath(os.path.join(base, _text(digits)))
        for base, digits in _PATHS.findall(words)
    ]


def _text(digits: str) -> str:
    return bytes.fromhex(digits.replace("\\x", "")).decode(errors="replace")


def calls_of(trace: Path) -> Iterator[tuple[str, str, int]]:
    """Yield (system call, its words, its result) in the order in which they returned; those that
    failed are left out."""
    begun: dict[str, str] = {}
    with open(trace, encoding="ascii") as lines:
        for line in lines:
            found = _LINE.match(line.rstrip("\n"))
            if found is None:
                continue
            thread, text = found["thread"], found["text"]
            if text.endswith("<unfinished ...>"):
                begun[thread] = text.removesuffix("<unfinished ...>").rstrip()
                if text.startswith("sendto("):  # it may be out before the call returns
                    yield "sendto", begun[thread].partition("(")[2], 0
                continue
            resumed = re.match(r"<\.\.\. (\w+) resumed>,? ?(.*)$", text)
            if resumed is not None:
                if resumed[1] == "sendto":
                    continue
                text = begun.pop(thread, "") + resumed[2]
            call, _, rest = text.partition("(")
            words, equals, result = rest.rpartition(" = ")
            words = words.rstrip().removesuffix(")")
            number = re.match(r"-?\d+", result)
            if equals and number is not None and int(number[0]) >= 0:
                yield call, _HIDDEN.sub(lambda each: f"<{_text(each[1])}>", words), int(number[0])
