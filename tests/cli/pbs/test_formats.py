"""Widths, truncation, and names that mean harm, in every text format."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.cli.pbs.format_alternate import Look, alternate_table, hosts_text, start_text
from qbatch.cli.pbs.format_attributes import (
    comment_of,
    host_attributes,
    job_attributes,
    torque_host_attributes,
    variable_list,
)
from qbatch.cli.pbs.format_full import (
    full_text,
    json_document,
    json_value,
    separated,
    wrapped,
    xml_job,
)
from qbatch.cli.pbs.format_table import job_table, queue_table, shown_id
from qbatch.cli.pbs.pbsnodes import block_text, summary_line, summary_table
from qbatch.cli.pbs.text import cell, clock, plain, seconds_of, size_in
from qbatch.wire.records import HostRecord, JobRecord, QueueRecord
from tests.cli.pbs.harness import NOW, Shell, job

EVIL = [
    "\x1b]0;owned\x07\x1b[2J",
    "a\nJob Id: 9.qbatch\n    job_state = F",
    "a\r\n\tb",
    "\x9b31mred",
    "rtl\u202etxt\u2066x\u2069",
    "zero\u200bwidth\ufeff",
    "\x7f\x00del",
    "line\u2028separator\u2029",
    "</job_state><job_state>F",
    "x|y\\|z",
    '"},"evil":{"a":"',
    "two words",
    "",
    " ",
    "日本語のジョブ",
    "n" * 1_000_000,
    "\x1b" * 10_000,
]
texts = st.one_of(st.text(max_size=60), st.sampled_from(EVIL[:-2]))


def evil_job(text: str) -> JobRecord:
    return job(
        1,
        name=text,
        user=text,
        owner=text,
        queue=text,
        comment=text,
        exec_host=text,
        output=text,
        account=text,
        submit_arguments=text,
        variables={text: text, "A": text},
        resources={"ncpus": "1", text or "x": text},
        depend=text,
        extra={text or "x": text},
        project=text,
        shell=text,
        directory=text,
    )


def is_safe(text: str) -> bool:
    return text.replace("\n", "").replace("\t", "").isprintable()


RAN = "Job run at Mon Sep 21 at 13:13 on (n0:ncpus=2)+(n1:ncpus=2)"


@pytest.mark.parametrize("text", EVIL, ids=range(len(EVIL)))
def test_no_name_reaches_a_terminal_or_fakes_a_line(text: str) -> None:
    record = evil_job(text)
    attributes = job_attributes(record)
    for options in ({}, {"is_wide": True}, {"is_torque": True}):
        *_, row = job_table([record], **options).splitlines(keepends=True)
        assert is_safe(row)
        assert row.count("\n") == 1
        assert len(row.split()) == 6
        assert row.split()[4] == "R"
    for look in (
        Look(),
        Look(has_hosts=True, has_comments=True),
        Look(is_wide=True),
        Look(has_estimates=True),
    ):
        assert is_safe(alternate_table([record], "qbatch", NOW, look))
    for is_wide in (False, True):
        block = full_text("Job Id: 1.qbatch", attributes, is_wide)
        assert is_safe(block)
        assert block.count("\n\n") == 1
        assert block.count("\nJob Id:") == 0
        assert block.count("\n    job_state = ") == 1
    line = separated("Job Id: 1.qbatch", attributes)
    assert is_safe(line)
    assert line.count("\n") == 1
    tree = ElementTree.fromstring(xml_job("1.qbatch", attributes))
    assert [node.text for node in tree.findall("job_state")] == ["R"]
    queue = QueueRecord(name=text, comment=text)
    assert is_safe(queue_table([queue]))
    host = HostRecord(
        name=text or "h",
        pool=text,
        state="free",
        cpus=1,
        comment=text,
        jobs=(text,),
        queues=(text,),
        has_other_pools=True,
    )
    assert is_safe(
        block_text(host.name, host_attributes(host))
        + block_text(host.name, torque_host_attributes(host, NOW))
        + summary_table([host], "qbatch")
        + summary_table([host], "qbatch", True, True)
    )
    for has_jobs in (False, True):
        line = summary_line(host, has_jobs, "|")
        assert is_safe(line)
        assert line.count("\n") == 1


@pytest.mark.parametrize("text", EVIL, ids=range(len(EVIL)))
def test_json_keeps_every_letter_and_shows_none_that_steers(text: str, shell: Shell) -> None:
    shell.server.jobs = {"1.qbatch": evil_job(text)}
    result = shell.run("qstat", "-f", "-F", "json", "1")
    assert result.out.isascii()
    assert is_safe(result.out)
    shown = json.loads(result.out)["Jobs"]["1.qbatch"]
    assert shown["Job_Name"] == (text or "-")
    assert shown["job_state"] == "R"
    assert shell.run("qstat", "1").code == 0


@given(texts)
def test_plain_text_is_one_printable_line(text: str) -> None:
    shown = plain(text)
    assert shown.isprintable()
    assert text.isprintable() == (shown == text)


@given(texts, st.integers(2, 20))
def test_a_cell_fits_is_one_word_and_marks_what_is_missing(text: str, width: int) -> None:
    shown = cell(text, width)
    assert 1 <= len(shown) <= width
    assert len(shown.split()) == 1
    assert (len(text) > width) == (
        shown.endswith("*") and len(shown) == width and text != shown
    ) or "*" in text


@given(texts, texts, texts, st.integers(1, 10**12), st.sampled_from("QRHWBFX"))
def test_rows_of_the_plain_table_stand_in_their_columns(
    name: str, user: str, queue: str, sequence: int, state: str
) -> None:
    record = job(sequence, state, name=name, user=user, queue=queue)
    *_, row = job_table([record]).splitlines(keepends=True)
    assert len(row) == 17 + 1 + 16 + 1 + 16 + 2 + 8 + 1 + 1 + 1 + 16 + 1
    assert row[62] == state
    assert [row[at] for at in (17, 34, 51, 52, 61, 63)] == [" "] * 6
    assert record.id.startswith(row.split()[0])


def test_truncation() -> None:
    assert cell("sixteen-letters-", 16) == "sixteen-letters-"
    assert cell("seventeen-letters", 16) == "seventeen-lette*"
    assert shown_id("123.svr.dom.ain", 17) == "123.svr"
    assert shown_id("123456789012[1000].qbatch", 17) == "123456789012[1000"
    assert job_table([]) == ""


names = st.text(
    alphabet=st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=","),
    min_size=1,
    max_size=40,
)


@given(
    names,
    st.lists(
        st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=120),
        max_size=8,
    ).map(",".join),
)
def test_wrapping_loses_nothing(name: str, value: str) -> None:
    text = wrapped(name, value)
    assert text.replace("\n\t", "") == f"    {name} = {value}"
    for line in text.split("\n"):
        # Commas are not counted, as in PBS: a line may be longer by its commas.
        assert len(line.replace(",", "").expandtabs(8)) <= max(79, len(name) + 8)


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z_]{1,8}", fullmatch=True),
        st.text(alphabet="ab,\\= ", max_size=10),
        max_size=5,
    )
)
def test_variable_lists_can_be_split_again(variables: dict[str, str]) -> None:
    parts: list[str] = [""]
    place, text = 0, variable_list(variables)
    while place < len(text):
        if text[place] == "\\":
            place += 1
            parts[-1] += text[place]
        elif text[place] == ",":
            parts.append("")
        else:
            parts[-1] += text[place]
        place += 1
    assert dict(part.split("=", 1) for part in parts if part) == variables


@given(
    st.one_of(
        st.integers().map(str),
        st.floats(allow_nan=False, allow_infinity=False).map(str),
        st.text(max_size=20),
    )
)
def test_a_value_is_a_number_only_if_json_reads_one(value: str) -> None:
    shown = json.loads(json_document("s", "v", 0, "x", {"a": json_value("a", value)}))["x"]["a"]
    if isinstance(shown, str):
        assert shown == value
    else:
        assert shown == json.loads(value)
    assert isinstance(
        json.loads(json_document("s", "v", 0, "x", {"a": json_value("Job_Name", "5")}))["x"]["a"],
        str,
    )


@pytest.mark.parametrize(
    "value",
    ["007", "+1", "0x10", "1.", ".5", "NaN", "Infinity", "1e999", "1_000", "²", "true", "null", ""],
)
def test_what_is_no_number_stays_text(value: str) -> None:
    assert (
        json.loads(json_document("s", "v", 0, "x", {"a": json_value("a", value)}))["x"]["a"]
        == value
    )


@given(
    st.integers(0, 2**60),
    st.sampled_from(["b", "kb", "mb", "gb", "tb", "kw"]),
    st.sampled_from(["", "g", "w"]),
)
def test_sizes_fit_their_column(number: int, suffix: str, unit: str) -> None:
    shown = size_in(f"{number % 10**6}{suffix}", unit)
    assert len(shown) <= 6
    assert shown[-1] in "bw"


def test_sizes_as_pbs_shows_them() -> None:
    assert [size_in(text) for text in ("8gb", "1024kb", "10240mb", "512b", "x")] == [
        "8gb",
        "1024kb",
        "10gb",
        "512b",
        "--",
    ]
    assert [size_in("8gb", unit) for unit in ("g", "w")] == ["8gb", "1024mw"]
    assert size_in("1mb", "g") == "1gb"
    assert (clock(3661), clock(-5), seconds_of("1:01:01"), seconds_of("x")) == (
        "01:01:01",
        "00:00:00",
        3661,
        0,
    )


def test_hosts_are_broken_before_a_plus_and_lose_their_domains() -> None:
    hosts = "+".join(f"node{number:03d}/0*2" for number in range(20))
    lines = hosts_text(hosts).splitlines()
    assert all(line.startswith("   ") and len(line) <= 80 for line in lines)
    assert "".join(line[3:] for line in lines) == hosts
    assert hosts_text(hosts, True) == hosts + "\n"
    assert hosts_text("a.dom.ain/0*2+b/1") == "   a/0*2+b/1\n"


@given(st.integers(-(10**17), 10**19), st.booleans())
def test_no_instant_breaks_the_estimates(instant: int, is_wide: bool) -> None:
    assert start_text(instant, NOW, is_wide)


def test_estimates_in_wide_tables() -> None:
    assert start_text(NOW + 3_600_000_000, NOW, True) == "Today 15:13"
    assert start_text(NOW + 172_800_000_000, NOW, True) == "Wed 14:13"


def test_attributes_have_the_names_by_which_they_are_given() -> None:
    names = {
        each.name: each.value
        for each in job_attributes(
            job(1, extra={"remove": "oe", "user_list": "bob", "sandbox": "HOME"})
        )
    }
    assert (names["Remove_Files"], names["User_List"], names["sandbox"]) == ("oe", "bob", "HOME")
    assert not {"remove", "user_list"} & set(names)


@pytest.mark.parametrize(
    ("fields", "comment"),
    [
        ({"state": "R"}, RAN),
        ({"state": "F", "exit_status": 0}, f"{RAN} and finished"),
        ({"state": "F", "exit_status": 1}, f"{RAN} and failed"),
        (
            {"state": "F", "exit_status": -29, "comment": "walltime 3 exceeded limit 2"},
            f"{RAN} and failed; walltime 3 exceeded limit 2",
        ),
        (
            {"state": "F", "exit_status": 271, "comment": "terminated by bob@host"},
            f"{RAN} and terminated by bob@host",
        ),
        ({"state": "S", "comment": "Job suspended by a user"}, "Job suspended by a user"),
        ({"state": "Q", "comment": "Not Running: no"}, "Not Running: no"),
        ({"state": "F", "started": None, "comment": "deleted"}, "deleted"),
    ],
)
def test_the_comment_begins_with_the_words_of_openpbs(
    fields: dict[str, object], comment: str
) -> None:
    state = str(fields.pop("state"))
    assert comment_of(job(1, state, **fields)) == comment


def test_json_has_the_layout_of_openpbs() -> None:
    """That of cJSON: tabs, also behind the colon; an empty object has two lines."""
    body = {"1.qbatch": {"Priority": 0, "empty": {}, "jobs": ["a", "b"]}}
    assert json_document("qbatch", "23", 5_000_000, "Jobs", body) == (
        '{\n\t"timestamp":\t5,\n\t"pbs_version":\t"23",\n\t"pbs_server":\t"qbatch",\n'
        '\t"Jobs":\t{\n\t\t"1.qbatch":\t{\n\t\t\t"Priority":\t0,\n\t\t\t"empty":\t{\n\t\t\t},\n'
        '\t\t\t"jobs":\t["a", "b"]\n\t\t}\n\t}\n}\n'
    )


def test_what_an_ended_job_shows() -> None:
    shown = {
        each.name: each.value
        for each in job_attributes(
            job(1, "F", directory="/home/alice", stageout=1, substate=92, run_count=1)
        )
    }
    assert (shown["jobdir"], shown["Stageout_status"]) == ("/home/alice", "1")
    assert (shown["substate"], shown["run_count"], shown["Submit_Host"]) == ("92", "1", "host")
    waiting = {each.name for each in job_attributes(job(2, "Q", directory="/home/alice"))}
    assert not waiting & {"jobdir", "Stageout_status", "run_count", "comment"}
    assert "Submit_Host" in waiting


def test_a_host_belongs_to_a_queue_only_where_others_do_not() -> None:
    def shown(**fields: object) -> dict[str, str]:
        host = HostRecord(name="n1", pool="main", state="free", cpus=4, queues=("batch",), **fields)  # type: ignore[arg-type]
        return {each.full_name: each.value for each in host_attributes(host)}

    assert not {"queue", "resources_available.pool"} & set(shown())
    alone = shown(has_other_pools=True)
    assert (alone["queue"], alone["resources_available.pool"]) == ("batch", "main")
    assert alone["resources_assigned.mem"] == "0kb"


def test_the_jobs_of_a_held_array_are_queued() -> None:
    held = job(5, "H", id="5[1].qbatch", is_held_with_array=True)
    assert job_table([held]).split()[-2] == "Q"
    assert " Q " in alternate_table([held], "qbatch", NOW, Look()).splitlines()[-1]
    assert ("job_state", "", "Q", None) in job_attributes(held)
    assert job_table([job(5, "H", id="5[1].qbatch")]).split()[-2] == "H"
