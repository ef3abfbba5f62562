"""The catalogue: whole, of one form, its checksums those of the files, its logs found by names as
people type them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qbatch.model.errors import InputError, UsageError
from qbatch.workloads import read_log
from qbatch.workloads.catalogue import CLEANED, KINDS, UNFILTERED, load_catalogue
from qbatch.workloads.catalogue.fetching import sha256_of
from tests.workloads.samples import public_log

CATALOGUE = load_catalogue()
KNOWN = [(entry, version) for entry in CATALOGUE.log for version in entry.version if version.sha256]


def test_every_entry_is_whole_and_of_one_form() -> None:
    assert CATALOGUE.schema == 1
    assert CATALOGUE.archive.startswith("https://")
    files = [version.file for entry in CATALOGUE.log for version in entry.version]
    assert len(set(files)) == len(files)
    for entry in CATALOGUE.log:
        assert re.fullmatch(r"l_[a-z0-9_]+", entry.folder)
        assert entry.version
        assert len({version.kind for version in entry.version}) == len(entry.version)
        for month in (entry.since, entry.until):
            assert month is None or re.fullmatch(r"(19|20)\d\d-(0[1-9]|1[0-2])", month)
        assert entry.since is None or entry.until is None or entry.since <= entry.until
        for version in entry.version:
            assert version.kind in KINDS
            assert version.file.endswith(".swf.gz")
            assert ("-cln" in version.file) == (version.kind == CLEANED)
            assert (version.sha256 is None) == (version.bytes is None)
            assert version.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", version.sha256)
        # The archive recommends the cleaned one where there is one.
        assert entry.version[0].kind == CLEANED or len(entry.version) == 1
        # What no source says is not there: only an address is known then.
        if entry.source == "address only":
            assert (entry.system, entry.processors, entry.since, entry.acknowledge) == (None,) * 4


@pytest.mark.parametrize(("entry", "version"), KNOWN, ids=[version.file for _, version in KNOWN])
def test_what_the_catalogue_says_of_a_log_that_is_at_hand_is_so(entry, version) -> None:
    path = Path(public_log(version.file.removesuffix(".swf.gz")))
    log = read_log(str(path))
    assert (sha256_of(path), path.stat().st_size) == (version.sha256, version.bytes)
    assert (len(log), log.header.max_procs) == (version.jobs, entry.processors)
    assert log.header.acknowledgements == (entry.acknowledge,)


@pytest.mark.parametrize(
    ("name", "found", "kind"),
    [
        ("KTH-SP2", "KTH-SP2", None),
        ("kth-sp2", "KTH-SP2", None),
        ("kth_sp2", "KTH-SP2", None),
        ("KTHSP2", "KTH-SP2", None),
        ("KTH-SP2-1996-2.1-cln.swf.gz", "KTH-SP2", CLEANED),
        ("kth-sp2-1996-2", "KTH-SP2", UNFILTERED),
        ("ctc-sp2-1995.swf", "CTC-SP2-1995", None),
        ("das2 fs3", "DAS2-fs3", None),
        ("SDSC-Par-1996", "SDSC-Par-1996", None),
    ],
)
def test_a_log_is_found_by_names_as_people_type_them(
    name: str, found: str, kind: str | None
) -> None:
    entry, chosen = CATALOGUE.find(name)
    assert (entry.name, chosen) == (found, kind)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("KTH", r"did you mean KTH-SP2\?"),
        ("KTH-SP3", r"did you mean KTH-SP2\?"),
        ("blue", r"no such log \(qbatch trace catalogue lists them\)|did you mean"),
        (
            "SDSC",
            r"did you mean SDSC-Par-1995 or SDSC-Par-1996 or SDSC-SP2 or SDSC-BLUE or SDSC-DS\?",
        ),
        ("", r"'': the catalogue has no such log \(qbatch trace catalogue lists them\)"),
        ("../etc/passwd", r"no such log"),
    ],
)
def test_a_name_that_no_log_has_is_refused_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        CATALOGUE.find(name)


def test_a_version_that_the_catalogue_does_not_know_is_refused() -> None:
    entry, _ = CATALOGUE.find("HPC2N")
    assert entry.chosen(None).kind == entry.chosen(CLEANED).kind == CLEANED
    with pytest.raises(
        UsageError,
        match="HPC2N: the catalogue knows no unfiltered version of it; there is: cleaned",
    ):
        entry.chosen(UNFILTERED)


def test_a_log_that_is_no_file_but_public_is_pointed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InputError,
        match=r"log 'kth-sp2': no such file; it is a public log: qbatch trace get KTH-SP2 fetches",
    ):
        read_log("kth-sp2")
    (tmp_path / "mine.swf").touch()
    with pytest.raises(InputError, match=r"no such file; did you mean 'mine.swf'\?"):
        read_log("mein.swf")
