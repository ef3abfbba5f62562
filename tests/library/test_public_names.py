"""What ``import qbatch`` gives: which names with which signatures, what they cost, and the room that is a function too."""

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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_names_and_signatures_are_those_of_the_written_list() -> None:
    written = LIST.read_text(encoding="utf-8").splitlines()
    assert lines() == written, "a public name has changed; if it is meant: python -m tests.library.signatures"


def test_the_list_has_every_name_and_every_name_is_there() -> None:
    assert sorted(qbatch.__all__) == list(qbatch.__all__)
    assert set(qbatch.__all__) <= set(dir(qbatch))
    for name in qbatch.__all__:
        assert getattr(qbatch, name) is not None
    with pytest.raises(AttributeError, match="module 'qbatch' has no attribute 'nothing'"):
        qbatch.nothing  # noqa: B018 # type: ignore[attr-defined]


def test_an_import_of_the_package_imports_no_more_than_its_version() -> None:
    found = python("import sys; before = set(sys.modules); import qbatch; print(sorted(set(sys.modules) - before))")
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


ORDERS = {
    "the package alone": "import qbatch",
    "the room before": "import qbatch.replay",
    "a module of the room before": "import qbatch.replay.prepare",
    "from the room before": "from qbatch.replay import run\nimport qbatch",
    "from the package": "from qbatch import replay\nimport qbatch\nassert qbatch.replay is replay",
    "from the package, then the room": "from qbatch import replay\nimport qbatch.replay.prepare\nassert qbatch.replay is replay",
    "the function's home before": "import qbatch.library.replaying\nimport qbatch",
    "the room under a name": "import qbatch.replay as room\nimport qbatch\nassert qbatch.replay is room and room.run",
    "everything": "from qbatch import *\nimport qbatch\nassert replay is qbatch.replay",
    "after a call": "import qbatch\nqbatch.replay('traces/tiny.txt', 'fcfs')\nimport qbatch.replay.calendar",
}


@pytest.mark.parametrize("order", ORDERS)
def test_replay_is_a_function_and_a_room_in_every_order_of_imports(order: str) -> None:
    code = f"""
{ORDERS[order]}
import sys
result = qbatch.replay("traces/tiny.txt", "easy")
assert result.policies == ("easy",), result
import qbatch.replay.prepare
from qbatch.replay import Options
import qbatch.replay.sources
assert qbatch.replay.Options is Options and qbatch.replay.sources.workload_of
assert sys.modules["qbatch.replay"] is qbatch.replay
assert qbatch.replay("traces/tiny.txt", "easy") == result
print(result.metrics["easy"]["jobs"])
"""
    assert python(code) == "12"


def test_replay_looks_like_a_function() -> None:
    from qbatch.library.replaying import replay

    assert callable(qbatch.replay)
    assert inspect.signature(qbatch.replay) == inspect.signature(replay)
    shown = pydoc.plain(pydoc.render_doc(qbatch.replay))
    assert "Replay a workload log under one or more policies, in virtual time." in shown
    assert "estimates: ``log``, ``perfect``" in shown
    assert python("import pickle, qbatch; print(pickle.loads(pickle.dumps(qbatch.replay)) is qbatch.replay)") == "True"
    again = "import qbatch.replay, sys; del sys.modules['qbatch.replay']; import qbatch.replay; "
    assert python(again + "print(qbatch.replay('traces/tiny.txt', 'fcfs').log)") == "traces/tiny.txt"
    anew = "import qbatch, importlib; print(importlib.reload(qbatch.replay)('traces/tiny.txt', 'fcfs').log)"
    assert python(anew) == "traces/tiny.txt"


def test_a_patch_finds_the_modules_of_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qbatch.replay.sources.AT_ONCE", 3)
    from qbatch.replay import sources

    assert sources.AT_ONCE == 3


@pytest.mark.parametrize("name", [name for name in qbatch.__all__ if name != "__version__"])
def test_help_on_each_name_says_what_it_is(name: str) -> None:
    thing = getattr(qbatch, name)
    text = inspect.getdoc(thing) or ""
    assert len(text.split()) >= 5, name
    if inspect.isfunction(thing) or name == "replay":
        assert "Raises:" in text, name
    if name in ("ReplayResult", "Comparison", "Session"):
        for key, member in vars(thing).items():
            if not key.startswith("_"):
                assert inspect.getdoc(member), f"{name}.{key}"


USER = '''
from __future__ import annotations

from collections.abc import Iterable

import qbatch
import qbatch.replay.sources
from qbatch import Log, ReplayResult, replay
from qbatch.model.actions import Action, Start
from qbatch.planning.view import View
from qbatch.replay import Options


class Mine:
    name = "mine"

    def decide(self, view: View) -> Iterable[Action]:
        room = view.room()
        for job in view.that_fit():
            if room.take(job):
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
'''
WRONG = {
    'qbatch.replay("log", polices=["easy"])': "Unexpected keyword argument",
    'qbatch.replay("log", load="high")': "incompatible type",
    'qbatch.read_log("log").rows()': "has no attribute",
}


def test_a_users_program_is_checked_strictly(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER, encoding="utf-8")
    (tmp_path / "wrong.py").write_text("import qbatch\n" + "".join(f"{line}\n" for line in WRONG), encoding="utf-8")
    kept = ROOT / ".mypy_cache"  # which make lint makes; of files that have not changed since mypy knows the types
    cache = kept / "user" if os.access(kept, os.W_OK) else tmp_path / "cache"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache)]
    settings = ["--config-file", str(tmp_path / "none.ini"), "--follow-imports=silent", "user.py", "wrong.py"]
    (tmp_path / "none.ini").write_text("[mypy]\n", encoding="utf-8")
    done = subprocess.run(
        [*command, *settings], cwd=tmp_path, capture_output=True, text=True, env={"MYPYPATH": str(ROOT), "PATH": ""}, check=False
    )
    told = done.stdout.splitlines()
    assert [line for line in told if line.startswith("user.py")] == [], done.stdout + done.stderr
    for number, (line, words) in enumerate(WRONG.items(), 2):
        assert any(each.startswith(f"wrong.py:{number}: error") and words in each for each in told), (line, told)
