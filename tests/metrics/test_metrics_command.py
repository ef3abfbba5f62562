"""``qbatch metrics``: its table and its JSON."""

import json
import sys

import pytest
import typer
from typer.testing import CliRunner

from qbatch.cli.metrics import metrics
from qbatch.metrics import METRICS

app = typer.Typer()
app.command()(metrics)


def test_the_table_is_aligned_text_when_piped() -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    header, *lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [metric.name for metric in METRICS]
    column = header.index("formula")
    assert all(
        line[column:].startswith(metric.formula)
        for line, metric in zip(lines, METRICS, strict=True)
    )


def test_json_has_a_schema_and_every_field() -> None:
    document = json.loads(CliRunner().invoke(app, ["--json"]).stdout)
    assert document["schema"] == "qbatch.metrics/1"
    assert [metric["name"] for metric in document["metrics"]] == [metric.name for metric in METRICS]
    assert set(document["metrics"][0]) == {
        "name",
        "unit",
        "formula",
        "source",
        "meaning",
        "is_less_better",
    }


def test_a_terminal_gets_a_rich_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    metrics()
    shown = capsys.readouterr().out
    assert "utilisation_submit" in shown
    assert "Feitelson & Weil 1998" in shown
