from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.wire.errors import CODES
from qbatch.wire.resource_rules import refused_resource
from qbatch.wire.resource_values import ResourceFault
from qbatch.wire.resources import (
    check_resources,
    format_duration,
    format_size,
    listed_resources,
    parse_demand,
    parse_duration,
    parse_nodes,
    parse_place,
    parse_resources,
    parse_select,
    parse_size,
    split_list,
    whole_walltime,
)

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 60),
        ("0:2:0", 120),
        ("0:5:0", 300),
        ("01:00", 60),
        ("1:00:00", 3600),
        ("1:0:0:0", 86400),
        ("1.5", 1.5),
    ],
)
def test_times_as_the_clients_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds * SECOND


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("100mb", 100 << 20),
        ("1177MB", 1177 << 20),
        ("512K", 512 << 10),
        ("953674K", 953674 << 10),
        ("14GB", 14 << 30),
        ("13MB", 13 << 20),
        ("1000kB", 1000 << 10),
        ("1234B", 1234),
        ("8gb", 8 << 30),
        ("2kw", 2 << 13),
        ("5", 5),
    ],
)
def test_sizes_as_the_clients_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@given(st.integers(0, 10**15))
def test_a_size_is_shown_with_a_unit_of_at_least_a_kilobyte_and_loses_nothing(size: int) -> None:
    shown = format_size(size)
    assert re.fullmatch(r"[0-9]+(kb|mb|gb|tb)", shown)
    assert 0 <= parse_size(shown) - size < 1024


@given(st.integers(0, 10**9))
def test_a_duration_goes_round(seconds: int) -> None:
    shown = format_duration(seconds * SECOND)
    assert re.fullmatch(r"\d{2,}:\d\d:\d\d", shown)
    assert parse_duration(shown) == seconds * SECOND


def refused(text: str) -> str:
    """Return the exit code and the words of OpenPBS with which an argument of ``-l`` is refused."""
    try:
        check_resources(parse_resources(text))
    except ResourceFault as fault:
        return f"{CODES[fault.code][0] % 256}: {str(fault).partition(': ')[0]}"
    return ""


def test_values_are_refused_in_the_words_of_openpbs() -> None:
    illegal = "166: Illegal attribute or resource value"
    for text, words in (
        ("mem=4.5gb", f"{illegal} Resource_List.mem"),
        ("mem=4GiB", f"{illegal} Resource_List.mem"),
        ("pmem=-1", f"{illegal} Resource_List.pmem"),
        ("vmem=1 gb", ""),
        ("walltime=1:00:00:00", f"{illegal} Resource_List.walltime"),
        ("cput=abc", f"{illegal} Resource_List.cput"),
        ("Walltime=:30", f"{illegal} Resource_List.walltime"),
        ("ncpus=-1", f"{illegal} Resource_List.ncpus"),
        ("ncpus=1.5", f"{illegal} Resource_List.ncpus"),
        ("ncpus", f"{illegal} Resource_List.ncpus"),
        ("nice=five", f"{illegal} Resource_List.nice"),
        ("accelerator=maybe", f"{illegal} Resource_List.accelerator"),
        ("place=foo", f"{illegal} Resource_List.place"),
        ("place=pack:scatter", f"{illegal} Resource_List.place"),
        ("nodes=2:ppn=x", f"{illegal} Resource_List.nodes"),
        ("select=0", illegal),
        ("select=", f"{illegal} Resource_List.select"),
        ("select=fast", f"{illegal} Resource_List.select"),
        ("select=1:ncpus=-1", f"{illegal} select.ncpus"),
        ("select=1:mem=lots", f"{illegal} select.mem"),
        ("select=1++2", "241: node(s) specification error Resource_List.select"),
        (
            "select=1:ncpus=2:NCPUS=3",
            "12: duplicated resource within a section of a select specification, resource is",
        ),
        ("select=1,nodes=1", "6: Cannot be used with select or place"),
        ("nodes=1,place=pack", "6: Cannot be used with select or place"),
        ("walltime,mem=,nice=-5,NCPUS=2,select=", f"{illegal} Resource_List.select"),
        ("walltime,mem=,nice=-5,NCPUS=2,software=a", ""),
        ("select=2:+1:ncpus=0+0,walltime=1:", ""),
        ("", ""),
    ):
        if " " in text:
            with pytest.raises(ValueError, match="not of the form name=value"):
                parse_resources(text)
            continue
        assert refused(text) == words, text


