from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.reports.report import embedded as module
from qbatch.reports.report.embedded import ABSENT_S, embedded, packed, script_json
from qbatch.reports.report.study import gather
from qbatch.results.result import write_result
from tests.reports.report.results import EVIL, small_work, write_small
from tests.reports.samples import by_hand, scheduled, tried, workload

S = 1_000_000


def unpacked(column):
    """What the page's script makes of a column, in Python."""
    raw = np.frombuffer(zlib.decompress(base64.b64decode(column["data"])), f"<{column['type']}")
    assert len(raw) == column["length"]
    return np.cumsum(raw.astype(np.int64)) if column["delta"] else raw


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.integers(-(2**40), 2**40) | st.integers(-(2**31), 2**31 - 1) | st.integers(-300, 300),
        max_size=30,
    )
)
def test_a_column_comes_back_as_it_went_in(values) -> None:
    assert unpacked(packed(np.array(values, np.int64))).tolist() == values


def test_small_numbers_take_little_space() -> None:
    assert packed(np.arange(50_000))["type"] == "i1"
    assert len(packed(np.arange(50_000))["data"]) < 1000
    assert packed(np.array([0.5]))["type"] == "f8"


def test_the_jobs_of_the_page_are_those_of_the_rows(tmp_path) -> None:
    study = gather([write_small(tmp_path / "a")])
    data = json.loads(json.dumps(embedded(study)))
    assert [one["policy"] for one in data["policies"]] == ["fcfs", "easy", "conservative"]
    assert len(data["tables"]) == 1, "what policies share is there once"
    table = {name: unpacked(column) for name, column in data["tables"][0].items()}
    schedule = scheduled(small_work(), "conservative")
    origin = int(schedule.workload.submit.min())
    assert table["job_id"].tolist() == schedule.workload.number.tolist()
    assert table["submit"].tolist() == ((schedule.workload.submit - origin) // S).tolist()
    columns = {name: unpacked(column) for name, column in data["policies"][2]["columns"].items()}
    assert columns["start"].tolist() == ((schedule.start - origin) // S).tolist()
    assert columns["first_promise"].tolist() == ((schedule.first_promise - origin) // S).tolist()
    held = np.bincount(
        columns["piece_job"], columns["piece_high"] - columns["piece_low"], minlength=200
    )
    assert held.tolist() == table["procs"].tolist()


def test_the_boxes_of_jobs_in_pieces_say_from_when_to_when(tmp_path) -> None:
    schedules = [
        tried("immediate:inner=easy"),
        tried("equispatial"),
        scheduled(tried("equispatial").workload),
    ]
    write_result(tmp_path / "a", {}, schedules)
    data = json.loads(json.dumps(embedded(gather([str(tmp_path / "a")]))))
    for policy, schedule in zip(data["policies"], schedules, strict=True):
        columns = {name: unpacked(column) for name, column in policy["columns"].items()}
        if schedule.pieces is None:
            assert not {"piece_begin", "piece_end", "piece_count", "again_begin"} & set(columns)
            continue
        assert (
            columns["piece_count"].tolist()
            == np.bincount(schedule.pieces[:, 0], minlength=6).tolist()
        )
        area = (columns["piece_end"] - columns["piece_begin"]) * (
            columns["piece_high"] - columns["piece_low"]
        )
        held = np.bincount(columns["piece_job"], area, minlength=6)
        spans = schedule.pieces
        expected = np.bincount(
            spans[:, 0], (spans[:, 2] - spans[:, 1]) / S * spans[:, 3], minlength=6
        )
        whole = np.bincount(spans[:, 0], minlength=6) == 0
        work = schedule.workload
        expected[whole] = (work.procs * work.run / S)[whole]
        assert held == pytest.approx(expected)
    columns = {name: unpacked(column) for name, column in data["policies"][0]["columns"].items()}
    assert (columns["again_begin"].tolist(), columns["again_end"].tolist()) == ([760], [5070])


def test_absent_promises_lie_before_all_and_fractions_stay(tmp_path) -> None:
    work = workload([500_000, 2 * S], [1, 2], [S, S], [S, S])
    write_result(tmp_path / "a", {}, [by_hand(work, work.submit + 250_000)])
    data = embedded(gather([str(tmp_path / "a")]))
    columns = data["policies"][0]["columns"]
    assert unpacked(columns["promise"]).tolist() == [ABSENT_S, ABSENT_S]
    assert unpacked(columns["start"]).tolist() == pytest.approx([0.25, 1.75])
    assert data["clock"] == {"unix": None, "zone": None, "log": 0.5}


def test_policies_that_ran_other_jobs_have_a_table_of_their_own(tmp_path) -> None:
    work = small_work()
    start = np.where(np.arange(200) < 150, work.submit, -1)
    write_result(
        tmp_path / "a",
        {},
        [scheduled(work), by_hand(work.changed(procs_total=10**6), start, "rejects")],
    )
    data = embedded(gather([str(tmp_path / "a")]))
    assert [one["table"] for one in data["policies"]] == [0, 1]
    assert data["height"] > data["procs"] == 16


def test_of_too_many_jobs_the_first_are_shown(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_JOBS", 50)
    data = embedded(gather([write_small(tmp_path / "a")]))
    assert data["cut"]
    assert data["tables"][0]["submit"]["length"] <= 50


def test_json_in_a_script_cannot_end_it() -> None:
    text = script_json({"name": EVIL, "other": "<!-- & \u2028"})
    assert "<" not in text
    assert ">" not in text
    assert "\u2028" not in text
    assert json.loads(text)["name"] == EVIL


def test_the_chart_is_coloured_by_size_where_most_jobs_started_in_one_way(tmp_path) -> None:
    """As most do that are backfilled on a full machine: a chart of one colour shows nothing."""
    work = workload(np.arange(8) * S, [1] * 8, [S] * 8, [S] * 8)
    for place, kinds in enumerate(([2, 2, 2, 2, 2, 0, 1, 0], [2, 2, 2, 2, 0, 0, 1, 1])):
        ran = replace(by_hand(work, work.submit, "easy"), kind=np.array(kinds, np.int8))
        write_result(tmp_path / str(place), {}, [ran])
    assert embedded(gather([str(tmp_path / "0")]))["colour"] == "size"
    assert embedded(gather([str(tmp_path / "1")]))["colour"] == "kind"
