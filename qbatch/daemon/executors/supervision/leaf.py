"""A control group (version 2) for one attempt, its leaf: one write kills all processes in it, however they forked.

It is used if a writable tree is found, which many machines do not have; everything works without it.
"""

from __future__ import annotations

import os

from . import files


def _unescape(text: str) -> str:
    """Undo the octal escapes of /proc/self/mountinfo."""
    for escape, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, plain)
    return text


def own_group() -> str | None:
    """Return the directory of the control group of this process, or None."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as stream:
            own = next((line[3:].rstrip("\n") for line in stream if line.startswith("0::")), None)
        with open("/proc/self/mountinfo", encoding="utf-8") as stream:
            lines = stream.readlines()
    except (OSError, ValueError):
        return None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split()
        if own is None or len(fields) < 5 or not after.startswith("cgroup2 "):
            continue
        root, mount = _unescape(fields[3]).rstrip("/"), _unescape(fields[4]).rstrip("/")
        if own == root or own.startswith(root + "/"):
            return (mount + own[len(root) :]).rstrip("/")
    return None


def leaf_path(key: str, token: str) -> str:
    """Return the path of an attempt's leaf; empty if none can be made."""
    group = own_group()
    return f"{group}/qbatch-{key}-{token[:8]}" if group and os.access(group, os.W_OK) else ""


def make_leaf(path: str) -> bool:
    """Make a leaf; return False if that is not possible (then there is none)."""
    try:
        os.mkdir(path)
    except OSError:
        return False
    if os.access(path + "/cgroup.kill", os.W_OK) and os.access(path + "/cgroup.procs", os.W_OK):
        return True
    remove_leaf(path)
    return False


def kill_leaf(path: str) -> None:
    """Kill all processes in a leaf."""
    files.write_if_possible(path + "/cgroup.kill", b"1")


def remove_leaf(path: str) -> bool:
    """Remove a leaf and the groups that the job made inside it; return False if a process still lives there."""
    for directory, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(directory)
        except OSError:
            return False
    return True
