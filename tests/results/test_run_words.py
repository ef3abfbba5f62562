"""How a run is described in words: numbers as people read them."""

from __future__ import annotations

import pytest

from qbatch.results.run_words import hours_text, value_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.25, "0.25 s"),
        (42, "42 s"),
        (59.4, "59.4 s"),
        (59.6, "1 min 00 s"),
        (725, "12 min 05 s"),
        (3599.6, "1 h 00 min"),
        (3600, "1 h 00 min"),
        (25_770.4, "7 h 10 min"),
        (6_000_000, "1,666 h 40 min"),
        (-90, "-1 min 30 s"),
    ],
)
def test_a_duration_is_reported_in_hours_and_minutes(seconds: float, text: str) -> None:
    assert hours_text(seconds) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", "-"),
        (2000, "jobs", "2,000"),
        (0.78084, "share", "78.08 %"),
        (17_907.5, "ratio", "17,907.50"),
        (90, "s", "1 min 30 s"),
        (3.1674, "jobs/h", "3.17"),
    ],
)
def test_a_value_is_reported_in_its_unit(value: float | None, unit: str, text: str) -> None:
    assert value_text(value, unit) == text
