"""What Karatza and Hilzer 2003 print, typed in from papers/closed-network-task-scheduling.txt, and a calibration of our own.

Table 2 holds all the numbers of the paper: its Figures 3 to 14 carry none.  The calibration is a C program that was written for
docs/spec/papers.md (R003) before any of this, with windows of 120,000 s at d = e = 20.
"""

from __future__ import annotations

PRFCFS, SQFCFS, PRSTF, PRSNUTF, PRLSTF = "PrFCFS", "SQFCFS", "PrSTF", "PrSNUTF", "PrLSTF"
POLICIES = (PRFCFS, SQFCFS, PRSTF, PRSNUTF, PRLSTF)
"""The policies of the paper, in its order."""

JOBS = (16, 24, 32, 40, 48)
INTERVALS = (10.0, 20.0, 30.0)
VARIATIONS = (2.0, 4.0)
"""N, d = e (s), and C of the paper."""

Range = tuple[float, float]

UTILISATION: dict[float, dict[str, tuple[Range, Range, Range]]] = {
    2.0: {
        PRFCFS: ((0.64, 0.84), (0.64, 0.83), (0.65, 0.83)),
        SQFCFS: ((0.88, 0.98), (0.89, 0.99), (0.89, 0.98)),
        PRSTF: ((0.71, 0.91), (0.71, 0.92), (0.72, 0.91)),
        PRSNUTF: ((0.69, 0.90), (0.69, 0.90), (0.70, 0.90)),
        PRLSTF: ((0.70, 0.88), (0.69, 0.90), (0.70, 0.89)),
    },
    4.0: {
        PRFCFS: ((0.48, 0.69), (0.48, 0.70), (0.49, 0.70)),
        SQFCFS: ((0.82, 0.96), (0.82, 0.96), (0.82, 0.96)),
        PRSTF: ((0.51, 0.80), (0.52, 0.81), (0.55, 0.81)),
        PRSNUTF: ((0.50, 0.76), (0.52, 0.76), (0.53, 0.78)),
        PRLSTF: ((0.51, 0.74), (0.51, 0.74), (0.53, 0.76)),
    },
}
"""Table 2: by C and policy the utilisation at N = 16 and at N = 48, for d = 10, 20 and 30."""

TOLERANCES = {2.0: 0.03, 4.0: 0.05}
"""How far ours may lie from Table 2, by C (R003)."""

CALIBRATED_UTILISATION: dict[float, dict[str, Range]] = {
    2.0: {
        PRFCFS: (0.647, 0.838), SQFCFS: (0.878, 0.974), PRSTF: (0.708, 0.914), PRSNUTF: (0.675, 0.880),
        PRLSTF: (0.687, 0.877),
    },
    4.0: {
        PRFCFS: (0.461, 0.678), SQFCFS: (0.804, 0.950), PRSTF: (0.509, 0.784), PRSNUTF: (0.487, 0.709),
        PRLSTF: (0.496, 0.731),
    },
}  # fmt: skip
"""Calibration: utilisation at N = 16 and at N = 48."""

CALIBRATED_GAIN: dict[float, dict[str, tuple[float, ...]]] = {
    2.0: {
        SQFCFS: (35.6, 28.9, 23.0, 18.3, 16.0), PRSTF: (9.2, 10.3, 10.6, 9.4, 8.6), PRSNUTF: (4.3, 5.0, 5.4, 5.0, 4.9),
        PRLSTF: (6.0, 6.2, 6.2, 4.9, 4.5),
    },
    4.0: {
        SQFCFS: (73.0, 64.0, 55.0, 49.0, 40.0), PRSTF: (10.6, 11.8, 13.7, 16.7, 15.6),
        PRSNUTF: (5.0, 3.4, 5.5, 6.2, 4.1), PRLSTF: (7.2, 6.5, 7.7, 9.6, 7.8),
    },
}  # fmt: skip
"""Calibration: D_R in percent by N."""

CALIBRATED_RATIO: dict[float, dict[str, str]] = {
    2.0: {PRSTF: "3.7..21", PRSNUTF: "2.3..7.8", PRLSTF: "1.6..2.2"},
    4.0: {PRSTF: "1.6..5.1", PRSNUTF: "1.2..2.9", PRLSTF: "1.0..1.4"},
}
"""Calibration: the range of the ratios of RT_max over N."""
