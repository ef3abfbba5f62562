"""Machine files: what they mean, and what is said of a bad one."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.errors import InputError
from qbatch.model.job_class import JobClass
from qbatch.model.machine import (
    Host,
    Machine,
    Partition,
    expand_names,
    fold_names,
    memory_text,
    one_host,
    parse_memory,
)
from qbatch.model.machine_file import machine_as_toml, parse_machine
from qbatch.workloads.machines import load_machine

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
    assert (machine.procs, machine.widest_job, machine.single_host, machine.counts_memory) == (
        320,
        128,
        True,
        True,
    )
    (job_class,) = machine.classes
    assert (job_class.procs, job_class.memory, job_class.time) == (8, 2 * 2**30, 19_800_000_000)
    assert (job_class.reserve_wait, job_class.per_host, job_class.hosts) == (
        43_200_000_000,
        3,
        ("eir",),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("schema = 1", "schema = 3"), "line 2, key 'schema': must be 1 or 2"),
        (
            ("single_host = true", 'single_host = "yes"'),
            "line 3, key 'single_host': must be true or false",
        ),
        (("cpus = 64", "cpus = 0"), "line 10, key 'cpus': 0 is not a whole number from 1"),
        (("cpus = 64", "cpus = 6.5"), "line 10, key 'cpus': 6.5 is not a whole number"),
        (("cpus = 64", "cpu = 64"), "line 10, key 'cpu': is not known in .*did you mean 'cpus'"),
        (('"64GB"', '"64 buckets"'), "line 7, key 'memory': '64 buckets' is not a memory size"),
        (("n[01-03]", "n[03-01]"), "line 9, key 'name': .*runs backwards"),
        (("n[01-03]", "n[01"), "line 9, key 'name': .*not closed"),
        (("n[01-03]", "eir"), "line 9, key 'name': the host 'eir' appears twice"),
        (
            ('hosts = ["eir"]', 'hosts = ["eri"]'),
            "line 20, key 'hosts': there is no host or pool 'eri'; did you mean 'eir'",
        ),
        (
            ("single_host = true", ""),
            "line 7, key 'memory': counts only if a job stays inside one host",
        ),
        (("cpus = 64\n", ""), "line 8, key 'host': the host .*needs cpus"),
        (('name = "n[01-03]"\n', ""), "line 8, key 'host': needs a name"),
        (("cpus = 64", "cpus = 128.5"), "line 10, key 'cpus': 128.5 is not"),
        (('"512 MiB"', '"64GBs"'), "line 11, key 'memory': '64GBs' is not a memory size"),
        (('pool = "small"', "pool = 3"), "line 12, key 'pool': 3 is not a text; put it in quotes"),
        (("schema = 1", "schema = 1\nname = 3"), "line 3, key 'name': 3 is not a text"),
        (
            ("per_host = 3", "per_host = 0"),
            "line 18, key 'per_host': 0 is not a whole number from 1",
        ),
        (("per_host = 3", "limit = 0"), "line 18, key 'limit': 0 is not a whole number from 1"),
        (
            ("per_host = 3", "per_user = 0"),
            "line 18, key 'per_user': 0 is not a whole number from 1",
        ),
        (
            ("schema = 1", "schema = 1\nper_user = 0"),
            "line 3, key 'per_user': 0 is not a whole number from 1",
        ),
        (
            ("time = 19800", 'time = "10:00"'),
            "line 17, key 'time': '10:00' is not a whole number of seconds from 1",
        ),
        (
            ("[[class]]", "[class]"),
            r"line 13, key 'class': must be an array.*; write \[\[class\]\] in place of \[class\]",
        ),
        (("[[host]]", "[[hosts]]"), "key 'hosts': is not known; did you mean 'host'"),
        (("[[host]]", "[host]"), "TOML|array of tables"),
        (("schema = 1", "schema = "), "not valid TOML"),
    ],
)
def test_a_bad_machine_file_is_refused_with_key_line_and_reason(
    change: tuple[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        parse_machine(ORIGIN.replace(*change), "origin.toml")
    assert str(error.value).startswith("origin.toml: ")
    assert "\n" not in str(error.value)


PAIRED = """
schema = 1
single_host = true
per_user = 3
[[host]]
name = "n[1-2]"
cpus = 8
serves = ["large", "small"]
limits = { large = 3, small = 4 }
[[class]]
name = "short"
kind = "time"
cpu_time = 3600
time = 4000
reserve_wait = 60
goes_first = true
[[class]]
name = "long"
kind = "time"
limit = 20
[[class]]
name = "small"
kind = "size"
procs = 2
memory = "512MB"
[[class]]
name = "large"
kind = "size"
procs = 8
memory = "1GB"
"""


def test_classes_of_two_kinds_and_limits_of_hosts_are_read() -> None:
    machine = parse_machine(PAIRED, "paired.toml")
    assert machine.per_user == 3
    for host in machine.hosts:
        assert (host.serves, host.limits) == (("large", "small"), (("large", 3), ("small", 4)))
    short, long, small, _ = machine.classes
    assert (short.kind, short.cpu_time, short.time, short.goes_first) == (
        "time",
        3_600_000_000,
        4_000_000_000,
        True,
    )
    assert (long.limit, long.goes_first, small.kind, small.procs) == (20, False, "size", 2)
    names = [pair.name for pair in machine.class_pairs]
    assert names == ["short_small", "long_small", "short_large", "long_large"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("per_user = 3", "per_user = -1"),
            "line 4, key 'per_user': -1 is not a whole number from 1",
        ),
        (
            ('["large", "small"]', '["larg"]'),
            "line 8, key 'serves': there is no class 'larg'; did you mean 'large'",
        ),
        (('["large", "small"]', '"large"'), "line 8, key 'serves': must be a list of names"),
        (("{ large = 3", "{ huge = 3"), "line 9, key 'limits': there is no class 'huge'"),
        (
            ("{ large = 3", "{ large = -3"),
            "line 9, key 'limits': large = -3 is not a whole number from 0",
        ),
        (
            ("{ large = 3", "{ large = true"),
            "line 9, key 'limits': large = True is not a whole number",
        ),
        (
            ("limits = { large = 3, small = 4 }", "limits = 3"),
            "line 9, key 'limits': must be a table",
        ),
        (
            ('kind = "time"', 'kind = "tme"'),
            "line 12, key 'kind': 'tme' is not a kind of class; use one of time, size",
        ),
        (
            ("goes_first = true", "goes_first = 1"),
            "line 16, key 'goes_first': must be true or false",
        ),
        (
            ("cpu_time = 3600", "procs = 2"),
            "key 'procs': bounds no class of the kind 'time'; leave it out of 'short'",
        ),
        (
            ("procs = 2", "reserve_wait = 2"),
            "key 'reserve_wait': bounds no class of the kind 'size'",
        ),
        (
            ('kind = "size"', ""),
            "key 'kind': classes are all plain, or each is of the kind time or size",
        ),
        (
            ('name = "long"', 'name = "short"'),
            "line 18, key 'name': the class 'short' appears twice",
        ),
        (
            ("limit = 20", "time = 4000\ncpu_time = 3600"),
            "line 18, key 'name': no job can be in the class 'long': 'short'",
        ),
        (
            ('["large", "small"]', '["small", "short"]'),
            "line 8, key 'serves': 'short' is a time class; .*small, large",
        ),
        (
            ("procs = 8", "procs = 1"),
            "line 27, key 'name': the class 'large' is below 'small': smallest first",
        ),
        (
            ('memory = "512MB"', ""),
            "key 'name': the class 'large' is below 'small': smallest first",
        ),
        (
            ("limit = 20", "time = 3000"),
            "line 18, key 'name': the class 'long' is below 'short': smallest first",
        ),
    ],
)
def test_bad_classes_and_limits_are_refused_with_key_line_and_reason(
    change: tuple[str, str], message: str
) -> None:
    assert change[0] in PAIRED
    with pytest.raises(InputError, match=message) as error:
        parse_machine(PAIRED.replace(*change), "paired.toml")
    assert str(error.value).startswith("paired.toml: ")
    assert "\n" not in str(error.value)


PLAIN = """
schema = 1
[[host]]
name = "a"
cpus = 8
[[class]]
name = "narrow"
procs = 4
[[class]]
name = "quick"
time = 60
[[class]]
name = "any"
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ('name = "any"', 'name = "quick"\nprocs = 8'),
            "line 13, key 'name': the class 'quick' appears twice",
        ),
        (
            ("procs = 4", "limit = 4"),
            "line 10, key 'name': no job can be in the class 'quick': 'narrow' comes before",
        ),
        (
            ('name = "any"', 'name = "any"\nprocs = 4\ntime = 9'),
            "line 13, key 'name': no job .*'any': 'narrow'",
        ),
        (
            ('name = "any"', 'name = "any"\ntime = 60'),
            "line 13, key 'name': no job .*'any': 'quick'",
        ),
        (
            ('name = "any"', 'name = "any"\nkind = "time"'),
            "line 6, key 'kind': classes are all plain",
        ),
    ],
)
def test_plain_classes_that_no_job_can_be_in_are_refused(
    change: tuple[str, str], message: str
) -> None:
    assert len(parse_machine(PLAIN, "plain.toml").classes) == 3
    with pytest.raises(InputError, match=message):
        parse_machine(PLAIN.replace(*change), "plain.toml")


