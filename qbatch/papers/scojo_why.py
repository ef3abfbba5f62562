"""How the claims of the thesis on group optimisation are judged, and what is known of those that do not hold."""

from __future__ import annotations

WHY: dict[str, str] = {
    "gains.size": (
        "three places give three sizes of one thing, and the figures that would decide print no values; ours lie beside them"
    ),
}
"""The best explanation of claims that do not hold, by name."""

METHOD: tuple[str, ...] = ()
EXPECTED: dict[str, str] = {}
