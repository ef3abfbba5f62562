"""How the claims of Islam and others 2003 are judged, and what is known of those that do not hold."""

from __future__ import annotations

WHY: dict[str, str] = {
    "dynamic-falls": (
        "every job of such a set can start when it arrives, so nobody ever waits, and schemes that place jobs at their earliest "
        "admit all of them at every r; the fall that section 4.1 reports needs a scheme that puts jobs off for no reason"
    ),
}
METHOD: tuple[str, ...] = ()
EXPECTED: dict[str, str] = {}
