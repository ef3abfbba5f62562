"""The section of a page about the machine: resources, partitions, reservations and maps of hosts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qbatch.cli.main import run
from qbatch.reports.report.machine import machine_section
from qbatch.reports.report.page import render
from qbatch.reports.report.study import gather
from tests.referee.samples import OWN, imported
from tests.reports.report.results import write_on_machine, write_small

KEPT = """
[[reservation]]
name = "repair"
hosts = ["n[1-2]"]
start = 60
duration = "0:02:00"
flags = ["maint"]
"""


def test_a_page_without_such_a_machine_has_no_section(tmp_path: Path) -> None:
    study = gather([write_small(tmp_path / "a")])
    assert machine_section(study, None) is None
    assert "#machine" not in render(study)


def test_a_result_holds_what_the_section_shows(tmp_path: Path) -> None:
    study = gather([write_on_machine(tmp_path / "a")])
    section = machine_section(study, None)
    assert section is not None
    assert [each.title for each in section.tables] == [
        "Use of resources",
        "Use of partitions",
        "Billed hours",
        "Reservations",
    ]
    resources, partitions, billed, kept = (each.rows for each in section.tables)
    assert resources == tuple(
        ("gpu", policy, "8", "1,234.5", "44.50 %", "-", "1.69") for policy in ("fcfs", "easy")
    )
    assert [row[:3] for row in partitions] == [
        ("batch", "processors", "fcfs"),
        ("batch", "gpu", "fcfs"),
    ]
    assert billed == (("batch", "easy", "9", "7.5"),)
    assert kept == (
        (
            "course",
            "n[1-4],n[7-9]",
            "flexible",
            "ann",
            "60.5 s of the log",
            "2:00:00",
            "weekly, 3 times",
        ),
    )
    assert section.pictures == ()
    notes = " ".join(section.notes)
    assert "The use of partitions under easy, conservative is not known" in notes
    assert "There is no map of hosts: it needs the machine file" in notes
    assert "Of 2 jobs only the sum over their hosts is known" in notes
    text = render(study)
    assert text.count('href="#machine"') == 1
    assert '<td class="word">fcfs</td>' in text


def test_the_command_adds_maps_of_hosts_where_hosts_are_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of = imported(OWN / "partitions-gpu", tmp_path)
    with Path(of.machine).open("a") as file:
        file.write(KEPT)
    files = ["--machine", of.machine, "--resources", of.resources]
    asked = ["replay", of.log, *files, "-p", "easy", "--driver", "engine", "-q"]
    assert run([*asked, "--out", str(tmp_path / "engine")]) == 0
    page = tmp_path / "page.html"

    def shown(*results: str) -> str:
        assert run(["report", *results, "-o", str(page)]) == 0
        text = page.read_text()
        assert 'id="machine"' in text
        begin = text.index('<section id="machine"')
        return text[begin : text.index("</section>", begin)]

    section = shown(str(tmp_path / "engine"), of.log, *files)
    assert re.findall("<figcaption>(.*?)</figcaption>", section) == [
        "Use of processors by host",
        "Use of gpu by host",
    ]
    assert section.count('src="data:image/png;base64,') == 2
    assert '<td class="word">log</td>' in section
    assert '<td class="word">maintenance</td>' in section
    section = shown(str(tmp_path / "engine"))
    assert "<figure" not in section
    assert "There is no map of hosts: it needs the machine file" in section
    assert '<td class="word">maintenance</td>' in section
    capsys.readouterr()


def test_without_the_hosts_of_jobs_there_is_no_map_and_that_is_said(tmp_path: Path) -> None:
    of = imported(OWN / "partitions-gpu", tmp_path)
    site = Path(of.machine)
    site.write_text(re.sub(r"(?m)^rank = .*\n", "", site.read_text()))
    files = ["--machine", of.machine, "--resources", of.resources]
    result, page = str(tmp_path / "auto"), tmp_path / "page.html"
    assert run(["replay", of.log, *files, "-p", "easy", "-q", "--out", result]) == 0
    assert run(["report", result, *files, "-o", str(page)]) == 0
    text = page.read_text()
    assert "no result here holds the hosts of its jobs" in text
    assert "Use of processors by host" not in text
    assert "Use of partitions" not in text
    assert "Use of resources" in text
