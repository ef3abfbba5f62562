"""Machine files: what they mean, and what is said of a bad one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.errors import InputError
from qbatch.model.machine import Host, Machine, expand_names, one_host, parse_machine, parse_memory

ORIGIN = """
schema = 1
single_host = true
[[host]]
name = "eir"
cpus = 128
memory = "64GB"
[[host]]
name = "n[01-03]"
cpus = 64
memory = "512 MiB"
pool = "small"
[[class]]
name = "vst_sj"
procs = 8
memory = "2GB"
time = 19800
per_host = 3
reserve_wait = 43200
hosts = ["eir"]
"""


def test_a_machine_file_is_read_whole() -> None:
    machine = parse_machine(ORIGIN, "origin.toml")
    assert [host.name for host in machine.hosts] == ["eir", "n01", "n02", "n03"]
    assert machine.hosts[1] == Host("n01", 64, 512 * 2**20, "small")
    assert (machine.procs, machine.widest_job, machine.single_host, machine.counts_memory) == (320, 128, True, True)
    (job_class,) = machine.classes
    assert (job_class.procs, job_class.memory, job_class.time) == (8, 2 * 2**30, 19_800_000_000)
    assert (job_class.reserve_wait, job_class.per_host, job_class.hosts) == (43_200_000_000, 3, ("eir",))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("schema = 1", "schema = 2"), "line 2, key 'schema': must be 1"),
        (("single_host = true", 'single_host = "yes"'), "line 3, key 'single_host': must be true or false"),
        (("cpus = 64", "cpus = 0"), "line 10, key 'cpus': 0 is not a whole number from 1"),
        (("cpus = 64", "cpus = 6.5"), "line 10, key 'cpus': 6.5 is not a whole number"),
        (("cpus = 64", "cpu = 64"), "line 10, key 'cpu': is not known in .*did you mean 'cpus'"),
        (('"64GB"', '"64 buckets"'), "line 7, key 'memory': '64 buckets' is no memory size"),
        (("n[01-03]", "n[03-01]"), "line 9, key 'name': .*runs backwards"),
        (("n[01-03]", "n[01"), "line 9, key 'name': .*not closed"),
        (("n[01-03]", "eir"), "the host 'eir' is there twice"),
        (('hosts = ["eir"]', 'hosts = ["eri"]'), "line 20, key 'hosts': there is no host 'eri'; did you mean 'eir'"),
        (("single_host = true", ""), "counts only where a job stays inside one host"),
        (("[[host]]", "[[hosts]]"), "key 'hosts': is not known; did you mean 'host'"),
        (("[[host]]", "[host]"), "TOML|array of tables"),
        (("schema = 1", "schema = "), "not valid TOML"),
    ],
)
def test_a_bad_machine_file_is_refused_with_key_line_and_reason(change: tuple[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        parse_machine(ORIGIN.replace(*change), "origin.toml")
    assert str(error.value).startswith("origin.toml: ")
    assert "\n" not in str(error.value)


def test_no_host_is_no_machine() -> None:
    with pytest.raises(InputError, match="there is no host"):
        parse_machine("schema = 1", "empty.toml")


@pytest.mark.parametrize(
    ("text", "size"), [(7, 7), ("7", 7), ("1kb", 1024), ("1.5 GiB", 3 * 2**29), ("2T", 2**41), ("64GB", 64 * 2**30)]
)
def test_memory_is_in_binary_units(text: object, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1", -1, True, None, "1 2", "1XB", 1.5])
def test_what_is_no_memory_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="memory"):
        parse_memory(text)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 4))
def test_a_range_of_names_keeps_its_zeros(low: int, more: int, width: int) -> None:
    names = expand_names(f"n[{low:0{width}}-{low + more:0{width}}]x")
    assert names == [f"n{number:0{width}}x" for number in range(low, low + more + 1)]


def test_names_multiply_and_are_limited() -> None:
    assert expand_names("r[1-2]n[1,3-4]") == ["r1n1", "r1n3", "r1n4", "r2n1", "r2n3", "r2n4"]
    with pytest.raises(ValueError, match="more than"):
        expand_names("a[1-1000]b[1-1000]")


def test_when_processors_alone_decide() -> None:
    assert one_host(8).is_one_pool
    assert Machine((Host("a", 2), Host("b", 2))).is_one_pool
    assert not Machine((Host("a", 2), Host("b", 2)), single_host=True).is_one_pool
    assert not Machine((Host("a", 2, 5),)).is_one_pool
