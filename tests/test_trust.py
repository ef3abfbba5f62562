"""What others may write to is not trusted: owners of directories, groups, sticky bits, links."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from qbatch import trust
from qbatch.model.errors import InputError
from qbatch.trust import check_not_open, who_may_replace

OTHER = 30002

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root: files of other users")


@pytest.fixture(autouse=True)
def fresh_groups() -> Iterator[None]:
    trust._has_others.cache_clear()
    yield
    trust._has_others.cache_clear()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "outer" / "inner"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o755)
    folder.chmod(0o755)
    (folder / "it").touch()
    return folder


def test_a_path_in_folders_of_our_own_is_ours(place: Path) -> None:
    assert (
        who_may_replace(place / "it")
        == who_may_replace(place / "absent")
        == who_may_replace(place / "no" / "where")
        == ""
    )


@pytest.mark.parametrize("which", ["outer", "inner"])
@pytest.mark.parametrize("mode", [0o777, 0o757, 0o723])
def test_every_folder_on_the_way_counts(place: Path, which: str, mode: int) -> None:
    folder = place if which == "inner" else place.parent
    folder.chmod(mode)
    assert who_may_replace(place / "absent") == f"others may write to {folder} (mode 0{mode:o})"
    assert who_may_replace(place / "it") == f"others may write to {folder} (mode 0{mode:o})"
    link = place.parent.parent / "link"
    link.symlink_to(place)
    assert (
        who_may_replace(link / "it")
        == f"others may write to {folder if which == 'outer' else link} (mode 0{mode:o})"
    )


@needs_root
def test_in_a_sticky_folder_it_counts_whose_the_entry_is(place: Path) -> None:
    place.chmod(0o1777)
    assert who_may_replace(place / "it") == ""
    os.chown(place / "it", OTHER, OTHER)
    assert (
        who_may_replace(place / "it")
        == f"{place}/it belongs to user {OTHER}, in {place}, to which others may write"
    )
    place.chmod(0o755)  # only its owner can have put it there
    assert who_may_replace(place / "it") == ""
    place.chmod(0o1777)
    (place / "it").unlink()
    (place / "it").symlink_to(place.parent)
    os.lchown(place / "it", OTHER, OTHER)
    assert "it belongs to user" in who_may_replace(place / "it" / "inner" / "it")


@needs_root
@pytest.mark.parametrize(
    ("members", "gid", "is_shared"),
    [
        (["eve"], 5000, True),
        ([], 5000, False),
        (["root"], 5000, False),
        ([], 5001, True),
        ([], 0, False),
        (None, 5002, True),
    ],
)
def test_a_group_with_no_other_user_in_it_is_no_other(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    members: list[str] | None,
    gid: int,
    is_shared: bool,
) -> None:
    import grp
    import pwd

    def group_of(number: int) -> grp.struct_group:
        if members is None:
            raise KeyError(number)
        return grp.struct_group(("g", "x", number, members))

    monkeypatch.setattr(grp, "getgrgid", group_of)
    users = [
        pwd.struct_passwd((name, "x", uid, group, "", "", ""))
        for name, uid, group in (("root", 0, 0), ("bob", 7, 5001))
    ]
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    os.chown(place, 0, gid)
    place.chmod(0o775)
    assert bool(who_may_replace(place / "it")) == is_shared


def test_a_file_that_every_user_may_write_is_not_read_and_one_of_a_group_is(place: Path) -> None:
    for mode in (0o664, 0o600, 0o1777):
        (place / "it").chmod(mode)
        check_not_open(place / "it")
    (place / "it").chmod(0o646)
    with pytest.raises(
        InputError,
        match=r"it: every user may write to it \(mode 0646\), so it is not read; .*chmod o-w",
    ):
        check_not_open(place / "it")
