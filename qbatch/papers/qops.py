"""Islam, Balaji, Sadayappan and Panda, "QoPS: A QoS based scheme for Parallel Job Scheduling", OSU-CISRC-4/03-TR21, 2003.

Runs the schemes behind Figures 4 to 58 on disjoint subsets of logs, or on generated ones, and checks what the paper concludes.
Its figures print no values.  The paper leaves price, order and backtracks of QoPS's rivals open: the settings called presets were
picked because with them its order appears, and stronger settings of the same rivals are run and judged beside them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from qbatch.model.errors import InputError, UsageError
from qbatch.papers import qops_estimates as estimates
from qbatch.papers import qops_figures as figures
from qbatch.papers import qops_packed as packed
from qbatch.papers import qops_pictures as pictures
from qbatch.papers import qops_verdicts as verdicts
from qbatch.papers.qops_replicas import QopsReplicas
from qbatch.papers.qops_runs import (
    DUPLICATION,
    EXPANSION,
    OWN_PROCS,
    SCHEMES,
    SUBSET_JOBS,
    WARMUP_JOBS,
    GroupFigures,
    Trace,
)
from qbatch.papers.qops_study import KeptQopsGroups, QopsSource, QopsStudy, run_study
from qbatch.papers.qops_why import EXPECTED, METHOD
from qbatch.papers.record import HOLDS, UNCHECKED, UNDECIDED, Claim, PaperOutcome, claim
from qbatch.papers.registry import PAPERS
from qbatch.simulation.prepare import choose_procs
from qbatch.sweeps.executors import WORKERS
from qbatch.sweeps.kept import Tell, silent
from qbatch.workloads import Log, read_log
from qbatch.workloads.transform import sized
from qbatch.workloads.transform.load import can_run

PAPER = PAPERS["qops"]
SUBSETS, SEED = 10, 1
CTC, SDSC = "ctc", "sdsc"
CTC_PROCS = 430
"""The processors that the calibration took for CTC's log, whose header names the 338 of its batch partition."""


def source_of(path: str | None, *, procs: int | None = None, subsets: int = SUBSETS, jobs: int = SUBSET_JOBS) -> QopsSource:
    """Return a log as a source of subsets (None: generated logs): which trace of the paper it is, and how many it has.

    Raises:
        InputError: the log has not the jobs of one subset.
        UsageError: ``procs`` of a generated log.
    """
    both = (DUPLICATION, EXPANSION)
    if path is None:
        if procs is not None:
            raise UsageError(
                f"--procs {procs}: the generated logs are for {OWN_PROCS} processors; name a log, or leave it out"
            )
        return QopsSource(Trace("generated", "generated", OWN_PROCS), subsets, both)
    log = read_log(path)
    slug, name = _trace_of(log, path)
    size = choose_procs(log, CTC_PROCS if procs is None and slug == CTC else procs)
    there = (int(np.count_nonzero(can_run(sized(log, size)))) - WARMUP_JOBS) // jobs
    if there < 1:
        raise InputError(
            f"{path}: it has not the {WARMUP_JOBS + jobs:,} jobs of one subset ({WARMUP_JOBS:,} are left out before the first); "
            "use a longer log, or --jobs N with fewer jobs to a subset"
        )
    methods = (DUPLICATION,) if slug == SDSC else both
    return QopsSource(Trace(slug, name, size, log.sha256, path), min(subsets, there), methods)


def _trace_of(log: Log, path: str) -> tuple[str, str]:
    """Return a short name and a name of a log: those of the paper's two logs, else by its file."""
    said = f"{log.header.installation or ''} {log.header.computer or ''}"
    if "Cornell" in said or "CTC" in said:
        return CTC, "CTC"
    if "SDSC" in said and "SP2" in said:
        return SDSC, "SDSC"
    stem = re.sub(r"\.(swf|txt|gz|xz)\b", "", Path(path).name)
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "log", stem


def study_of(
    paths: Sequence[str] = (),
    *,
    procs: int | None = None,
    subsets: int = SUBSETS,
    jobs: int = SUBSET_JOBS,
    seed: int = SEED,
) -> QopsStudy:
    """Return the study of these logs, or of generated ones.

    Raises:
        InputError: a log has not the jobs of one subset.
        UsageError: one log is named twice, or ``procs`` is given for several.
    """
    if procs is not None and len(paths) > 1:
        raise UsageError(
            f"--procs {procs}: there are {len(paths)} logs; their headers say how large their machines are"
        )
    chosen: Sequence[str | None] = paths or [None]
    sources = [source_of(path, procs=procs, subsets=subsets, jobs=jobs) for path in chosen]
    slugs = [source.trace.slug for source in sources]
    for slug in slugs:
        if slugs.count(slug) > 1:
            raise UsageError(f"two of the logs are {slug}; name each once")
    return QopsStudy(tuple(sources), jobs, seed)