@given(st.lists(st.tuples(*[st.none() | st.integers(1, 4)] * 3), min_size=1, max_size=4))
def test_a_class_is_refused_exactly_where_no_job_is_in_it(
    bounds: list[tuple[int | None, ...]],
) -> None:
    """The oracle: every job of a small grid is put in its class.  (The grid has a value above every
    bound.)"""
    tables = "".join(
        f'[[class]]\nname = "c{place}"\n'
        + "".join(
            f"{key} = {value}\n"
            for key, value in zip(("procs", "memory", "time"), row, strict=True)
            if value
        )
        for place, row in enumerate(bounds)
    )
    text = f'schema = 1\nsingle_host = true\n[[host]]\nname = "a"\ncpus = 8\n{tables}'
    machine = Machine(
        (Host("a", 8),),
        classes=tuple(
            JobClass(f"c{place}", procs, memory, time and time * 1_000_000)
            for place, (procs, memory, time) in enumerate(bounds)
        ),
    )
    grid = itertools.product(range(1, 6), range(1, 6), range(1, 6))
    pairs = [machine.class_of(procs, memory, time * 1_000_000) for procs, memory, time in grid]
    reached = {pair.name for pair in pairs if pair is not None}
    try:
        assert len(parse_machine(text, "drawn.toml").classes) == len(reached)
    except InputError:
        assert len(reached) < len(bounds)


