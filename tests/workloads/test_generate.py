"""The generator: deterministic, in range, near what it was asked for."""

import gzip
import io
import shlex
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.model.errors import UsageError
from qbatch.workloads import generate_log, machine_procs, read_log, write_log
from qbatch.workloads.findings import findings
from qbatch.workloads.log import facts

from .samples import SHIPPED, same, written


@settings(max_examples=60, deadline=None)
@given(
    jobs=st.integers(1, 400),
    procs=st.integers(1, 5000),
    load=st.floats(0.01, 20),
    seed=st.integers(0, 2**70),
    accuracy=st.floats(0.01, 1),
    campaigns=st.floats(0, 1),
)
def test_every_log_is_sound(
    jobs: int, procs: int, load: float, seed: int, accuracy: float, campaigns: float
) -> None:
    log = generate_log(
        jobs=jobs, procs=procs, load=load, seed=seed, accuracy=accuracy, campaigns=campaigns
    )
    assert len(log) == jobs
    assert machine_procs(log.header) == procs
    assert findings(log) == []
    assert log["submit"][0] == 0
    assert (np.diff(log["submit"]) >= 0).all()
    assert (log["run"] > 0).all()
    assert (log["run"] <= log["time_requested"]).all()
    assert ((log.procs >= 1) & (log.procs <= procs)).all()
    assert same(
        log,
        generate_log(
            jobs=jobs, procs=procs, load=load, seed=seed, accuracy=accuracy, campaigns=campaigns
        ),
    )


def test_the_load_is_met_and_the_shape_is_that_of_a_workload() -> None:
    numbers = facts(generate_log(jobs=20_000, procs=256, load=0.9, seed=5))
    assert numbers["load"]["offered"] == pytest.approx(0.9, rel=1e-5)
    assert 20 < numbers["sizes"]["serial_percent"] < 30
    assert 75 < numbers["sizes"]["power_of_two_percent"] < 95
    assert numbers["load"]["run_mean_s"] > 4 * numbers["load"]["run_median_s"]


def test_people_sleep() -> None:
    log = generate_log(jobs=20_000, procs=64, load=0.5, seed=3)
    hour = log["submit"] // 3600 % 24
    assert np.count_nonzero((hour >= 2) & (hour < 6)) * 3 < np.count_nonzero(
        (hour >= 13) & (hour < 17)
    )


def test_another_seed_is_another_log() -> None:
    assert not same(
        generate_log(jobs=50, procs=8, load=1, seed=1),
        generate_log(jobs=50, procs=8, load=1, seed=2),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"jobs": 0},
        {"procs": 0},
        {"procs": 2**31},
        {"load": 0},
        {"load": float("nan")},
        {"seed": -1},
        {"accuracy": 0},
        {"campaigns": 2},
    ],
)
def test_values_out_of_range_are_named(wrong: dict[str, float]) -> None:
    asked = {"jobs": 10, "procs": 8, "load": 0.5, "seed": 1} | wrong
    with pytest.raises(UsageError, match=f"--{next(iter(wrong))} is "):
        generate_log(**asked)  # type: ignore[arg-type]


def _commands() -> list[list[str]]:
    lines = (SHIPPED / "README.md").read_text().splitlines()
    return [shlex.split(line) for line in lines if line.startswith("qbatch trace generate")]


@pytest.mark.parametrize("command", _commands(), ids=lambda command: str(command[-1]))
def test_the_shipped_logs_are_what_their_commands_make(command: list[str]) -> None:
    options = dict(zip(command[3::2], command[4::2], strict=True))
    log = generate_log(
        jobs=int(options["--jobs"]),
        procs=int(options["--procs"]),
        load=float(options["--load"]),
        seed=int(options["--seed"]),
        campaigns=float(options.get("--campaigns", 0)),
    )
    out = io.BytesIO()
    write_log(out, log.header, log.columns)
    stored = (SHIPPED / options["--out"]).read_bytes()
    assert out.getvalue() == (
        gzip.decompress(stored) if options["--out"].endswith(".gz") else stored
    )


def test_two_of_the_shipped_logs_are_generated() -> None:
    assert len(_commands()) == 2


def test_the_tiny_log_reads() -> None:
    log = read_log(str(SHIPPED / "tiny.txt"))
    assert (len(log), machine_procs(log.header)) == (12, 8)
    assert [finding.severity for finding in findings(log)] in ([], ["note"])


def test_it_is_written_and_read_again(tmp_path: Path) -> None:
    log = generate_log(jobs=300, procs=16, load=0.7, seed=9, campaigns=0.5)
    out = io.BytesIO()
    write_log(out, log.header, log.columns)
    read = read_log(written(tmp_path, out.getvalue()))
    assert same(log, read)
    assert read.line.tolist() == log.line.tolist()
