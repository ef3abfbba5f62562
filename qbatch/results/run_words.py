"""The description of a run in words: its log by name, its options, and remarks to read before the
numbers.

The source is the document of ``qbatch replay --json`` and of ``result.json``; missing facts are not
guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
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
    side = _mapping(document.get("resources"))
    if side:
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
    if left_out := left_out_words(log, side):
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


def left_out_words(log: Mapping[str, Any], side: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return in one line what a log and its side file lack about the machine, by their documents;
    empty if that is not known."""
    from msgspec import convert

    from qbatch.workloads.left_out import NOT_TOLD, LeftOut, still_left_out

    noted = convert(log.get("left_out") or [], list[LeftOut])
    found = still_left_out(noted, _mapping(side.get("kinds")), log.get("rows"))
    silent = ", ".join(each.what for each in found if each.jobs is None)
    return "; ".join(
        [
            *(each.words for each in found if each.jobs is not None),
            *([f"{NOT_TOLD}: {silent}"] if silent else []),
        ]
    )


LEFT_OUT = "left out of the log: "
"""How a sentence on what a log lacks begins."""


def left_out_notes(document: Mapping[str, Any]) -> list[str]:
    """Return a sentence on what the log of a run and its side file lack, as a list of one or
    none."""
    words = left_out_words(_mapping(document.get("log")), _mapping(document.get("resources")))
    return [LEFT_OUT + words] if words else []


def header_notes(header: Header, kinds: Mapping[str, int] = MappingProxyType({})) -> list[str]:
    """Return the same for a log by its header; ``kinds``: what its side file says."""
    from msgspec import to_builtins

    from qbatch.workloads.left_out import left_out_of

    log = {"left_out": to_builtins([*left_out_of(header)])}
    return left_out_notes({"log": log, "resources": {"kinds": kinds}})


def history_notes(
    documents: Sequence[Mapping[str, Any]], *, checked: str = "", why_not: str = ""
) -> list[str]:
    """Return the notes for a comparison of a schedule with the log's own waits, by the facts of the
    two runs, those of the replay first.

    ``checked``: the machine file on which the log's schedule can have run, and what was checked;
    ``why_not``: why it gives no verdict.  Both are empty if that was not checked.
    """
    from qbatch.workloads.left_out import PARTS

    unknown = (
        "the log does not show whether the machine had partitions, GPUs, licences, memory "
        "limits or reservations"
    )
    # Rows that are parts of jobs say nothing of the machine.
    of_machine = [_with_left_out(each, lambda what: what != PARTS) for each in documents]
    of_parts = [_with_left_out(each, lambda what: what == PARTS) for each in documents]
    lacking = next((note for each in of_machine for note in left_out_notes(each)), "")
    knows = next((True for each in documents if each.get("resources")), False)
    notes = list(dict.fromkeys(note for each in of_parts for note in left_out_notes(each)))
    if checked:
        notes.append(f"the real schedule can have run on {checked}")
    elif why_not:
        notes.append(why_not)
    if not knows:
        notes.append(f"a replay does not know the machine that the log is of: {lacking or unknown}")
    elif lacking:
        notes.append(lacking)
    notes.append(
        "limits of users and queues, the site's own priorities, and times when nodes were down are "
        "in no log: a replay has the "
        "whole machine all the time, and differences may come from that"
    )
    if not checked:
        notes.append(
            "so differences from the log are described, and neither schedule is called better"
        )
    if not checked and not why_not and knows:
        notes.append("--machine and --resources check whether the real schedule fits the machine")
    return notes


def _with_left_out(document: Mapping[str, Any], is_shown: Callable[[str], bool]) -> dict[str, Any]:
    """Return the facts of a run with some of what its log leaves out."""
    log = _mapping(document.get("log"))
    found = [each for each in log.get("left_out") or [] if is_shown(_mapping(each).get("what", ""))]
    return {**document, "log": {**log, "left_out": found}}


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
