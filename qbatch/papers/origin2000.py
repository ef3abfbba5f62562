"""Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS 2001.

Runs the months behind Figures 3 to 10 and checks what the paper concludes from them.  Its logs are not public: the months are
generated (docs/papers/origin2000.md), several replicas of each, and a claim is judged by intervals over them.
"""

from __future__ import annotations

from dataclasses import replace

from qbatch.model.errors import UsageError, suggestion
from qbatch.papers import origin2000_figures as figures
from qbatch.papers import origin2000_pictures as pictures
from qbatch.papers import origin2000_study as studies
from qbatch.papers import origin2000_verdicts as verdicts
from qbatch.papers.origin2000_kept import KeptOrigin2000Runs
from qbatch.papers.origin2000_runs import Origin2000Figures
from qbatch.papers.origin2000_why import EXPECTED, METHOD
from qbatch.papers.origin2000_workload import drawn_month, workload_claims, workload_tables
from qbatch.papers.record import FAILS, HOLDS, UNDECIDED, PaperOutcome
from qbatch.papers.registry import PAPERS
from qbatch.sweeps.executors import WORKERS
from qbatch.sweeps.kept import Tell, silent
from qbatch.workloads.origin2000 import MONTHS

PAPER = PAPERS["origin2000"]
REPLICAS = 10
SEED = 1
"""The replicas, and the seed of the first, where nothing else is said.  With five, most intervals reach over their bounds."""

NOTES = (
    "the logs of the paper are not public: its months are generated from what is printed of them, and no number of a figure "
    "can be compared, only what is concluded",
    "no job comes after a month: the last jobs of it end on a machine that empties",
    "Figure 6 is of measured months after the scheduler was changed; there is nothing to simulate",
)


def study_of(
    months: list[str] | None = None, *, replicas: int = REPLICAS, seed: int = SEED, days: int | None = None
) -> studies.Origin2000Study:
    """Return the study of these months (None: all six), ``replicas`` seeds of each from ``seed`` on.

    Raises:
        UsageError: there is no such month, or a month has not so many days.
    """
    for month in months or ():
        if month not in MONTHS:
            raise UsageError(f"--month {month!r}: use one of {', '.join(MONTHS)}{suggestion(month, MONTHS)}")
    chosen = tuple(month for month in MONTHS if not months or month in months)
    if days is not None and not 1 <= days <= 29:
        raise UsageError(f"--days is {days}; use 1 to 29, or leave it out for whole months")
    return studies.Origin2000Study(chosen, tuple(range(seed, seed + replicas)), days=days)


def run_paper(
    study: studies.Origin2000Study, tell: Tell = silent, *, workers: int = WORKERS, kept: KeptOrigin2000Runs | None = None
) -> PaperOutcome:
    """Run a study and return its tables and claims; runs that ``kept`` has are not made again."""
    return outcome_of(study, studies.run_study(study, tell, workers=workers, kept=kept))


def expected(claim: str, study: studies.Origin2000Study) -> str:
    """Return the verdict that is known of a claim; of one that fails, only for six whole months and ten replicas."""
    known = EXPECTED.get(claim, HOLDS)
    is_whole = len(study.months) == len(MONTHS) and len(study.seeds) >= REPLICAS and study.days is None
    return known if is_whole or known != FAILS else UNDECIDED


def outcome_of(study: studies.Origin2000Study, found: list[Origin2000Figures]) -> PaperOutcome:
    """Return the tables and claims of runs that have been made."""
    notes = list(NOTES)
    if len(study.seeds) < REPLICAS:
        notes.append(f"only {len(study.seeds)} of the usual {REPLICAS} replicas: intervals are wide, or there are none")
    if study.days is not None:
        notes.append(f"only the first {study.days} days of each month were submitted: this is a quick look")
    drawn = [drawn_month(month, seed) for seed in study.seeds for month in study.months]
    claims = [*workload_claims(drawn, found), *verdicts.all_claims(found, study.months)]
    return PaperOutcome(
        [*workload_tables(drawn), *figures.all_tables(found, study.months)],
        [replace(claim, expected=expected(claim.name, study)) for claim in claims],
        notes,
        pictures.all_pictures(found, study.months),
        list(METHOD),
    )
