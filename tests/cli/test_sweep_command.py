"""``qbatch sweep``, and ``plot`` and ``report`` of sweeps, as a user types them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from qbatch.metrics.interval import SAME
from qbatch.reports.sweep_plot import SweepPicture, draw_sweep, same_words
from qbatch.sweeps.grid import grid_of, read_grid
from qbatch.sweeps.plan import plan_of
from qbatch.sweeps.summary import Point
from qbatch.sweeps.sweep import run_sweep
from qbatch.sweeps.table import read_sweep
from tests.cli.test_replay_command import command
from tests.sweeps.samples import HERE, write_sample


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log, the file of a grid, and the sweep that it describes."""
    return make_study(tmp_path_factory.mktemp("study"))


def make_study(folder: Path, *, is_run: bool = True) -> Path:
    write_sample(folder / "log.swf")
    path = folder / "study.toml"
    path.write_text(
        'schema = 1\nout = "out"\nlog = "log.swf"\npolicy = ["fcfs", "easy"]\nload = "0.8:1:0.1"\n'
        'seed = "1:3"\n'
        'estimates = ["f:2", "exact:share=0.5,rest=f:3"]\n'
    )
    if is_run:
        grid, out = read_grid(str(path))
        run_sweep(plan_of(grid_of(grid, "test")), Path(str(out)), HERE)
    return folder


def test_what_no_seed_moves_has_a_dash_and_the_reason_everywhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log, out = write_sample(tmp_path / "log.swf"), tmp_path / "out"
    drawn = ("--estimates", "f:3", "--seed", "1:3", "--on", "local:1")
    _, said, _ = command(
        capfd, "sweep", "--log", log, "-p", "fcfs", "-p", "easy", *drawn, "-o", out
    )
    fcfs, easy = (
        next(line for line in said.splitlines() if line.startswith(policy))
        for policy in ("fcfs", "easy")
    )
    assert re.fullmatch(r"fcfs( +[\d.]+ \[-\]){3}", fcfs)
    assert "[-]" not in easy
    assert said.splitlines()[-1] == f"[-]: {SAME}"
    assert command(capfd, "report", out, "-o", tmp_path / "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"[\N{EN DASH}]: {SAME}." in page
    assert f"fcfs: {SAME}." in page
    # Hours, as in the report of a result.
    assert re.search(r"<td>[\d.]+\s+h\s+\[\N{EN DASH}\]</td>", page)
    assert re.search(r"<td>[\d.]+\s+%\s+\[", page)
    for words in ("Mean wait (h)", "Load (gaps between arrivals divided by)"):
        assert f">{words}</text>" in page
    for axis in ("load", "estimates"):
        caption = draw_sweep(read_sweep(out), SweepPicture(axis)).get_supxlabel()
        assert " ".join(caption.split()).endswith(f"cut at 0. fcfs: {SAME}.")


def test_a_line_that_seeds_move_at_some_points_only_is_described_so() -> None:
    values = {
        "fcfs": ([5.0, 5.0], [6.0, 6.0]),
        "easy": ([1.0, 1.0], [1.0, 2.0]),
        "lxf": ([1.0, 3.0], [1.0, 2.0]),
    }
    points = [
        Point({"policy": policy, "load": load}, (1, 2), {"wait_mean_s": np.array(waits)})
        for policy, both in values.items()
        for load, waits in enumerate(both)
    ]
    assert same_words(points, "wait_mean_s", "policy") == f"fcfs, easy (at 1 of 2 points): {SAME}."


def test_what_an_import_left_out_stands_with_a_sweep_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = Path(write_sample(tmp_path / "log.swf"))
    note = "; Note: left out: GPUs: 37 of 120 jobs (gpu:a100 37)\n"
    log.write_text(note + log.read_text(encoding="utf-8"), encoding="utf-8")
    out, page = tmp_path / "out", tmp_path / "page.html"
    code, said, _ = command(
        capfd, "sweep", "--log", log, "-p", "fcfs", "-o", out, "--on", "local:1"
    )
    remark = "log: left out of the log: GPUs: 37 of 120 jobs (gpu:a100 37)"
    assert (code, said.splitlines()[-1]) == (0, remark)
    assert command(capfd, "report", out, "-o", page)[0] == 0
    assert remark in page.read_text(encoding="utf-8")


def test_a_file_is_run_and_resumed_and_its_options_can_be_changed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = make_study(tmp_path, is_run=False)
    code, out, err = command(capfd, "sweep", str(folder / "study.toml"), "--on", "local:1")
    assert code == 0, err
    headings = "load estimates policy wait_mean_s bounded_slowdown_mean utilisation_submit"
    assert out.splitlines()[0].split() == headings.split()
    assert len(out.splitlines()) == 15  # the last one says why FCFS has no intervals
    assert re.search(r" \d+\.\d \[\d+\.\d, \d+\.\d\] ", out)
    assert f"36 runs: 36 made; {folder / 'out'} has them all" in err
    code, again, err = command(capfd, "sweep", str(folder / "study.toml"))
    assert (code, again) == (0, out)
    assert "36 runs: 0 made, 36 were there already" in err
    code, out, _ = command(
        capfd,
        "sweep",
        str(folder / "study.toml"),
        "--load",
        "1",
        "--metric",
        "wait_p95",
        "--json",
        "-q",
    )
    document = json.loads(out)
    assert document["grid"]["load"] == [1.0]
    assert [list(point["metrics"]) for point in document["points"]] == [["wait_p95_s"]] * 4


def test_options_alone_make_a_grid(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = str(folder / "log.swf")
    words = [
        "--log",
        log,
        "-p",
        "easy",
        "--estimates",
        "log,exact:share=0.5,rest=f:3",
        "--seed",
        "4,7",
        "--warmup",
        "1h",
    ]
    code, out, err = command(
        capfd, "sweep", *words, "-o", str(tmp_path / "out"), "--json", "--audit", "--on", "local:1"
    )
    assert code == 0, err
    assert json.loads(out)["runs"] == 3
    assert json.loads(out)["grid"]["warmup"] == 3600.0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--log", "LOG"], 2, "--out DIR is missing"),
        (["-o", "OUT"], 2, "--log is missing"),
        (["--log", "LOG", "-o", "OUT", "--load", "0.7:1"], 2, "--load: '0.7:1' is not a load"),
        (["--log", "LOG", "-o", "OUT", "-p", "esy"], 2, "did you mean 'easy'"),
        (["--log", "LOG", "-o", "OUT", "--on", "remote"], 2, "--on 'remote'"),
        (["--log", "none.swf", "-o", "OUT"], 3, "none.swf"),
        (["none.toml"], 3, "none.toml: cannot be read"),
        (["--log", "LOG", "-o", "OUT", "--metric", "wait"], 2, "no metric 'wait'"),
        (
            ["--log", "LOG", "-o", "OUT", "--on", "dask=tcp://127.0.0.1:9"],
            3,
            "no Dask scheduler answers there",
        ),
    ],
)
def test_mistakes_are_one_line(
    folder: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    said: str,
) -> None:
    places = {"LOG": str(folder / "log.swf"), "OUT": str(tmp_path / "out")}
    found, out, err = command(capfd, "sweep", *(places.get(word, word) for word in words))
    assert (found, out) == (code, "")
    assert said in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out" / "runs.parquet").exists(), "it is said before the long work"


