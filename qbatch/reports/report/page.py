"""The page: it puts everything about a study together and renders it as one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import io
import platform
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np

from qbatch.distribution import __version__, install_command
from qbatch.metrics import METRICS
from qbatch.metrics.interval import SAME
from qbatch.model.errors import InputError, UsageError
from qbatch.reports.comparison import ComparedSettings, Side, compare
from qbatch.reports.comparison_words import signed
from qbatch.reports.gantt import gantt
from qbatch.reports.plot_style import styled
from qbatch.reports.plots import instant_text, view_of
from qbatch.reports.report import charts
from qbatch.reports.report.charts import Chart
from qbatch.reports.report.embedded import embedded, script_json
from qbatch.reports.report.machine import machine_section
from qbatch.reports.report.study import OnMachine, Replica, ReportStudy
from qbatch.reports.report.summary import (
    PART_KEYS,
    every_metric,
    parts,
    promises,
    quantities,
    summary,
)
from qbatch.results.run_words import LEFT_OUT, acknowledged, short_name, skipped_words, title_name

SCRIPTS = ("columns.js", "timeline.js", "drawing.js", "controls.js")
"""The files of the page's script, in order."""

_PART_WORDS = {
    "class": "By class: wide above 8 processors, long above 1 hour",
    "size": "By processors",
    "runtime": "By run time",
    "month": "By month of submission",
}
_PICTURE_POLICIES = 6
_NAMED_POLICIES = 4


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of a page: a title, the confidence of intervals, and the command to show."""

    title: str | None = None
    confidence: float = 0.95
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fold:
    """A table that is closed until a reader opens it."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Against:
    """A policy and the baseline: the findings in sentences, and notes about the matched jobs."""

    policy: str
    sentences: tuple[str, ...]
    notes: tuple[str, ...] = ()


