"""How the claims of Karatza and Hilzer 2003 are judged, and what is known of those that do not hold."""

from __future__ import annotations

WHY: dict[str, str] = {}
METHOD: tuple[str, ...] = ()
EXPECTED: dict[str, str] = {}
