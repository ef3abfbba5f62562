"""Karatza and Hilzer, "Performance Analysis of Parallel Job Scheduling in Distributed Systems", Annual Simulation Symposium 2003.

Table 2 and Figures 3 to 14 run again through the compiled loop of the closed network, a verdict on each claim, and what the paper
leaves open: wrong estimates, heavier tails, stations of several processors, more processors, other combinations.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from qbatch.papers import closed_network_beyond as beyond
from qbatch.papers import closed_network_figures as figures
from qbatch.papers import closed_network_verdicts as verdicts
from qbatch.papers.closed_network_pictures import all_pictures
from qbatch.papers.closed_network_replicas import NetworkReplicas
from qbatch.papers.closed_network_runs import SEED, NetworkFigures
from qbatch.papers.closed_network_study import (
    COMBINATIONS,
    ERRORS,
    FIGURES,
    LENGTH_S,
    MAXIMA,
    PARTS,
    REPLICATIONS,
    SIZES,
    STATIONS,
    TAILS,
    TIES,
    KeptNetworkRuns,
    NetworkStudy,
    run_study,
)
from qbatch.papers.closed_network_why import EXPECTED, METHOD
from qbatch.papers.record import UNDECIDED, PaperOutcome
from qbatch.sweeps.executors import WORKERS
from qbatch.sweeps.kept import Tell, silent


def run_paper(
    study: NetworkStudy,
    tell: Tell = silent,
    *,
    workers: int = WORKERS,
    kept: KeptNetworkRuns | None = None,
    parts: Collection[str] = PARTS,
) -> PaperOutcome:
    """Run the parts of the paper that are asked for; blocks that ``kept`` has are not made again."""
    return outcome_of(study, run_study(study, parts, tell, workers=workers, kept=kept), parts)


def outcome_of(study: NetworkStudy, runs: Sequence[NetworkFigures], parts: Collection[str]) -> PaperOutcome:
    """Return the tables, claims and pictures of runs that have been made."""
    replicas = NetworkReplicas(runs, study.replications)
    outcome = PaperOutcome(notes=_notes(study), method=list(METHOD), unknown=_unknown(study))
    claims = []
    if FIGURES in parts:
        outcome.tables.extend(figures.all_tables(study, replicas))
        claims += verdicts.all_claims(study, replicas)
    if MAXIMA in parts:
        outcome.tables.append(figures.maxima_table(study, replicas, NetworkReplicas(runs)))
    if ERRORS in parts:
        outcome.tables.extend(beyond.error_tables(study, replicas))
        claims += verdicts.errors(study, replicas)
    for part, make in (
        (TIES, beyond.ties_table),
        (COMBINATIONS, beyond.combinations_table),
        (TAILS, beyond.tails_table),
        (STATIONS, beyond.stations_table),
        (SIZES, beyond.sizes_table),
    ):
        if part in parts:
            outcome.tables.append(make(study, replicas))
    outcome.claims.extend(replace(one, expected=expected(one.name, study)) for one in claims)
    outcome.pictures.update(all_pictures(study, replicas, [part for part in PARTS if part in parts]))
    return outcome


def expected(name: str, study: NetworkStudy) -> str:
    """Return the verdict that is known of a claim, with the usual replications, seed and window; else undecided."""
    return UNDECIDED if _unknown(study) else EXPECTED.get(name, UNDECIDED)


def _unknown(study: NetworkStudy) -> str:
    """Return why nothing is known of the verdicts of a study, empty where something is."""
    if study.replications >= REPLICATIONS and study.seed == SEED and study.length == LENGTH_S:
        return ""
    return (
        f"no verdicts are on record of {study.replications} replications of {study.length:g} s with seed {study.seed}, only of "
        f"{REPLICATIONS} or more of {LENGTH_S:g} s with seed {SEED}"
    )


def _notes(study: NetworkStudy) -> list[str]:
    notes = [
        f"each replication is measured for {study.length:g} s after {study.warmup:g} s (rule 11): the paper does not say how "
        "long its runs were, and RT_max depends on it",
        "the paper has STF with the largest task first; with that order U would lie below that of PrFCFS, with the smallest "
        "first it is that of Table 2 (docs/spec/papers.md 5.2)",
    ]
    if study.replications < REPLICATIONS:
        notes.append(
            f"with {study.replications} of the usual {REPLICATIONS} replications intervals are wide, or none"
        )
    return notes