def render(study: ReportStudy, wishes: Wishes | None = None, site: OnMachine | None = None) -> str:
    """Return the page about a study as HTML text; ``site``: what is known of its machine in addition
    to the results.

    Raises:
        UsageError: jinja2 or matplotlib is not installed.
    """
    asked = wishes or Wishes()
    script = "".join(
        (files("qbatch.reports") / "assets" / name).read_text(encoding="utf-8") for name in SCRIPTS
    )
    style = (files("qbatch.reports") / "assets" / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = environment().get_template("report.html.j2")
    return str(
        template.render(
            **_context(study, asked),
            machine=machine_section(study, site),
            script=script,
            style=style,
            script_hash=f"sha256-{digest}",
        )
    )


def environment() -> Any:
    """Return the environment that renders the templates of pages.

    Raises:
        UsageError: jinja2 is not installed.
    """
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError as error:
        raise UsageError(f"a report needs jinja2: {install_command('report')}") from error
    folder = files("qbatch.reports") / "templates"
    loader = jinja2.FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8"))
    found = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["tight"] = _tight
    found.filters["broken"] = lambda name: Markup("<wbr>").join(re.split(r"(?<=[:,=])", name))
    return found


def _tight(text: str) -> str:
    """Return a sentence without line breaks between a number and its unit, and with minus signs as
    wide as plus signs."""
    text = re.sub(r"(?<=\d) (?=(?:s|min|h|d|points)\b|%)", "\N{NO-BREAK SPACE}", text)
    return re.sub(r"(?<![\w-])-(?=\d)", "\N{MINUS SIGN}", text)


def _context(study: ReportStudy, asked: Wishes) -> dict[str, Any]:
    result = study.first.result
    names = (
        listed(study.policies)
        if len(study.policies) <= _NAMED_POLICIES
        else f"{len(study.policies)} policies"
    )
    counted = [promises(schedule) for schedule in result.schedules]
    charts_of_parts, folds_of_parts = _parts(study)
    against, documents, chart = _differences(study, asked)
    history: list[str] = next((one["history"] for one in documents if one["history"]), [])
    return {
        "title": asked.title or f"{title_name(result.name)} under {names}",
        "lead": _lead(study),
        "notes": (
            *study.notes,
            *_as_note([one for one in history if LEFT_OUT not in one]),
        ),
        "history": _as_note(history),
        "policies": study.policies,
        "summary": summary(study, asked.confidence),
        "every_metric": every_metric(study),
        "interval_note": _interval_note(study, f"{asked.confidence * 100:.3g} %"),
        "data": script_json(embedded(study)),
        "picture": _picture(study),
        "distributions": charts.distribution_charts(study),
        "part_charts": charts_of_parts,
        "part_folds": folds_of_parts,
        "against": against,
        "baseline": study.policies[0],
        "difference_chart": chart,
        "effects": _effects(documents) if documents else None,
        "method": next((one["method"] for one in documents if not one["is_described"]), ""),
        "correction": documents[0]["correction"] if documents else "",
        "promise_chart": charts.promise_chart(counted)
        if any(one.promised for one in counted)
        else None,
        "unpromised": [one.policy for one in counted if not one.promised],
        "definitions": METRICS,
        "provenance": _provenance(study, asked),
        "shown_replica": ", ".join(study.first.paths) if study.has_replicas else "",
        "replicas": _replica_table(study) if study.has_replicas else None,
        "version": __version__,
    }


def _as_note(sentences: Sequence[str]) -> list[str]:
    """Return sentences as one note, or none."""
    return [" ".join(f"{one[:1].upper()}{one[1:]}." for one in sentences)] if sentences else []


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _lead(study: ReportStudy) -> str:
    result = study.first.result
    ran = [schedule.only_ran() for schedule in result.schedules]
    longest = max(ran, key=len)
    jobs, uncounted = len(longest), int((~longest.workload.counted).sum())
    begin = min(int(each.workload.submit.min()) for each in ran)
    end = max(int(each.end.max()) for each in ran)
    warm = f" ({uncounted:,} of them warm-up, not counted)" if uncounted else ""
    text = (
        f"{jobs:,} job{'s' * (jobs != 1)}{warm} on {result.procs_total:,} "
        f"processor{'s' * (result.procs_total != 1)}, "
    )
    text += f"{instant_text(begin, result.clock)} to {instant_text(end, result.clock)}"
    if study.has_replicas:
        text += f"; {len(study.replicas)} replicas"
    return f"{text}."


def _interval_note(study: ReportStudy, per_cent: str) -> str:
    if study.has_replicas:
        return (
            f"Means over {len(study.replicas)} replicas; small figures: {per_cent} confidence "
            "intervals of Student's t over "
            f"them; a dash: {SAME}."
        )
    return (
        f"One run of each policy. Small figures: {per_cent} confidence intervals within the run, "
        "which allow for waits that "
        "depend on each other. Those of means are on a scale of ratios. Their error is the widest "
        "of the stationary bootstrap "
        "(Politis and Romano 1994; blocks by Politis and White 2004) and of the means of 5, 10 and "
        "20 parts of the log. Those of "
        "medians are the bootstrap's percentiles. A metric with one number per run has none."
    )


def _parts(study: ReportStudy) -> tuple[list[Chart], list[Fold]]:
    drawn, folds = [], []
    for key in PART_KEYS:
        found = parts(study, key)
        if not found:
            continue
        headings, rows = charts.part_table(study, key, found)
        folds.append(Fold(_PART_WORDS[key], headings, rows))
        if key in ("class", "month"):
            drawn.append(charts.part_chart(study, key, f"Mean wait by {key}", found, "wait_mean_s"))
        if key == "class":
            drawn.append(
                charts.part_chart(
                    study, key, "Mean bounded slowdown by class", found, "bounded_slowdown_mean"
                )
            )
    return drawn, folds


# ------------------------------------------------------------------------------------------------
# differences


def _differences(
    study: ReportStudy, asked: Wishes
) -> tuple[list[Against], list[dict[str, Any]], Chart | None]:
    """Compare every policy with the baseline, over the replicas that contain both."""
    found, documents, places = [], [], []
    base = study.policies[0]
    for place, policy in enumerate(study.policies[1:], 1):
        pairs = [
            (one, other)
            for replica in study.replicas
            if (one := _side(replica, base)) and (other := _side(replica, policy))
        ]
        if not pairs:
            found.append(
                Against(
                    policy,
                    (f"{policy} and {base} are never in one result, so they cannot be compared.",),
                )
            )
            continue
        try:
            document = compare(*pairs[0], ComparedSettings(confidence=asked.confidence), pairs[1:])
        except InputError as error:
            found.append(Against(policy, (f"Not compared: {error}.",)))
            continue
        documents.append(document)
        places.append(place)
        notes = tuple(note for note in document["notes"] if f"{note}." not in study.notes)
        found.append(Against(policy, tuple(one["sentence"] for one in document["metrics"]), notes))
    has_chart = any(one["ratio"] for document in documents for one in document["metrics"][:1])
    return found, documents, charts.difference_chart(documents, places) if has_chart else None


def _side(replica: Replica, policy: str) -> Side | None:
    schedule = replica.schedule(policy)
    if schedule is None:
        return None
    return Side(
        replica.result,
        schedule,
        f"{', '.join(replica.paths)}:{policy}",
        policy,
        policy in replica.history,
        replica.check if policy in replica.history else None,
    )


def _effects(documents: Sequence[dict[str, Any]]) -> Fold:
    """Return the table of how many jobs gain and lose, and of the effect sizes."""
    headings = (
        "Policy",
        "Of each job",
        "Less",
        "More",
        "Equal",
        "Rank-biserial",
        "Cliff\N{RIGHT SINGLE QUOTATION MARK}s delta",
        "Median difference",
    )
    rows = []
    for document in documents:
        for record in (record for record in document["metrics"] if "effect" in record):
            effect = record["effect"]
            shares = (f"{effect[key]:.1%}" for key in ("jobs_better", "jobs_worse", "jobs_equal"))
            sizes = (f"{effect[key]:+.3f}" for key in ("rank_biserial", "cliff_delta"))
            words = record["words"].removeprefix("Mean ")
            rows.append(
                (
                    document["b"]["label"],
                    words,
                    *shares,
                    *sizes,
                    signed(record["median"]["difference"], record["unit"]),
                )
            )
    title = (
        "Numbers of jobs with less and with more, and effect sizes (from \N{MINUS SIGN}1, "
        "more "
        "for all, to 1, less for all)"
    )
    return Fold(title, headings, tuple(rows))


# ------------------------------------------------------------------------------------------------
# pictures and facts


def _picture(study: ReportStudy) -> str:
    """Return the whole schedule as a PNG in base64, for paper and for readers without scripts."""
    result = study.first.result
    view = view_of(replace(result, schedules=result.schedules[:_PICTURE_POLICIES]))
    out = io.BytesIO()
    with styled():
        figure = gantt(view).axes[0].figure
        figure.set_facecolor("white")
        figure.savefig(out, format="png", dpi=130, metadata={"Software": None})
    return base64.b64encode(out.getvalue()).decode()


def _provenance(study: ReportStudy, asked: Wishes) -> list[tuple[str, str]]:
    """Return the facts needed to repeat the runs."""
    facts = [fact for document in study.first.documents for fact in _facts_of(document)]
    facts.append(
        ("Results", ", ".join(path for replica in study.replicas for path in replica.paths))
    )
    if asked.command:
        facts.append(("Command of this page", shlex.join(asked.command)))
    facts.append(
        (
            "Page written with",
            f"qbatch {__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
        )
    )
    return facts


def _facts_of(document: dict[str, Any]) -> list[tuple[str, str]]:
    log, machine, made = (_mapping(document.get(key)) for key in ("log", "machine", "environment"))
    side, command = _mapping(document.get("resources")), document.get("command")
    options = {
        key: value for key, value in _mapping(document.get("options")).items() if value is not None
    }
    skipped = _mapping(document.get("skipped"))
    facts = {
        "Command": shlex.join(map(str, command)) if isinstance(command, list) else None,
        "Run with": f"qbatch {document.get('version', '?')}"
        + (
            f", Python {made.get('python')}, NumPy {made.get('numpy')} on {made.get('system')}"
            if made
            else ""
        ),
        "Run on": made.get("written"),
        "Log": log.get("name"),
        "To acknowledge, by the log": acknowledged(document) or None,
        "SHA-256 of the log": log.get("sha256"),
        "Side file of resources": side.get("name"),
        "SHA-256 of the side file": side.get("sha256"),
        "Machine": f"{machine.get('procs'):,} processors, {machine.get('hosts')} "
        f"host{'' if machine.get('hosts') == 1 else 's'}"
        if isinstance(machine.get("procs"), int)
        else None,
        "Seed": document.get("seed"),
        "Options": ", ".join(f"{key} {str(value).lower()}" for key, value in options.items())
        or None,
        "Jobs skipped": skipped_words(skipped) or None,
        "Jobs without an estimate in the log": document.get("estimates_missing") or None,
        "Jobs ended at their estimate": document.get("killed_at_estimate"),
    }
    return [(name, str(value)) for name, value in facts.items() if value is not None]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _replica_table(study: ReportStudy) -> Fold:
    headings = (
        "Result",
        "Log",
        "Seed",
        "Jobs",
        *(f"{policy}: mean wait" for policy in study.policies),
    )
    rows = []
    for replica in study.replicas:
        waits = []
        for policy in study.policies:
            found = replica.schedule(policy)
            wait = quantities(found)["wait"] if found is not None else np.empty(0)
            waits.append(f"{wait.mean():,.1f} s" if len(wait) else "\N{EN DASH}")
        seed = str(replica.result.document.get("seed", "\N{EN DASH}"))
        jobs = f"{max(int(each.ran.sum()) for each in replica.result.schedules):,}"
        rows.append((", ".join(replica.paths), short_name(replica.result.name), seed, jobs, *waits))
    return Fold("The replicas", headings, tuple(rows))
