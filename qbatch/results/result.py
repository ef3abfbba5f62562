"""A result: the outcome of a run, as a directory with ``result.json`` and the job rows of each
policy.

The document names, by policy, the job rows under ``files`` and the files of execution intervals
under ``pieces`` (:mod:`qbatch.results.pieces`), for policies that have any.  The document is sealed
(:mod:`qbatch.results.checksums`): a damaged result is refused.

The directory appears complete or not at all.  An earlier result in its place is replaced
completely, and nothing else: a directory that holds anything other than a result is refused, so
that no file of the user is lost.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from qbatch.distribution import __version__
from qbatch.model.errors import InputError, OutputError, UsageError, suggestion
from qbatch.model.record import MICROSECONDS, LogClock, Schedule, finished_run
from qbatch.model.spans import Peak, most_at_once, too_small
from qbatch.results.checksums import check_document, check_file, file_checksum, sealed
from qbatch.results.job_rows import read_job_rows, write_job_rows
from qbatch.results.pieces import read_pieces, write_pieces
from qbatch.trust import check_not_open
from qbatch.workloads.left_out import LeftOut

SCHEMA = "qbatch.result/1"
"""The schema of ``result.json`` that this program writes and reads."""

DOCUMENT = "result.json"
"""The name of the document in a result's directory."""

