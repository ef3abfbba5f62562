"""The resources of PBS with their types, and the values that OpenPBS takes for them.

One table for all commands and the server: ``qsub``, ``qalter`` and ``qselect`` check values with
it, and ``qstat -f`` shows them as it writes them.

Source: OpenPBS 23.06, master_resc_def_all.xml (types and flags), attr_fn_size.c, attr_fn_time.c,
attr_fn_l.c, attr_fn_b.c (values), ecl_verify_values.c (words), grunt_parse.c (``select``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class ResourceFault(ValueError):  # noqa: N818 - a fault of the one who asks
    """OpenPBS refuses a request for resources: a ``code`` of :data:`qbatch.wire.errors.CODES`, and
    a message that begins with the words of OpenPBS."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Resource(NamedTuple):
    """A resource: the type of its values, whether a chunk of ``select`` can ask for it, and whether
    ``Resource_List`` has the sum of the chunks."""

    kind: str
    in_chunk: bool = False
    is_summed: bool = False


SIZE, TIME, NUMBER, COUNT, FLAG, TEXT = "size", "time", "number", "count", "flag", "text"
"""A number of bytes, a duration, a whole number, one that is not negative, a truth value, a text."""

RESOURCES: dict[str, Resource] = {
    "accelerator": Resource(FLAG, in_chunk=True),
    "accelerator_group": Resource(TEXT, in_chunk=True),
    "accelerator_memory": Resource(SIZE, in_chunk=True, is_summed=True),
    "accelerator_model": Resource(TEXT, in_chunk=True),
    "aoe": Resource(TEXT, in_chunk=True),
    "arch": Resource(TEXT, in_chunk=True),
    "cput": Resource(TIME),
    "eoe": Resource(TEXT, in_chunk=True),
    "file": Resource(SIZE),
    "hbmem": Resource(SIZE, in_chunk=True, is_summed=True),
    "host": Resource(TEXT, in_chunk=True),
    "max_walltime": Resource(TIME),
    "mem": Resource(SIZE, in_chunk=True, is_summed=True),
    "min_walltime": Resource(TIME),
    "mpiprocs": Resource(COUNT, in_chunk=True, is_summed=True),
    "naccelerators": Resource(NUMBER, in_chunk=True, is_summed=True),
    "ncpus": Resource(COUNT, in_chunk=True, is_summed=True),
    "ngpus": Resource(COUNT, in_chunk=True, is_summed=True),
    "nice": Resource(NUMBER),
    "nodect": Resource(COUNT),
    "nodes": Resource(TEXT),
    "ompthreads": Resource(COUNT, in_chunk=True),
    "pcput": Resource(TIME),
    "place": Resource(TEXT),
    "pmem": Resource(SIZE),
    "preempt_targets": Resource(TEXT),
    "pvmem": Resource(SIZE),
    "select": Resource(TEXT),
    "site": Resource(TEXT),
    "soft_walltime": Resource(TIME),
    "software": Resource(TEXT),
    "vmem": Resource(SIZE, in_chunk=True, is_summed=True),
    "vnode": Resource(TEXT, in_chunk=True),
    "vntype": Resource(TEXT, in_chunk=True),
    "walltime": Resource(TIME),
}
"""The resources of OpenPBS that a user can ask for, but those of Cray's machines (``mpp...``)."""

READ_ONLY = ("cpupercent", "energy", "exec_vnode", "nchunk", "nodemask", "partition", "start_time")
"""The resources that only the server sets."""

TORQUE_RESOURCES = {
    "feature": Resource(TEXT),
    "gpus": Resource(COUNT),
    "procs": Resource(COUNT),
    "qos": Resource(TEXT),
    "size": Resource(COUNT),
}
"""The resources that only Torque has."""

OWN_RESOURCES = {"deadline": Resource(TEXT)}
"""The resources that only qbatch has."""

