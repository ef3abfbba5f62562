"""Questions for jobs by name come in pages too: in the order of the names, each array before its
subjobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from qbatch.wire.errors import Refusal
from qbatch.wire.records import Jobs
from qbatch.wire.requests import JobStatus
from tests.daemon.harness import Daemon, emulated


@pytest.mark.parametrize("limit", [1, 3, 10, 11, 12, 1000])
def test_the_pages_of_named_jobs_are_the_whole_cut_at_the_limit(tmp_path: Path, limit: int) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=emulated()
    ) as daemon:
        for arguments in (("-J", "0-9"), (), ("-J", "5-7")):
            daemon.run("qsub", *arguments, "--", "/bin/sleep", "60")
        names = ("3[]", "nobody", "2", "77", "1[]", "2")
        with daemon.session() as session:
            pages = list(session.pages(JobStatus(jobs=names, subjobs=True, limit=limit)))
        shown = [job.id.partition(".")[0] for page in pages for job in page.jobs]
        members = [
            ["3[]", *(f"3[{index}]" for index in (5, 6, 7))],
            ["1[]", *(f"1[{index}]" for index in range(10))],
        ]
        # A job that is named twice is shown twice only where all is one page.
        assert shown == [*members[0], "2", *members[1], *(["2"] if limit == 1000 else [])]
        assert all(len(page.jobs) <= limit for page in pages)
        assert all(len(page.jobs) == limit for page in pages[:-1])
        assert [len(page.errors) for page in pages] == [2] + [0] * (len(pages) - 1)
        assert len(pages) >= 16 // limit


def test_an_array_without_its_subjobs_is_one_job_and_a_page_begins_after_a_job_that_was_asked_for(
    tmp_path: Path,
) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=emulated()
    ) as daemon:
        daemon.run("qsub", "-J", "0-9", "--", "/bin/sleep", "60")
        with daemon.session() as session:
            page = session.ask(JobStatus(jobs=("1[]",), limit=5), Jobs)
            assert ([job.id for job in page.jobs], page.next) == (["1[].qbatch"], "")
            rest = session.ask(JobStatus(jobs=("1[]",), subjobs=True, after="1[7]", limit=5), Jobs)
            assert ([job.id for job in rest.jobs], rest.next) == (
                ["1[8].qbatch", "1[9].qbatch"],
                "",
            )
            with pytest.raises(Refusal, match="none of the named jobs"):
                session.ask(JobStatus(jobs=("1[]",), subjobs=True, after="9"), Jobs)
