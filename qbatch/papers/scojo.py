"""The thesis on group optimisation in SCOJO-PECT (time slices, groups, discrepancy search), run again.

Tables 2 and 5 to 9 and Figures 15 to 41 on workloads of the model of Lublin and Feitelson and on windows of logs, a verdict on
what the thesis concludes, and what it leaves open: users' estimates, and what its parts do for a plain space-shared machine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from qbatch.model.errors import InputError, UsageError
from qbatch.papers import scojo_changes as changes
from qbatch.papers import scojo_figures as figures
from qbatch.papers import scojo_pictures as pictures
from qbatch.papers import scojo_verdicts as verdicts
from qbatch.papers.record import UNDECIDED, PaperOutcome
from qbatch.papers.registry import PAPERS
from qbatch.papers.scojo_printed import LABELS, TRACE_FACTS
from qbatch.papers.scojo_replicas import ScojoReplicas
from qbatch.papers.scojo_runs import (
    EXACT,
    GROUPS,
    GROUPS_ALONE,
    MODEL,
    SCOJO,
    SCOJO_ALONE,
    SEED,
    USERS,
    WORKLOAD_JOBS,
    ScojoFigures,
    ScojoSource,
    log_workload,
)
from qbatch.papers.scojo_study import (
    ESTIMATES,
    FIGURES,
    PLAIN,
    SCHEMES_OF,
    SIZES_PART,
    KeptScojoRuns,
    ScojoStudy,
    run_study,
)
from qbatch.papers.scojo_why import EXPECTED, METHOD
from qbatch.simulation.prepare import choose_procs
from qbatch.sweeps.executors import WORKERS
from qbatch.sweeps.kept import Tell, silent
from qbatch.workloads import Log, read_log

PAPER = PAPERS["scojo"]
WORKLOADS, LOG_WORKLOADS = 20, 3
"""Workloads of the model, and at most of each log."""

ALL_LOGS = "all logs"
"""The windows of all logs with estimates, each a replica."""

BLUE, LANL = "sdsc-blue", "lanl"
_KNOWN = (
    (BLUE, "SDSC-BLUE", "Blue Horizon"), (LANL, "LANL-CM5", "Los Alamos"), ("kth", "KTH", "Swedish Royal Institute"),
    ("ctc", "CTC", "Cornell"), ("sdsc-sp2", "SDSC-SP2", "SDSC"),
)  # fmt: skip
"""Short name and name of the logs that are looked for, and what their headers say."""


def source_of(path: str, jobs: int = WORKLOAD_JOBS, workloads: int = LOG_WORKLOADS) -> tuple[ScojoSource, int]:
    """Return a log as a source of workloads, and how many it has, at most so many.

    LANL's log says nothing that can be taken for an estimate (its field 9 looks like processor time).

    Raises:
        InputError: the log has not the jobs of one workload.
    """
    log = read_log(path)
    slug, name = _name_of(log, path)
    procs = choose_procs(log, None)
    there = len(log_workload(path, procs, EXACT))
    if there < jobs:
        raise InputError(
            f"{path}: {there:,} of its jobs can run, not the {jobs:,} of one workload; use a longer log, or --jobs N"
        )
    has_estimates = slug != LANL and bool((log["time_requested"] > 0).mean() > 0.5)
    most = workloads if has_estimates else 1
    return ScojoSource(slug, name, procs, log.sha256, path, has_estimates), min(there // jobs, most)


def _name_of(log: Log, path: str) -> tuple[str, str]:
    """Return a short name and a name of a log: those of a log that is known, else by its file."""
    said = f"{log.header.installation or ''} {log.header.computer or ''}"
    for slug, name, mark in _KNOWN:
        if mark in said:
            return slug, name
    stem = re.sub(r"\.(swf|txt|gz|xz)\b", "", Path(path).name)
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "log", stem


def study_of(
    paths: Sequence[str] = (), *, workloads: int = WORKLOADS, jobs: int = WORKLOAD_JOBS, seed: int = SEED
) -> ScojoStudy:
    """Return the study of the model and of these logs.

    Raises:
        InputError: a log has not the jobs of one workload.
        UsageError: one log is named twice.
    """
    logs = tuple(source_of(path, jobs, min(workloads, LOG_WORKLOADS)) for path in paths)
    slugs = [MODEL.slug, *(source.slug for source, _ in logs)]
    for slug in slugs:
        if slugs.count(slug) > 1:
            raise UsageError(f"two of the sources are {slug}; name each log once")
    shown = tuple(source.slug for source, _ in logs if source.slug in TRACE_FACTS or not source.has_estimates)
    return ScojoStudy(workloads, logs, shown, jobs, seed)


def run_paper(
    study: ScojoStudy,
    tell: Tell = silent,
    *,
    workers: int = WORKERS,
    kept: KeptScojoRuns | None = None,
    parts: Collection[str] = PAPER.parts,
) -> PaperOutcome:
    """Run the parts of the paper that are asked for; runs that ``kept`` has are not made again."""
    runs = run_study(study, [part for part in SCHEMES_OF if part in parts], tell, workers=workers, kept=kept)
    outcome = PaperOutcome(notes=_notes(study), method=list(METHOD), unknown=_unknown(study))
    add_outcome(outcome, study, runs, parts)
    return outcome


def add_outcome(outcome: PaperOutcome, study: ScojoStudy, runs: Sequence[ScojoFigures], parts: Collection[str]) -> None:
    """Add tables, claims and pictures of runs that have been made."""
    model = ScojoReplicas(MODEL.slug, runs)
    outcome.tables.append(figures.schemes_table())
    claims = []
    if FIGURES in parts:
        logs = {
            source.slug: ScojoReplicas(source.slug, runs).only(0) for source, _ in study.logs if source.slug in study.figures
        }
        _add_figures(outcome, model, logs)
        claims += verdicts.all_claims(model, logs)
    if SIZES_PART in parts:
        outcome.tables.append(figures.sizes_table(model))
        outcome.pictures["scojo-figure15"] = lambda: pictures.draw_sizes(model)
        claims += verdicts.sizes(model)
    sources = _both(study, runs)
    shown_sources = [one for one in sources if one.slug in (MODEL.slug, sources[-1].slug)]
    for part, name, title, comparisons in (
        (ESTIMATES, "scojo-estimates", "Users' estimates and exact ones", changes.BEYOND),
        (PLAIN, "scojo-plain", "A plain space-shared machine", changes.ON_PLAIN),
    ):
        if part in parts:
            outcome.tables.append(changes.levels_table(sources, name, title, SCHEMES_OF[part]))
            outcome.tables.extend(changes.change_tables(sources, f"{name}-changes", title, comparisons))
    if ESTIMATES in parts:
        shown = [(GROUPS, SCOJO), *changes.BEYOND[4:7]]
        outcome.pictures["scojo-estimates-changes"] = lambda: pictures.draw_changes(
            shown_sources, "Beyond the paper: users' estimates", shown
        )
    if PLAIN in parts:
        plain = [changes.ON_PLAIN[2], changes.ON_PLAIN[4], changes.ON_PLAIN[6], changes.ON_PLAIN[7]]
        outcome.pictures["scojo-plain-changes"] = lambda: pictures.draw_changes(
            shown_sources, "Beyond the paper: a plain space-shared machine", plain
        )
    outcome.claims.extend(replace(one, expected=expected(one.name, study)) for one in claims)


def _add_figures(outcome: PaperOutcome, model: ScojoReplicas, logs: dict[str, ScojoReplicas]) -> None:
    sources = [model, *logs.values()]
    outcome.tables.extend([figures.tree_table(), *(figures.facts_table(one) for one in sources)])
    outcome.tables.extend([figures.groups_table(sources, GROUPS), figures.groups_table(sources, GROUPS_ALONE)])
    outcome.tables.extend([figures.nodes_table(model), figures.means_table(sources)])
    for one in sources:
        title = f"Figures {'16 to 20, 30 to 34' if one is model else '21, 22, 35 and 36'}: mean slowdown, {one.slug}"
        schemes = (SCOJO, GROUPS), (SCOJO_ALONE, GROUPS_ALONE)
        for name, pair in zip(("", "-smart-off"), schemes, strict=True):
            outcome.tables.append(figures.slowdowns_table(one, f"scojo-slowdown-{one.slug}{name}", title, pair))
    outcome.tables.extend(changes.change_tables(sources, "scojo-changes", "What each part gives", changes.COMPARISONS))
    outcome.pictures.update(pictures.all_pictures(model, logs))


def _both(study: ScojoStudy, runs: Sequence[ScojoFigures]) -> list[ScojoReplicas]:
    """Return what was run of each source with exact and with users' estimates, and of all windows of several logs together."""
    slugs = [source.slug for source, _ in study.logs if source.has_estimates]
    found = [ScojoReplicas(slug, runs, known) for slug in (MODEL.slug, *slugs) for known in (EXACT, USERS)]
    if len(slugs) > 1:
        found += [
            ScojoReplicas.pooled(ALL_LOGS, [one for one in found[2:] if one.estimates == known]) for known in (EXACT, USERS)
        ]
    return found


