from __future__ import annotations

import os
from pathlib import Path

import pytest

from qbatch.wire import paths


def test_the_environment_decides_where_the_socket_is() -> None:
    assert (
        paths.socket_path({"QBATCH_SOCKET": "/a/b.sock", "XDG_RUNTIME_DIR": "/run/user/1"})
        == "/a/b.sock"
    )
    assert (
        paths.personal_socket_path({"XDG_RUNTIME_DIR": "/run/user/1"})
        == "/run/user/1/qbatch/qbatch.sock"
    )
    assert paths.personal_socket_path({"XDG_RUNTIME_DIR": "relative"}).startswith("/tmp/qbatch-")


def test_a_state_directory_that_is_named_has_its_socket_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "SYSTEM_SOCKET", str(tmp_path / "system.sock"))
    (tmp_path / "system.sock").touch()
    named = {"QBATCH_STATE": "/tmp/lab", "XDG_RUNTIME_DIR": "/run/user/1"}
    assert paths.socket_path(named) == paths.socket_in("/tmp/lab") == "/tmp/lab/qbatch.sock"
    assert paths.socket_path({**named, "QBATCH_SOCKET": "/a/b.sock"}) == "/a/b.sock"
    monkeypatch.chdir(tmp_path)
    assert paths.socket_in("lab") == f"{tmp_path}/lab/qbatch.sock"


def test_a_directory_whose_path_is_too_long_has_its_socket_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paths, "check_directory", lambda directory: None)
    long = [f"/tmp/{'x' * 120}/{name}" for name in "ab"]
    sockets = [paths.socket_in(each) for each in long]
    assert all(each.startswith(f"/tmp/qbatch-{os.getuid()}/") for each in sockets)
    assert len(set(sockets)) == 2
    assert sockets[0] == paths.socket_in(f"{long[0]}/")
    assert all(len(os.fsencode(each)) <= paths.LONGEST_SOCKET for each in sockets)


def test_how_a_daemon_is_started_at_a_socket() -> None:
    home = {"XDG_RUNTIME_DIR": "/run/user/1"}
    assert paths.up_command("/run/user/1/qbatch/qbatch.sock", home) == "qbatch up"
    assert (
        paths.up_command("/q/qbatch.sock", {**home, "QBATCH_STATE": "/q"}) == "qbatch up --state /q"
    )
    assert paths.up_command("/s", {**home, "QBATCH_SOCKET": "/s"}) == "qbatch up"
    assert paths.up_command("/s", home) == "qbatch up --socket /s"


def test_the_machines_socket_serves_where_the_own_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "SYSTEM_SOCKET", str(tmp_path / "system.sock"))
    here = {"XDG_RUNTIME_DIR": str(tmp_path)}
    own = str(tmp_path / "qbatch" / "qbatch.sock")
    assert paths.socket_path(here) == own
    (tmp_path / "system.sock").touch()
    assert paths.socket_path(here) == str(tmp_path / "system.sock")
    paths.make_socket_directory(own)
    Path(own).touch()
    assert paths.socket_path(here) == own
    assert os.stat(tmp_path / "qbatch").st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["open", "link", "file"])
def test_a_directory_that_is_not_ours_alone_is_refused(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "d"
    if kind == "open":
        place.mkdir()
        place.chmod(0o755)
    elif kind == "link":
        (tmp_path / "real").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "real")
    else:
        place.touch()
    with pytest.raises(paths.UnsafeDirectory, match="QBATCH_SOCKET"):
        paths.check_directory(str(place))
    paths.check_directory(str(tmp_path / "absent"))


def test_a_daemon_does_not_listen_where_others_may_put_another_socket(tmp_path: Path) -> None:
    paths.make_socket_directory(str(tmp_path / "s"))
    tmp_path.chmod(0o777)
    with pytest.raises(paths.UnsafeDirectory, match="listen where only its own user may write"):
        paths.make_socket_directory(str(tmp_path / "s"))


def test_state_configuration_and_cache() -> None:
    home = {"HOME": "/h"}
    assert str(paths.state_directory(home)) == "/h/.local/state/qbatch"
    assert str(paths.config_path(home)) == "/h/.config/qbatch/qbatch.toml"
    assert str(paths.cache_directory(home)) == "/h/.cache/qbatch"
    assert str(paths.state_directory({**home, "XDG_STATE_HOME": "/s"})) == "/s/qbatch"
    assert str(paths.state_directory({**home, "QBATCH_STATE": "/q"})) == "/q"
    assert str(paths.config_path({**home, "QBATCH_CONFIG": "/q.toml"})) == "/q.toml"
