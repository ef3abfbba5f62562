"""How the claims of the thesis on group optimisation are judged, and what is known of those that do not hold."""

from __future__ import annotations

from qbatch.papers.record import CONTRADICTED, FAILS, HOLDS

WHY: dict[str, str] = {
    "gains.size": (
        "three places give three sizes of one thing, and the figures that would decide print no values; ours lie beside them"
    ),
}
"""The best explanation of claims that do not hold, by name."""

METHOD: tuple[str, ...] = (
    "Most figures print no values, and the workloads of the paper, seeds of another generator, cannot be made again: those with "
    "its labels have the mean gaps of its Table 5 and jobs of their own. A claim is a set of comparisons over the workloads of "
    "the model, paired by workload: *yes* where the whole 95 % interval (Student's t) lies on the claimed side, *no* where it "
    "lies on the other, *open* where it reaches over the bound. A claim holds if all say yes, does not hold if one says no, and "
    "else is not decidable. Ratios are averaged by their logarithms and told as changes in percent. No interval is corrected "
    "for how many there are.",
    "Sign and size are judged apart: whether there is a gain at all is one claim; a size that the paper gives as *about 15 %* is "
    "read as between half and twice of it and is another. These bounds were set before the runs.",
    "The baseline is `scojo` with conservative backfilling in the slice; run times are known exactly. Slowdown is the paper's: "
    "ceil(max(1, response / max(run, 600 s))). Classes are those of the run time, widths those of Table 4; response and wait (to "
    "the first start) are means over all jobs (rule 20), utilisation is over the makespan.",
    "Of a log the paper runs one window, here its first 10,000 jobs that can run (rule 21): a claim about it compares numbers "
    "and has no interval.",
    "Beyond the paper: users' estimates are those of the model of Tsafrir, Etsion and Feitelson on the workloads of the model, "
    "and the logs' own on up to three disjoint windows of 10,000 jobs of each log. Nobody is ended at an estimate (one that is "
    "too short is lifted to the run time), so that the jobs are the same under both kinds. A plain machine is `class_by=none`: "
    "one class that has the machine for itself, without slices and switches.",
)
"""How a claim is judged, a paragraph each."""

_HELD = """
"""

_FAILED = """
"""

EXPECTED: dict[str, str] = {
    **dict.fromkeys(_HELD.split(), HOLDS),
    **dict.fromkeys(_FAILED.split(), FAILS),
    "gains.size": CONTRADICTED,
}
"""What is known of a claim: on twenty workloads of 10,000 jobs of the model, and on the windows of the paper's two logs."""