def expected(name: str, study: ScojoStudy) -> str:
    """Return the verdict that is known of a claim: of the model with the usual workloads, of a log with its usual window."""
    slug = name.partition(".")[2]
    is_run = slug not in TRACE_FACTS or slug in study.figures
    known = EXPECTED.get(name, UNDECIDED)
    return known if (is_run and not _unknown(study)) or name.startswith("t2.") else UNDECIDED


def _unknown(study: ScojoStudy) -> str:
    """Return why nothing is known of the verdicts of a study, empty where something is."""
    if study.jobs == WORKLOAD_JOBS and study.workloads >= WORKLOADS and study.seed == SEED:
        return ""
    return (
        f"no verdicts are on record of {study.workloads} workloads of {study.jobs:,} jobs with seed {study.seed}, only of "
        f"{WORKLOADS} or more of {WORKLOAD_JOBS:,} with seed {SEED}"
    )


def _notes(study: ScojoStudy) -> list[str]:
    notes = [
        "most figures of the paper print no values, and its workloads are of another generator: only sign and size can be held",
        "classes by run time; slowdown as in the paper: ceil(max(1, response / max(run, 600 s)))",
    ]
    missing = [slug for slug in TRACE_FACTS if slug not in study.figures]
    if missing:
        notes.append(
            f"NO LOG OF {', '.join(missing).upper()} GIVEN: Table 6 and Figures 21, 22, 35 and 36 are not run there "
            "(SDSC-BLUE-2000, LANL-CM5-1994 in the Parallel Workloads Archive)"
        )
    if not any(source.has_estimates for source, _ in study.logs):
        notes.append("no log with users' estimates given: those of the model of Tsafrir, Etsion and Feitelson alone")
    if study.workloads < WORKLOADS:
        notes.append(f"with {study.workloads} of the usual {WORKLOADS} workloads intervals are wide, or none")
    if study.seed != SEED:
        notes.append(f"with seed {study.seed} the labelled workloads are drawn anew: only their mean gaps are those of Table 5")
    if study.workloads < len(LABELS):
        notes.append(f"the paper labels {len(LABELS)} workloads; only the first {study.workloads} are run")
    return notes