def test_a_picture_of_a_sweep(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sweep, out = str(folder / "out"), tmp_path / "wait.svg"
    code, _, err = command(
        capfd, "plot", sweep, "--x", "load", "--y", "wait_mean", "--by", "policy", "-o", str(out)
    )
    assert code == 0, err
    text = out.read_text()
    assert text.startswith("<?xml")
    first = out.read_bytes()
    command(capfd, "plot", sweep, "--x", "load", "--y", "wait_mean", "-o", str(out))
    assert out.read_bytes() == first, "the same sweep gives the same bytes"
    for words in (
        ["--x", "estimates", "--by", "load"],
        ["--where", "estimates=f:2", "--log-scale", "--title", "Mine"],
    ):
        assert command(capfd, "plot", sweep, *words, "-o", str(out))[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--x", "lod"], "'lod' is not an axis of a picture; did you mean 'load'"),
        (["--x", "seed"], "replicas become intervals"),
        (["--x", "policy"], "--x and --by are both policy"),
        (["--y", "wait_men"], "no metric 'wait_men'"),
        (["--where", "load"], "write AXIS=VALUE"),
        (["--where", "load=7"], "load 7: is not in this sweep"),
        (
            ["--kind", "gantt"],
            "is a sweep: its pictures take --x, --y, --by and --where; leave out --kind",
        ),
        (["-o", "wait.txt"], "a picture ends in"),
    ],
)
def test_a_picture_that_cannot_be_is_refused(
    folder: Path, capfd: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    code, _, err = command(capfd, "plot", str(folder / "out"), *words)
    assert code == 2
    assert said in err


def test_options_of_a_sweep_are_refused_of_a_result(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, err = command(capfd, "plot", str(folder / "log.swf"), "--x", "load")
    assert code == 2
    assert "is no sweep: its pictures take --kind; leave out --x" in err
    code, _, err = command(capfd, "plot", str(folder / "log.swf"))
    assert code == 2
    assert "--kind is missing" in err


def test_other_commands_say_what_reads_sweeps(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, err = command(capfd, "compare", str(folder / "out"))
    assert code == 3
    assert "is a sweep, not a result; qbatch sweep, plot and report read sweeps" in err


def test_a_page_about_a_sweep(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    code, _, err = command(
        capfd, "report", str(folder / "out"), "-o", str(page), "--baseline", "easy"
    )
    assert code == 0, err
    text = page.read_text()
    assert "Differences from easy" in text
    assert "36 runs at 12 points, 3 replicas each." in text
    assert text.count('<svg class="chart"') == 3
    assert "http://" not in text.replace("http://www.w3.org/", "")
    assert "https://" not in text
    assert (
        command(capfd, "report", str(folder / "out"), "-o", str(page), "--baseline", "esy")[0] == 2
    )
    assert (
        command(capfd, "report", str(folder / "out"), str(folder / "log.swf"), "-o", str(page))[0]
        == 2
    )
    assert command(capfd, "report", str(folder / "out"), "-o", str(page), "-p", "easy")[0] == 2
