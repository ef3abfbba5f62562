"""The page about the protocol says what the code does."""

from __future__ import annotations

from pathlib import Path

from qbatch.cli.pbs.command import code_of
from qbatch.daemon.settings import KEYS
from qbatch.wire import errors, requests

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_verb_with_its_fields_and_role_is_documented() -> None:
    lines = (DOCS / "protocol.md").read_text(encoding="utf-8").splitlines()
    for kind in requests.REQUESTS:
        fields = [f"`{name}`" for name in kind.__struct_fields__ if name not in ("v", "id")]
        start = f"| `{kind.__struct_config__.tag}` | {kind.role} | {', '.join(fields) or '-'} |"
        assert any(line.startswith(start) for line in lines), start


def test_every_error_code_is_documented() -> None:
    text = (DOCS / "protocol.md").read_text(encoding="utf-8")
    for code, (pbs, exit_code) in errors.CODES.items():
        assert f"| `{code}` | {pbs} ({code_of(pbs)}) | {exit_code} |" in text


def test_every_key_of_the_configuration_says_what_it_means() -> None:
    assert len({(key.table, key.name) for key in KEYS}) == len(KEYS)
    assert all(len(key.meaning) > 10 for key in KEYS)
