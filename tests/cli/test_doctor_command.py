"""``qbatch doctor``: the other program called qbatch, in the same environment or in front of ours
on PATH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import qbatch
from qbatch.distribution import NAME, __version__
from qbatch.planning.kernels import native
from qbatch.planning.kernels.jit import sources_hash
from tests.daemon.harness import ROOT


def install_the_other(place: Path) -> None:
    """Write what ``pip install qbatch`` writes from PyPI: metadata, two modules, no more."""
    records = place / "qbatch-2.3.2.dist-info"
    records.mkdir(parents=True)
    (records / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: qbatch\nVersion: 2.3.2\n", encoding="utf-8"
    )
    (records / "RECORD").write_text("qbatch/__init__.py,,\nqbatch/qbatch.py,,\n", encoding="utf-8")
    package = place / "qbatch"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text(
        "from . import qbatch\nfrom .qbatch import qbatchParser\n", encoding="utf-8"
    )
    (package / "qbatch.py").write_text("def qbatchParser():\n    pass\n", encoding="utf-8")


def doctor(place: Path, **variables: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    environment = {
        **os.environ,
        "HOME": str(place),
        "QBATCH_SOCKET": str(place / "none"),
        **variables,
    }
    done = subprocess.run(
        [sys.executable, "-m", "qbatch", "doctor", "--json"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=place,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    findings: dict[str, list[dict[str, str]]] = {}
    for finding in json.loads(done.stdout)["findings"]:
        findings.setdefault(finding["what"], []).append(finding)
    return done.returncode, findings


def test_alone_it_says_its_name_and_version(tmp_path: Path) -> None:
    (found,) = doctor(tmp_path, PYTHONPATH=str(ROOT))[1]["distribution"]
    assert (found["verdict"], found["text"]) == ("ok", f"{NAME} {__version__}")


def test_the_other_program_over_ours_is_reported_with_the_way_out(tmp_path: Path) -> None:
    place = tmp_path / "site-packages"
    shutil.copytree(ROOT / "qbatch", place / "qbatch", ignore=shutil.ignore_patterns("__pycache__"))
    install_the_other(place)
    code, findings = doctor(tmp_path, PYTHONPATH=str(place))
    found_one = findings["distribution"][-1]
    assert (code, found_one["verdict"]) == (1, "wrong")
    assert "qbatch 2.3.2 is another program" in found_one["text"]
    assert f"pip uninstall qbatch, then install {NAME} again" in found_one["way_out"]


def test_an_installation_under_the_former_name_is_reported(tmp_path: Path) -> None:
    records = tmp_path / "qbatch-0.1.0.dist-info"
    records.mkdir()
    (records / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: qbatch\nVersion: 0.1.0\n", encoding="utf-8"
    )
    (records / "RECORD").write_text("_qbatch.pth,,\n", encoding="utf-8")
    found_one = doctor(tmp_path, PYTHONPATH=f"{tmp_path}:{ROOT}")[1]["distribution"][-1]
    assert (found_one["verdict"], "former name" in found_one["text"]) == ("warning", True)


def test_another_qbatch_first_on_path_is_reported(tmp_path: Path) -> None:
    other = tmp_path / "bin" / "qbatch"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n", encoding="utf-8")
    other.chmod(0o755)
    (found_one,) = doctor(
        tmp_path, PYTHONPATH=str(ROOT), PATH=f"{other.parent}:{os.environ['PATH']}"
    )[1]["qbatch"]
    assert found_one["verdict"] == "warning"
    assert found_one["text"] == f"{other} comes first on PATH: the other program of that name?"


def test_the_version_is_one(tmp_path: Path) -> None:
    assert qbatch.__version__ == __version__


def test_it_tries_to_write_where_a_daemon_would(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, findings = doctor(
        tmp_path, PYTHONPATH=str(ROOT), QBATCH_STATE=str(tmp_path / "new" / "state")
    )
    assert findings["store"][0]["text"].endswith("the first start creates it")
    assert sorted(os.listdir(tmp_path)) == ["file"], "what was tried is gone again"
    nowhere = {
        "QBATCH_STATE": "/proc/sys/qbatch",
        "QBATCH_SOCKET": "/proc/sys/qbatch.sock",
        "QBATCH_CACHE": str(tmp_path / "file" / "c"),
    }
    code, findings = doctor(tmp_path, PYTHONPATH=str(ROOT), **nowhere)
    assert code == 1
    for what, verdict, variable in (
        ("store", "wrong", "QBATCH_STATE"),
        ("socket", "wrong", "QBATCH_SOCKET"),
        ("cache", "warning", "QBATCH_CACHE"),
    ):
        (found,) = findings[what]
        assert found["verdict"] == verdict, found
        assert nowhere[variable] in found["text"]
        assert variable in found["way_out"]


def test_what_others_can_write_to_and_a_daemon_or_a_replay_would_refuse_is_wrong(
    tmp_path: Path,
) -> None:
    for name in ("cache", "sockets"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
    code, findings = doctor(
        tmp_path,
        PYTHONPATH=str(ROOT),
        QBATCH_STATE=str(tmp_path / "state"),
        QBATCH_CACHE=str(tmp_path / "cache"),
        QBATCH_SOCKET=str(tmp_path / "sockets" / "s"),
        NUMBA_DISABLE_JIT="0",
        NUMBA_CACHE_DIR="",
    )
    assert code == 1
    for what, folder in (("cache", "cache"), ("socket", "sockets")):
        assert findings[what][0]["verdict"] == "wrong"
        assert f"others may write to {tmp_path / folder} (mode 0777)" in findings[what][0]["text"]


def test_it_shows_whether_kernels_are_kept_as_object_code(tmp_path: Path) -> None:
    variables = {
        "QBATCH_CACHE": str(tmp_path / "cache"),
        "NUMBA_DISABLE_JIT": "0",
        "NUMBA_CACHE_DIR": "",
    }
    variables |= {"PYTHONPATH": str(ROOT), "QBATCH_STATE": str(tmp_path / "state")}
    folder = tmp_path / "cache" / f"kernels-{sources_hash()}"
    (found,) = doctor(tmp_path, **variables)[1]["object code"]
    assert (found["verdict"], found["text"][:34]) == ("ok", "kept from the first compilation on")
    folder.mkdir(mode=0o700, parents=True)
    (folder / "kept-objects").write_text(native._PASSED, encoding="utf-8")
    (found,) = doctor(tmp_path, **variables)[1]["object code"]
    assert (found["verdict"], found["text"][:6]) == ("ok", "kept: ")
    (folder / "kept-objects").write_text("it failed", encoding="utf-8")
    (found,) = doctor(tmp_path, **variables)[1]["object code"]
    assert (found["verdict"], found["text"][:10]) == ("warning", "not kept: ")
    assert found["way_out"] == f"it failed; remove {folder} to have it checked again"


def test_a_state_directory_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, findings = doctor(tmp_path, PYTHONPATH=str(ROOT), QBATCH_STATE=str(tmp_path / "file"))
    assert (code, findings["store"][0]["verdict"]) == (1, "wrong")
    assert "is not a directory" in findings["store"][0]["text"]