_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class Result:
    """A result as read: the schedule of each policy, at least one, and the whole document.

    The workload of every schedule contains what the document holds about the log, the clock and the
    size of the machine.  For a bare file of job rows the document is empty.  Unless the size of the
    machine is given, it is then the most processors in use at once: ``is_size_guessed``.
    """

    schedules: tuple[Schedule, ...]
    document: dict[str, Any] = field(default_factory=dict)
    is_size_guessed: bool = False
    path: str = ""

    @property
    def name(self) -> str:
        """The name of the log."""
        return self.schedules[0].workload.name

    @property
    def procs_total(self) -> int:
        """The processors of the machine."""
        return self.schedules[0].workload.procs_total

    @property
    def clock(self) -> LogClock:
        """The clock of the log."""
        return self.schedules[0].workload.clock

    @property
    def queue_names(self) -> dict[int, str]:
        """The names of the log's queues, by number."""
        return self.schedules[0].workload.queue_names

    @property
    def called(self) -> str:
        """Its name in messages: the path from which it was read, else the name of the log."""
        return self.path or self.name

    @property
    def is_recorded(self) -> bool:
        """Whether it is a recorded log, not a run of ours."""
        return self.document.get("recorded") is True

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies, in the order of the runs."""
        return tuple(schedule.policy for schedule in self.schedules)

    @property
    def may_count_memory(self) -> bool:
        """Whether requested memory matters on its machine: memory is counted there, or it has
        several hosts."""
        machine = self.document.get("machine")
        return isinstance(machine, dict) and not (
            machine.get("one_pool", True) and machine.get("hosts", 1) == 1
        )

    @property
    def host_cpus(self) -> tuple[int, ...]:
        """The processors of each host, if jobs run inside one of several and their rows name it;
        else empty."""
        machine = self.document.get("machine")
        cpus = machine.get("host_cpus") if isinstance(machine, dict) else None
        if not isinstance(cpus, list) or not all(
            isinstance(each, int) and each > 0 for each in cpus
        ):
            return ()
        if sum(cpus) != self.procs_total:
            return ()
        return (
            tuple(cpus) if all(_is_on(schedule, len(cpus)) for schedule in self.schedules) else ()
        )

    @property
    def host_names(self) -> tuple[str, ...]:
        """The names of the hosts of ``host_cpus``; numbers if there are none."""
        names = self.document.get("machine", {}).get("host_names") if self.host_cpus else []
        has_names = isinstance(names, list) and len(names) == len(self.host_cpus)
        return tuple(map(str, names if has_names else range(len(self.host_cpus))))

    def with_facts(self, **facts: Any) -> Result:
        """Return the result with other facts about the workload of each of its schedules."""
        schedules = (
            replace(each, workload=each.workload.changed(**facts)) for each in self.schedules
        )
        return replace(self, schedules=tuple(schedules))

    def sized(self, procs: int) -> Result:
        """Return the result on a machine of this many processors.

        Raises:
            InputError: more were in use at once.
        """
        peak = max(map(_peak, self.schedules))
        if peak.procs > procs:
            when = f"at second {peak.at / MICROSECONDS:.15g} of the log"
            raise InputError(too_small("--procs", procs, self.called, peak, when))
        return replace(self.with_facts(procs_total=procs), is_size_guessed=False)

    def only(self, policies: Sequence[str]) -> Result:
        """Return the result with these policies in this order; with all of them when none is named.

        A policy may be written as one types it, with parameters that are the default: see
        ``name_among``.

        Raises:
            UsageError: there is no such policy.
        """
        from qbatch.policies.registry import name_among

        by_name = {schedule.policy: schedule for schedule in self.schedules}
        policies = [name_among(policy, by_name) for policy in policies]
        for policy in policies:
            if policy not in by_name:
                known = ", ".join(by_name)
                raise UsageError(
                    f"{self.called}: no policy {policy!r}{suggestion(policy, by_name)}; it has "
                    f"{known}"
                )
        chosen = (
            tuple(by_name[policy] for policy in dict.fromkeys(policies))
            if policies
            else self.schedules
        )
        return replace(self, schedules=chosen)


def _is_on(schedule: Schedule, hosts: int) -> bool:
    """Whether every job that ran and every execution interval names one of this many hosts."""
    named = np.full(len(schedule), -1) if schedule.host is None else schedule.host
    parts = [named[schedule.ran], *([] if schedule.pieces is None else [schedule.pieces[:, 4]])]
    return all(bool(((part >= 0) & (part < hosts)).all()) for part in parts)


def most_procs(schedule: Schedule) -> int:
    """Return the most processors in use at once, and at least those of the widest job that ran."""
    return max(_peak(schedule).procs, int(schedule.workload.procs[schedule.ran].max(initial=1)))


def _peak(schedule: Schedule) -> Peak:
    # The processors of a job with unknown execution intervals are unknown between its start and its
    # end.
    spans = schedule.only(~schedule.lacks_pieces).spans()
    return most_at_once(spans.begin, spans.end, spans.procs)


# ------------------------------------------------------------------------------------------------
# writing


def write_result(
    directory: str | Path, document: Mapping[str, Any], schedules: Sequence[Schedule]
) -> None:
    """Write a result: ``document`` as ``result.json``, and the job rows and execution intervals of
    each schedule next to it.

    The schema, the version, the files, and the facts in the schedules' workload (log, machine size,
    clock, skipped jobs) are filled in where the document lacks them.

    Raises:
        OutputError: the directory holds anything other than an earlier result, or cannot be
            written.
    """
    target = Path(os.path.realpath(directory))
    _check_free(Path(directory), target)
    files = _file_names([schedule.policy for schedule in schedules])
    in_pieces = [schedule.policy for schedule in schedules if schedule.pieces is not None]
    pieces = {policy: files[policy].replace("jobs-", "pieces-", 1) for policy in in_pieces}
    whole = _plain(
        _filled(document, schedules)
        | {"schema": SCHEMA, "files": files}
        | ({"pieces": pieces} if pieces else {})
    )

    def fill(folder: Path) -> None:
        for schedule in schedules:
            with _synced(folder / files[schedule.policy]) as out:
                write_job_rows(out, [schedule], ".parquet")
            if schedule.policy in pieces:
                with _synced(folder / pieces[schedule.policy]) as out:
                    write_pieces(out, schedule)
        checksums = {
            name: file_checksum(folder / name) for name in (*files.values(), *pieces.values())
        }
        text = (
            json.dumps(
                sealed(whole, DOCUMENT, checksums), indent=2, ensure_ascii=False, allow_nan=False
            )
            + "\n"
        )
        with _synced(folder / DOCUMENT) as out:
            out.write(text.encode(errors="backslashreplace"))

    try:
        _replace_directory(target, fill)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"{directory}: cannot be written ({reason}); nothing was left there"
        ) from error


def _filled(document: Mapping[str, Any], schedules: Sequence[Schedule]) -> dict[str, Any]:
    filled: dict[str, Any] = {"schema": SCHEMA, "version": __version__, **document}
    if schedules:
        work = schedules[0].workload
        filled.setdefault("log", {"name": work.name, "sha256": work.sha256})
        filled.setdefault("procs_total", work.procs_total)
        filled.setdefault("clock", {"unix_start": work.clock.unix_start, "zone": work.clock.zone})
        if work.skipped:
            filled.setdefault("skipped", work.skipped)
        if work.queue_names:
            filled.setdefault("queues", work.queue_names)
    filled.setdefault("policies", [{"name": schedule.policy} for schedule in schedules])
    filled.setdefault("environment", _environment())
    return filled


def _environment() -> dict[str, str]:
    """Return the time and the programs of a result; ``SOURCE_DATE_EPOCH`` sets the time, for the
    same bytes again."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    return {
        "written": now.isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
    }


