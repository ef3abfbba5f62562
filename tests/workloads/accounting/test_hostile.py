"""Lines that no system wrote: nothing fails but with a message, and the good records around them
are kept."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qbatch.model.errors import InputError, UsageError
from qbatch.workloads.accounting.importing import accounting_files, lines_of

from .samples import BASE, SACCT_HEADER, Sample, column, imported, pbs_pro, reasons, slurm, torque

GOOD = Sample(1, BASE, 10, 90, 1, 4, 3600, True, "ann", "q")
PBS = (torque(GOOD)[2] + "\n").encode()
SLURM = (SACCT_HEADER + "\n" + slurm(GOOD)[0] + "\n").encode()


def changed(old: str, new: str) -> bytes:
    line = torque(Sample(2, BASE, 10, 90, 1, 4, 3600, True, "bob", "q"))[2]
    assert old in line
    return (line.replace(old, new) + "\n").encode()


@pytest.mark.parametrize(
    ("junk", "reason"),
    [
        (b"\x00\xff\xfe\x01 binary\n", "not an accounting record"),
        (b"\x00" * 100 + b"\n", "not an accounting record"),
        (b"x" * 1_000_000 + b"\n", "not an accounting record"),
        (
            b"11/14/2023 22:13:20;E;" + b"9" * 1_000_000 + b";x=1\n",
            "the job identifier is not one of PBS",
        ),
        (b"11/14/2023 22:13:20;E;9.head;" + b"a=b " * 250_000 + b"\n", None),
        (b"13/45/2023 22:13:20;E;9.head;user=x\n", "the time of the record is not a time"),
        (b"11/14/2023 99:99:99;E;9.head;user=x\n", "the time of the record is not a time"),
        (b"11/14/0000 22:13:20;E;9.head;user=x\n", "the time of the record is not a time"),
        (changed(f"end={BASE + 100}", f"end={BASE + 5}"), "ends before it starts"),
        (
            changed(f"ctime={BASE} qtime={BASE} etime={BASE}", "ctime=-5"),
            "without a time of submission",
        ),
        (
            changed("exec_host=n0/0+n0/1+n0/2+n0/3", "exec_host=n0/0*0").replace(b"1:ppn=4", b"0"),
            "without processors",
        ),
        (changed(f"start={BASE + 10}", "start=-7"), None),
        (changed(f"start={BASE + 10}", "start=" + "9" * 5000), None),
        (
            torque(Sample(2, BASE, 10, 90, 1, 4, 9, True, "b", "q"))[2][:-30].encode(),
            "the line is cut short",
        ),
    ],
)
def test_a_hostile_record_is_counted_with_its_place_and_costs_nothing_else(
    tmp_path: Path, junk: bytes, reason: str | None
) -> None:
    done = imported(tmp_path, "pbs", PBS + junk)
    assert column(done, "run")[0] == 90
    if reason is not None:
        unusable = done.document["unusable"]
        assert [each["count"] for each in unusable] == [1]
        assert unusable[0]["reason"].startswith(reason)
        assert unusable[0]["first"] == f"{tmp_path}/part0:2"
        assert len(column(done, "job")) == 1


def test_a_start_before_the_submission_is_mended_and_reported(tmp_path: Path) -> None:
    done = imported(tmp_path, "pbs", changed(f"ctime={BASE}", f"ctime={BASE + 50}"))
    assert column(done, "wait") == [0]
    assert sum(reasons(done, "adjusted").values()) == 1


@pytest.mark.parametrize("form", ["pbs", "slurm"])
def test_carriage_returns_compression_and_byte_order_marks(tmp_path: Path, form: str) -> None:
    good = PBS if form == "pbs" else SLURM
    for content in (
        good.replace(b"\n", b"\r\n"),
        gzip.compress(good),
        b"\xef\xbb\xbf" + good,
        b"\n\n" + good + b"  \n",
    ):
        done = imported(tmp_path, form, content)
        assert (column(done, "run"), done.document["unusable"]) == ([90], [])


def test_a_line_of_more_than_16_mib_is_not_kept_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"a" * (40 << 20) + b"\n" + PBS)
    found = list(lines_of(str(path)))
    assert [line.is_whole for line in found] == [False, True]
    assert max(len(line.text) for line in found) < 20 << 20


@pytest.mark.parametrize("form", ["pbs", "slurm"])
@given(
    junk=st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
            st.tuples(
                st.sampled_from(["E", "S", "Q", "R", "D", "A", "z", "r", "L", "X", "ZZ"]),
                st.sampled_from(["1.head", "1[].head", "1[2].head", "x", "R7.h", ""]),
                st.lists(
                    st.tuples(
                        st.sampled_from(
                            [
                                "ctime",
                                "start",
                                "end",
                                "exec_host",
                                "exec_vnode",
                                "Resource_List.select",
                                "user",
                            ]
                        ),
                        st.one_of(st.integers().map(str), st.text(max_size=8), st.just(str(BASE))),
                    ),
                    max_size=6,
                ),
            ).map(
                lambda made: (
                    f"11/14/2023 22:13:20;{made[0]};{made[1]};"
                    + " ".join(f"{name}={value}" for name, value in made[2])
                ).encode("utf-8", "surrogatepass")
            ),
            st.lists(st.sampled_from(slurm(GOOD)[0].split("|")), min_size=22, max_size=22).map(
                lambda fields: "|".join(fields).encode()
            ),
        ),
        max_size=12,
    )
)
@example(junk=[b"11/14/2023 22:13:20;E;2.h;start=5 end=9 exec_host=n/0*99999999999999999999"])
def test_nothing_fails_and_no_good_job_is_lost(form: str, junk: list[bytes]) -> None:
    good = torque(Sample(77_777, BASE, 10, 123, 1, 4, 3600, True, "ann", "q"))[2] + "\n"
    head = b""
    if form == "slurm":
        good = slurm(Sample(77_777, BASE, 10, 123, 1, 4, 3600, True, "ann", "q"))[0] + "\n"
        head = f"{SACCT_HEADER}\n".encode()
    clean = [line.replace(b"JobID", b"").replace(b"\n", b"") for line in junk]
    with tempfile.TemporaryDirectory() as folder:
        done = imported(Path(folder), form, head + b"\n".join(clean) + b"\n" + good.encode())
    assert 123 in column(done, "run")
    counts = done.document["jobs"]
    assert counts["written"] == counts["ran"] + counts["never_ran"] == len(column(done, "job"))
    assert all(wait >= 0 for wait in column(done, "wait"))
    assert all("\n" not in line for line in done.log.lines)


def test_directories_are_their_files_in_order(tmp_path: Path) -> None:
    for day in ("20231115", "20231114", ".hidden"):
        (tmp_path / day).write_text("x", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    assert [Path(path).name for path in accounting_files([str(tmp_path)])] == [
        "20231114",
        "20231115",
    ]
    with pytest.raises(InputError, match="named twice"):
        accounting_files([str(tmp_path), str(tmp_path / "20231114")])
    with pytest.raises(InputError, match="holds no file"):
        accounting_files([str(tmp_path / "sub")])


def test_a_zone_that_is_none_and_bounds_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'Europe/Berlin'"):
        imported(tmp_path, "pbs", PBS, timezone="Europe/Berln")
    with pytest.raises(UsageError, match="--from 'soon'"):
        imported(tmp_path, "pbs", PBS, since="soon")
    with pytest.raises(InputError, match="--unit nodes: no record has"):
        imported(
            tmp_path,
            "pbs",
            pbs_pro(GOOD)[0].replace("exec_", "x_").replace("nodect", "y").replace("select", "z")
            + "\n",
            unit="nodes",
        )
