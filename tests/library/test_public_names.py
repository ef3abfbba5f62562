"""What ``import qbatch`` gives: which names with which signatures, and what they cost."""

from __future__ import annotations

import inspect
import os
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import qbatch
from tests.library.signatures import LIST, lines

ROOT = Path(__file__).resolve().parents[2]


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_names_and_signatures_are_those_of_the_written_list() -> None:
    written = LIST.read_text(encoding="utf-8").splitlines()
    assert lines() == written, (
        "a public name has changed; if it is meant: python -m tests.library.signatures"
    )


def test_the_list_has_every_name_and_every_name_is_there() -> None:
    assert sorted(qbatch.__all__) == list(qbatch.__all__)
    assert set(qbatch.__all__) <= set(dir(qbatch))
    for name in qbatch.__all__:
        assert getattr(qbatch, name) is not None
    with pytest.raises(AttributeError, match="module 'qbatch' has no attribute 'nothing'"):
        qbatch.nothing  # noqa: B018 # type: ignore[attr-defined]


def test_an_import_of_the_package_imports_no_more_than_its_version() -> None:
    found = python(
        "import sys; before = set(sys.modules); import qbatch; print(sorted(set(sys.modules) - "
        "before))"
    )
    assert found == "['__future__', 'qbatch', 'qbatch.distribution']"


@pytest.mark.parametrize(
    ("name", "forbidden"),
    [
        ("read_log", {"numba", "qbatch.engine", "matplotlib", "pyarrow", "typer"}),
        ("replay", {"matplotlib", "pyarrow", "typer", "pandas", "qbatch.daemon"}),
        ("Session", {"numpy", "typer", "asyncio", "qbatch.daemon"}),
        ("InputError", {"numpy", "typer"}),
    ],
)
def test_a_name_costs_what_it_needs(name: str, forbidden: set[str]) -> None:
    loaded = python(f"import sys, qbatch; qbatch.{name}; print('\\n'.join(sys.modules))").split()
    assert forbidden & set(loaded) == set()


def test_replay_is_a_function_whatever_is_imported_before_it() -> None:
    for before in (
        "import qbatch.simulation.prepare",
        "from qbatch.simulation import run",
        "import qbatch.library.replaying",
    ):
        assert (
            python(f"{before}\nimport qbatch, inspect; print(inspect.isfunction(qbatch.replay))")
            == "True"
        )
    shown = pydoc.plain(pydoc.render_doc(qbatch.replay))
    assert shown.startswith(
        "Python Library Documentation: function replay in module qbatch.library.replaying"
    )
    assert "estimates: ``log``, ``perfect``" in shown


def test_dir_shows_public_names_only() -> None:
    assert set(dir(qbatch)) == {*qbatch.__all__, "AgentPolicy", "SchedulingEnv"}


def test_a_name_that_needs_an_extra_says_which() -> None:
    code = """
import sys
sys.modules["gymnasium"] = None
import qbatch
try:
    qbatch.SchedulingEnv
except ImportError as error:
    print(error)
"""
    assert (
        python(code)
        == "qbatch.SchedulingEnv needs gymnasium: pip install '.[gym]' in the folder of the sources"
    )


@pytest.mark.parametrize("name", [name for name in qbatch.__all__ if name != "__version__"])
def test_help_on_each_name_says_what_it_is(name: str) -> None:
    thing = getattr(qbatch, name)
    text = inspect.getdoc(thing) or ""
    assert len(text.split()) >= 5, name
    if inspect.isfunction(thing):
        assert "Raises:" in text, name
    if name in ("ReplayResult", "Comparison", "Session"):
        for key, member in vars(thing).items():
            if not key.startswith("_"):
                assert inspect.getdoc(member), f"{name}.{key}"


USER = """
from __future__ import annotations

from collections.abc import Iterable

import qbatch
import qbatch.simulation.sources
from qbatch import Log, ReplayResult, replay
from qbatch.model.actions import Action, Start
from qbatch.planning.view import View
from qbatch.simulation import Options


class Mine:
    name = "mine"

    def decide(self, view: View) -> Iterable[Action]:
        free = view.free_now()
        for job in view.that_fit():
            if free.take(job):
                yield Start(job.row)


def study(path: str) -> float | int | None:
    log: Log = qbatch.read_log(path)
    made = qbatch.transform(log, "take:first=10", seed=1)
    result: ReplayResult = replay(made, ["easy", Mine, Mine()], machine=qbatch.machine(8), warmup="1h", audit=True)
    other = qbatch.replay(qbatch.generate("lublin", jobs=10), qbatch.policy("fcfs"), since=0, closed=False)
    names: tuple[str, ...] = result.policies
    found = qbatch.compare(result["easy"], other, by=["month"])
    sentence: str = found.sentences[0]
    with qbatch.Session(executor="emulated", time="virtual") as session:
        job: str = session.submit(["true"], name=names[0])
        status: int | None = session.wait(job).exit_status
        session.policy = sentence
    try:
        result.plot("gantt", since=0).savefig("x.png")
    except qbatch.QbatchError as error:
        code: int = error.exit_code
        raise SystemExit(code + (status or 0)) from error
    return result.metrics["easy"]["wait_mean_s"]


options: Options = Options(load=1.5)
"""
WRONG = {
    'qbatch.replay("log", polices=["easy"])': "Unexpected keyword argument",
    'qbatch.replay("log", load="high")': "incompatible type",
    'qbatch.read_log("log").rows()': "has no attribute",
}


def test_a_users_program_is_checked_strictly(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(
        "import qbatch\n" + "".join(f"{line}\n" for line in WRONG), encoding="utf-8"
    )
    # Which make lint makes; of files that have not changed since mypy knows the types.
    kept = ROOT / ".mypy_cache"
    cache = kept / "user" if os.access(kept, os.W_OK) else tmp_path / "cache"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache)]
    settings = [
        "--config-file",
        str(tmp_path / "none.ini"),
        "--follow-imports=silent",
        "user.py",
        "wrong.py",
    ]
    (tmp_path / "none.ini").write_text("[mypy]\n", encoding="utf-8")
    done = subprocess.run(
        [*command, *settings],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
        check=False,
    )
    printed = done.stdout.splitlines()
    assert [line for line in printed if line.startswith("user.py")] == [], done.stdout + done.stderr
    for number, (line, words) in enumerate(WRONG.items(), 2):
        assert any(
            each.startswith(f"wrong.py:{number}: error") and words in each for each in printed
        ), (line, printed)
