"""The printed table as it stands in the paper, and demands between its roundings."""

from __future__ import annotations

import pytest

from qbatch.workloads.origin2000 import CLASSES, MONTHS
from qbatch.workloads.origin2000.tables import percents

PRINTED_TOTALS = {
    "1999-10": (9974, 75, 55),
    "1999-11": (7348, 80, 53),
    "1999-12": (5863, 89, 72),
    "2000-01": (7046, 83, 74),
    "2000-02": (8122, 88, 74),
    "2000-03": (7034, 85, 78),
}


def test_the_classes_stand_as_in_the_table() -> None:
    assert CLASSES[:5] == ("vst_sj", "st_sj", "mt_sj", "lt_sj", "vst_mj")
    assert len(CLASSES) == 12


@pytest.mark.parametrize("name", MONTHS)
def test_the_classes_of_a_month_add_up_to_its_printed_totals(name: str) -> None:
    month = MONTHS[name]
    assert (month.jobs, month.procs_overall, month.memory_overall) == PRINTED_TOTALS[name]
    assert len(month.counts) == len(month.procs_percent) == len(month.memory_percent) == 12
    assert abs(sum(month.procs_percent) - month.procs_overall) <= 2
    assert abs(sum(month.memory_percent) - month.memory_overall) <= 2


@pytest.mark.parametrize("name", MONTHS)
@pytest.mark.parametrize("what", ["procs", "memory"])
def test_demands_round_to_the_printed_ones_and_add_up(name: str, what: str) -> None:
    month = MONTHS[name]
    printed, overall = getattr(month, f"{what}_percent"), getattr(month, f"{what}_overall")
    found = percents(printed, overall)
    assert sum(found) == pytest.approx(overall, abs=1e-6)
    for value, base in zip(found, printed, strict=True):
        assert round(value) == base or (base == 0 and value == 0.3)


def test_demands_that_cannot_add_up_stay_within_their_roundings() -> None:
    found = percents((1, 2, 0), 9)
    assert found == pytest.approx([1.45, 2.45, 0.3])
    assert percents((4, 6), 10) == [4.0, 6.0]