def test_sums_are_written_as_openpbs_writes_them() -> None:
    for text, shown in (
        ("select=2:mem=512mb+1:mem=1gb", "mem 2048mb, ncpus 3, nodect 3"),
        ("select=2:mem=512mb", "mem 1024mb, ncpus 2, nodect 2"),
        ("select=1:mem=100+1:mem=1gb", "mem 1048577kb, ncpus 2, nodect 2"),
        ("select=1:ncpus=0", "ncpus 0, nodect 1"),
        ("select=2:ncpus=3:mpiprocs=2+1:ncpus=1", "mpiprocs 4, ncpus 7, nodect 3"),
        ("nodes=1:ppn=2+2:ppn=1", "mpiprocs 2, ncpus 4, nodect 3"),
        ("mem=1234,vmem=2gw", "mem 1234b, ncpus 1, nodect 1, vmem 2gw"),
        ("pmem=1gb", "ncpus 1, nodect 1, pmem 1gb"),
    ):
        asked = parse_resources(text)
        listed = listed_resources(asked, parse_demand(asked), 60 * SECOND)
        left = {"nodes", "place", "select", "walltime"}
        assert ", ".join(f"{k} {v}" for k, v in listed.items() if k not in left) == shown, text


def test_a_plain_request_becomes_one_chunk_in_alphabetical_order() -> None:
    for text, select in (
        ("ncpus=3,mem=2gb", "1:mem=2gb:ncpus=3"),
        ("arch=linux", "1:arch=linux:ncpus=1"),
        ("host=n2,walltime=60,file=1gb", "1:host=n2:ncpus=1"),
        ("vmem=1g,ompthreads=2", "1:ncpus=1:ompthreads=2:vmem=1gb"),
    ):
        asked = parse_resources(text)
        listed = listed_resources(asked, parse_demand(asked), 60 * SECOND)
        assert (listed["select"], listed["place"]) == (select, "pack")


def test_half_a_second_of_a_typed_walltime_counts_as_one() -> None:
    for text, seconds in (("1.5", 2), ("1.49", 1), ("0:1.5", 2), ("0", 0), ("1:", 60)):
        assert whole_walltime(text) == str(seconds)


def test_the_estimate_of_a_log_is_exact() -> None:
    assert parse_demand({"walltime": "1.499999"}).walltime == 1_499_999


words = st.one_of(
    st.text(max_size=30),
    st.text(alphabet="0123456789:=+,.-\"\\'selctnodppumw kmgtb", max_size=40),
    st.lists(
        st.sampled_from(
            [
                "select=",
                "2:",
                "ncpus=",
                "4",
                "+",
                ",",
                "mem=",
                "8gb",
                "nodes=",
                "ppn=",
                ":",
                "place=",
                "scatter",
                "walltime=",
                "1:00",
                "²",
                "0",
                "-1",
            ]
        ),
        max_size=12,
    ).map("".join),
)


@given(words)
def test_no_text_breaks_the_readers(text: str) -> None:
    for read in (
        parse_duration,
        parse_size,
        parse_select,
        parse_nodes,
        parse_place,
        parse_resources,
        split_list,
    ):
        with suppress(ValueError):
            read(text)  # type: ignore[operator]
    try:
        resources = parse_resources(text)
        demand = parse_demand(resources)
        listed = listed_resources(resources, demand, 3600 * SECOND)
    except ValueError:
        return
    assert int(listed["ncpus"]) <= demand.procs >= 1  # one that asks for none takes one
    assert int(listed["nodect"]) == demand.hosts >= 1
    assert listed["walltime"]
    assert re.fullmatch(r"[0-9]+[kmgtp]?[bw]", listed.get("mem", "1kb")) or refused(text)


def demand(text: str) -> object:
    return parse_demand(parse_resources(text))


def test_chunks_of_both_dialects() -> None:
    two = demand("select=2:ncpus=4:mpiprocs=2:mem=8gb:ompthreads=2+1:ncpus=1")
    assert (two.procs, two.hosts, two.memory) == (9, 3, 16 << 30)  # type: ignore[attr-defined]
    torque = demand("nodes=2:ppn=4:gpus=1+big:ppn=2,walltime=60")
    assert (torque.procs, torque.hosts, torque.walltime) == (10, 3, 60 * SECOND)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="Cannot be used with select or place"):
        demand("nodes=1,select=1")


def test_memory_of_the_whole_job_reaches_the_chunks() -> None:
    assert demand("procs=4,mem=4gb").memory == 4 << 30  # type: ignore[attr-defined]
    assert demand("select=2:ncpus=1,mem=4gb").memory == 4 << 30  # type: ignore[attr-defined]
    of_each = parse_resources("nodes=2:ppn=2,pmem=1gb")
    assert parse_demand(of_each, is_torque=True).memory == 4 << 30
    assert parse_demand(of_each).memory == 0  # OpenPBS: the limit of a process, no request