def test_no_host_is_no_machine() -> None:
    with pytest.raises(InputError, match="there is no host"):
        parse_machine("schema = 1", "empty.toml")


@pytest.mark.parametrize(
    ("text", "size"),
    [(7, 7), ("7", 7), ("1kb", 1024), ("1.5 GiB", 3 * 2**29), ("2T", 2**41), ("64GB", 64 * 2**30)],
)
def test_memory_is_in_binary_units(text: object, size: int) -> None:
    assert parse_memory(text) == size


@given(st.integers(0, 2**60) | st.integers(0, 2**20).map(lambda amount: amount * 2**20))
def test_a_memory_size_in_words_is_read_as_itself(size: int) -> None:
    text = memory_text(size)
    assert text.endswith("B") or text == "0"
    whole = int(text.strip("KMGTB"))
    # Above which a size with a unit is not read to the byte.
    assert parse_memory(text) == size or whole > 2**53
    assert [memory_text(each) for each in (0, 1000, 3 * 2**19, 2**36)] == [
        "0",
        "1000B",
        "1536KB",
        "64GB",
    ]


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


def test_the_example_of_the_manual_is_a_machine_file() -> None:
    manual = (
        Path(__file__).resolve().parents[2] / "docs" / "reference" / "machine-file.md"
    ).read_text(encoding="utf-8")
    example, site, decided = re.findall(r"```toml\n(.*?)```", manual, re.DOTALL)
    assert parse_machine(site, "site").server == 16
    assert parse_machine(decided, "decided").site is not None
    machine = parse_machine(example, "machine.md")
    assert (len(machine.hosts), machine.hosts[-1].limits, machine.per_user) == (
        65,
        (("short", 4),),
        3,
    )
    found = machine.class_of(8, 2 * 2**30, 18_000_000_000)
    assert found is not None
    assert found.name == "short"


