"""The description of a run in words: its log by name, its options, and remarks to read before the
numbers.

The source is the document of ``qbatch replay --json`` and of ``result.json``; missing facts are not
guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qbatch.results.result import Result
    from qbatch.workloads.header import Header


_DRAWN = re.compile(r"\b(f:|exact|tsafrir)")
"""Estimates for which the seed is shown: those of models that draw
(``qbatch.workloads.estimates``)."""


def short_name(name: str) -> str:
    """Return the last part of a log's path, short enough for a title."""
    return name.rstrip("/").replace("\\", "/").rsplit("/", 1)[-1]


def title_name(name: str) -> str:
    """Return the name of a log for a title: without folders and file suffixes."""
    return re.sub(r"\.(swf|txt)(\.gz|\.xz)?$", "", short_name(name)) or name


def number_text(value: float | int | str | None, unit: str = "") -> str:
    """Return a number for a table: seconds with one decimal, shares with four, absent as a dash."""
    if value is None:
        return "-"
    if isinstance(value, str | int):
        return str(value)
    if unit == "s" or abs(value) >= 1000:
        return f"{value:.1f}"
    return f"{value:.4f}"


def value_text(value: float | int | None, unit: str) -> str:
    """Return the value of a metric for readers: hours and minutes, percent, thousands separated;
    absent as a dash."""
    if value is None:
        return "-"
    if unit == "s":
        return hours_text(value)
    if unit == "share":
        return f"{value * 100:.2f} %"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def hours_text(seconds: float) -> str:
    """Return ``7 h 09 min``, ``12 min 05 s`` or ``42 s``: two units, or one below a minute."""
    if seconds < 0:
        return f"-{hours_text(-seconds)}"
    if round(seconds) < 60:
        return f"{seconds:.3g} s"
    if round(seconds) < 3600:
        return "{} min {:02d} s".format(*divmod(round(seconds), 60))
    return "{:,} h {:02d} min".format(*divmod(round(seconds / 60), 60))


def option_words(options: Mapping[str, Any], missing: int = 0, jobs: int = 0) -> str:
    """Return the options of a replay in words: the source of estimates, the kill, and unusual
    options.

    ``missing``: the number of jobs, out of ``jobs``, without an estimate in the log.
    """
    how = str(options.get("estimates", "log"))
    if how != "log":
        words = [
            f"estimates {how}" + (f" (seed {options.get('seed', 0)})" if _DRAWN.search(how) else "")
        ]
    elif missing and missing == jobs:
        words = ["run times as estimates (the log has none)"]
    else:
        words = [
            "estimates of the log"
            + (f" (missing: {missing:,}, run times for these)" if missing else "")
        ]
    words.append(
        "jobs end at their estimates"
        if options.get("kill", True)
        else "no kill: estimates lifted to run times"
    )
    for key, text in (
        ("load", "load x{}"),
        ("since", "from {}"),
        ("before", "to {}"),
        ("first", "first {} jobs"),
        ("counted_from", "counted from {}"),
    ):
        value = options.get(key)
        if value is not None and not (key == "load" and value == 1):
            words.append(text.format(value))
    if options.get("warmup"):
        words.append(f"warm-up of {options['warmup']:g} s")
    return "; ".join(words)


