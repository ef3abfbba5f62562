"""The grid of a sweep: its axes, the form of their values, the checks before any run; its cases.

A grid is written as a file (TOML) or as options, with the same texts.  Every axis has one value or
several; a sweep runs every combination.  ``load = "0.7:1.1:0.05"`` is a range with both ends,
``seed = "1:20"`` one of whole numbers.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from qbatch.model.errors import InputError, UsageError, suggestion

if TYPE_CHECKING:
    from qbatch.model.machine import Machine
    from qbatch.workloads.log import Log
    from qbatch.workloads.resource_rows import ResourceRows

ALL, NONE, OF_LOG = "all", "none", "log"
"""The whole log as a window, a log that is not resampled, and the machine of the log."""

RESAMPLES = (NONE, "weeks", "users")

SCHEMA = 1
_MOST_VALUES = 100_000

AXES = {
    "log": "workload logs, or models that generate them (lublin:jobs=5000,procs=128)",
    "machine": "machine files, origin2000, or numbers of processors; the log's own by default",
    "window": "spans of submission, FROM..TO in log seconds or ISO times; all for the whole log",
    "resample": "none, weeks or users: resample the log by weeks or users",
    "load": "factors that divide the gaps between arrivals",
    "estimates": "sources of estimates, as --estimates of qbatch replay",
    "seed": "seeds of all draws: replicas of one experiment",
    "policy": "policies, as -p of qbatch replay",
}
"""The axes and their values, in the order in which they vary: the last one fastest."""

OPTIONS = {
    "first": "largest number of jobs of each log",
    "warmup": "seconds after the first submission in which jobs run but are not counted",
    "kill": "whether a job that reaches its estimate ends there",
    "closed": "whether users wait for their jobs before they submit the next",
    "audit": "whether the invariants of each schedule are checked",
    "lenient": "whether rows of a log that cannot be read are skipped",
    "resources": "side files of nodes, memory and GPUs of jobs, one for each log, in their order",
}
"""The options that are the same for every run, with their meaning."""


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a sweep: the values of each axis (``AXES``) and the options of every run
    (``OPTIONS``)."""

    log: tuple[str, ...]
    policy: tuple[str, ...] = ("fcfs", "easy", "conservative")
    machine: tuple[str, ...] = ("log",)
    window: tuple[str, ...] = ("all",)
    resample: tuple[str, ...] = ("none",)
    load: tuple[float, ...] = (1.0,)
    estimates: tuple[str, ...] = ("log",)
    seed: tuple[int, ...] = (1,)
    first: int | None = None
    warmup: float = 0.0
    kill: bool = True
    closed: bool = False
    audit: bool = False
    lenient: bool = False
    resources: tuple[str, ...] = ()

    @property
    def varying(self) -> tuple[str, ...]:
        """The axes that have several values."""
        return tuple(axis for axis in AXES if len(getattr(self, axis)) > 1)


class Case(msgspec.Struct, frozen=True):
    """One run: indices of the grid's logs, machines and windows, and values of its other axes.

    ``seed``: None if nothing is drawn, so that every seed would give the same run.
    """

    log: int
    machine: int
    window: int
    resample: str
    load: float
    estimates: str
    seed: int | None
    policy: str


@dataclass(frozen=True, slots=True)
class Context:
    """The shared data of all runs: the grid; its logs, None for one that a model generates; its
    machines, None for a log's own.

    ``resources``: what the jobs of each log ask for in chunks, None without a side file.
    ``policies``: by name, the hash of the source of each user's own policy, else an empty text.
    ``key``: distinguishes contexts in a worker that gets several.
    """

    grid: Grid
    logs: tuple[Log | None, ...]
    resources: tuple[ResourceRows | None, ...]
    machines: tuple[Machine | None, ...]
    key: str
    policies: dict[str, str]


def grid_of(given: Mapping[str, Any], where: str, *, form: str = "{}") -> Grid:
    """Return the grid described by texts, numbers and lists.

    Args:
        given: values by the names of ``AXES`` and ``OPTIONS``; an axis is a list, one value, or a
            range as text.
        where: the name of their origin in messages.
        form: the form of the name of an axis or option in messages, ``--{}`` on a command line.

    Raises:
        UsageError: a value is wrong; the message names the axis, the value and the possible values.
    """
    values: dict[str, Any] = {}
    for name, value in given.items():
        place = f"{where}: {form.format(name)}"
        if name in AXES:
            values[name] = _axis(name, value, place)
        elif name in OPTIONS:
            values[name] = _option(name, value, place)
        else:
            known = (*AXES, *OPTIONS)
            raise UsageError(
                f"{place}: is not an axis or option of a sweep{suggestion(name, known)} (known: "
                f"{', '.join(known)})"
            )
    if "log" not in values:
        raise UsageError(f"{where}: {form.format('log')} is missing; name the logs to replay")
    sides = len(values.get("resources", ()))
    if sides not in (0, len(values["log"])):
        raise UsageError(
            f"{where}: {form.format('resources')} names {sides} side files, but there are "
            f"{len(values['log'])} logs; name one for each log, in their order"
        )
    return Grid(**values)


