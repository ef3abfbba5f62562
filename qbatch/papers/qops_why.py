"""How the claims of Islam and others 2003 are judged, and what is known of those that do not hold."""

from __future__ import annotations

from qbatch.papers.record import FAILS

WHY: dict[str, str] = {
    "dynamic-falls": (
        "every job of such a set can start when it arrives, so nobody ever waits, and schemes that place jobs at their earliest "
        "admit all of them at every r; the fall that section 4.1 reports needs a scheme that puts jobs off for no reason"
    ),
}
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

EXPECTED: dict[str, str] = {"4.1.dynamic-falls": FAILS}
"""What is known of a claim: on runs, of ten subsets of 5,000 jobs of CTC and SDSC from seed 1; a claim that is not here is not
known, but for those that no run may break."""
