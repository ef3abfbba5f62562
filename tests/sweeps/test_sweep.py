"""Sweeps of small logs: what is run, kept, resumed, recorded and refused."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from qbatch.cli.main import run as run_command
from qbatch.metrics import measure
from qbatch.model.errors import InputError, OutputError, QbatchError, UsageError
from qbatch.model.machine import one_host
from qbatch.policies import load_policy
from qbatch.results.checksums import sealed
from qbatch.simulation import Options, prepare, run
from qbatch.sweeps import sweep as sweep_module
from qbatch.sweeps.executors import Place
from qbatch.sweeps.store import FILE, RunStore
from qbatch.sweeps.table import DOCUMENT, TABLE, read_sweep
from qbatch.workloads import read_log
from qbatch.workloads.transform.resampling import resampled
from tests.sweeps.samples import MODULE, planned, swept, write_sample

GRID = {"load": "0.8:1:0.2", "seed": "1:2", "estimates": ["log", "f:2"], "policy": ["easy", "fcfs"]}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_sample(tmp_path_factory.mktemp("logs") / "log.swf")


@pytest.fixture
def own_policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``tests_sweep_own`` be a module with policies that misbehave, in the user's directory."""
    (tmp_path / "tests_sweep_own.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("tests_sweep_own", "tests_sweep_helper"):
        sys.modules.pop(name, None)


def rows_of(folder: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(folder / TABLE).to_pylist()
    return rows


def test_every_combination_is_there_once_with_the_figures_of_a_replay(
    log: str, tmp_path: Path
) -> None:
    done = swept(tmp_path / "sweep", log, **GRID)
    rows = rows_of(tmp_path / "sweep")
    # Nothing is drawn where estimates are those of the log: there the seed is none.
    wanted = [
        (load, estimates, seed, policy)
        for load in (0.8, 1.0)
        for estimates in ("log", "f:2")
        for seed in ((None,) if estimates == "log" else (1, 2))
        for policy in ("easy", "fcfs")
    ]
    assert [(row["load"], row["estimates"], row["seed"], row["policy"]) for row in rows] == wanted
    assert (done.made, done.kept, done.failed) == (len(wanted), 0, 0) == (12, 0, 0)
    read = read_log(log)
    for row in rows:
        options = Options(
            estimates=str(row["estimates"]),
            seed=int(str(row["seed"] or 0)),
            load=float(str(row["load"])),
        )
        schedule = run(
            prepare(read, one_host(16), options), one_host(16), load_policy(str(row["policy"]))
        )
        assert {name: row[name] for name in measure(schedule)} == measure(schedule)


def test_windows_machines_warmup_and_logs_drawn_anew(log: str, tmp_path: Path) -> None:
    read = read_log(log)
    middle = int(read["submit"][60])
    axes = {
        "window": ["all", f"0..{middle}"],
        "machine": ["16", "32"],
        "policy": "easy",
        "warmup": "1h",
    }
    swept(tmp_path / "windows", log, **axes)
    rows = rows_of(tmp_path / "windows")
    assert [(row["machine"], row["window"]) for row in rows] == [
        (m, w) for m in ("16", "32") for w in ("all", f"0..{middle}")
    ]
    for row, (procs, before) in zip(
        rows, ((16, None), (16, middle), (32, None), (32, middle)), strict=True
    ):
        options = Options(before=None if before is None else str(before), warmup=3600.0)
        schedule = run(
            prepare(read, one_host(procs), options), one_host(procs), load_policy("easy")
        )
        assert row["wait_mean_s"] == measure(schedule)["wait_mean_s"]
        assert row["jobs"] == measure(schedule)["jobs"]
    long = write_sample(tmp_path / "long.swf", jobs=3000)
    swept(tmp_path / "drawn", long, resample=["none", "weeks"], seed="1:2", policy="easy")
    rows = rows_of(tmp_path / "drawn")
    assert [(row["resample"], row["seed"]) for row in rows] == [
        ("none", None),
        ("weeks", 1),
        ("weeks", 2),
    ]
    drawn = resampled(read_log(long), "weeks", 2)
    schedule = run(prepare(drawn, one_host(16), Options(seed=2)), one_host(16), load_policy("easy"))
    assert rows[2]["wait_mean_s"] == measure(schedule)["wait_mean_s"]


def test_a_model_generates_a_log_for_each_seed(tmp_path: Path) -> None:
    done = swept(tmp_path / "sweep", "lublin:jobs=60,procs=16", seed="1:3", policy="easy")
    assert done.made == 3
    rows = rows_of(tmp_path / "sweep")
    assert [row["seed"] for row in rows] == [1, 2, 3]
    assert len({row["wait_mean_s"] for row in rows}) > 1
    assert {row["log"] for row in rows} == {"lublin:jobs=60,procs=16"}


def test_the_same_bytes_here_and_in_processes_and_again(log: str, tmp_path: Path) -> None:
    swept(tmp_path / "here", log, **GRID)
    swept(tmp_path / "there", log, Place(2), **GRID)
    assert (tmp_path / "here" / TABLE).read_bytes() == (tmp_path / "there" / TABLE).read_bytes()
    again = swept(tmp_path / "here", log, **GRID)
    assert (again.made, again.kept) == (0, 12)


def test_a_sweep_is_extended_without_repeating(log: str, tmp_path: Path) -> None:
    swept(tmp_path / "sweep", log, **GRID)
    more = swept(
        tmp_path / "sweep", log, **{**GRID, "seed": "1:3", "policy": ["easy", "conservative"]}
    )
    # 3 places by 2 loads of easy are there already; seed 3 and conservative are not.
    assert (more.made, more.kept) == (10, 6)
    assert len(rows_of(tmp_path / "sweep")) == 16
    back = swept(tmp_path / "sweep", log, **GRID)
    assert (back.made, back.kept) == (0, 12), (
        "what a smaller grid leaves out of its table stays kept"
    )


@pytest.mark.usefixtures("own_policies")
def test_a_failed_run_is_recorded_and_stops_no_other(log: str, tmp_path: Path) -> None:
    done = swept(tmp_path / "sweep", log, policy=["tests_sweep_own:Late", "easy"], load=[0.9, 1.0])
    assert (done.made, done.failed) == (4, 2)
    rows = rows_of(tmp_path / "sweep")
    assert [row["status"] for row in rows] == ["failed", "done"] * 2
    assert [row["wait_mean_s"] is None for row in rows] == [True, False] * 2
    assert all("ValueError: job 60 is not to my liking" in str(row["error"]) for row in rows[::2])
    failures = json.loads((tmp_path / "sweep" / DOCUMENT).read_text())["failures"]
    assert [failure["load"] for failure in failures] == [0.9, 1.0]
    again = swept(tmp_path / "sweep", log, policy=["tests_sweep_own:Late", "easy"], load=[0.9, 1.0])
    assert (again.made, again.failed) == (0, 2), "what fails would fail again"


@pytest.mark.usefixtures("own_policies")
def test_a_change_of_a_policy_of_ones_own_runs_it_again(log: str, tmp_path: Path) -> None:
    swept(tmp_path / "sweep", log, policy=["tests_sweep_own:Late", "easy"])
    module = tmp_path / "tests_sweep_own.py"
    module.write_text(MODULE.replace("if 60 in", "if 600 in"))
    os.utime(module, (1, 1))
    sys.modules.pop("tests_sweep_own")
    done = swept(tmp_path / "sweep", log, policy=["tests_sweep_own:Late", "easy"])
    assert (done.made, done.kept, done.failed) == (1, 1, 0)
    late, easy = rows_of(tmp_path / "sweep")
    assert late["wait_mean_s"] == easy["wait_mean_s"]


@pytest.mark.usefixtures("own_policies")
def test_a_run_that_takes_its_process_with_it_is_given_up_and_tried_again_later(
    log: str, tmp_path: Path
) -> None:
    axes = {"policy": ["tests_sweep_own:Late:how=kill", "easy"], "load": [0.9, 1.0]}
    done = swept(tmp_path / "sweep", log, Place(2), **axes)
    assert (done.made, done.failed) == (4, 2)
    assert "worker was lost" in str(rows_of(tmp_path / "sweep")[0]["error"])
    again = swept(tmp_path / "sweep", log, Place(2), **axes)
    assert (again.made, again.kept) == (2, 2)


@pytest.mark.usefixtures("own_policies")
def test_a_policy_that_cannot_work_at_all_is_named_before_the_long_work(
    log: str, tmp_path: Path
) -> None:
    with pytest.raises(
        QbatchError, match=r"tests_sweep_own:Never, load 0\.9: fails with .*KeyError.*leave it"
    ):
        swept(tmp_path / "sweep", log, policy=["easy", "tests_sweep_own:Never"], load=[0.9, 1.0])
    with RunStore(tmp_path / "sweep") as store:
        assert len(store) == 0


@pytest.mark.usefixtures("own_policies")
def test_a_policy_that_ends_its_process_is_named_before_the_long_work(
    log: str, tmp_path: Path
) -> None:
    with pytest.raises(
        QbatchError,
        match=r"tests_sweep_own:Ending: fails with the worker was lost 3 times.*leave it out",
    ):
        swept(tmp_path / "sweep", log, Place(2), policy=["easy", "tests_sweep_own:Ending"])
    with RunStore(tmp_path / "sweep") as store:
        assert len(store) == 0


def test_a_log_that_has_changed_is_named_and_nothing_is_mixed(tmp_path: Path) -> None:
    log = write_sample(tmp_path / "log.swf")
    swept(tmp_path / "sweep", log, policy="easy")
    before = (tmp_path / "sweep" / TABLE).read_bytes()
    write_sample(tmp_path / "log.swf", seed=2)
    with pytest.raises(InputError, match=r"log\.swf: has changed since the runs in .* were made"):
        swept(tmp_path / "sweep", log, policy="easy")
    assert (tmp_path / "sweep" / TABLE).read_bytes() == before


@pytest.mark.parametrize(
    ("axes", "error", "said"),
    [
        ({"policy": "esy"}, UsageError, "there is no policy 'esy'; did you mean 'easy'"),
        ({"policy": ["easy", "easy:order=fcfs"]}, UsageError, "easy occurs twice"),
        ({"policy": "hybrid:depth=-1"}, UsageError, "depth=-1"),
        ({"estimates": "g:2"}, UsageError, "g"),
        ({"resample": "months"}, UsageError, "'months' is none of none, weeks, users"),
        ({"seed": "1:5"}, UsageError, "5 seeds, but nothing is drawn"),
        ({"machine": "none.toml"}, InputError, "none.toml"),
        ({"machine": "0"}, UsageError, "not a number of processors"),
        ({"log": "none.swf"}, InputError, "none.swf"),
        ({"log": "lublin:jbs=5"}, UsageError, "did you mean 'jobs'"),
        ({"log": "lublin:jobs=many"}, UsageError, "jobs=many is no whole number"),
        ({"log": "-"}, UsageError, "name a file"),
    ],
)
def test_a_value_that_cannot_be_is_named_before_any_run(
    log: str, axes: dict[str, object], error: type[QbatchError], said: str
) -> None:
    with pytest.raises(error, match=said):
        planned(
            str(axes.get("log", log)),
            **{name: value for name, value in axes.items() if name != "log"},
        )


def test_an_empty_corner_is_named_before_any_run(log: str, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"window 5000000000\.\.6000000000: .*no job in it can run"
    ):
        swept(tmp_path / "sweep", log, window=["all", "5000000000..6000000000"], policy="easy")
    with pytest.raises(InputError, match=r"resample weeks, seed 1: .*needs two whole weeks"):
        swept(tmp_path / "other", log, resample=["none", "weeks"], seed="1:2", policy="easy")


def test_a_machine_file_that_is_edited_runs_again_also_in_one_process_and_back(
    log: str, tmp_path: Path
) -> None:
    machine, found = tmp_path / "machine.toml", []
    for cpus in (16, 64, 16):
        machine.write_text(f'schema = 1\n[[host]]\nname = "a"\ncpus = {cpus}\n')
        done = swept(tmp_path / "sweep", log, machine=str(machine), policy="easy")
        found.append((done.made, rows_of(tmp_path / "sweep")[0]["wait_mean_s"]))
    assert [made for made, _ in found] == [1, 1, 0]
    assert found[0][1] == found[2][1] != found[1][1] == 0.0


@pytest.mark.usefixtures("own_policies")
@pytest.mark.parametrize("place", [Place(1), Place(2)])
def test_a_change_of_what_a_policy_imports_runs_it_again(
    log: str, tmp_path: Path, place: Place
) -> None:
    (tmp_path / "tests_sweep_own.py").write_text(
        "import tests_sweep_helper\nclass Mine(tests_sweep_helper.Base):\n    name = 'mine'\n"
    )
    helper, waits = tmp_path / "tests_sweep_helper.py", []
    for name in ("easy", "fcfs", "easy"):
        helper.write_text(
            "from qbatch.policies import load_policy\nclass Base:\n"
            f"    def __init__(self): self.inner = load_policy({name!r})\n"
            "    def decide(self, view): return self.inner.decide(view)\n"
        )
        os.utime(helper, (len(waits) + 1, len(waits) + 1))
        # The same process may have read the module before, as a notebook or a worker that lives on
        # has.
        done = swept(tmp_path / "sweep", log, place, policy=["tests_sweep_own:Mine", "fcfs"])
        mine, fcfs = rows_of(tmp_path / "sweep")
        waits.append((done.made, mine["wait_mean_s"] == fcfs["wait_mean_s"]))
    assert waits == [(2, False), (1, True), (0, False)]


def test_the_record_stays_with_its_table_until_both_are_written(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "sweep"
    swept(out, log, policy="easy", load=[0.9, 1.0])
    before = read_sweep(out).document
    monkeypatch.setattr(sweep_module, "write_table", _full_disk)
    with pytest.raises(OutputError, match="no space"):
        swept(out, log, policy="easy", load=[0.9, 1.0], first=50)
    assert read_sweep(out).document == before
    assert read_sweep(out).read().num_rows == 2
    document = json.loads((out / DOCUMENT).read_text())
    (out / DOCUMENT).write_text(json.dumps(sealed(document | {"inputs": "others"}, DOCUMENT, {})))
    with pytest.raises(InputError, match=r"does not belong to sweep\.json"):
        read_sweep(out).read()


def _full_disk(*_: object) -> None:
    raise OutputError("runs.parquet: cannot be written (no space)")


@pytest.mark.parametrize("damaged", [DOCUMENT, TABLE])
def test_a_damaged_table_or_record_is_made_anew_of_what_is_kept(
    log: str, tmp_path: Path, damaged: str
) -> None:
    out = tmp_path / "sweep"
    swept(out, log, policy="easy")
    whole = (out / TABLE).read_bytes()
    (out / damaged).write_bytes(b"{")
    with pytest.raises(InputError):
        read_sweep(out).read()
    done = swept(out, log, policy="easy")
    assert (done.made, done.kept) == (0, 1)
    assert (out / TABLE).read_bytes() == whole
    (out / "wait.png").write_bytes(b"a picture beside it")
    assert swept(out, log, policy="easy").made == 0


def test_a_damaged_run_is_made_again_and_said(log: str, tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    words = [
        "sweep",
        "--log",
        log,
        "-p",
        "easy",
        "-p",
        "fcfs",
        "--load",
        "0.9,1",
        "-o",
        str(out),
        "--on",
        "local:1",
    ]
    before, table = _said(words)[0], (out / TABLE).read_bytes()
    database = sqlite3.connect(out / FILE)
    database.execute(
        "UPDATE runs SET kept = CAST(replace(kept, x'cb', x'ca') AS BLOB) WHERE key = (SELECT "
        "min(key) FROM runs)"
    )
    database.commit()
    database.close()
    shown, said = _said(words)
    assert (shown, (out / TABLE).read_bytes()) == (before, table)
    assert said.startswith(
        f"{out / FILE}: 1 damaged run was removed; the sweep repeats what it needs\n"
    )
    assert "4 runs: 1 made, 3 were there already" in said


def _said(words: list[str]) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "qbatch", *words], capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("name", [DOCUMENT, TABLE])
def test_no_flipped_bit_of_a_table_is_shown(
    log: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    out = tmp_path / "sweep"
    swept(out, log, policy=["easy", "fcfs"], load=[0.9, 1.0])
    document, table = read_sweep(out).document, read_sweep(out).read()
    whole, draw = (out / name).read_bytes(), random.Random(name)
    refused = []
    for _ in range(200):
        content, bit = bytearray(whole), draw.randrange(8 * len(whole))
        content[bit // 8] ^= 1 << bit % 8
        (out / name).write_bytes(content)
        try:
            sweep = read_sweep(out)
            assert sweep.read().equals(table)
            assert sweep.document == document or "checksums" not in sweep.document
        except InputError as error:
            refused.append(str(error))
    assert len(refused) >= (150 if name == DOCUMENT else 200)
    assert all(str(out) in said and "\n" not in said for said in refused)
    (out / name).write_bytes(whole[:-40] + whole[-39:])
    assert run_command(["report", str(out), "-o", str(tmp_path / "sweep.html")]) == 3
    assert run_command(["plot", str(out), "-o", str(tmp_path / "sweep.svg")]) == 3
    assert capfd.readouterr().err.count("\n") == 2
    assert swept(out, log, policy=["easy", "fcfs"], load=[0.9, 1.0]).made == 0
    assert read_sweep(out).read().equals(table)


@pytest.mark.parametrize("name", ["", DOCUMENT, TABLE])
def test_a_sweep_that_every_user_may_write_is_not_read(log: str, tmp_path: Path, name: str) -> None:
    before = os.umask(0)
    try:
        swept(tmp_path / "sweep", log, policy="easy")
    finally:
        os.umask(before)
    assert read_sweep(tmp_path / "sweep").read().num_rows == 1
    open_one = tmp_path / "sweep" / name
    open_one.chmod(open_one.stat().st_mode | 0o002)
    with pytest.raises(InputError, match=f"{open_one}: every user may write to it"):
        read_sweep(tmp_path / "sweep").read()


def test_a_directory_with_other_things_is_left_alone(log: str, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(OutputError, match=r"holds thesis\.tex, which is no part of a sweep"):
        swept(tmp_path, log, policy="easy")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def _sweep_command(log: str, out: Path) -> subprocess.Popen[str]:
    words = [
        "sweep",
        "--log",
        log,
        "-p",
        "lxfw-backfill",
        "--load",
        "0.5:1.4:0.02",
        "--seed",
        "1:4",
        "--estimates",
        "f:3",
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "qbatch", *words, "-o", str(out), "-q", "--on", "local:2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_sweep_keeps_its_runs_and_goes_on(
    tmp_path: Path, how: signal.Signals
) -> None:
    log, out = write_sample(tmp_path / "log.swf", jobs=2500), tmp_path / "sweep"
    process = _sweep_command(log, out)
    deadline = time.monotonic() + 300
    while (
        not (out / "runs.sqlite-wal").exists() or (out / "runs.sqlite-wal").stat().st_size < 90_000
    ):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, how)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL), said
    with RunStore(out) as store:
        kept = len(store)
    assert 2 < kept < 184
    if how == signal.SIGINT:
        assert f"{kept} of 184 runs kept in {out}; the same command resumes" in said
        document, rows = json.loads((out / DOCUMENT).read_text()), rows_of(out)
        assert document["missing"] == 184 - kept == sum(row["status"] == "missing" for row in rows)
    else:
        assert not (out / TABLE).exists()
        with pytest.raises(InputError, match="cannot be read"):
            read_sweep(out).read()
    done = swept(
        out, log, Place(2), policy="lxfw-backfill", load="0.5:1.4:0.02", seed="1:4", estimates="f:3"
    )
    assert (done.kept, done.made) == (kept, 184 - kept)
    assert np.isfinite([float(str(row["wait_mean_s"])) for row in rows_of(out)]).all()
