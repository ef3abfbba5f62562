"""The colours of jobs: the same for a job in every panel, and distinct for colour-blind readers.

They are from Paul Tol's schemes "light" and "muted" (SRON/EPS/TN/09-002, 2021).  Themes of the
terminal's sixteen colours use those; without colours (``NO_COLOR``) letters take their place.
"""

from __future__ import annotations

from functools import lru_cache

from rich.style import Style

_COLOURS = {
    "dark": [
        "#77AADD",
        "#EE8866",
        "#EEDD88",
        "#FFAABB",
        "#99DDFF",
        "#44BB99",
        "#BBCC33",
        "#AAAA00",
        "#CC99BB",
        "#DDAA77",
    ],
    "light": [
        "#4477AA",
        "#CC5533",
        "#B8860B",
        "#CC6677",
        "#3388AA",
        "#117755",
        "#778800",
        "#666633",
        "#882255",
        "#AA7744",
    ],
    "ansi": [
        "blue",
        "red",
        "yellow",
        "magenta",
        "cyan",
        "green",
        "bright_blue",
        "bright_yellow",
        "bright_magenta",
        "bright_cyan",
    ],
}

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def place_of(job: str) -> int:
    """Return a number that stays with a job; neighbours have different ones."""
    digits = job.partition(".")[0].partition("[")
    number = int(digits[0]) if digits[0].isdigit() else sum(map(ord, job))
    index = digits[2].rstrip("]")
    return number + 3 * (int(index) if index.isdigit() else 0)


def job_style(job: str, scheme: str) -> Style:
    """Return the colour of a job under a scheme: ``dark``, ``light`` or ``ansi``."""
    colours = _COLOURS[scheme]
    return _style(colours[place_of(job) % len(colours)])


@lru_cache(maxsize=256)
def _style(colour: str) -> Style:
    return Style(color=colour)


def job_letter(job: str) -> str:
    """Return the letter of a job, for displays without colours."""
    return LETTERS[place_of(job) % len(LETTERS)]