def _file_names(policies: Sequence[str]) -> dict[str, str]:
    """Return a file name for each policy: safe on any file system, and distinct even without regard
    to case."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for policy in policies:
        if policy in names:
            raise OutputError(
                f"two schedules of the policy {policy!r}: a result keeps one for each policy"
            )
        safe = re.sub(r"[^A-Za-z0-9._+-]", "-", policy)[:_LONGEST_NAME] or "policy"
        name, again = safe, 1
        while name.lower() in taken:
            again += 1
            name = f"{safe}-{again}"
        taken.add(name.lower())
        names[policy] = f"jobs-{name}.parquet"
    return names


def _plain(value: Any) -> Any:
    """Return a value for JSON: NumPy's numbers as Python's; null for NaN and infinity."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


@contextmanager
def _synced(path: Path) -> Any:
    # A group may share it.
    with open(path, "xb", opener=lambda path, flags: os.open(path, flags, 0o664)) as out:
        yield out
        out.flush()
        os.fsync(out.fileno())


def _replace_directory(target: Path, fill: Callable[[Path], None]) -> None:
    """Fill a new directory next to the target, then give it the target's name; on any error leave
    all as it was.

    A directory cannot take the name of one that is not empty, so an earlier result is renamed
    first.  A process that is killed between the two renames leaves both under hidden names, and
    nothing is lost.
    """
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    old: Path | None = None
    try:
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(fresh, 0o775 & ~umask)
        fill(fresh)
        _sync_directory(fresh)
        if target.is_dir() and any(target.iterdir()):
            aside = fresh.with_suffix(".old")
            os.rename(target, aside)
            old = aside
        os.rename(fresh, target)
    except BaseException:
        if old is not None and not target.exists():
            os.rename(old, target)
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    with suppress(OSError):
        _sync_directory(target.parent)


