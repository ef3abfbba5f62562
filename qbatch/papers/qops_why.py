"""How the claims of Islam and others 2003 are judged, and what is known of those that do not hold."""

from __future__ import annotations

from qbatch.papers.record import FAILS, HOLDS

_MRT_ADMITS = (
    "MRT orders the whole plan anew at every arrival; under load it refuses fewer jobs and heavier ones: it loses more work and "
    "more utilisation at the same time (the tables)"
)
_MSB_IS_QUICKER = (
    "QoPS places anew by least laxity, which puts jobs without deadlines, with a day and more of slack, behind the others; MSB "
    "leaves the order of the plan as it is, and so delays them less, and admits fewer of the jobs with deadlines for it"
)

WHY: dict[str, str] = {
    "jobs": _MRT_ADMITS,
    "jobs-stronger": _MRT_ADMITS,
    "gap-grows": _MRT_ADMITS,
    "gap-grows-stronger": _MRT_ADMITS,
    "count-falls": (
        "deadlines do become looser with the load, as the paper says, and the work that is lost falls (work-falls holds); but "
        "the number of refused jobs rises on every trace, here as in the calibration"
    ),
    "jobs-rise-with-s": (
        "under high load tighter deadlines refuse heavier jobs, which leaves room for more small ones: the work that is lost "
        "rises with s at every load (work-rises-with-s holds), the number of jobs need not"
    ),
    "mrt-by-3-to-5": "MRT is lower, but by 1 to 2.5 points",
    "comparable-response": _MSB_IS_QUICKER,
    "comparable-response-stronger": _MSB_IS_QUICKER,
    "slowdown": _MSB_IS_QUICKER,
    "slowdown-stronger": _MSB_IS_QUICKER,
    "best": _MSB_IS_QUICKER,
    "best-stronger": _MSB_IS_QUICKER,
    "below-references-at-equal": (
        "the slowdown is lower, about half; the mean response, which long jobs make, is not where 80 % of the jobs have "
        "deadlines and go before those that have none"
    ),
    "slowdown-falls-with-R": (
        "at load 1.0 it falls or stays; under high load it rises with R: long jobs without deadlines are admitted that a small "
        "R refuses, and the small ones pay (q = 0.2, load 1.6: 5 % of all jobs refused with R = 2, 14 % with R = 10)"
    ),
    "load-1.4": (
        "SDSC is nearly full at load 1.4 (EASY uses 96 % of it), so that there is less to lose, and there MRT by earliest "
        "deadline refuses fewer jobs"
    ),
    "dynamic-falls": (
        "every job of such a set can start when it arrives, so nobody ever waits, and schemes that place jobs at their earliest "
        "admit all of them at every r; the fall that section 4.1 reports needs a scheme that puts jobs off for no reason"
    ),
}
"""The best explanation of claims that do not hold, by what they are about."""

METHOD: tuple[str, ...] = (
    "The figures print no values. A claim is a set of comparisons, each over disjoint subsets of a log, paired by subset: *yes* "
    "where the whole 95 % interval (Student's t) lies on the claimed side, *no* where it lies on the other, *open* where it "
    "reaches over the bound. A claim holds if all say yes, does not hold if one says no, and else is not decidable. No interval "
    "is corrected for how many there are.",
    "**The presets were picked because they match the paper.** It says neither what a plan costs MSB nor how often MRT may step "
    "back nor in what order it looks. Of four defensible settings the order of the paper appears against two: MSB with the sum "
    "of delays as its price, and MRT by earliest deadline without a step back. These are the presets. MSB with the fraction of "
    "slack as its price and MRT by least laxity with 10 steps back are stronger, stand beside them in every table and picture, "
    "and every claim that holds QoPS against its rivals is judged a second time against them, as *-stronger*.",
    "Estimates are exact. Deadlines are submission + max(run, (1 - s) x response under EASY) on the log at its load; jobs "
    "without one get submission + max(24 h, 5 x run), and are refused where that cannot be kept. QoPS: K = 5, least laxity, the "
    "new job sorted in. All these runs are compiled.",
    "At equal utilisation: a curve joins the points (utilisation, number) of the four loads; two are compared at nine "
    "utilisations spread over what both span, by the geometric mean of the ratio.",
)
"""How a claim is judged, a paragraph each."""

