"""What a job asks for, as PBS writes it: ``select``, ``nodes``, ``ncpus``, ``mem``, ``walltime``,
``place``.

Source: docs/spec/pbs.md 3; OpenPBS pbs_resources(7).  Sizes are binary: ``1gb`` is 2**30 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

MICROSECONDS = 1_000_000
_SUFFIXES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_MOST_MEMORY = 2**60
_MOST_COUNT = 10_000_000
_LONGEST = 100 * 365 * 86_400
_PLACES = ("free", "pack", "scatter", "vscatter")
RESOURCES_OF_CHUNKS = (
    "ncpus",
    "mem",
    "mpiprocs",
    "ompthreads",
    "vmem",
    "ngpus",
    "nmics",
    "host",
    "vnode",
    "arch",
    "naccelerators",
    "accelerator",
    "accelerator_model",
    "software",
)
"""The resources that a chunk of a select can ask for."""

RESOURCES_OF_JOBS = (
    *RESOURCES_OF_CHUNKS,
    "select",
    "nodes",
    "nodect",
    "walltime",
    "place",
    "cput",
    "pcput",
    "pmem",
    "pvmem",
    "file",
    "nice",
    "procs",
    "size",
    "min_walltime",
    "max_walltime",
    "soft_walltime",
    "preempt_targets",
    "exec_vnode",
    "gpus",
    "feature",
    "qos",
    "deadline",
)
"""The resources that a job can ask for."""

_SHARINGS = ("shared", "excl", "exclhost")
_SIZES = ("mem", "pmem", "vmem", "pvmem", "file")
_TIMES = ("walltime", "cput", "pcput", "min_walltime", "max_walltime", "soft_walltime")
_COUNTS = (
    "ncpus",
    "procs",
    "mpiprocs",
    "ompthreads",
    "ngpus",
    "gpus",
    "nmics",
    "naccelerators",
    "nodect",
)
_LONGEST_VALUE = 65_536
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
    """Return the parts of ``a=1,b="x,y",c`` as (name, value or None); quotes and backslashes
    protect commas.

    Raises:
        ValueError: a quote is not closed, or a name is missing.
    """
    parts, quote, letters = [""], "", iter(text)
    for letter in letters:
        if letter == "\\" and quote != "'":
            parts[-1] += next(letters, letter)
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
    """Return one ``-l`` argument, ``select=2:ncpus=4,walltime=1:00:00``, as names and values.

    Raises:
        ValueError: a part is not of the form ``name=value``.
    """
    resources: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not equals and (not name or re.fullmatch(r"[A-Za-z_]\w*", name)):
            continue  # PBS ignores a bare word such as `-l nodect`
        if not equals or not value or not re.fullmatch(_NAME, name):
            raise ValueError(f"{part.strip()!r} is not of the form name=value")
        resources[name] = value
    return resources


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
        ValueError: with the part and the reason.
    """
    chunks = []
    for part in text.split("+"):
        words = part.strip().split(":")
        count = 1
        if words and re.fullmatch(r"[0-9]+", words[0].strip()):
            count = _count(words.pop(0), "select")
        values: dict[str, str] = {}
        for word in words:
            name, equals, value = word.strip().partition("=")
            if not equals or not name or not value:
                raise ValueError(
                    f"select part {part.strip()!r}: {word.strip()!r} is not of the form name=value"
                )
            values[name] = value
        if not words and not part.strip():
            raise ValueError(f"select {text!r} has an empty part")
        procs = max(_count(values.pop("ncpus", "1"), "ncpus", 0), 1)
        memory = parse_size(values.pop("mem", "0"))
        slots, threads = values.pop("mpiprocs", "1"), values.pop("ompthreads", "0")
        for name in values:
            _refuse_typo(name, RESOURCES_OF_CHUNKS)
        counts = _count(slots, "mpiprocs", 0), _count(threads, "ompthreads", 0)
        chunks.append(ChunkOf(count, procs, memory, *counts, values))
    return tuple(chunks)


def _refuse_typo(name: str, known: tuple[str, ...]) -> None:
    """Refuse a name that is nearly that of a known resource; other names are custom resources and
    only shown."""
    if name in known:
        return
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1, cutoff=0.8)
    if near:
        raise ValueError(f"{name} is no resource that counts; did you mean {near[0]!r}?")


def check_resources(resources: Mapping[str, str]) -> None:
    """Refuse illegal names and values of resources, even of those without an effect, because qstat
    shows them all.

    The daemon checks a request when it arrives, and not again when it replays the journal.

    Raises:
        ValueError: with the resource and the reason.
    """
    _check(tuple(resources.items()))


