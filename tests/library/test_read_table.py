"""``qbatch.read_log(table, map=...)``: data frames and files as a cluster has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import qbatch
from qbatch.model.errors import InputError, UsageError

MAP = {
    "columns": {
        "job": "id",
        "submit": "sub",
        "start": "beg",
        "end": "fin",
        "procs": "cores",
        "limit": "lim",
        "user": "who",
    },
    "times": {"timezone": "Europe/Berlin"},
}


def pandas_frame() -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(
        {
            "id": [3, 1, 2],
            "sub": pd.to_datetime(["2024-05-01 09:00", "2024-05-01 08:00", None]),
            "beg": pd.to_datetime(["2024-05-01 09:10"] * 3).tz_localize("Europe/Berlin"),
            "fin": ["2024-05-01 09:00:00Z", "2024-05-01 10:00:00+00:00", None],
            "cores": pd.array([1, 2, None], dtype="Int64"),
            "lim": pd.to_timedelta([3600, 7200, 1], unit="s"),
            "who": ["ann", None, "bob"],
        }
    )


def forms() -> dict[str, Any]:
    pandas = pandas_frame()
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    table = arrow.Table.from_pandas(pandas)
    columns = {name: pandas[name].tolist() for name in pandas.columns}
    return {
        "pandas": pandas,
        "polars": polars.from_arrow(table),
        "arrow": table,
        "lists": columns,
    }


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "lists"])
def test_a_frame_of_every_kind_gives_the_same_log(form: str) -> None:
    log = qbatch.read_log(forms()[form], map=MAP)
    assert [log[name].tolist() for name in ("submit", "wait", "run", "procs_requested")] == [
        [0, 3600],
        [4200, 600],
        [10200, 6600],
        [2, 1],
    ]
    assert log["time_requested"].tolist() == [7200, 3600]
    assert log["user"].tolist() == [-1, 1]
    assert log.header.max_procs == 3
    assert "1 row of the table: without a time of submission" in log.notes
    assert qbatch.replay(log, "easy").metrics["easy"] is not None


def test_a_file_and_a_shipped_map(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text(
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time\n"
        "1,u,v,8,64,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:10,2020-04-01 01:00:10\n",
        encoding="utf-8",
    )
    log = qbatch.read_log(path, map="helios", procs=128)
    assert (log.name, len(log), log.header.max_procs) == (str(path), 1, 128)


def test_mistakes() -> None:
    with pytest.raises(InputError, match="month: there is no column 'sub'"):
        qbatch.read_log({"id": [1]}, map=MAP, name="month")
    with pytest.raises(InputError, match="a int is no table"):
        qbatch.read_log(3, map=MAP)
    with pytest.raises(UsageError, match="no map of this name"):
        qbatch.read_log({"id": [1]}, map="pm1000000")
