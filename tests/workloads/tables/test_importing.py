"""From tables to a log: order, conflicts, lost rows, filters, the size of the machine, memory."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.errors import InputError, UsageError
from qbatch.model.spans import most_at_once
from qbatch.workloads.tables import rows as rows_module
from tests.workloads.tables.samples import COLUMNS, imported, reasons, rows_of, small_map

ONE: dict[str, list[Any]] = {"id": [1], "sub": [10], "beg": [15], "fin": [25], "cores": [4]}


def of_one(**cells: Any) -> dict[str, list[Any]]:
    """Return a table of a good row, and after it one with other cells."""
    extra = {name: [None] for name in cells if name not in ONE}
    return {name: [*value, cells.get(name, value[0])] for name, value in (ONE | extra).items()}


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"sub": None}, "without a time of submission"),
        ({"sub": "soon"}, "without a time of submission"),
        ({"beg": ""}, "without a start"),
        ({"fin": None}, "without an end or a run time"),
        ({"fin": 3}, "ends before it starts"),
        ({"cores": 0}, "without processors"),
        ({"cores": "many"}, "without processors"),
        ({"cores": 1e300}, "without processors"),
        ({"fin": None, "st": "stop", "beg": None, "sub": None}, "without a time of submission"),
    ],
)
def test_a_row_without_what_a_log_needs_is_lost(cells: dict[str, Any], reason: str) -> None:
    made = imported(of_one(**cells))
    assert reasons(made, "unusable") == {reason: (1, "frame:2")}
    assert len(rows_of(made)) == 1


@pytest.mark.parametrize(
    ("cells", "reason", "fields"),
    [
        ({"took": 9}, "", {3: 10}),
        ({"took": 8}, "run time and end differ by more than 1 s: the end holds", {3: 10}),
        ({"fin": None, "took": 7.9}, "", {3: 7}),
        ({"sub": 17}, "starts before it is submitted: the start is taken for both", {1: 5, 2: 0}),
        ({"cores": 3.2}, "procs is not whole: rounded up", {7: 4}),
        ({"lim": "x"}, "limit (lim): is not a span of time: taken as unknown", {8: -1}),
        ({"lim": 3}, "", {8: 180}),
        ({"lim": 0}, "", {8: -1}),
        ({"hosts": 3}, "uneven: procs divided by nodes is rounded up", {}),
        ({"hosts": 9}, "more nodes than processors: one node for each processor", {}),
        ({"mem": 1, "hosts": 1}, "", {9: 262144}),
        ({"mem": -1}, "memory (mem): is negative: taken as unknown", {9: -1}),
        ({"st": "OK"}, "", {10: 1}),
        ({"st": "bad luck"}, "", {10: 0}),
        ({"st": "odd"}, "state 'odd' is not in the map: taken as unknown", {10: -1}),
        ({"st": "stop"}, "", {10: 5, 3: 10}),
        ({"st": "stop", "beg": None}, "", {10: 5, 3: -1, 2: 15, 4: -1, 7: 4}),
        ({"st": "stop", "beg": None, "fin": 3}, "", {10: 5, 3: -1, 2: -1}),
    ],
)
def test_what_becomes_of_a_cell(cells: dict[str, Any], reason: str, fields: dict[int, int]) -> None:
    made = imported(of_one(**cells))
    found = {
        key: value for key, value in reasons(made, "adjusted").items() if "without a" not in key
    }
    assert found == ({reason: (1, "frame:2")} if reason else {})
    rows = rows_of(made)
    assert len(rows) == 2
    # The other row was submitted at second 10; the one in question is the last, unless it has the
    # smaller submission.
    assert {field: rows[-1][field] for field in fields} == fields


def test_a_job_that_had_not_ended_is_left_out() -> None:
    made = imported(of_one(st="now"))
    assert reasons(made, "ignored") == {"had not ended when the table was written": (1, "frame:2")}


def test_a_table_without_a_job_that_ran_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"frame: no job that ran.*1 x without a start \(first: frame:1\)"
    ):
        imported(ONE | {"beg": [None]})


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ({"person": "ann"}, [1, 3]),
        ({"person": ["ann", "bob"]}, [1, 2, 3]),
        ({"cores": {"from": 2, "to": 4}}, [2, 3]),
        ({"cores": 4}, [4]),
        ({"sub": {"from": "1970-01-01T00:00:30"}}, [3, 4]),
        ({"sub": {"to": 30}}, [1, 2]),
        ({"note": "x"}, [2]),
        ({"person": "ann", "cores": {"from": 3}}, [3]),
    ],
)
def test_filters_take_rows_by_columns_of_the_table(rule: dict[str, Any], kept: list[int]) -> None:
    frame = {
        "id": [1, 2, 3, 4],
        "sub": [10, 20, 30, 40],
        "beg": [10, 20, 30, 40],
        "fin": [11, 22, 33, 44],
        "cores": [1, 2, 3, 4.0],
        "person": ["ann", "bob", " ann", None],
        "note": ["", "x", None, "y"],
    }
    made = imported(frame, small_map(filter=rule))
    assert [row[3] for row in rows_of(made)] == kept
    assert sum(count for count, _ in reasons(made, "ignored").values()) == 4 - len(kept)


def test_a_range_of_a_filter_that_is_no_time_is_refused() -> None:
    with pytest.raises(InputError, match="the filter on sub: 'spring' is not a number or an ISO"):
        imported(ONE, small_map(filter={"sub": {"from": "spring"}}))


def test_defaults_fill_cells_that_are_empty() -> None:
    table_map = small_map(defaults={"procs": 6, "limit": 60, "user": "none-known", "nodes": 2})
    frame = of_one(cores=None, lim="x", person="ann") | {"lim": [None, "x"]}
    rows = rows_of(imported(frame, table_map))
    assert [row[7] for row in rows] == [4, 6]
    assert [row[8] for row in rows] == [60, -1]  # a bad cell stays unknown
    assert [row[11] for row in rows] == [1, 2]


def test_words_beyond_the_limit_have_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_WORDS_MAX", 1)
    made = imported(of_one(person="bob") | {"person": ["ann", "bob"]})
    assert [row[11] for row in rows_of(made)] == [1, -1]
    assert any(each.startswith("user: more than 1 different") for each in reasons(made, "adjusted"))


def test_the_size_of_the_machine_is_given_or_the_most_in_use() -> None:
    frame = of_one(beg=20, fin=30)
    assert imported(frame).document["machine"]["procs"] == 8
    made = imported(frame, machine_procs=100)
    assert "; MaxProcs: 100 (given; a processor is one of the cores)" in made.lines
    with pytest.raises(UsageError, match=r"--machine-procs 7: the log has 8 .*in use at once"):
        imported(frame, machine_procs=7)
    with pytest.raises(UsageError, match="'Mars'"):
        imported(frame, timezone="Mars")


JOBS = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.integers(0, 9),
        st.integers(0, 9),
        st.integers(1, 9),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=60,
)


@given(JOBS, st.integers(2, 30))
def test_the_log_is_that_of_a_sort_in_memory(
    jobs: list[tuple[int, int, int, int, int]], run_rows: int
) -> None:
    submit, wait, run, procs, number = (list(each) for each in zip(*jobs, strict=True))
    start = [s + w for s, w in zip(submit, wait, strict=True)]
    end = [s + r for s, r in zip(start, run, strict=True)]
    frame = {"id": number, "sub": submit, "beg": start, "fin": end, "cores": procs}
    made = imported(frame, run_rows=run_rows)
    order = sorted(range(len(jobs)), key=lambda row: (submit[row], number[row], row))
    wanted = [
        [at, submit[row] - min(submit), wait[row], run[row], procs[row]]
        for at, row in enumerate(order, 1)
    ]
    assert [row[:5] for row in rows_of(made)] == wanted
    peak = most_at_once(np.array(start), np.array(end), np.array(procs))
    assert made.document["machine"]["procs"] == peak.procs


_MEASURED = """
import resource, sys
from pathlib import Path
from tests.workloads.tables.samples import imported
made = imported(Path(sys.argv[1]), run_rows=20_000)
with open(sys.argv[1] + ".swf", "wb") as log, open(sys.argv[1] + ".side", "wb") as side:
    print(made.write(log, side), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """300,000 rows in no order take as much memory as 60,000, but for a few megabytes."""
    draw, used_kb = random.Random(1), []
    for rows in (60_000, 300_000):
        path = tmp_path / f"{rows}.csv"
        with path.open("w", encoding="utf-8") as file:
            file.write("id,sub,beg,fin,cores,hosts,person\n")
            for number in range(rows):
                at = draw.randrange(10_000_000)
                file.write(f"{number},{at},{at + 5},{at + 65},4,2,u{number % 500}\n")
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, str(path)], capture_output=True, text=True, check=True
        )
        written, most = map(int, done.stdout.split())
        assert written == rows
        used_kb.append(most)
    assert used_kb[1] - used_kb[0] < 20_000


def test_one_column_may_be_a_processor_and_a_gpu() -> None:
    table_map = small_map(columns=COLUMNS | {"gpus": "cores"})
    side = io.BytesIO()
    imported(ONE | {"hosts": [2]}, table_map).write(io.BytesIO(), side)
    assert side.getvalue().decode().splitlines()[1] == "1,2,2,0,2,,,,,,,"
