"""Maps: what they may say, and hostile ones, each refused in one line that names the key."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.errors import InputError, QbatchError, UsageError
from qbatch.workloads.tables.table_map import SHIPPED, Bounds, read_map

GOOD = """
[columns]
submit = "s"
start = "b"
end = "e"
procs = { column = ["p", "q"], scale = 2 }
limit = { column = "l", unit = "min", optional = true }
"""


def refused(text: str, tmp_path: Path) -> str:
    path = tmp_path / "map.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_map(path)
    message = str(error.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_maps_are_whole(name: str) -> None:
    found = read_map(name)
    assert found.name == name
    assert found.title


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "key 'columns': no column for submit"),
        (GOOD.replace('end = "e"\n', ""), "no column for end or run"),
        (GOOD.replace("procs =", "nodes ="), "no column for procs (or nodes and procs_per_node)"),
        (GOOD + 'sumbit = "x"', "line 8, key 'sumbit': is no name of ours; did you mean 'submit'?"),
        (GOOD + 'submit = "x"', "not valid TOML"),
        (
            GOOD.replace('"min"', '"fortnight"'),
            "the unit 'fortnight' is not known; its unit is one of s",
        ),
        (GOOD + 'user = { column = "u", unit = "s" }', "its unit is none"),
        (GOOD.replace("scale = 2", "scale = 0"), "the scale 0 is not a number above 0"),
        (GOOD.replace("scale = 2", "scale = nan"), "the scale nan"),
        (GOOD.replace("scale = 2", "sclae = 2"), "'sclae' is not known; did you mean 'scale'?"),
        (GOOD.replace('["p", "q"]', "[]"), "key 'procs': needs a column"),
        (GOOD.replace('["p", "q"]', "7"), "must be a text or a list of texts"),
        (GOOD.replace("= true", "= 3"), "optional is true or false"),
        (GOOD + '[times]\nunit = "hours"', "key 'unit': 'hours' is none of s, ms, us, iso"),
        (GOOD + '[times]\nzone = "UTC"', "'zone' is not known"),
        (GOOD + '[times]\ntimezone = "Mars/Base"', "'Mars/Base' is not a known time zone"),
        (GOOD + "[times]\ntimezone = 3", "3 is not a known time zone"),
        (GOOD + '[state]\nDONE = "done"', "key 'DONE': 'done' is none of completed"),
        (GOOD + "[state]\nDONE = []", "[] is none of completed"),
        (GOOD + "[filter]\np = {}", "a range has from, to or both"),
        (GOOD + "[filter]\np = []", "a filter is a text"),
        (GOOD + "[filter]\np = { form = 3 }", "'form' is not known; did you mean 'from'?"),
        (GOOD + "[defaults]\nprocs = -1", "the default -1 is not a number of 0 or more"),
        (GOOD + "[defaults]\nprocs = true", "the default True"),
        (GOOD + "[defaults]\nuser = 3", "3 is not a text"),
        (GOOD + "[defaults]\nsubmit = 3", "can have no default"),
        ("columns = 3", "must be a table: [columns]"),
        ("column = 3", "key 'column': is not known; did you mean 'columns'?"),
        ('layout = "tree"\n' + GOOD, "'tree' is not known"),
        ('header = ["a", 3]\n' + GOOD, "must be a text or a list of texts"),
        ("title = 3\n" + GOOD, "3 is not a text"),
        ("[" * 5000, "TOML"),
    ],
)
def test_a_hostile_map_is_refused(text: str, part: str, tmp_path: Path) -> None:
    assert part in refused(text, tmp_path)


def test_a_map_that_is_no_text_or_no_file(tmp_path: Path) -> None:
    path = tmp_path / "map.toml"
    path.write_bytes(b"\xff\xfe[columns]")
    with pytest.raises(InputError, match=r"map\.toml: cannot be read as a map"):
        read_map(path)
    with pytest.raises(InputError, match="cannot be read as a map"):
        read_map(tmp_path)
    with pytest.raises(UsageError, match=r"'pm10'.*did you mean 'pm100'\?"):
        read_map("pm10")


def test_what_a_map_says() -> None:
    table_map = read_map(
        {
            "columns": {"submit": "s", "start": "b", "run": "r", "procs": "p"},
            "filter": {"p": {"from": 2}, "q": ["a", 3]},
        }
    )
    assert table_map.filters == {"p": Bounds(2, None), "q": ("a", "3")}
    assert table_map.chosen(["q", "p", "r", "b", "s"], "t")["run"] == "r"


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        (["s", "b", "r"], "there is no column 'p', which the map map takes for procs"),
        (["s", "b", "r", "p"], "no column 'q', which the filter of the map map needs"),
        (["s", "b", "r", "p", "q", "q"], "the column 'q' appears twice"),
        (["s", "b", "r", "p", "p", "q"], "the column 'p' appears twice"),
        ([], "there are none"),
    ],
)
def test_a_table_without_its_columns_is_refused(columns: list[str], part: str) -> None:
    table_map = read_map(
        {
            "columns": {"submit": "s", "start": "b", "run": "r", "procs": "p"},
            "filter": {"q": "a"},
        }
    )
    with pytest.raises(InputError) as error:
        table_map.chosen(columns, "t.csv")
    assert str(error.value).startswith("t.csv: ")
    assert part in str(error.value)


def test_two_of_our_names_may_have_one_column() -> None:
    columns = {"submit": "s", "start": "s", "run": "r", "procs": "p", "gpus": "p"}
    assert read_map({"columns": columns}).chosen(["s", "r", "p"], "t")["gpus"] == "p"


SCALARS = st.one_of(st.text(max_size=5), st.integers(), st.floats(), st.booleans(), st.none())
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["columns", "times", "state", "filter", "defaults", "header", "notes", "layout", "x"]
        ),
        VALUES | st.dictionaries(st.sampled_from(["submit", "procs", "unit", "user"]), VALUES),
    )
)
def test_any_document_is_a_map_or_an_error_of_ours(document: dict[str, object]) -> None:
    good = {"submit": "s", "start": "b", "run": "r", "procs": "p"}
    message = "map: "
    try:
        read_map({"columns": good} | document)
    except QbatchError as error:
        message = str(error)
    assert message.startswith("map: ")
