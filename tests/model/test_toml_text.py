"""Where in a TOML text something is wrong."""

from __future__ import annotations

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
        ("name", "b", "line 7, "),  # the first line with the key and the value: a longer key is another one
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
    with pytest.raises(InputError, match=r"^a.toml: line 1, key 'top': must be an array of tables: \[\[top\]\]$"):
        text.tables("top")


def test_what_is_no_toml_is_refused_with_its_place() -> None:
    with pytest.raises(InputError, match=r"^a.toml: not valid TOML: .*line 2"):
        TomlText("top = 1\nother\n", "a.toml")