def run_paper(
    study: QopsStudy,
    tell: Tell = silent,
    *,
    workers: int = WORKERS,
    kept: KeptQopsGroups | None = None,
    parts: Collection[str] = PAPER.parts,
    subsets: int = SUBSETS,
) -> PaperOutcome:
    """Run the parts of the paper that are asked for; groups of runs that ``kept`` has are not made again.

    ``subsets``: how many were asked for of each source, which may have fewer.
    """
    outcome = PaperOutcome(notes=_notes(study, subsets), method=list(METHOD), unknown=_unknown(study, parts))
    if "figures" in parts:
        add_figures(outcome, study, run_study(study, tell, workers=workers, kept=kept))
    if "packed" in parts:
        found = packed.run_packed(tell)
        outcome.tables.append(packed.packed_table(found))
        outcome.claims.extend(replace(one, expected=expected(one.name, study)) for one in packed.packed_claims(found))
    if "estimates" in parts:
        bounds = estimates.run_estimates(study, tell, workers=workers)
        outcome.tables.append(estimates.estimates_table(bounds))
        outcome.claims.extend(replace(one, expected=UNDECIDED) for one in estimates.estimates_claims(bounds))
        outcome.notes.append(estimates.NOTE)
    return outcome


def add_figures(outcome: PaperOutcome, study: QopsStudy, groups: list[GroupFigures]) -> None:
    """Add tables, claims and pictures of groups that have been run."""
    claims = _claims_of_every_run(groups)
    for source in study.sources:
        for method in source.methods:
            replicas = QopsReplicas(source.trace, method, groups)
            outcome.tables.extend(figures.all_tables(replicas))
            outcome.pictures.update(pictures.all_pictures(replicas))
            claims += verdicts.all_claims(replicas)
    outcome.claims.extend(replace(one, expected=expected(one.name, study)) for one in claims)


def expected(name: str, study: QopsStudy) -> str:
    """Return the verdict that is known of a claim; of one on runs only for ten or more subsets of the paper's logs."""
    slug = name.partition(".")[0]
    for source in study.sources:
        if source.trace.slug == slug:
            return EXPECTED.get(name, UNDECIDED) if _is_on_record(source, study) else UNDECIDED
    return EXPECTED.get(name, HOLDS)


def _is_on_record(source: QopsSource, study: QopsStudy) -> bool:
    """Tell whether verdicts of a log are on record, for as many subsets as here."""
    is_usual = study.jobs == SUBSET_JOBS and study.seed == SEED
    return is_usual and source.trace.slug in (CTC, SDSC) and source.subsets >= SUBSETS


def _unknown(study: QopsStudy, parts: Collection[str]) -> str:
    """Return why nothing is known of the verdicts of these parts, empty where something is."""
    if "figures" not in parts or any(_is_on_record(source, study) for source in study.sources):
        return ""
    had = ", ".join(f"{source.subsets} subsets of {source.trace.name}" for source in study.sources)
    return (
        f"no verdicts are on record of {had}, {study.jobs:,} jobs each, with seed {study.seed}, only of {SUBSETS} or more of "
        f"{SUBSET_JOBS:,} jobs of the logs of CTC and SDSC with seed {SEED}"
    )


def _notes(study: QopsStudy, subsets: int) -> list[str]:
    notes = ["the figures of the paper print no values: only what it concludes is checked"]
    if any(source.trace.path is None for source in study.sources):
        notes.append(
            f"NO LOG GIVEN: running on generated logs of {study.jobs:,} jobs for {OWN_PROCS} processors; those of the paper are "
            "CTC's and SDSC's SP2 (CTC-SP2-1996, SDSC-SP2-1998 in the Parallel Workloads Archive), and verdicts may differ"
        )
    for source in study.sources:
        if source.subsets < subsets:
            notes.append(
                f"{source.trace.name} has only {source.subsets} disjoint subsets of {study.jobs:,} jobs, not {subsets} as asked"
            )
        if source.subsets < SUBSETS:
            notes.append(
                f"{source.trace.name}: with {source.subsets} of the usual {SUBSETS} subsets intervals are wide, or none"
            )
    return notes


def _claims_of_every_run(groups: list[GroupFigures]) -> list[Claim]:
    """Return the claims that no run may break, over all traces."""
    runs = [one for group in groups for each in group.settings for name, one in each.schemes.items() if name in SCHEMES]
    late, easy_late = sum(one.late for one in runs), sum(group.easy_late for group in groups)
    loads = {f"{group.case.load:g}" for group in groups if _is_wrong_size(group)}
    counts = "QoPS tries at most (K + 1)(ceil(log2 N) + 2) schedules an arrival, MSB N + 1"
    why_not = "the compiled searches do not count; tests hold rules 4 to 7 to an oracle"
    return [
        claim(
            "all.promises-kept",
            "Every admitted deadline job ends by its deadline",
            not late,
            f"{late} late in {len(runs):,} runs",
        ),
        claim(
            "all.easy-at-0",
            "At s = 0 EASY itself meets every deadline",
            not easy_late,
            f"{easy_late} late in {len(groups)} schedules",
        ),
        claim(
            "all.jobs-by-load",
            "Duplication at load l makes l times the jobs (7,000 of 5,000 at 1.4, 8,000 at 1.6)",
            not loads,
            f"{len(groups)} logs, wrong at {', '.join(sorted(loads)) or 'no load'}",
        ),
        Claim("all.schedules-tried", counts, UNCHECKED, why_not, expected=UNCHECKED),
    ]


def _is_wrong_size(group: GroupFigures) -> bool:
    times = group.case.load if group.case.method == DUPLICATION else 1.0
    return group.jobs != round(times * group.case.jobs)