def test_lists_keep_what_is_quoted() -> None:
    assert split_list('"A=1","B=2"') == [("A", "1"), ("B", "2")]
    assert split_list("A,B='x,y',C=a\\,b,D=") == [
        ("A", None),
        ("B", "x,y"),
        ("C", "a,b"),
        ("D", ""),
    ]
    assert split_list("A=x=y") == [("A", "x=y")]
    for wrong in ('A="x', "=1"):
        with pytest.raises(ValueError):
            split_list(wrong)


def test_resource_list_always_says_how_many_and_how_long() -> None:
    asked = parse_resources("nodes=2:ppn=4,mem=1234B")
    assert listed_resources(asked, parse_demand(asked), 60 * SECOND) == {
        "mem": "2kb",
        "mpiprocs": "8",
        "ncpus": "8",
        "nodect": "2",
        "nodes": "2:ppn=4",
        "place": "scatter",
        "select": "2:ncpus=4:mem=1kb:mpiprocs=4",
        "walltime": "00:01:00",
    }


def test_nodes_scatter_as_openpbs_converts_them() -> None:
    for text, placing, is_whole in (
        ("nodes=2:ppn=4", "scatter", False),
        ("nodes=2#excl", "scatter", True),
        ("nodes=2#shared", "scatter", False),
        ("select=2", "free", False),
        ("select=2,place=vscatter:exclhost", "scatter", True),
        ("ncpus=4", "free", False),
    ):
        asked = parse_resources(text)
        assert (parse_demand(asked).placing, parse_demand(asked).is_exclusive) == (
            placing,
            is_whole,
        )
    named = parse_demand(parse_resources("nodes=n2+n4:ppn=2"))
    assert [(chunk.host, chunk.procs) for chunk in named.chunks] == [("n2", 1), ("n4", 2)]
    assert [chunk.host for chunk in parse_select("host=a:ncpus=2+2:vnode=b+1:mem=1gb")] == [
        "a",
        "b",
        "",
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("foo=1", "unknown-resource"),
        ("select=1:foo=1", "unknown-resource"),
        ("nodes=1:fast", "unknown-resource"),
        ("select=1,ncpus=2", "resource-beside-select"),
        ("select=1:mem=1gb,mem=2gb", "resource-beside-select"),
        ("place=excl,ncpus=2", "place-without-select"),
    ],
)
def test_what_openpbs_refuses_is_refused_by_name_unless_the_server_is_lenient(
    text: str, code: str
) -> None:
    asked = parse_resources(text)
    found = refused_resource(asked, parse_demand(asked), (), ())
    assert found is not None
    assert found[0] == code
    lenient = {
        "unknown-resource": "resources",
        "resource-beside-select": "select",
        "place-without-select": "place",
    }
    if code in lenient:
        assert refused_resource(asked, parse_demand(asked), (), (lenient[code],)) is None
    if code == "unknown-resource":
        assert refused_resource(asked, parse_demand(asked), ("foo", "fast"), ()) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("select=2:ncpus=4:ngpus=2", "ngpus"),
        ("ngpus=1", "ngpus"),
        ("nodes=2:ppn=4:gpus=1", "gpus"),
        ("nodes=1:mics=1", "mics"),
        ("select=1+1:ncpus=2:nmics=01", "nmics"),
        ("naccelerators=1", "naccelerators"),
        ("accelerator_memory=1gb", "accelerator_memory"),
        ("select=1:aoe=linux", "aoe"),
        ("select=1:accelerator=True", "accelerator"),
        ("select=1:accelerator_model=a100", "accelerator_model"),
    ],
)
def test_what_no_host_has_is_refused_by_name_and_not_taken_and_ignored(
    text: str, name: str
) -> None:
    asked = parse_resources(text)
    demand = parse_demand(asked)
    found = refused_resource(asked, demand, (), ())
    assert found is not None
    assert found[0] == "unknown-resource"
    assert re.match(rf"Unknown resource(: | Resource_List\.){name} \(", found[1])
    assert refused_resource(asked, demand, (name,), ()) is None
    assert refused_resource(asked, demand, (), ("resources",)) is None


@pytest.mark.parametrize(
    "text",
    [
        "nodes=1:ppn=2:gpus=0",
        "select=1:naccelerators=0",
        "select=1:ncpus=2:mpiprocs=2:ompthreads=1:arch=linux",
        "software=abaqus",
        "file=10gb,nice=5,walltime=60",
        "select=1:host=n1",
        "nodect=1,ncpus=1,cput=60",
    ],
)
def test_what_asks_for_nothing_that_is_missing_is_taken(text: str) -> None:
    asked = parse_resources(text)
    assert refused_resource(asked, parse_demand(asked), (), ()) is None