_KNOWN = {**RESOURCES, **TORQUE_RESOURCES, **OWN_RESOURCES}
_BY_LOWER = {name.lower(): name for name in _KNOWN}
_TRUE, _FALSE = ("true", "t", "1", "y"), ("false", "f", "0", "n")
_SIZE = re.compile(r"\+?([0-9]{1,18})([kmgtp]?)([bw]?)", re.IGNORECASE)
_TIME = re.compile(r"(?:([0-9]{1,12}):)?(?:([0-9]{1,12}):)?([0-9]{0,12})(?:\.([0-9]*))?")
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_UNITS = {shift: unit for unit, shift in _SHIFTS.items()}
_MOST_BYTES = 1 << 60
_MOST_SECONDS = 100 * 365 * 86_400
_MOST_COUNT = 10_000_000
_LONGEST_VALUE = 65_536
ILLEGAL = "Illegal attribute or resource value"


def known_name(name: str) -> str:
    """Return the name of a resource as PBS writes it; it takes names in upper and lower case."""
    return _BY_LOWER.get(name.lower(), name)


class Size(NamedTuple):
    """A size as PBS keeps it: a number of units of ``1 << shift`` bytes, or of words of eight."""

    number: int
    shift: int = 0
    is_words: bool = False

    @property
    def bytes(self) -> int:
        return (self.number << self.shift) * (8 if self.is_words else 1)

    def __str__(self) -> str:
        return f"{self.number}{_UNITS[self.shift]}{'w' if self.is_words else 'b'}"

    def plus(self, other: Size) -> Size:
        """Return the sum in the smaller unit, at least kilobytes (attr_fn_size.c,
        normalize_size)."""
        if not self.number:
            return other
        one, two = (
            each._replace(number=each.number * 8, is_words=False)
            if each.is_words and not (self.is_words and other.is_words)
            else each
            for each in (self, other)
        )
        one, two = (
            each if each.shift else each._replace(number=-(-each.number // 1024), shift=10)
            for each in (one, two)
        )
        shift = min(one.shift, two.shift)
        total = (one.number << (one.shift - shift)) + (two.number << (two.shift - shift))
        return Size(total, shift, one.is_words)


def read_size(text: str) -> Size:
    """Return ``100mb``, ``512K``, ``1234B``, ``2gw``.

    Raises:
        ValueError: the text has another form, such as ``4.5gb`` and ``4GiB``, or is too large.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no size; write a whole number with kb, mb, gb or tb")
    size = Size(int(found[1]), _SHIFTS[found[2].lower()], found[3].lower() == "w")
    if size.bytes > _MOST_BYTES:
        raise ValueError(f"{text!r} is more memory than can be counted")
    return size


def read_seconds(text: str) -> int:
    """Return the seconds of ``SS``, ``MM:SS`` or ``HH:MM:SS``; half a second counts as one.

    Raises:
        ValueError: the text has another form, such as ``1:00:00:00``, or is too long a time.
    """
    found = _TIME.fullmatch(text)
    if found is None or (not found[3] and (not found[1] or found[4] is not None)):
        raise ValueError(f"{text!r} is no time; write seconds, MM:SS or HH:MM:SS")
    seconds = 0
    for part in (found[1], found[2], found[3]):
        seconds = seconds * 60 + int(part or 0) if part is not None else seconds
    seconds += (found[4] or "0")[:1] >= "5"
    if seconds > _MOST_SECONDS:
        raise ValueError(f"{text!r} is more than a hundred years")
    return seconds


def read_number(text: str, *, is_count: bool) -> int:
    """Return a whole number, with ``is_count`` one that is not negative.

    Raises:
        ValueError: the text is none.
    """
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", text) or not -_MOST_COUNT <= int(text) <= _MOST_COUNT:
        raise ValueError(f"{text!r} is no whole number up to {_MOST_COUNT}")
    if is_count and int(text) < 0:
        raise ValueError(f"{text!r} is negative")
    return int(text)


def written(name: str, text: str) -> str:
    """Return a value as ``Resource_List`` shows it.

    Raises:
        ValueError: the value is none of the resource's type.
    """
    kind = _KNOWN[name].kind if name in _KNOWN else TEXT
    if kind == SIZE:
        return str(read_size(text))
    if kind == TIME:
        seconds = read_seconds(text)
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if kind in (NUMBER, COUNT):
        return str(read_number(text, is_count=kind == COUNT))
    if kind == FLAG:
        if text.lower() not in _TRUE + _FALSE:
            raise ValueError(f"{text!r} is neither true nor false")
        return str(text.lower() in _TRUE)
    if not text.isprintable() or len(text) > _LONGEST_VALUE:
        raise ValueError(f"a letter that cannot be printed, or more than {_LONGEST_VALUE} letters")
    return text


def check_value(name: str, text: str, owner: str = "Resource_List") -> None:
    """Refuse a value that OpenPBS refuses, with its words.

    Raises:
        ResourceFault: the reason follows the words.
    """
    try:
        written(name, text)
    except ValueError as error:
        raise ResourceFault("bad-value", f"{ILLEGAL} {owner}.{name}: {error}") from None


class Chunks(NamedTuple):
    """``number`` equal chunks of a ``select``, with the resources of each as written."""

    number: int
    values: dict[str, str]


def read_select(text: str, *, is_checked: bool = False) -> list[Chunks]:
    """Return the chunks of ``2:ncpus=4:mem=8gb+1:ncpus=1``.

    ``is_checked``: refuse illegal values and a resource that a chunk names twice, too; an older
    version of qbatch has taken some.

    Raises:
        ResourceFault: as OpenPBS refuses it.
    """
    found = []
    parts = text.removesuffix("+").split("+")
    if "" in parts and text:
        raise ResourceFault(
            "bad-select", f"node(s) specification error Resource_List.select: {text!r}"
        )
    for part in parts:
        words = part.strip().split(":")
        is_counted = re.fullmatch(r"[0-9]{1,9}\s*", words[0]) is not None
        count = int(words.pop(0)) if is_counted else 1
        words = words[:-1] if is_counted and words[-1:] == [""] else words
        if count > _MOST_COUNT:
            raise ResourceFault(
                "bad-value", f"{ILLEGAL} Resource_List.select: {count} chunks are too many"
            )
        values: dict[str, str] = {}
        for word in words:
            name, equals, value = (each.strip() for each in word.partition("="))
            if not equals or not re.match("[A-Za-z]", name):
                text = f"{ILLEGAL} Resource_List.select: {word!r} is not of the form name=value"
                raise ResourceFault("bad-value", text)
            name = known_name(name)
            if name in values and is_checked:
                raise ResourceFault(
                    "duplicate-resource",
                    "duplicated resource within a section of a select specification, resource is: "
                    f"{name} (in {part.strip()!r})",
                )
            values[name] = value.strip("\"'")
            if is_checked:
                check_value(name, values[name], "select")
        found.append(Chunks(count, values))
    if not sum(chunks.number for chunks in found):
        raise ResourceFault("bad-value", f"{ILLEGAL}: select={text} asks for no chunk")
    return found


def summed(chunks: Iterable[Chunks]) -> dict[str, str]:
    """Return the sums of the resources of all chunks, as ``Resource_List`` has them
    (svr_jobfunc.c, set_chunk_sum).  A chunk that names no ``ncpus`` has one; a size that only an
    older version of qbatch took is left out."""
    numbers: dict[str, int] = {}
    sizes: dict[str, Size] = {}
    for count, values in chunks:
        for name, text in {"ncpus": "1", **values}.items():
            if name not in RESOURCES or not RESOURCES[name].is_summed:
                continue
            if RESOURCES[name].kind != SIZE:
                numbers[name] = numbers.get(name, 0) + count * int(text)
            elif _SIZE.fullmatch(text):
                size = read_size(text)
                size = size._replace(number=size.number * count)
                sizes[name] = sizes[name].plus(size) if name in sizes else size
    return {name: str(value) for name, value in {**numbers, **sizes}.items()}


def shown(name: str, text: str) -> str:
    """Return a value as ``Resource_List`` shows it; one that an older version of qbatch took, as it
    was given."""
    try:
        return written(name, text)
    except ValueError:
        return text


def plain_select(resources: Mapping[str, str]) -> str:
    """Return the ``select`` of a job that names neither chunks nor nodes: one chunk with the
    resources that a chunk can ask for, in alphabetical order (svr_jobfunc.c,
    set_select_and_place)."""
    asked = {"ncpus": "1", **resources}
    words = [
        f"{name}={shown(name, asked[name])}"
        for name in sorted(asked)
        if name in RESOURCES and RESOURCES[name].in_chunk
    ]
    return ":".join(["1", *words])
