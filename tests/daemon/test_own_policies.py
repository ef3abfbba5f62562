"""Policies of a user's own on a live daemon: what the socket may set, and what becomes of modules
that misbehave."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from qbatch.daemon import own_policies
from qbatch.daemon.own_policies import load_tried
from qbatch.model.errors import UsageError
from qbatch.planning.policy import name_of
from qbatch.wire.errors import Refusal
from qbatch.wire.records import ServerRecord, Shadows, Text
from qbatch.wire.requests import PolicySet, ServerStatus, Shadow
from tests.daemon.harness import Daemon, emulated

MINE = """
from qbatch.model.actions import Start


class Smallest:
    name = "smallest"

    def __init__(self, most=0):
        self.name = f"smallest-{most}" if most else "smallest"

    def decide(self, view):
        free = view.free_now()
        for job in view.that_fit("procs"):
            if free.take(job):
                yield Start(job.row)


class NotAPolicy:
    def __init__(self):
        open("it-was-called", "w").close()


def made():
    open("it-was-called", "w").close()
    return Smallest()
"""

MODULES = {
    "mine": MINE,
    "exits": "import sys\nsys.exit(3)\n",
    "ends": "import os\nos._exit(3)\n",
    "aborts": "import os\nos.abort()\n",
    "raises": "raise OSError('no such\\nthing')\n",
    "hangs": "import time\ntime.sleep(10_000)\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def settings_of(daemon: Daemon) -> tuple[int, str, int]:
    """Return what must stay: the process, its policy, and how many files it has open (sockets come
    and go)."""
    with daemon.session() as session:
        said = session.ask(ServerStatus(), ServerRecord)
    files = 0
    for each in Path(f"/proc/{said.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            files += not os.readlink(each).startswith("socket:")
    return said.pid, said.policy, files


def refused(daemon: Daemon, policy: str) -> Refusal:
    """Try to set a policy in both ways; return the refusal, which is the same."""
    before = settings_of(daemon)
    found = []
    for request, answer in (
        (PolicySet(policy=policy), Text),
        (Shadow(action="set", policies=(policy,)), Shadows),
    ):
        with daemon.session() as session, pytest.raises(Refusal) as error:
            session.ask(request, answer)
        found.append(error.value)
        with daemon.session() as session:
            assert session.ask(Shadow(), Shadows) == Shadows()
    assert settings_of(daemon) == before
    assert not (daemon.directory / "it-was-called").exists()
    assert (found[0].code, str(found[0])) == (found[1].code, str(found[1]))
    return found[0]


def test_only_listed_classes_are_set_over_the_socket(folder: Path) -> None:
    with Daemon(folder, config=emulated()) as daemon:
        for policy in (
            "os:abort",
            "os:fork",
            "os:system",
            "os:_exit",
            "mine:Smallest",
            "mine:NotAPolicy",
            "mine:made:most=1",
        ):
            error = refused(daemon, policy)
            assert error.code == "policy-not-listed"
            listed = ":".join(policy.split(":")[:2])
            assert (
                f'to allow it, write policies = ["{listed}"] at the top of {folder}/qbatch.toml'
                in str(error)
            )
        assert "did you mean 'easy'" in str(refused(daemon, "esay"))
        said = daemon.run("qbatch", "policy", "set", "mine:Smallest", code=7).stderr
        assert 'policies = ["mine:Smallest"]' in said


def test_a_listed_class_is_set_and_outlives_kill_9(folder: Path) -> None:
    config = emulated(top='policies = ["mine:Smallest"]')
    with Daemon(folder, "--time", "virtual", "--paused", "--origin", "0", config=config) as daemon:
        with daemon.session() as session:
            session.ask(PolicySet(policy="mine:Smallest:most=7"), Text)
            session.ask(Shadow(action="set", policies=("mine:Smallest", "easy")), Shadows)
        assert settings_of(daemon)[1] == "smallest-7"
        daemon.kill()
        daemon.start("--time", "virtual", "--paused")
        assert settings_of(daemon)[1] == "smallest-7"  # from the journal
        # What was set stays, also if it may not be set again.
        (folder / "qbatch.toml").write_text(emulated(), encoding="utf-8")
        daemon.run("qbatch", "reload")
        assert refused(daemon, "mine:Smallest").code == "policy-not-listed"
        daemon.kill(signal.SIGTERM)
        daemon.start("--time", "virtual", "--paused")
        assert settings_of(daemon)[1] == "smallest-7"  # from a snapshot


def test_what_the_configuration_names_elsewhere_is_listed_too(folder: Path) -> None:
    with Daemon(folder, "--policy", "mine:Smallest", config=emulated()) as daemon:
        assert settings_of(daemon)[1] == "smallest"
        for policy, name in (("easy", "easy"), ("mine:Smallest:most=2", "smallest-2")):
            daemon.run("qbatch", "policy", "set", policy)
            assert settings_of(daemon)[1] == name


TROUBLE = [
    ("mine:NotAPolicy", "NotAPolicy has no method decide(view)"),
    ("mine:made", "that is no class, but a function"),
    ("mine:Nothing", "module 'mine' has no 'Nothing'"),
    ("nowhere:X", "module 'nowhere' cannot be imported: ModuleNotFoundError"),
    ("exits:X", "module 'exits' cannot be imported: SystemExit: 3"),
    ("ends:X", "it ends the process that loads it (exit code 3)"),
    ("aborts:X", "it ends the process that loads it (signal SIGABRT)"),
    ("raises:X", "module 'raises' cannot be imported: OSError: no such"),
]


def test_a_listed_module_that_misbehaves_does_so_in_a_child(folder: Path) -> None:
    listed = ", ".join(f'"{policy}"' for policy, _ in TROUBLE)
    with Daemon(folder, config=emulated(top=f"policies = [{listed}]")) as daemon:
        for policy, reason in TROUBLE:
            error = refused(daemon, policy)
            assert error.code == "bad-value"
            assert str(error).startswith(f"policy '{policy}': ")
            assert reason in str(error)
            assert "\n" not in str(error)


def test_a_new_configuration_with_such_a_module_is_refused(folder: Path) -> None:
    with Daemon(folder, config=emulated()) as daemon:
        before = settings_of(daemon)
        for top in ('policy = "aborts:X"', 'shadows = ["ends:X"]'):
            (folder / "qbatch.toml").write_text(emulated(top=top), encoding="utf-8")
            said = daemon.run("qbatch", "reload", code=3).stderr
            assert said.startswith("qbatch: ")
            assert "qbatch.toml: policy " in said
            assert "it ends the process that loads it" in said
        assert settings_of(daemon) == before


@pytest.fixture
def at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(own_policies, "PATIENCE", 0.2)
    monkeypatch.setattr(own_policies, "_tried", set())
    monkeypatch.syspath_prepend(str(folder))


def test_an_import_without_an_end_is_ended(at_once: None) -> None:
    with pytest.raises(UsageError, match=r"policy 'hangs:X': it is not loaded after 0 s"):
        load_tried("hangs:X")


def test_a_policy_is_tried_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    assert name_of(load_tried("mine:Smallest:most=5")) == "smallest-5"
    monkeypatch.setattr(own_policies, "_child_that_loads", None)
    assert name_of(load_tried("mine:Smallest:most=5")) == "smallest-5"
    assert name_of(load_tried("easy")) == "easy"


@pytest.mark.parametrize("text", ["mine:Smallest:most=1\0", f"mine:Smallest:most={'1' * 1000}"])
def test_a_name_that_no_process_takes_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="at most 1000 printable letters"):
        load_tried(text)
