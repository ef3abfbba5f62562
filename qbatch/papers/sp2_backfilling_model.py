"""Figures 9 to 11 of Feitelson and Weil 1998 as tables, and what the paper says of them, with verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from qbatch.papers.evidence import EvidenceItem, above, below, inside, with_intervals
from qbatch.papers.record import Cell, Claim, Column, Table, Tolerance, claim
from qbatch.papers.sp2_backfilling_printed import (
    FIGURE_11_FOUR_HOURS,
    FIGURE_11_FULL,
    FIGURE_11_HIGHEST_H,
    FIGURE_11_JOBS,
    FIGURE_11_KILLED,
)
from qbatch.papers.sp2_backfilling_runs import (
    MODEL_JOBS,
    MODEL_POLICIES,
    MODEL_PROCS,
    EstimateFigures,
    LoadFigures,
)

TWO_POINTS = Tolerance(0, 2)
"""Shares in percent may differ by two points (docs/spec/papers.md, R001)."""

COUNTS = Tolerance(0.02)
"""Counts of jobs may differ by 2 %: our choice, the logs are not quite the same."""

_MODEL_NOTE = (
    f"our own generator ({MODEL_JOBS:,} jobs, {MODEL_PROCS} processors) stands in for the model of the paper, which it "
    "does not print; no number here is meant to meet the paper's"
)


def table_9(points: Sequence[LoadFigures]) -> Table:
    """Return the slowdowns and the shares backfilled by load: Figures 9 and 10."""
    columns = [Column("load", "load", 2)]
    columns += [Column(f"slowdown_{policy}", f"slowdown {policy}", 1) for policy in MODEL_POLICIES]
    columns += [Column(f"backfilled_{policy}", f"backfilled {policy}", 3) for policy in MODEL_POLICIES[1:]]
    rows: list[dict[str, Cell]] = []
    for point in points:
        row: dict[str, Cell] = {"load": point.load}
        row |= {f"slowdown_{policy}": point.slowdown[policy] for policy in MODEL_POLICIES}
        row |= {f"backfilled_{policy}": point.backfilled[policy] for policy in MODEL_POLICIES[1:]}
        rows.append(row)
    title = "Figures 9 and 10: bounded slowdown and share backfilled by load, generated logs, perfect estimates"
    return Table("figure9", title, columns, rows, [_MODEL_NOTE])


def claims_of_figures_9_and_10(points: Sequence[LoadFigures]) -> list[Claim]:
    """Return what the paper reads off Figures 9 and 10."""
    usual = [point for point in points if point.load <= 0.9]
    high = [point for point in points if point.load > 0.9]
    apart = max(abs(_of(point, "conservative") / _of(point, "easy") - 1) for point in usual)
    at = min(points, key=lambda point: abs(point.load - 0.7))
    times = _of(at, "fcfs") / _of(at, "easy")
    more = [point for point in points if point.backfilled["conservative"] >= point.backfilled["easy"]]
    differ = max(abs(point.backfilled["conservative"] - point.backfilled["easy"]) for point in points)
    least = min(points[-1].backfilled[policy] for policy in ("easy", "conservative"))
    claims = [
        claim(
            "figure9.alike",
            "EASY and conservative are within 10 % of each other up to a load of 0.9",
            apart <= 0.10,
            f"at most {100 * apart:.0f} % apart",
        ),
        claim(
            "figure9.conservative-at-high-load",
            "Conservative is slightly better at very high loads",
            all(_of(point, "conservative") < _of(point, "easy") for point in high),
            "; ".join(f"{p.load:.2f}: EASY {_of(p, 'easy'):.0f}, cons {_of(p, 'conservative'):.0f}" for p in high),
        ),
        claim(
            "figure9.fcfs-far-worse",
            "FCFS is far worse: at least five times EASY at a load of 0.7",
            times >= 5,
            f"{times:.1f} times ({_of(at, 'fcfs'):.0f} to {_of(at, 'easy'):.0f})",
        ),
        claim(
            "figure10.conservative-backfills-more",
            "Both backfill about as much (within 5 points), conservative a bit more",
            differ <= 0.05 and len(more) > len(points) / 2,
            f"conservative more at {len(more)} of {len(points)} loads, at most {100 * differ:.1f} points apart",
        ),
        claim(
            "figure10.nearly-all",
            "At the highest load nearly all jobs are backfilled (90 % or more)",
            least >= 0.90,
            f"{100 * least:.0f} % at {points[-1].load:.2f}",
        ),
    ]
    count = min((len(values) for point in points for values in point.slowdowns.values()), default=0)
    return with_intervals(claims, _over_logs(usual, high, at, points), f"{count} generated logs") if count > 1 else claims


def _over_logs(
    usual: Sequence[LoadFigures], high: Sequence[LoadFigures], at: LoadFigures, points: Sequence[LoadFigures]
) -> dict[str, list[EvidenceItem]]:
    """Return the comparisons behind each claim, over the generated logs, by pairs."""

    def ratios(point: LoadFigures, policy: str) -> list[float]:
        pairs = zip(point.slowdowns[policy], point.slowdowns["easy"], strict=True)
        return [mine / theirs for mine, theirs in pairs if theirs]

    def label(point: LoadFigures) -> str:
        return f"load {point.load:.2f}, conservative / EASY"

    more = {
        point.load: [
            100 * (mine - theirs)
            for mine, theirs in zip(point.shares["conservative"], point.shares["easy"], strict=True)
        ]
        for point in points
    }
    return {
        "figure9.alike": [
            inside(label(point), ratios(point, "conservative"), 0.9, 1.1, is_ratio=True) for point in usual
        ],
        "figure9.conservative-at-high-load": [
            below(label(point), ratios(point, "conservative"), 1.0, is_ratio=True) for point in high
        ],
        "figure9.fcfs-far-worse": [above(f"load {at.load:.2f}, FCFS / EASY", ratios(at, "fcfs"), 5.0, is_ratio=True)],
        "figure10.conservative-backfills-more": [
            above(f"load {load:.2f}, conservative - EASY", values, 0.0, " points") for load, values in more.items()
        ],
        "figure10.nearly-all": [
            above(f"{policy} at {points[-1].load:.2f}", points[-1].shares[policy], 0.9) for policy in ("easy", "conservative")
        ],
    }


def _of(point: LoadFigures, policy: str) -> float:
    return point.slowdown[policy]


# ------------------------------------------------------------------------------------------------ Figure 11


def table_11(found: EstimateFigures, *, is_kth: bool) -> Table:
    """Return what the text prints of Figure 11 beside what the log tells."""
    full_share = 100 * FIGURE_11_FULL / FIGURE_11_JOBS
    killed_share = 100 * FIGURE_11_KILLED / FIGURE_11_FULL
    lines: list[tuple[str, float | None, float, Tolerance]] = [
        ("jobs of a minute or more", FIGURE_11_JOBS, found.jobs, COUNTS),
        ("used 100 % (rounded) of the request", FIGURE_11_FULL, found.full, COUNTS),
        ("... in % of these jobs", full_share, 100 * found.full / found.jobs, TWO_POINTS),
        ("... killed (status 0)", FIGURE_11_KILLED, found.killed, COUNTS),
        ("... killed, in % of them", killed_share, 100 * found.killed / max(found.full, 1), TWO_POINTS),
        ("status 0, asked for 4 h, any share used", FIGURE_11_FOUR_HOURS, found.four_hours, COUNTS),
        ("highest request in h", FIGURE_11_HIGHEST_H, found.highest_h, COUNTS),
        ("ran to the second or longer than asked", None, found.over, COUNTS),
        ("requests up to 2 h in %", None, 100 * found.two_hours_share, TWO_POINTS),
        ("requests of whole 5 min in %", None, 100 * found.five_minutes_share, TWO_POINTS),
    ]
    rows: list[dict[str, Cell]] = []
    for what, printed, ours, tolerance in lines:
        known = printed if is_kth else None
        digits = 0 if isinstance(ours, int) else 1
        rows.append({
            "quantity": what,
            "printed": None if known is None else round(known, digits) if digits else known,
            "ours": round(ours, digits) if digits else ours,
            "verdict": tolerance.verdict(known, ours),
        })  # fmt: skip
    columns = [Column("quantity", "quantity"), Column("printed", "printed", 1), Column("ours", "ours", 1)]
    columns.append(Column("verdict", "verdict"))
    notes = [f"{found.shorter:,} jobs of less than a minute are left out"]
    if is_kth:
        notes.append(
            "the paper does not say which jobs it counts: the cut at a minute, the rounding and the reading of the 4 h row "
            "were chosen because they meet its counts, so that they agree is no evidence"
        )
    return Table("figure11", "Figure 11: time used of time asked for", columns, rows, notes)


def claims_of_figure_11(found: EstimateFigures, *, tells_kills: bool) -> list[Claim]:
    """Return what the paper reads off Figure 11."""
    below = max(found.histogram[1:98])
    killed = found.killed / found.full if found.full else 0.0
    return [
        claim(
            "figure11.peak",
            "The histogram has one pronounced peak at 100 %: at least twice any other bin from 1 % to 97 %",
            found.histogram[100] >= 2 * below,
            f"{found.histogram[100]:,} jobs at 100 %, at most {below:,} in another bin",
        ),
        claim(
            "figure11.killed",
            "Nearly all jobs at 100 % were killed there (95 % or more)",
            killed >= 0.95 if tells_kills and found.full else None,
            f"{found.killed:,} of {found.full:,} have status 0",
        ),
    ]
