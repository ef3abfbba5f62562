"""Feitelson and Weil, "Utilization and Predictability in Scheduling the IBM SP2 with Backfilling", IPPS/SPDP 1998.

Runs Tables 1 to 3 and Figures 9 to 11 and holds them to the printed numbers and claims.  The hand-drawn examples
(Figures 3, 4, 7 and 8) are tests: ``tests/papers/test_examples.py``.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from qbatch.papers import sp2_backfilling_figures as figures
from qbatch.papers import sp2_backfilling_model as model
from qbatch.papers import sp2_backfilling_runs as runs
from qbatch.papers import sp2_backfilling_verdicts as verdicts
from qbatch.papers.record import PaperOutcome
from qbatch.papers.registry import PAPERS
from qbatch.papers.sp2_backfilling_printed import TABLE_3, USERS
from qbatch.sweeps.kept import Tell, silent
from qbatch.workloads import Log, generate_log

PAPER = PAPERS["sp2-backfilling"]
OWN_JOBS, OWN_PROCS, OWN_LOAD, OWN_SEED = 6_000, 100, 0.75, 1998
"""The log that is generated where none is given."""


def own_log() -> Log:
    """Return the generated log on which the paper runs without a download."""
    return generate_log(jobs=OWN_JOBS, procs=OWN_PROCS, load=OWN_LOAD, seed=OWN_SEED)


def is_kth(log: Log) -> bool:
    """Tell whether a log is that of KTH's SP2, the only one that the printed numbers can be held to."""
    said = f"{log.header.installation or ''} {log.header.computer or ''}"
    return "KTH" in said and "SP2" in said


def run_paper(
    log: Log,
    *,
    procs: int,
    seeds: int = 10,
    seed: int = 0,
    parts: Collection[str] = PAPER.parts,
    tell: Tell = silent,
) -> PaperOutcome:
    """Run the parts of the paper that are asked for on a log; ``seeds`` draws of estimates from ``seed`` on."""
    bench = runs.Bench(log, procs, tuple(range(seed, seed + seeds)), tell)
    outcome = PaperOutcome()
    outcome.notes.extend(_notes(log))
    if "1" in parts:
        _add_table_1(outcome, bench)
    if "2" in parts:
        _add_table_2(outcome, bench)
    if "3" in parts:
        _add_table_3(outcome, bench)
    _add_intervals(outcome, bench, parts)
    if "figures" in parts:
        _add_figures(outcome, bench)
    return outcome


def _notes(log: Log) -> list[str]:
    notes = []
    if not is_kth(log):
        notes.append(
            "the printed numbers of Tables 2 and 3 and Figure 11 are those of KTH's SP2, and this is another log: only "
            "the claims are checked on it (KTH-SP2-1996 is in the Parallel Workloads Archive)"
        )
    if (log["wait"] < 0).any():
        notes.append("this log does not say how long its jobs waited: it cannot be cut into monthly accounting files")
    return notes


def _add_table_1(outcome: PaperOutcome, bench: runs.Bench) -> None:
    for variant, sizes in runs.run_table_1(bench).items():
        outcome.tables.append(verdicts.table_1(sizes, variant))
        outcome.claims.extend(verdicts.claims_of_table_1(sizes, variant))
    outcome.tables.append(verdicts.table_1_printed())


def _add_table_2(outcome: PaperOutcome, bench: runs.Bench) -> None:
    found = runs.run_table_2(bench)
    for reading, months in found.items():
        outcome.tables.append(verdicts.table_2(months, reading, is_kth=is_kth(bench.log)))
        outcome.claims.extend(verdicts.claims_of_table_2(months, reading))
    outcome.pictures["table2"] = partial(figures.draw_table_2, found, bench.log.name, is_kth=is_kth(bench.log))


def _add_table_3(outcome: PaperOutcome, bench: runs.Bench) -> None:
    found = runs.run_table_3(bench)
    has_estimates = runs.has_estimates(bench.log)
    for reading, rows in found.items():
        outcome.tables.append(verdicts.table_3(rows, reading, is_kth=is_kth(bench.log)))
        outcome.claims.extend(verdicts.claims_of_table_3(rows, reading, has_estimates=has_estimates))
    outcome.pictures["table3"] = partial(figures.draw_table_3, found, bench.log.name, is_kth=is_kth(bench.log))


def _add_intervals(outcome: PaperOutcome, bench: runs.Bench, parts: Collection[str]) -> None:
    """Say beside the claims of Tables 2 and 3 what logs of resampled weeks say of them."""
    factors = list(TABLE_3) if "3" in parts else [USERS] if "2" in parts else []
    if factors:
        logs = runs.run_resampled(bench, factors)
        has_estimates = runs.has_estimates(bench.log)
        outcome.claims[:] = verdicts.with_resampled(outcome.claims, logs, has_estimates=has_estimates)


def _add_figures(outcome: PaperOutcome, bench: runs.Bench) -> None:
    points = runs.run_figure_9(bench)
    outcome.tables.append(model.table_9(points))
    outcome.claims.extend(model.claims_of_figures_9_and_10(points))
    outcome.pictures["figure9"] = partial(figures.draw_figure_9, points)
    outcome.pictures["figure10"] = partial(figures.draw_figure_10, points)
    found = runs.run_figure_11(bench) if runs.has_estimates(bench.log) else None
    if found is None:
        outcome.notes.append("this log has no estimates of users: there is no Figure 11")
        return
    outcome.tables.append(model.table_11(found, is_kth=is_kth(bench.log)))
    # A generated log draws its failures; they say nothing of who was killed at the estimate.
    outcome.claims.extend(model.claims_of_figure_11(found, tells_kills=bench.log.name != "generated"))
    outcome.pictures["figure11"] = partial(figures.draw_figure_11, bench.log, found)