def read_grid(path: str) -> tuple[dict[str, Any], str | None]:
    """Read the file of a grid: return its axes and options, and the ``out`` that it names.

    Logs, machines, side files and ``out`` are relative to the folder of the file.

    Raises:
        InputError: it cannot be read, is not TOML, or has another schema.
    """
    try:
        with open(path, "rb") as file:
            given = tomllib.load(file)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not TOML: {error}") from error
    schema = given.pop("schema", None)
    if schema != SCHEMA:
        said = "does not contain schema = 1" if schema is None else f"contains schema = {schema!r}"
        raise InputError(f"{path}: {said}; begin the file of a sweep with schema = {SCHEMA}")
    folder = Path(path).parent
    out = given.pop("out", None)
    if out is not None and not isinstance(out, str):
        raise InputError(f"{path}: out = {out!r} is not the name of a directory")
    for axis in ("log", "machine", "resources"):
        if axis in given:
            several = given[axis] if isinstance(given[axis], list) else [given[axis]]
            given[axis] = [_from_folder(folder, one) for one in several]
    return given, None if out is None else str(folder / out)


def _from_folder(folder: Path, value: Any) -> Any:
    """Return the path of a file relative to the grid's folder, if there is such a file; else the
    value."""
    return str(folder / value) if isinstance(value, str) and (folder / value).is_file() else value


def _axis(name: str, value: Any, place: str) -> tuple[Any, ...]:
    several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    found: list[Any] = []
    for one in several:
        found += _values(name, one, place)
    if not found:
        raise UsageError(f"{place}: is empty; name a value ({AXES[name]}), or leave it out")
    if len(found) > _MOST_VALUES:
        raise UsageError(f"{place}: has {len(found):,} values, more than {_MOST_VALUES:,}")
    for one, count in Counter(found).items():
        if count > 1:
            raise UsageError(f"{place}: {one} occurs twice; write it once")
    return tuple(found)


def _values(name: str, one: Any, place: str) -> list[Any]:
    """Return the values of one entry of an axis: several for a range."""
    if name in ("seed", "load"):
        read = _seeds if name == "seed" else _loads
        parts = one.split(",") if isinstance(one, str) else [one]
        return [value for part in parts for value in read(part, place)]
    if isinstance(one, bool) or not isinstance(one, str | int):
        raise UsageError(f"{place}: {one!r} is not a text; use {AXES[name]}")
    text = str(one).strip()
    if not text:
        raise UsageError(f"{place}: an empty text is not a value; use {AXES[name]}")
    if name == "window" and text != "all" and ".." not in text:
        raise UsageError(
            f"{place}: {text!r} is not a span; write FROM..TO, either of which may be left out, or "
            "all"
        )
    return [text]


def _seeds(one: Any, place: str) -> list[int]:
    text = str(one)
    parts = text.split(":")
    if (
        isinstance(one, bool)
        or len(parts) > 2
        or not all(part.isdecimal() and part.isascii() for part in parts)
    ):
        raise UsageError(
            f"{place}: {text!r} is not a seed; use whole numbers from 0, or a range such as 1:20"
        )
    first, last = int(parts[0]), int(parts[-1])
    if last < first or last - first >= _MOST_VALUES:
        raise UsageError(
            f"{place}: {text!r} holds no seed, or too many; the range is FIRST:LAST, including both"
        )
    return list(range(first, last + 1))


def _loads(one: Any, place: str) -> list[float]:
    text = str(one)
    try:
        parts = [Decimal(part) for part in text.split(":")]
    except InvalidOperation:
        parts = []
    if (
        isinstance(one, bool)
        or len(parts) not in (1, 3)
        or not all(part.is_finite() for part in parts)
    ):
        raise UsageError(
            f"{place}: {text!r} is not a load; use numbers, or a range FIRST:LAST:STEP such as "
            "0.7:1.1:0.05"
        )
    if len(parts) == 3:
        first, last, step = parts
        if step <= 0 or last < first or (last - first) / step >= _MOST_VALUES:
            raise UsageError(
                f"{place}: {text!r} holds no load, or too many; the range is FIRST:LAST:STEP, "
                "FIRST below LAST"
            )
        parts = [first + place * step for place in range(int((last - first) / step) + 1)]
    for part in parts:
        if not Decimal("0.000001") <= part <= 1_000_000:
            raise UsageError(f"{place}: {part} is not a load; use factors from 0.000001 to 1000000")
    return [float(part) for part in parts]


def _option(name: str, value: Any, place: str) -> Any:
    if name in ("kill", "closed", "audit", "lenient"):
        if not isinstance(value, bool):
            raise UsageError(f"{place}: {value!r} is neither true nor false")
        return value
    if name == "resources":
        several = [value] if isinstance(value, str) else value
        if not isinstance(several, Sequence) or not all(isinstance(each, str) for each in several):
            raise UsageError(f"{place}: {value!r} is not a list of names of side files")
        return tuple(several)
    if name == "first":
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(
                f"{place}: {value!r} is not a number of jobs; use a whole number from 1"
            )
        return value
    return _seconds(value, place)


def _seconds(value: Any, place: str) -> float:
    """Return the seconds of ``3600``, ``90m``, ``12h``, ``7d`` or ``1w``."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    text = str(value)
    number, unit = (text[:-1], units[text[-1]]) if text and text[-1] in units else (text, 1)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = -1.0
    if isinstance(value, bool) or not 0 <= seconds < 1e12:
        raise UsageError(
            f"{place}: {text!r} is not a time; use seconds, or a number with s, m, h, d or w (such "
            "as 7d)"
        )
    return seconds
