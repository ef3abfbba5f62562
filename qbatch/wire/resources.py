"""What a job asks for, as PBS writes it: ``select``, ``nodes``, ``ncpus``, ``mem``, ``walltime``,
``place``.

Source: docs/spec/pbs.md 3; OpenPBS pbs_resources(7).  Sizes are binary: ``1gb`` is 2**30 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from qbatch.wire.resource_values import (
    COUNT,
    ILLEGAL,
    RESOURCES,
    Chunks,
    ResourceFault,
    check_value,
    known_name,
    plain_select,
    read_seconds,
    read_select,
    shown,
    summed,
)

MICROSECONDS = 1_000_000
_SUFFIXES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_MOST_MEMORY = 2**60
_MOST_COUNT = 10_000_000
_LONGEST = 100 * 365 * 86_400
_PLACES = ("free", "pack", "scatter", "vscatter")
_SHARINGS = ("shared", "excl", "exclhost")
_MOST_SLOTS = 1_000_000
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,199}"


class ChunkOf(msgspec.Struct, frozen=True, omit_defaults=True):
    """``count`` equal chunks, each inside one host.

    ``procs``: processors; ``memory``: bytes; ``slots``: lines in the node file; ``threads``:
    OMP_NUM_THREADS (0: as many as processors); ``other``: other resources as written.
    """

    count: int
    procs: int
    memory: int = 0
    slots: int = 1
    threads: int = 0
    other: dict[str, str] = {}

    @property
    def host(self) -> str:
        """The name of the host that it asks for; empty for any host."""
        return self.other.get("host") or self.other.get("vnode") or ""


class Demand(msgspec.Struct, frozen=True, omit_defaults=True):
    """The resources that a job asks for.  ``walltime``: microseconds or None; ``placing``: free,
    pack or scatter."""

    chunks: tuple[ChunkOf, ...]
    walltime: int | None = None
    placing: str = "free"
    is_exclusive: bool = False

    @property
    def procs(self) -> int:
        """Processors of all chunks."""
        return sum(chunk.count * chunk.procs for chunk in self.chunks)

    @property
    def memory(self) -> int:
        """Bytes of memory of all chunks."""
        return sum(chunk.count * chunk.memory for chunk in self.chunks)

    @property
    def hosts(self) -> int:
        """Number of chunks (PBS: nodect)."""
        return sum(chunk.count for chunk in self.chunks)


def split_list(text: str) -> list[tuple[str, str | None]]:
    """Return the parts of ``a=1,b="x,y",c`` as (name, value or None).  Quotes protect commas, and
    so does a backslash, which protects quotes too; any other backslash belongs to the value.

    Raises:
        ValueError: a quote is not closed, or a name is missing.
    """
    parts, quote, letters = [""], "", iter(text)
    for letter in letters:
        if letter == "\\" and quote != "'":
            following = next(letters, "")
            parts[-1] += following if following in ("'", '"', ",") else letter + following
        elif letter == quote:
            quote = ""
        elif not quote and letter in "\"'":
            quote = letter
        elif not quote and letter == ",":
            parts.append("")
        else:
            parts[-1] += letter
    if quote:
        raise ValueError(f"the quote {quote} is not closed in {text!r}")
    found: list[tuple[str, str | None]] = []
    for part in parts:
        name, equals, value = part.partition("=")
        if name.strip():
            found.append((name.strip(), value if equals else None))
        elif equals:
            raise ValueError(f"a name is missing before '=' in {text!r}")
    return found


def parse_resources(text: str) -> dict[str, str]:
    """Return one ``-l`` argument, ``select=2:ncpus=4,walltime=1:00:00``, as names and values; the
    names of PBS in its spelling.  A word without a value asks for nothing (set_resource.c).

    Raises:
        ValueError: a part has no name, or a blank is inside its value.
    """
    resources: dict[str, str] = {}
    for part in _parts(text) if text.strip() else ():
        name, _, value = (each.strip() for each in part.partition("="))
        value = re.sub("^([\"'])(.*)\\1$", r"\2", value)
        if not re.fullmatch(_NAME, name) or (
            " " in value and value in part.split("=", 1)[1].strip()
        ):
            raise ValueError(f"{part.strip()!r} is not of the form name=value")
        name = known_name(name)
        if value or name == "select" or name not in RESOURCES or RESOURCES[name].kind == COUNT:
            resources[name] = value
    return resources


def _parts(text: str) -> list[str]:
    """Return the parts between commas that are not in quotes."""
    parts, quote = [""], ""
    for letter in text:
        if letter in "\"'" and quote in ("", letter):
            quote = "" if quote else letter
        if letter == "," and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    if quote:
        raise ValueError(f"the quote {quote} is not closed in {text!r}")
    return parts


def parse_duration(text: str) -> int:
    """Return microseconds for ``SS``, ``MM:SS``, ``H:M:S`` or ``D:H:M:S``; parts need no padding,
    and ``.5`` may follow.

    Raises:
        ValueError: the text has another form.
    """
    found = re.fullmatch(r"\s*((?:[0-9]{1,9}:){0,3}[0-9]{1,12})(\.[0-9]{1,6})?\s*", text)
    if found is None:
        raise ValueError(f"{text!r} is no time; write seconds, MM:SS or HH:MM:SS")
    parts = reversed(found[1].split(":"))
    seconds = sum(
        int(part) * unit for part, unit in zip(parts, (1, 60, 3600, 86_400), strict=False)
    )
    if seconds > _LONGEST:
        raise ValueError(f"{text!r} is more than a hundred years")
    return seconds * MICROSECONDS + int((found[2] or ".0")[1:].ljust(6, "0"))


def parse_walltime(text: str) -> int:
    """Return the microseconds of a walltime.

    It is exact: the estimate of a log may have parts of a second, and a server that replays the log
    decides as the replay does.  `whole_walltime` rounds what a user types.

    Raises:
        ValueError: the text has another form.
    """
    try:
        return parse_duration(text)
    except ValueError:  # forms of PBS such as ``:30``
        return read_seconds(text) * MICROSECONDS


def whole_walltime(text: str) -> str:
    """Return a walltime in whole seconds, as PBS rounds it: half a second counts as one.

    Raises:
        ValueError: the text is no walltime.
    """
    return str((parse_walltime(text) + MICROSECONDS // 2) // MICROSECONDS)


_TWO = [f"{number:02d}" for number in range(100)]
# Looking up the numbers takes a fifth of the time of formatting them; a daemon writes three
# durations for each job.


def format_duration(microseconds: int) -> str:
    """Return ``HH:MM:SS`` with any number of hours, without parts of a second."""
    seconds = microseconds // MICROSECONDS if microseconds > 0 else 0
    minutes = seconds // 60
    hours = minutes // 60
    return f"{_TWO[hours] if hours < 100 else hours}:{_TWO[minutes - 60 * hours]}:{_TWO[seconds - 60 * minutes]}"


def parse_size(text: str) -> int:
    """Return bytes for ``100mb``, ``512K``, ``1234B``, ``8GiB``, ``2gw`` (words of eight bytes),
    ``1.5gb``.

    Raises:
        ValueError: the text has another form, or the size is too large.
    """
    found = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]+)?)\s*([kmgtp]?)(i?b|w)?\s*", text.lower())
    if found is None:
        raise ValueError(f"{text!r} is no memory size; write for example 512mb or 8gb")
    size = float(found[1]) if "." in found[1] else int(found[1])
    size = int(size * _SUFFIXES[found[2]] * (8 if found[3] == "w" else 1))
    if size > _MOST_MEMORY:
        raise ValueError(f"{text!r} is more memory than can be counted")
    return size


def format_size(size: int) -> str:
    """Return a number of bytes in the largest unit that divides it, at least kb: ``8gb``,
    ``100mb``, ``1kb``."""
    if size <= 0:
        return "0kb"
    number, units = -(-size // 1024), ["kb", "mb", "gb", "tb"]
    while number % 1024 == 0 and len(units) > 1:
        number //= 1024
        del units[0]
    return f"{number}{units[0]}"


def _count(text: str | None, name: str, least: int = 1) -> int:
    if (
        text is None
        or not re.fullmatch(r"\s*[0-9]{1,9}\s*", text)
        or not least <= int(text) <= _MOST_COUNT
    ):
        raise ValueError(f"{name}={text or ''} is not a whole number of at least {least}")
    return int(text)


def parse_select(text: str) -> tuple[ChunkOf, ...]:
    """Return the chunks of ``2:ncpus=4:mem=8gb+1:ncpus=1`` (OpenPBS).

    Raises:
        ResourceFault: with the words of OpenPBS and the reason.
    """
    return tuple(_chunk_of(chunks) for chunks in read_select(text) if chunks.number)


def _chunk_of(chunks: Chunks) -> ChunkOf:
    """Return what these chunks take; one that asks for no processor takes one here."""
    values = dict(chunks.values)
    procs = max(_count(values.pop("ncpus", "1"), "ncpus", 0), 1)
    memory = parse_size(values.pop("mem", "0"))
    slots = _count(values.pop("mpiprocs", "1"), "mpiprocs", 0)
    threads = _count(values.pop("ompthreads", "0"), "ompthreads", 0)
    return ChunkOf(chunks.number, procs, memory, slots, threads, values)


def check_resources(resources: Mapping[str, str], *, is_torque: bool = False) -> None:
    """Refuse illegal names and values of resources, even of those without an effect, because qstat
    shows them all.

    The daemon checks a request when it arrives, and not again when it replays the journal.

    Raises:
        ResourceFault: with the words of OpenPBS and the reason.
    """
    _check(tuple(resources.items()), is_torque)


@lru_cache(maxsize=1024)
def _check(resources: tuple[tuple[str, str], ...], is_torque: bool) -> None:
    for name, value in resources:
        if not re.fullmatch(_NAME, name):
            raise ResourceFault("bad-value", f"{name[:60]!r} cannot be the name of a resource")
        check_value(name, value)
        if name == "select":
            read_select(value, is_checked=True)
        elif name == "place":
            _check_place(value)
    demand = parse_demand(dict(resources), is_torque=is_torque)
    slots = sum(chunk.count * chunk.slots for chunk in demand.chunks)
    if slots > _MOST_SLOTS:
        text = f"{slots} lines in the node file; {_MOST_SLOTS} are allowed"
        raise ResourceFault("bad-value", f"{ILLEGAL}: {text}")


def parse_nodes(text: str) -> tuple[ChunkOf, ...]:
    """Return the chunks of ``2:ppn=4:gpus=1+1`` or ``n2+n4:ppn=2#excl`` (Torque; a host's name
    counts as one host).

    Raises:
        ValueError: with the part and the reason.
    """
    chunks = []
    for part in text.split("#")[0].split("+"):
        words = part.strip().split(":")
        if not words[0].strip():
            raise ValueError(f"nodes {text!r} has an empty part")
        is_count = re.fullmatch(r"[0-9]+", words[0].strip()) is not None
        count = _count(words[0], "nodes") if is_count else 1
        other: dict[str, str] = {} if is_count else {"host": words[0].strip()}
        procs = 1
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if name in ("ppn", "ncpus") or (name == "procs" and equals):
                procs = _count(value, name)
            elif name:
                other[name] = value
        chunks.append(ChunkOf(count, procs, 0, procs, 0, other))
    return tuple(chunks)


def parse_place(text: str) -> tuple[str, bool]:
    """Return the placing (free, pack, scatter) of ``scatter:excl:group=host``, and whether it asks
    for whole hosts.

    Raises:
        ValueError: a word is not known.
    """
    placing, is_exclusive = "free", False
    for word in text.split(":"):
        name = word.strip().lower()
        if name in _PLACES:
            placing = "scatter" if name == "vscatter" else name
        elif name in _SHARINGS:
            is_exclusive = name != "shared"
        elif not name.startswith("group=") and name:
            known = ", ".join(_PLACES + _SHARINGS)
            raise ValueError(f"{word!r} is not known (known: {known}, group=...)")
    return placing, is_exclusive


def _check_place(text: str) -> None:
    """Refuse a ``place`` with an empty word, or with two words of one kind."""
    words = [word.strip().lower() for word in text.split(":")]
    counts = [sum(word in kind for word in words) for kind in (_PLACES, _SHARINGS)]
    if max(counts) > 1 or {"", "group="} & set(words):
        raise ResourceFault(
            "bad-value", f"{ILLEGAL} Resource_List.place: {text!r} has an empty or a second word"
        )


def parse_demand(resources: Mapping[str, str], *, is_torque: bool = False) -> Demand:
    """Return what the ``-l`` resources of a job ask for: one processor if they are empty.

    ``nodes=`` asks for different hosts, as OpenPBS converts it (svr_jobfunc.c,
    set_select_and_place).

    Raises:
        ResourceFault: with the words of OpenPBS and the reason.
    """
    for name in ("select", "place"):
        if name in resources and "nodes" in resources:
            raise ResourceFault(
                "place-beside-nodes",
                f"Cannot be used with select or place: nodes with {name} (nodes=2#excl takes "
                "whole hosts)",
            )
    name = "nodes" if "nodes" in resources else "select"
    try:
        if "select" in resources:
            chunks = parse_select(resources["select"])
        elif "nodes" in resources:
            chunks = parse_nodes(resources["nodes"])
        elif "procs" in resources:
            name = "procs"
            chunks = (ChunkOf(_count(resources["procs"], "procs"), 1),)
        else:
            chunks = parse_select(plain_select(resources))
        chunks = _with_memory(chunks, resources, is_torque)
        name = "place"
        place = resources.get("place") or implied_place(resources)
        placing, is_exclusive = parse_place(place)
        if placing == "free" and {"group=host", "group=vnode"} & set(place.split(":")):
            placing = "pack"
        name = "walltime"
        walltime = parse_walltime(resources["walltime"]) if "walltime" in resources else None
    except ResourceFault:
        raise
    except ValueError as error:
        raise ResourceFault("bad-value", f"{ILLEGAL} Resource_List.{name}: {error}") from None
    return Demand(chunks, walltime, placing, is_exclusive)


def implied_place(resources: Mapping[str, str]) -> str:
    """Return the ``place`` of a job that names none: ``nodes=`` scatters, and ``nodes=2#excl``
    takes whole hosts."""
    if "nodes" not in resources:
        return "free"
    suffixes = resources["nodes"].split("#")[1:]
    return (
        "scatter:excl"
        if "excl" in suffixes
        else "scatter:shared"
        if "shared" in suffixes
        else "scatter"
    )


def _with_memory(
    chunks: tuple[ChunkOf, ...], resources: Mapping[str, str], is_torque: bool
) -> tuple[ChunkOf, ...]:
    """Divide ``mem`` (of the whole job) among chunks if none names its memory; in Torque, ``pmem``
    is the memory of each processor."""
    total = parse_size(resources["mem"]) if "mem" in resources else 0
    each = parse_size(resources["pmem"]) if is_torque and "pmem" in resources else 0
    if total:
        each = 0
    if not (total or each) or any(chunk.memory for chunk in chunks):
        return chunks
    share = -(-total // sum(chunk.count for chunk in chunks))
    return tuple(
        msgspec.structs.replace(chunk, memory=share + each * chunk.procs) for chunk in chunks
    )


def listed_resources(resources: Mapping[str, str], demand: Demand, walltime: int) -> dict[str, str]:
    """Return ``Resource_List`` as ``qstat -f`` shows it, in alphabetical order.

    It holds what the job asked for, always with ncpus, nodect, select, place and walltime, and the
    sums of what its chunks ask for.  A job that names neither chunks nor nodes has ``place=pack``,
    as in OpenPBS (svr_jobfunc.c, set_select_and_place); for its one chunk that is the same as
    ``free``.
    """
    listed = {name: shown(name, value) for name, value in resources.items()}
    is_plain = not resources.keys() & {"select", "nodes", "procs"}
    listed.setdefault("place", "pack" if is_plain else implied_place(resources))
    if "select" not in listed:
        listed["select"] = (
            plain_select(resources) if is_plain else "+".join(_select_text(demand.chunks))
        )
    chunks = read_select(listed["select"])
    listed.update(summed(chunks))
    listed["nodect"] = str(sum(each.number for each in chunks))
    if demand.memory and not any("mem" in each.values for each in chunks):
        listed["mem"] = listed.get("mem", format_size(demand.memory))
    listed["walltime"] = format_duration(walltime)
    return dict(sorted(listed.items()))


def _select_text(chunks: Iterable[ChunkOf]) -> Iterable[str]:
    for chunk in chunks:
        words = [str(chunk.count), f"ncpus={chunk.procs}"]
        if chunk.memory:
            words.append(f"mem={format_size(chunk.memory)}")
        if chunk.slots != 1:
            words.append(f"mpiprocs={chunk.slots}")
        if chunk.threads:
            words.append(f"ompthreads={chunk.threads}")
        if chunk.host:
            words.append(f"host={chunk.host}")
        yield ":".join(words)