def run_facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the lines below a table of a run: the log, the machine, the options, the jobs left
    out, notes."""
    log, machine = _mapping(document.get("log")), _mapping(document.get("machine"))
    facts = [("log", f"{short_name(str(log.get('name')))}, {log.get('jobs', 0):,} jobs")]
    if log.get("sha256"):
        facts.append(("sha256", str(log["sha256"])))
    if side := _mapping(document.get("resources")):
        asked = f"{short_name(str(side.get('name')))}, of {side.get('jobs', 0):,} jobs"
        facts += [("resources", asked), ("sha256", str(side.get("sha256")))]
    hosts = machine.get("hosts", 1)
    facts.append(
        (
            "machine",
            f"{machine.get('procs', 0):,} processors" + (f", {hosts} hosts" if hosts != 1 else ""),
        )
    )
    closed = _mapping(document.get("closed"))
    if document.get("source"):
        facts.append(("source", f"{document['source']}, seed {document.get('seed', 0)}"))
    if _mapping(document.get("options")):
        missed, jobs = document.get("estimates_missing", 0), log.get("jobs", 0)
        facts.append(("options", option_words(document["options"], missed, jobs)))
    if closed:
        how = "as the log says" if closed.get("is_told") else "derived from the log"
        facts.append(
            (
                "closed",
                (
                    f"{closed.get('jobs', 0):,} jobs submitted after another has ended and a think "
                    f"time ({how})"
                ),
            )
        )
    skipped = skipped_words(_mapping(document.get("skipped")))
    if skipped:
        facts.append(("left out", skipped))
    if left_out := left_out_words(log):
        facts.append(("not in log", left_out))
    thanks = acknowledged(document)
    if thanks:
        facts.append(("acknowledge", thanks))
    missing = missing_estimates(document)
    return [*facts, ("note", missing)] if missing else facts


def run_words(result: Result) -> list[str]:
    """Return the log, the machine and the options of a result, each in a few words; missing facts
    are left out."""
    options, log = _mapping(result.document.get("options")), _mapping(result.document.get("log"))
    words = [short_name(result.name)]
    if not result.is_size_guessed:
        words.append(f"{result.procs_total:,} processors")
    if options:
        words.append(
            option_words(options, result.document.get("estimates_missing", 0), log.get("jobs", 0))
        )
    return words


def recorded_notes(result: Result) -> list[str]:
    """Return the notes on a log that serves as a schedule: the jobs left out, and its oddities."""
    if not result.is_recorded:
        return []
    document = result.document
    notes = [
        f"{count:,} {'job is' if count == 1 else 'jobs are'} left out: {reason.replace('_', ' ')}"
        for reason, count in _mapping(document.get("skipped")).items()
    ]
    return notes + [str(note) for note in _mapping(document.get("log")).get("notes") or []]


def left_out_words(log: Mapping[str, Any]) -> str:
    """Return in one line what a log lacks about its machine, by its document; empty if that is not
    known."""
    from msgspec import convert

    from qbatch.workloads.left_out import NOT_TOLD, LeftOut

    found = convert(log.get("left_out") or [], list[LeftOut])
    silent = ", ".join(each.what for each in found if each.jobs is None)
    return "; ".join(
        [
            *(each.words for each in found if each.jobs is not None),
            *([f"{NOT_TOLD}: {silent}"] if silent else []),
        ]
    )


def left_out_notes(document: Mapping[str, Any]) -> list[str]:
    """Return a sentence on what the log of a run lacks, as a list of one or none."""
    return _left_out_notes(_mapping(document.get("log")).get("left_out"))


def header_notes(header: Header) -> list[str]:
    """Return the same for a log by its header."""
    from msgspec import to_builtins

    from qbatch.workloads.left_out import left_out_of

    return _left_out_notes(to_builtins([*left_out_of(header)]))


def _left_out_notes(left_out: Any) -> list[str]:
    words = left_out_words({"left_out": left_out})
    return [f"left out of the log: {words}"] if words else []


def history_notes(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the notes for a comparison of a schedule with the log's own waits, by the facts of the
    two runs."""
    from qbatch.workloads.left_out import PARTS

    unknown = (
        "the log does not show whether the machine had partitions, GPUs, licences, memory "
        "limits or reservations"
    )
    logs = [_mapping(document.get("log")).get("left_out") or [] for document in documents]
    # Rows that are parts of jobs say nothing of the machine.
    of_machine = [[each for each in log if _mapping(each).get("what") != PARTS] for log in logs]
    first = next((note for log in of_machine for note in _left_out_notes(log)), unknown)
    of_parts = [[each for each in log if _mapping(each).get("what") == PARTS] for log in logs]
    return [
        *dict.fromkeys(note for log in of_parts for note in _left_out_notes(log)),
        f"a replay does not know the machine that the log is of: {first}",
        "limits of users and queues, the site's own priorities, and times when nodes were down are "
        "in no log: a replay has the "
        "whole machine all the time, and differences may come from that",
        "so differences from the log are described, and neither schedule is called better",
    ]


def acknowledged(document: Mapping[str, Any]) -> str:
    """Return in one line the acknowledgements of the log's header; empty if it names none."""
    names = _mapping(document.get("log")).get("acknowledge")
    return (
        "; ".join(" ".join(str(name).split()) for name in names) if isinstance(names, list) else ""
    )


def skipped_words(skipped: Mapping[str, Any]) -> str:
    """Return how many jobs were left out for each reason."""
    return ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in skipped.items())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def missing_estimates(document: Mapping[str, Any]) -> str | None:
    """Return a sentence about jobs without an estimate in the log; None if all have one, or others
    were asked for."""
    options, log = document.get("options"), document.get("log")
    missing, jobs = (
        document.get("estimates_missing"),
        log.get("jobs") if isinstance(log, dict) else None,
    )
    if (
        not isinstance(missing, int)
        or missing < 1
        or not isinstance(options, dict)
        or options.get("estimates") != "log"
    ):
        return None
    return missing_estimates_of(missing, jobs if isinstance(jobs, int) else None)


def missing_estimates_of(missing: int, jobs: int | None) -> str:
    """Return the same sentence for these numbers."""
    if missing == jobs:
        words = "no job has an estimate in the log"
    else:
        words = (
            f"{missing:,}{'' if jobs is None else f' of {jobs:,}'} jobs have no estimate in the log"
        )
    return (
        f"{words}: run times are taken for estimates, so that policies know exactly when these "
        "jobs end"
    )