GPUS = """schema = 1
single_host = true

[[host]]
name = "n[1-2]"
cpus = 8
resources = { gpu = 2, nvme = 1 }

[[host]]
name = "big"
cpus = 64
resources = { fpga = 3 }
"""


def test_named_resources_are_read_and_written() -> None:
    machine = parse_machine(GPUS, "m.toml")
    assert machine.resources == ("gpu", "nvme", "fpga")
    assert [machine.amounts(host.resources) for host in machine.hosts] == [
        (2, 1, 0),
        (2, 1, 0),
        (0, 0, 3),
    ]
    assert machine.there == [[8, 8, 64], [0, 0, 0], [2, 2, 0], [1, 1, 0], [0, 0, 3]]
    assert not machine.is_one_pool
    assert not machine.spans_hosts
    assert parse_machine("\n".join(machine_as_toml(machine)), "again") == machine
    alone = (
        GPUS.replace("single_host = true", "").split("[[host]]")[0]
        + "[[host]]"
        + GPUS.split("[[host]]")[2]
    )
    assert parse_machine(alone, "m.toml").resources == ("fpga",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("{ gpu = 2, nvme = 1 }", "2"),
            "line 7, key 'resources': must be a table of a number for each name",
        ),
        (("gpu = 2", "gpu = -2"), "line 7, key 'resources': gpu = -2 is not a whole number from 0"),
        (("gpu = 2", "gpu = true"), "line 7, key 'resources': gpu = True is not a whole number"),
        (("gpu = 2", "gpu = 2.5"), "line 7, key 'resources': gpu = 2.5 is not a whole number"),
        (
            ("gpu = 2", '"gpu:a100" = 2'),
            (
                "line 7, key 'resources': 'gpu:a100' is not a name; .*a type, such as gpu:a100, "
                "needs schema = 2"
            ),
        ),
        (
            ("gpu = 2", "ncpus = 2"),
            r"line 7, key 'resources': 'ncpus' has a key of its own; write cpus = \.\.\.",
        ),
        (
            ("single_host = true", ""),
            "line 7, key 'resources': count only if .* write single_host = true",
        ),
        (
            ("resources = { f", "resource = { f"),
            "line 12, key 'resource': is not known in .*; did you mean 'resources'",
        ),
    ],
)
def test_bad_resources_are_refused_with_key_line_and_reason(
    change: tuple[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        parse_machine(GPUS.replace(*change), "m.toml")


def test_the_digest_of_a_machine_without_resources_is_what_it_was_before_there_were_any() -> None:
    assert load_machine("origin2000").digest == "752bcc32173ae90e"
    assert one_host(128).digest == "dc0d3376c7a23500"
    machine = Machine(
        (Host("a", 4, memory=9, pool="x"), Host("b", 4)), single_host=True, per_user=3
    )
    assert machine.digest == "008aca9fe240f7b4"
    more = Machine(
        (Host("a", 4, memory=9, pool="x", resources=(("gpu", 1),)), Host("b", 4)),
        single_host=True,
        per_user=3,
    )
    assert more.digest != machine.digest


SITE = """schema = 2
name = "site"
[[host]]
name = "c[1-2]"
cpus = 8
memory = "16GB"
features = ["ib"]
[[host]]
name = "g1"
cpus = 16
memory = "64GB"
resources = { "gpu:a100" = 4, nvme = 1 }
features = ["ib", "nvme"]
[[partition]]
name = "cpu"
hosts = ["c[1-2]"]
default = true
[[partition]]
name = "all"
hosts = ["all"]
"""


def test_the_second_schema_has_features_partitions_and_types() -> None:
    machine = parse_machine(SITE, "m.toml")
    assert machine.chunked
    assert not machine.is_one_pool
    assert [host.features for host in machine.hosts] == [("ib",), ("ib",), ("ib", "nvme")]
    assert machine.partitions == (
        Partition("cpu", (0, 1), is_default=True),
        Partition("all", (0, 1, 2)),
    )
    assert dict(machine.hosts[2].resources) == {"gpu": 4, "gpu:a100": 4, "nvme": 1}
    assert parse_machine("\n".join(machine_as_toml(machine)), "again") == machine
    alone = parse_machine(SITE.replace("schema = 2", "schema = 2\nsingle_host = true"), "m.toml")
    assert alone.single_host
    assert not alone.chunked


def test_the_digest_of_a_machine_without_partitions_is_as_before_there_were_any() -> None:
    assert one_host(128).digest == "dc0d3376c7a23500"
    assert (
        parse_machine(SITE, "m.toml").digest
        != parse_machine(SITE.replace('features = ["ib"]', ""), "m.toml").digest
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('features = ["ib"]', 'features = "ib"'), "line 7, key 'features': must be a list"),
        (('features = ["ib"]', 'features = ["i b"]'), "line 7, key 'features': 'i b' is not a"),
        (('name = "all"', 'name = "cpu"'), "the partition 'cpu' appears twice"),
        (('name = "all"', 'name = "a l"'), "key 'partition': needs a name without blanks"),
        (('hosts = ["all"]', "hosts = []"), "key 'hosts': must be a list of hosts"),
        (('hosts = ["all"]', 'hosts = ["d1"]'), "key 'hosts': there is no host 'd1'"),
        (('hosts = ["all"]', 'hosts = ["c[1-"]'), "key 'hosts': .*bracket is not closed"),
        (('hosts = ["all"]', 'hosts = ["all"]\ndefault = true'), "another default partition"),
        (('hosts = ["all"]', 'hosts = ["all"]\ntimes = 3'), "key 'times': must be a table"),
        (("nvme = 1 }", "gpu = 2 }"), "a host has gpu of one type"),
        (("nvme = 1 }", '"gpu:v100" = 2 }'), "a host has gpu of one type"),
        (("schema = 2", "schema = 1"), "key 'partition': is not known"),
    ],
)
def test_a_bad_file_of_the_second_schema_is_refused(change: tuple[str, str], message: str) -> None:
    assert change[0] in SITE
    with pytest.raises(InputError, match=message):
        parse_machine(SITE.replace(*change), "m.toml")


@given(
    st.lists(
        st.builds(
            "{}{}".format,
            st.sampled_from(("n", "rack1n", "")),
            st.one_of(st.integers(0, 12), st.sampled_from(("", "007", "008", "09", "10", "x"))),
        ).filter(bool)
    )
)
def test_folded_names_are_the_names_again(names: list[str]) -> None:
    folded = fold_names(names)
    assert [name for pattern in folded for name in expand_names(pattern)] == names


def test_names_are_folded_into_ranges() -> None:
    names = [*(f"n{number:02d}" for number in range(8, 13)), "login", "n13", "n15"]
    assert fold_names(names) == ["n[08-12]", "login", "n13", "n15"]
    assert fold_names(["n9", "n10", "n11"]) == ["n[9-11]"]
