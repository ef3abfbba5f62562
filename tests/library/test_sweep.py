"""``qbatch.sweep``: the same runs as the command's, as tables and pictures."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import qbatch
from qbatch.sweeps.table import TABLE
from tests.harness import command
from tests.sweeps.samples import swept, write_sample

GRID = {"load": "0.8:1:0.2", "seed": "1:3", "estimates": "f:2"}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_sample(tmp_path_factory.mktemp("logs") / "log.swf")


@pytest.fixture(scope="module")
def sweep(log: str) -> qbatch.SweepResult:
    return qbatch.sweep(log, ["fcfs", "easy"], **GRID, on="local:1")


def test_it_has_every_run_of_the_command(
    log: str, sweep: qbatch.SweepResult, tmp_path: Path
) -> None:
    swept(tmp_path / "other", log, policy=["fcfs", "easy"], **GRID)
    assert (Path(sweep.directory) / TABLE).read_bytes() == (tmp_path / "other" / TABLE).read_bytes()
    assert len(sweep) == sweep.runs.num_rows == 12
    assert (sweep.made, sweep.kept, sweep.failures) == (12, 0, [])
    read = qbatch.read_sweep(tmp_path / "other")
    assert read.runs.equals(sweep.runs)
    assert repr(sweep) == "<SweepResult log: 12 runs (2 load, 3 seed, 2 policy)>"


def test_a_run_is_that_of_replay(log: str, sweep: qbatch.SweepResult) -> None:
    replayed = qbatch.replay(log, "easy", load=0.8, seed=2, estimates="f:2")
    rows = sweep.to_pandas()
    row = rows[(rows.load == 0.8) & (rows.seed == 2) & (rows.policy == "easy")].iloc[0]
    assert row["wait_mean_s"] == replayed.metrics["easy"]["wait_mean_s"]
    assert sweep.to_polars().height == 12


def test_points_differences_and_pictures(sweep: qbatch.SweepResult) -> None:
    table = sweep.points("wait_mean", "utilisation_submit")
    assert table.column_names[-6:] == [
        "wait_mean_s",
        "wait_mean_s_low",
        "wait_mean_s_high",
        "utilisation_submit",
        "utilisation_submit_low",
        "utilisation_submit_high",
    ]
    assert table["replicas"].to_pylist() == [3] * 4
    assert {one["at"]["policy"] for one in sweep.against("easy", "wait_mean")} == {"fcfs"}
    assert sweep.plot("bounded_slowdown_mean", log_scale=True, where={"load": 0.8}).axes
    page = sweep._repr_html_()
    assert "<table>" in page
    assert "data:image/png" in page


def test_logs_and_policies_in_memory(tmp_path: Path) -> None:
    generated = qbatch.generate("plain", jobs=80, procs=16, seed=3)
    first = qbatch.sweep(generated, "easy", load=[0.9, 1.0], out=tmp_path / "out")
    again = qbatch.sweep(generated, "easy", load=[0.9, 1.0, 1.1], out=tmp_path / "out")
    assert (first.made, again.made, again.kept) == (2, 1, 2)


def test_a_class_typed_in_a_program_runs_in_its_process(log: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import qbatch\n"
        "class Mine:\n"
        "    name = 'mine'\n"
        "    def __init__(self): self.inner = qbatch.policy('easy')\n"
        "    def decide(self, view): return self.inner.decide(view)\n"
        f"sweep = qbatch.sweep({log!r}, ['easy', Mine], load=[0.9, 1.0])\n"
        "waits = sweep.to_pandas().pivot(index='load', columns='policy', values='wait_mean_s')\n"
        "assert (waits['easy'] == waits['__main__:Mine']).all()\n"
        "try:\n"
        f"    qbatch.sweep({log!r}, [Mine], on='local:2')\n"
        "except qbatch.UsageError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "write it to a module" in done.stdout


def test_a_picture_is_drawn_into_axes_of_yours(sweep: qbatch.SweepResult) -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    many = list(figure.subplots(1, 6))
    panels = len(sweep.plot("wait_mean").axes)
    with pytest.raises(
        qbatch.UsageError, match=f"this picture has {panels} panels, not {panels + 1}"
    ):
        sweep.plot("wait_mean", ax=many[: panels + 1])
    given = many[:panels]
    assert sweep.plot("wait_mean", ax=given, grey=True) is given
    assert all(axes.has_data() for axes in given)
    assert sweep.plot("wait_mean", columns=1).get_figwidth() == 3.5


def test_mistakes_are_said_in_arguments(log: str) -> None:
    with pytest.raises(qbatch.UsageError, match="sweep: load: 'x' is not a load"):
        qbatch.sweep(log, load="x")
    with pytest.raises(qbatch.UsageError, match="no metric 'wait'"):
        qbatch.sweep(log, "easy", on="local:1").points("wait")
    with pytest.raises(qbatch.InputError, match="is not a sweep"):
        qbatch.read_sweep(Path(log).parent)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The log, the side file and the machine of a small cluster."""
    folder = tmp_path_factory.mktemp("cluster")
    files = {
        name: str(folder / end)
        for name, end in (("log", "c.swf"), ("resources", "c.csv"), ("machine", "c.toml"))
    }
    command("generate", "cluster", "--days", "15", "--nodes", "8", "--load", "0.05",
            "-o", files["log"], "--resources", files["resources"],
            "--machine-file", files["machine"])  # fmt: skip
    return files


