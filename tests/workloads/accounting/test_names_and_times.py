"""Numbers for names, the key file, wall clocks with daylight saving."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.errors import InputError, OutputError
from qbatch.workloads.accounting import swf_log
from qbatch.workloads.accounting.swf_log import numbers_of, read_or_make_key
from qbatch.workloads.accounting.times import WallClock, machine_zone, pbs_span, slurm_span

from .samples import BASE, Sample, imported, pbs_pro

KEY = bytes(range(32))


def test_without_a_key_by_first_appearance() -> None:
    assert numbers_of(["b", "", "a", "b"], "user") == {"b": 1, "a": 2}


@given(some=st.lists(st.text(max_size=5)), more=st.lists(st.text(max_size=5)))
def test_with_a_key_a_number_depends_on_the_name_alone(some: list[str], more: list[str]) -> None:
    first, later = numbers_of(some, "user", KEY), numbers_of(more + some, "user", KEY)
    assert {name: later[name] for name in first} == first
    assert len(set(later.values())) == len(later)
    assert all(1 <= number < 2**31 for number in later.values())


def test_other_keys_and_kinds_give_other_numbers() -> None:
    assert numbers_of(["ann"], "user", KEY) != numbers_of(["ann"], "user", KEY[::-1])
    assert numbers_of(["ann"], "user", KEY) != numbers_of(["ann"], "group", KEY)


def test_names_that_fall_on_one_number_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        swf_log, "_hash", lambda key, kind, name: b"\xff\xff\xff\xff" + name.encode()
    )
    assert numbers_of(["c", "b", "a"], "user", KEY) == {"a": 2**31 - 1, "b": 1, "c": 2}


def test_the_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    path = str(tmp_path / "key")
    key, is_new, is_open = read_or_make_key(path)
    assert (is_new, is_open, len(key), os.stat(path).st_mode & 0o777) == (True, False, 32, 0o600)
    assert read_or_make_key(path) == (key, False, False)
    os.chmod(path, 0o644)
    assert read_or_make_key(path) == (key, False, True)


@pytest.mark.parametrize("content", ["", "secret", "g" * 64, "a" * 63])
def test_a_file_that_is_no_key_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="line 1: is not a key"):
        read_or_make_key(str(path))
    with pytest.raises(OutputError, match="cannot be written"):
        read_or_make_key(str(tmp_path / "absent" / "key"))


def test_an_anonymous_log_holds_no_name(tmp_path: Path) -> None:
    jobs = [
        Sample(n, BASE + n, 1, 50, 1, 1, 60, True, f"person{n % 3}", "secretqueue")
        for n in range(1, 9)
    ]
    text = "".join(pbs_pro(job)[0] + "\n" for job in jobs)
    logs = [
        imported(tmp_path, "pbs", text, is_anonymous=True, key=KEY, has_anonymous_queues=True),
        imported(tmp_path, "pbs", text, is_anonymous=True),
    ]
    for done in logs:
        said = "\n".join(done.log.lines)
        assert not any(word in said for word in ("person", "staff", "job1", "head", "n0"))
    assert "secretqueue" not in "\n".join(logs[0].log.lines)
    assert "secretqueue" in "\n".join(logs[1].log.lines)
    assert len(set(logs[0].log.columns["user"].tolist())) == 3
    fewer = imported(
        tmp_path,
        "pbs",
        "".join(pbs_pro(job)[0] + "\n" for job in jobs[4:]),
        is_anonymous=True,
        key=KEY,
    )
    assert set(fewer.log.columns["user"].tolist()) == set(logs[0].log.columns["user"].tolist())
    assert fewer.log.columns["user"].tolist() == logs[0].log.columns["user"].tolist()[4:]


ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Africa/Casablanca",
    "America/St_Johns",
]


@given(at=st.integers(1, 4_000_000_000), zone=st.sampled_from(ZONES))
def test_an_instant_is_among_those_of_its_local_time(at: int, zone: str) -> None:
    local = datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(zone))
    clock = WallClock(ZoneInfo(zone))
    found = clock.of_iso(local.strftime("%Y-%m-%dT%H:%M:%S"))
    assert at in found
    assert found == clock.of_stamp(local.strftime("%m/%d/%Y %H:%M:%S"))
    back = [
        datetime.fromtimestamp(each, UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        for each in found
    ]
    assert back == [local.replace(tzinfo=None)] * len(found)


@given(
    minutes=st.integers(0, 24 * 60), zone=st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe"])
)
def test_gaps_and_folds_are_counted_as_an_enumeration_finds_them(minutes: int, zone: str) -> None:
    for day in (
        datetime(2024, 3, 31),
        datetime(2024, 10, 27),
        datetime(2024, 4, 7),
        datetime(2024, 10, 6),
    ):
        local = day + timedelta(minutes=minutes)
        begin = int((day - timedelta(days=1)).replace(tzinfo=UTC).timestamp())
        every = range(begin, begin + 3 * 86400, 60)
        real = [
            at
            for at in every
            if datetime.fromtimestamp(at, ZoneInfo(zone)).replace(tzinfo=None) == local
        ]
        clock = WallClock(ZoneInfo(zone))
        found = clock.of_iso(local.isoformat())
        assert (clock.gaps, clock.folds) == (len(real) == 0, len(real) == 2)
        assert list(found) == real or (not real and len(found) == 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-5",
        "Unknown",
        "2024-13-01T00:00:00",
        "2024-02-30T00:00:00",
        "2024-01-01",
        "9" * 40,
        "9999-12-31T23:59:59",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert WallClock(ZoneInfo("UTC")).of_iso(text) == ()


def test_spans() -> None:
    assert [
        slurm_span(text) for text in ("1-02:03:04", "02:03", "00:00:01.500", "-1", "", "9" * 12)
    ] == [
        93784,
        123,
        1.5,
        -1,
        -1,
        -1,
    ]
    assert [pbs_span(text) for text in ("1:02:03:04", "3600", "x", "1-02:03:04")] == [
        93784,
        3600,
        -1,
        -1,
    ]


def test_the_zone_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", ":Asia/Tokyo")
    zone, where = machine_zone()
    assert (zone.key, where) == ("Asia/Tokyo", "TZ")
    monkeypatch.setenv("TZ", "Nowhere/Land")
    assert machine_zone()[1] != "TZ"