def _sync_directory(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _check_free(named: Path, target: Path) -> None:
    """Refuse a target that is neither new, nor empty, nor only an earlier result."""
    if not target.is_dir():
        if target.exists():
            raise OutputError(f"{named}: is a file; a result is a directory")
        return
    try:
        inside = sorted(entry.name for entry in target.iterdir())
        if not inside:
            return
        document = _parsed(target) if DOCUMENT in inside else {}  # a damaged result may be replaced
    except (InputError, OSError):
        document = {}
    known, pieces = document.get("files"), document.get("pieces", {})
    if not isinstance(known, dict) or not isinstance(pieces, dict):
        raise OutputError(f"{named}: is not empty and no result of qbatch; name a new directory")
    strangers = [
        name for name in inside if name not in (DOCUMENT, *known.values(), *pieces.values())
    ]
    if strangers:
        raise OutputError(
            f"{named}: holds {strangers[0]}, which is no part of the result there; move it away or "
            "name a new directory"
        )


# ------------------------------------------------------------------------------------------------
# reading


def result_of_rows(path: str | Path) -> Result | None:
    """Return the result of job rows in a result's directory; None for a file that belongs to no
    result.

    Raises:
        InputError: the file, or the result to which it seems to belong, is damaged.
    """
    source = Path(path)
    if not source.is_file() or not (source.parent / DOCUMENT).is_file():
        return None
    try:
        files = _read_document(source.parent).get("files")
    except InputError:
        if re.fullmatch(r"jobs-.*\.parquet", source.name):
            raise  # as bare job rows it would be read wrongly
        return None
    if not isinstance(files, dict) or source.name not in files.values():
        return None
    return read_directory(source.parent, source.name)


def read_bare(path: Path) -> Result:
    """Read job rows that belong to no result; the size of the machine is the most processors in use
    at once."""
    schedules = tuple(read_job_rows(path)) or (_empty("", path.name),)
    return Result(schedules, is_size_guessed=True).with_facts(
        procs_total=max(map(most_procs, schedules))
    )


def read_directory(path: Path, only: str | None = None) -> Result:
    """Read a result, or only one of its files of job rows."""
    document = _read_document(path)
    files = document.get("files")
    where = path / DOCUMENT
    if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
        raise InputError(f"{where}: files: should name the job rows of each policy")
    if not files:
        raise InputError(f"{where}: files: names the job rows of no policy")
    pieces = document.get("pieces", {})
    if not isinstance(pieces, dict) or not all(isinstance(name, str) for name in pieces.values()):
        raise InputError(
            f"{where}: pieces: should name the files of pieces by policy, not {pieces!r}"
        )
    total = document.get("procs_total")
    schedules = tuple(
        _schedule_of(path, document, str(policy), name, pieces.get(policy))
        for policy, name in files.items()
        if only in (None, name)
    )
    if not isinstance(total, int) or isinstance(total, bool) or total < 1:
        raise InputError(f"{where}: procs_total: should be the machine's processors, not {total!r}")
    _check_shapes(document, where)
    log = document.get("log", {})
    sha256 = log.get("sha256")
    return Result(schedules, document).with_facts(
        name=str(log.get("name") or path.name),
        procs_total=total,
        clock=_clock(document.get("clock"), where),
        sha256=sha256 if isinstance(sha256, str) else None,
        queue_names=queue_names_in(document),
    )


def queue_names_in(document: Mapping[str, Any]) -> dict[int, str]:
    """Return the names of the queues in a document, by number; unreadable ones are left out."""
    queues = document.get("queues")
    pairs = queues.items() if isinstance(queues, dict) else ()
    return {int(key): name for key, name in pairs if key.isdecimal() and isinstance(name, str)}


def _check_shapes(document: Mapping[str, Any], where: Path) -> None:
    """Refuse a document in which a part that is later read by name is no object."""
    for key in ("log", "machine"):
        if not isinstance(document.get(key, {}), dict):
            raise InputError(f"{where}: {key}: should be an object, not {str(document[key])[:40]}")
    results, notes = document.get("results", []), document.get("log", {}).get("notes") or []
    if not isinstance(results, list) or not all(isinstance(one, dict) for one in results):
        raise InputError(
            f"{where}: results: should be a list of objects, one for each policy, not "
            f"{str(results)[:40]}"
        )
    if not isinstance(notes, list):
        raise InputError(f"{where}: log: notes: should be a list, not {str(notes)[:40]}")
    try:
        msgspec.convert(document.get("log", {}).get("left_out") or [], list[LeftOut])
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: log: left_out: {error}") from error


def _schedule_of(
    folder: Path, document: Mapping[str, Any], policy: str, name: str, pieces: str | None
) -> Schedule:
    for key, inside in (("files", name), ("pieces", pieces)):
        if inside is None:
            continue
        if Path(inside).name != inside:
            raise InputError(f"{folder / DOCUMENT}: {key}: {inside!r} lies outside of the result")
        check_not_open(folder / inside)
        check_file(document, folder / inside, DOCUMENT)
    found = read_job_rows(folder / name)
    if not found:
        return _empty(policy, name)
    if len(found) > 1 or found[0].policy != policy:
        has = ", ".join(schedule.policy for schedule in found)
        raise InputError(
            f"{folder / name}: should hold the jobs of {policy!r}, but holds those of {has}"
        )
    return found[0] if pieces is None else read_pieces(found[0], folder / pieces)


def _empty(policy: str, name: str) -> Schedule:
    nothing = np.empty(0, np.int64)
    columns = dict.fromkeys(
        ("number", "submit", "start", "end", "procs", "estimate", "run"), nothing
    )
    return finished_run(policy, name=name, **columns)


def _clock(given: Any, where: Path) -> LogClock:
    if given is None:
        return LogClock()
    start, zone = (
        (given.get("unix_start"), given.get("zone")) if isinstance(given, dict) else ("", "")
    )
    if not isinstance(start, int | None) or not isinstance(zone, str | None):
        raise InputError(f"{where}: clock: should hold unix_start and zone, not {given!r}")
    return LogClock(start, zone)


def _read_document(folder: Path) -> dict[str, Any]:
    """Read ``result.json`` of a result's directory, and refuse a damaged one."""
    document = _parsed(folder)
    for each in (folder, folder / DOCUMENT):
        check_not_open(each)
    check_document(document, folder / DOCUMENT)
    return document


def _parsed(folder: Path) -> dict[str, Any]:
    path = folder / DOCUMENT
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        if (folder / "sweep.json").is_file():
            raise InputError(
                f"{folder}: is a sweep, not a result; qbatch sweep, plot and report read sweeps"
            ) from error
        raise InputError(f"{folder}: is no result of qbatch: it holds no {DOCUMENT}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error})") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise InputError(f"{path}: schema: should be {SCHEMA!r}, not {schema!r}")
    return dict(document)
