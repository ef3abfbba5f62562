"""Where in a TOML text something is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from qbatch.model.errors import InputError
from qbatch.model.toml_text import TomlText

TEXT = """\
top = 1

[[host]]
name = "a"

[[host]]
  "name" = "b"
named = "b"
"""


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("top", None, "line 1, "),
        ("name", None, "line 4, "),
        # The first line with the key and the value: a longer key is another one.
        ("name", "b", "line 7, "),
        ("name", "nowhere", "line 4, "),
        ("host", None, "line 3, "),
        ("absent", None, ""),
    ],
)
def test_an_error_names_the_line_of_the_key(key: str, value: str | None, place: str) -> None:
    error = TomlText(TEXT, "a.toml").error(key, "is wrong", value)
    assert str(error) == f"a.toml: {place}key {key!r}: is wrong"


def test_an_array_of_tables_is_nothing_else() -> None:
    text = TomlText(TEXT, "a.toml")
    assert text.tables("host") == [{"name": "a"}, {"name": "b", "named": "b"}]
    assert text.tables("pool") == []
    with pytest.raises(
        InputError, match=r"^a.toml: line 1, key 'top': must be an array of tables: \[\[top\]\]$"
    ):
        text.tables("top")


def test_what_is_no_toml_is_refused_with_its_place() -> None:
    with pytest.raises(InputError, match=r"^a.toml: not valid TOML: .*line 2"):
        TomlText("top = 1\nother\n", "a.toml")


@pytest.mark.parametrize(
    ("value", "why"),
    [("[" * 9000 + "]" * 9000, "nested too deep"), ("9" * 9000, "a number with too many digits")],
)
def test_what_the_reader_of_toml_chokes_on_is_refused_too(value: str, why: str) -> None:
    with pytest.raises(InputError, match=f"^a.toml: cannot be read: {why}$"):
        TomlText(f"top = {value}\n", "a.toml")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[host]\na = 1\n[host]\na = 2\n", "[[host]]"),
        ("[host]\na = 1\n[[host]]\na = 2\n", "[[host]]"),
        ("[pool]\n[pool.machine]\na = 1\n[pool.machine]\n", "[[pool.machine]]"),
    ],
)
def test_for_a_table_that_is_there_twice_a_list_of_tables_is_proposed(text: str, hint: str) -> None:
    with pytest.raises(InputError) as error:
        TomlText(text, "a.toml")
    assert str(error.value).endswith(f"; if there are several, each begins with {hint}")


NESTED = """\
name = "top"
rows = [
["x"],
]
[[pool]]
name = "one"
[[pool.machine.host]]
name = "a"
[[pool.machine.host]]
cpus = 1
[[pool]]
name = "two"
[pool.machine]
name = "inner"
[[pool.machine.host]]
name = "b"
[pool.machine.host.limits]
x = 3
[[queue]]
name = "batch"
"""


@pytest.mark.parametrize(
    ("path", "key", "line"),
    [
        ((), "name", 1),
        ((), "queue", 19),
        (("pool", 0), "name", 6),
        (("pool", 0, "machine", "host", 0), "name", 8),
        (("pool", 0, "machine", "host", 1), "name", 9),  # which has none: its header
        (("pool", 1), "name", 12),
        (("pool", 1, "machine"), "name", 14),
        (("pool", 1, "machine", "host", 0), "name", 16),
        (("pool", 1, "machine", "host", 0), "limits", 17),
        (("queue", 0), "name", 20),
    ],
)
def test_an_error_names_the_line_in_its_own_table(
    path: tuple[str | int, ...], key: str, line: int
) -> None:
    text = TomlText(NESTED, "a.toml")
    table: Any = text.document
    for each in path:
        table = table[each]
    assert (
        str(text.error(key, "is wrong", None, table))
        == f"a.toml: line {line}, key {key!r}: is wrong"
    )
