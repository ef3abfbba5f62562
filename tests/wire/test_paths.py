from __future__ import annotations

import os
from pathlib import Path

import pytest

from qbatch.wire import paths


def test_the_environment_decides_where_the_socket_is() -> None:
    assert paths.socket_path({"QBATCH_SOCKET": "/a/b.sock", "XDG_RUNTIME_DIR": "/run/user/1"}) == "/a/b.sock"
    assert paths.personal_socket_path({"XDG_RUNTIME_DIR": "/run/user/1"}) == "/run/user/1/qbatch/qbatch.sock"
    assert paths.personal_socket_path({"XDG_RUNTIME_DIR": "relative"}).startswith("/tmp/qbatch-")


def test_the_machines_socket_serves_where_the_own_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_state_configuration_and_cache() -> None:
    home = {"HOME": "/h"}
    assert str(paths.state_directory(home)) == "/h/.local/state/qbatch"
    assert str(paths.config_path(home)) == "/h/.config/qbatch/qbatch.toml"
    assert str(paths.cache_directory(home)) == "/h/.cache/qbatch"
    assert str(paths.state_directory({**home, "XDG_STATE_HOME": "/s"})) == "/s/qbatch"
    assert str(paths.state_directory({**home, "QBATCH_STATE": "/q"})) == "/q"
    assert str(paths.config_path({**home, "QBATCH_CONFIG": "/q.toml"})) == "/q.toml"
