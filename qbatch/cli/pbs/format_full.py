"""The full formats: ``-f`` text with its wrapping, ``-F dsv``, ``-F json``, Torque's XML.  Pure
functions."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping

import msgspec

from qbatch.cli.pbs.format_attributes import Attribute
from qbatch.cli.pbs.text import MICROSECONDS, plain

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?")
_ALWAYS_TEXT = frozenset({"Job_Name", "project", "Account_Name"})
_TAG = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_MEETS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

LINE = 78
"""The columns of a line of ``qstat -f``."""


def wrapped(name: str, value: str) -> str:
    """Return ``    name = value``, broken as in PBS: at a comma if possible, else at 78 columns.

    Further lines begin with a tab, which counts as eight columns.
    """
    out = [f"    {name} = "]
    start = len(name) + 7
    for place, part in enumerate(value.split(",")):
        if place:
            out.append(",")
        if len(part) + start < LINE:
            out.append(part)
            start += len(part)
            continue
        if place:
            out.append("\n\t")
            start = 9
        done = 0
        while len(part) - done > LINE - start:
            width = max(LINE - start, 0) + 1
            out.append(part[done : done + width])
            done += width
            out.append("\n\t")
            start = 8
        out.append(part[done:])
        start += len(part) - done
    return "".join(out)


def full_text(title: str, attributes: Iterable[Attribute], is_wide: bool = False) -> str:
    """Return one block of ``qstat -f``: ``Job Id: 1.srv``, its attributes, a blank line."""
    lines = [plain(title)]
    for each in attributes:
        name, value = plain(each.full_name), plain(each.value)
        lines.append(f"    {name} = {value}" if is_wide else wrapped(name, value))
    return "\n".join(lines) + "\n\n"


def separated(title: str, attributes: Iterable[Attribute], separator: str = "|") -> str:
    """Return one line of ``-F dsv``, with a backslash before a separator inside a value."""
    words = [plain(title)]
    for each in attributes:
        words.append(
            f"{plain(each.full_name)}={plain(each.value).replace(separator, chr(92) + separator)}"
        )
    return separator.join(words) + "\n"


def json_value(name: str, value: str) -> str | msgspec.Raw:
    """Return a value as PBS writes it in JSON: a number if it has the form of one, else a
    string."""
    if name not in _ALWAYS_TEXT and len(value) < 40 and _NUMBER.fullmatch(value):
        return msgspec.Raw(value.encode())
    return value


def json_object(attributes: Iterable[Attribute]) -> dict[str, object]:
    """Return attributes as an object; resources are objects inside it."""
    found: dict[str, object] = {}
    for name, resource, value, _ in attributes:
        if resource:
            inner = found.setdefault(name, {})
            if isinstance(inner, dict):
                inner[resource] = json_value(resource, value)
        else:
            found[name] = json_value(name, value)
    return found


def json_document(
    server: str, version: str, now: int, kind: str, body: Mapping[str, object]
) -> str:
    """Return a whole ``-F json`` answer in ASCII without control characters.

    ``now`` is the server's instant in microseconds, 0 if it is not known; ``kind`` is the key of
    the body, for example ``Jobs``.
    """
    document = {
        "timestamp": now // MICROSECONDS or int(time.time()),
        "pbs_version": version,
        "pbs_server": server or "qbatch",
    }
    shown = {**document, kind: body} if body else document
    text = _json_text(shown, "\n")
    if not text.isascii() or "\x7f" in text:
        text = re.sub(r"[^\x00-\x7e]", _json_escape, text)
    return text + "\n"


def _json_text(value: object, begin: str) -> str:
    """Return a value in the layout of OpenPBS (cJSON): a tab for each level and behind each key.

    ``begin``: the end of a line and the tabs of this level.
    """
    if isinstance(value, dict):
        inner = f"{begin}\t"
        parts = [
            f"{inner}{_json_text(key, inner)}:\t{_json_text(each, inner)}"
            for key, each in value.items()
        ]
        return f"{{{','.join(parts)}{begin}}}"
    if isinstance(value, list):
        return f"[{', '.join(_json_text(each, begin) for each in value)}]"
    return msgspec.json.encode(value).decode()


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def xml_text(text: str) -> str:
    """Return a text for an XML element, with letters that do not print escaped."""
    return "".join(_MEETS.get(letter, letter) for letter in plain(text))


def xml_job(job: str, attributes: Iterable[Attribute]) -> str:
    """Return one ``<Job>`` of Torque's ``qstat -x``, with times in seconds since 1970."""
    out = [f"<Job><Job_Id>{xml_text(job)}</Job_Id>"]
    open_group = ""
    for each in attributes:
        if open_group and each.name != open_group:
            out.append(f"</{open_group}>")
            open_group = ""
        tag = each.resource or each.name
        if not _TAG.fullmatch(tag):
            continue
        if each.resource and not open_group:
            open_group = each.name
            out.append(f"<{open_group}>")
        value = each.value if each.instant is None else str(each.instant // MICROSECONDS)
        out.append(f"<{tag}>{xml_text(value)}</{tag}>")
    if open_group:
        out.append(f"</{open_group}>")
    return "".join(out) + "</Job>"


def xml_document(jobs: Iterable[tuple[str, Iterable[Attribute]]]) -> str:
    """Return Torque's ``<Data>`` element of jobs, from their identifiers and attributes."""
    return f"<Data>{''.join(xml_job(job, attributes) for job, attributes in jobs)}</Data>\n"