_HELD = """
ctc.4.work-falls ctc.4.work-rises-with-s ctc.6.loss ctc.6.stringency-costs ctc.6.alike ctc.6.alike-stronger
ctc.6.mrt-below ctc.6.mrt-below-stronger ctc.13.mrt-rejects-more-work ctc.25.below-references ctc.27.worse-at-80
ctc.37.loss-at-80 ctc.37.loss-grows-with-q ctc.37.alike ctc.37.alike-stronger ctc.37.mrt-below
ctc.43.slowdown-gains-more ctc.55.response-rises-with-R ctc.55.slowdown-falls-with-R ctc.calibration.load-1.4
ctc.10.gap-grows ctc.11.converge ctc.10.work-falls ctc.10.work-rises-with-s ctc.12.loss ctc.12.stringency-costs
ctc.12.alike ctc.12.alike-stronger ctc.12.mrt-below ctc.21.mrt-rejects-more-work ctc.33.below-references
ctc.35.worse-at-80 ctc.41.loss-at-80 ctc.41.loss-grows-with-q ctc.41.alike ctc.41.alike-stronger ctc.41.mrt-below
ctc.51.slowdown-gains-more sdsc.7.work-falls sdsc.7.work-rises-with-s sdsc.9.alike sdsc.9.alike-stronger
sdsc.9.mrt-below sdsc.9.mrt-below-stronger sdsc.18.converge-stronger sdsc.17.mrt-rejects-more-work
sdsc.29.below-references sdsc.31.worse-at-80-stronger sdsc.39.alike sdsc.39.alike-stronger sdsc.39.mrt-below
sdsc.47.below-references-at-equal sdsc.48.below-references-at-equal sdsc.49.below-references-at-equal
sdsc.50.below-references-at-equal sdsc.55.response-rises-with-R
"""

_FAILED = """
ctc.4.jobs-stronger ctc.4.gap-grows-stronger ctc.5.converge-stronger ctc.4.count-falls ctc.4.jobs-rise-with-s
ctc.6.mrt-by-3-to-5 ctc.13.jobs-stronger ctc.14.jobs-stronger ctc.15.jobs-stronger ctc.16.jobs ctc.16.jobs-stronger
ctc.25.comparable-response ctc.25.comparable-response-stronger ctc.25.slowdown ctc.25.slowdown-stronger ctc.43.best
ctc.43.best-stronger ctc.44.best ctc.44.best-stronger ctc.45.best ctc.45.best-stronger ctc.45.below-references-at-equal
ctc.46.best ctc.46.best-stronger ctc.46.below-references-at-equal ctc.10.count-falls ctc.10.jobs-rise-with-s
ctc.12.mrt-by-3-to-5 ctc.23.jobs ctc.33.comparable-response ctc.33.comparable-response-stronger ctc.33.slowdown
ctc.33.slowdown-stronger ctc.51.best ctc.51.best-stronger ctc.51.below-references-at-equal ctc.52.best
ctc.52.best-stronger ctc.53.best ctc.53.best-stronger ctc.53.below-references-at-equal ctc.54.best ctc.54.best-stronger
ctc.54.below-references-at-equal sdsc.7.jobs sdsc.7.jobs-stronger sdsc.7.work-stronger sdsc.8.jobs sdsc.8.jobs-stronger
sdsc.8.work sdsc.8.work-stronger sdsc.7.gap-grows sdsc.7.gap-grows-stronger sdsc.7.count-falls sdsc.9.mrt-by-3-to-5
sdsc.17.jobs-stronger sdsc.18.jobs sdsc.18.jobs-stronger sdsc.19.jobs sdsc.19.jobs-stronger sdsc.20.jobs
sdsc.20.jobs-stronger sdsc.29.comparable-response sdsc.29.comparable-response-stronger sdsc.29.slowdown
sdsc.29.slowdown-stronger sdsc.47.best sdsc.47.best-stronger sdsc.48.best sdsc.48.best-stronger sdsc.49.best
sdsc.49.best-stronger sdsc.50.best sdsc.50.best-stronger sdsc.55.slowdown-falls-with-R sdsc.calibration.load-1.4
"""

EXPECTED: dict[str, str] = {
    **dict.fromkeys(_HELD.split(), HOLDS),
    **dict.fromkeys(_FAILED.split(), FAILS),
    "4.1.dynamic-falls": FAILS,
}
"""What is known of a claim: on runs, of ten subsets of 5,000 jobs of CTC and SDSC from seed 1; nothing is known of one that is
not here, but for those that no run may break."""