@lru_cache(maxsize=1024)
def _check(resources: tuple[tuple[str, str], ...]) -> None:
    for name, value in resources:
        _check_value(name, value)
    demand = parse_demand(dict(resources))
    for chunk in demand.chunks:
        for name, value in chunk.other.items():
            _check_value(name, value)
    slots = sum(chunk.count * chunk.slots for chunk in demand.chunks)
    if slots > _MOST_SLOTS:
        raise ValueError(f"{slots} lines in the node file; {_MOST_SLOTS} are allowed")


def _check_value(name: str, value: str) -> None:
    if not re.fullmatch(_NAME, name):
        raise ValueError(f"{name[:60]!r} cannot be the name of a resource")
    try:
        if name in _SIZES:
            parse_size(value)
        elif name in _TIMES:
            parse_duration(value)
        elif name in _COUNTS:
            _count(value, name, 0)
        elif not value.isprintable() or len(value) > _LONGEST_VALUE:
            raise ValueError(
                f"a letter that cannot be printed, or more than {_LONGEST_VALUE} letters"
            )
    except ValueError as error:
        raise ValueError(str(error) if name in _COUNTS else f"{name}: {error}") from None


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
            raise ValueError(
                f"place={text}: {word!r} is not known (known: {', '.join(_PLACES + _SHARINGS)}, "
                "group=...)"
            )
    return placing, is_exclusive


def parse_demand(resources: Mapping[str, str]) -> Demand:
    """Return what the ``-l`` resources of a job ask for: one processor if they are empty.

    ``nodes=`` asks for different hosts, as OpenPBS converts it (svr_jobfunc.c,
    set_select_and_place).

    Raises:
        ValueError: with the resource and the reason.
    """
    for name in resources:
        _refuse_typo(name, RESOURCES_OF_JOBS)
    if "select" in resources and "nodes" in resources:
        raise ValueError("nodes= and select= do not go together")
    if "select" in resources:
        chunks = parse_select(resources["select"])
    elif "nodes" in resources:
        chunks = parse_nodes(resources["nodes"])
    elif "procs" in resources:
        chunks = (ChunkOf(_count(resources["procs"], "procs"), 1),)
    else:
        where = {name: resources[name] for name in ("host", "vnode") if name in resources}
        procs = _count(resources.get("ncpus", "1"), "ncpus")
        threads = _count(resources.get("ompthreads", "0"), "ompthreads", 0)
        slots = _count(resources.get("mpiprocs", "1"), "mpiprocs")
        chunks = (ChunkOf(1, procs, 0, slots, threads, where),)
    chunks = _with_memory(chunks, resources)
    place = resources.get("place") or implied_place(resources)
    placing, is_exclusive = parse_place(place)
    if placing == "free" and {"group=host", "group=vnode"} & set(place.split(":")):
        placing = "pack"
    walltime = parse_duration(resources["walltime"]) if "walltime" in resources else None
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


def _with_memory(chunks: tuple[ChunkOf, ...], resources: Mapping[str, str]) -> tuple[ChunkOf, ...]:
    """Divide ``mem`` (of the whole job) or ``pmem`` (of a processor) among chunks if none names its
    memory."""
    total = parse_size(resources["mem"]) if "mem" in resources else 0
    each = parse_size(resources["pmem"]) if "pmem" in resources and not total else 0
    if not (total or each) or any(chunk.memory for chunk in chunks):
        return chunks
    share = -(-total // sum(chunk.count for chunk in chunks))
    return tuple(
        msgspec.structs.replace(chunk, memory=share + each * chunk.procs) for chunk in chunks
    )


def listed_resources(resources: Mapping[str, str], demand: Demand, walltime: int) -> dict[str, str]:
    """Return ``Resource_List`` as ``qstat -f`` shows it.

    It holds what the job asked for, always with ncpus, nodect, select, place and walltime, memory
    in units of at least a kilobyte, times as HH:MM:SS.  A job that names neither chunks nor nodes
    has ``place=pack``, as in OpenPBS (svr_jobfunc.c, set_select_and_place); for its one chunk that
    is the same as ``free``.
    """
    listed = dict(resources)
    listed["ncpus"] = str(demand.procs)
    listed["nodect"] = str(demand.hosts)
    is_plain = not resources.keys() & {"select", "nodes", "procs"}
    listed.setdefault("place", "pack" if is_plain else implied_place(resources))
    if demand.memory or "mem" in listed:
        listed["mem"] = format_size(demand.memory or parse_size(listed["mem"]))
    slots = sum(chunk.count * chunk.slots for chunk in demand.chunks)
    if slots != demand.hosts:
        listed["mpiprocs"] = str(slots)
    if "select" not in listed:
        listed["select"] = "+".join(_select_text(demand.chunks))
    listed["walltime"] = format_duration(walltime)
    for name in ("vmem", "pmem", "pvmem", "file"):
        if name in listed:
            listed[name] = format_size(parse_size(listed[name]))
    for name in _TIMES:
        if name in listed and name != "walltime":
            listed[name] = format_duration(parse_duration(listed[name]))
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