def test_the_jobs_of_a_sweep_keep_their_lines_of_the_side_file(
    cluster: dict[str, str], tmp_path: Path
) -> None:
    found = qbatch.sweep(
        **cluster, policies="easy", resample=["none", "weeks"], seed=3, on="local:1"
    )
    rows = found.to_pandas().set_index("resample")
    log, side, machine = cluster["log"], cluster["resources"], cluster["machine"]
    whole = qbatch.replay(log, "easy", machine=machine, resources=side)
    assert rows.loc["none", "wait_mean_s"] == whole.metrics["easy"]["wait_mean_s"]
    drawn, lines = str(tmp_path / "weeks.swf"), str(tmp_path / "weeks.csv")
    command("transform", log, "resample:by=weeks,seed=3", "--resources", side,
            "-o", drawn, "--resources-out", lines)  # fmt: skip
    weeks = qbatch.replay(drawn, "easy", machine=machine, resources=lines)
    assert rows.loc["weeks", "wait_mean_s"] == weeks.metrics["easy"]["wait_mean_s"]
    without = qbatch.replay(drawn, "easy", machine=machine)
    assert rows.loc["weeks", "wait_mean_s"] != without.metrics["easy"]["wait_mean_s"]


def test_a_side_file_that_has_changed_ends_a_sweep(cluster: dict[str, str], tmp_path: Path) -> None:
    side = tmp_path / "side.csv"
    lines = Path(cluster["resources"]).read_text().splitlines(keepends=True)
    side.write_text("".join(lines))
    given = cluster | {"resources": str(side)}
    asked = {"policies": "fcfs", "first": 5, "out": tmp_path / "runs", "on": "local:1"}
    first = qbatch.sweep(**given, **asked)
    digest = hashlib.sha256(side.read_bytes()).hexdigest()
    record = json.loads((tmp_path / "runs" / "sweep.json").read_text())
    side_facts = record["logs"][0]["resources"]
    assert side_facts.pop("kinds")["GPUs"] > 0
    assert side_facts == {"path": str(side.resolve()), "sha256": digest}
    assert (first.made, qbatch.sweep(**given, **asked).made) == (1, 0)
    side.write_text("".join(lines[:-1]))
    with pytest.raises(qbatch.InputError, match=r"side\.csv: has changed since the runs in .*"):
        qbatch.sweep(**given, **asked)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"resources": ["a.csv", "b.csv"]}, "resources names 2 side files, but there are 1 logs"),
        ({"log": "lublin:jobs=9"}, "a model generates the log lublin:jobs=9, which has no side"),
        ({"machine": "log"}, "give a machine file with schema = 2"),
    ],
)
def test_a_side_file_without_its_log_or_machine_is_refused(
    cluster: dict[str, str], changed: dict[str, object], error: str
) -> None:
    with pytest.raises(qbatch.UsageError) as raised:
        qbatch.sweep(**cluster | changed, policies="fcfs", on="local:1")
    assert error in str(raised.value)
    with pytest.raises(qbatch.InputError, match=r"none\.csv"):
        qbatch.sweep(**cluster | {"resources": "none.csv"}, policies="fcfs", on="local:1")
