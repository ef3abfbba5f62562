"""What tracejob prints of a job: in order, with its trials, suspensions and resizes."""

from __future__ import annotations

from qbatch.daemon.questions.jobs import trail_of
from qbatch.wire.records import JobRecord


def test_trials_pauses_and_resizes_stand_between_start_and_end_in_order() -> None:
    record = JobRecord(
        id="1.s",
        name="n",
        user="u",
        queue="q",
        state="F",
        server="s",
        submitted=0,
        queued=0,
        started=50,
        ended=90,
        exec_host="n1/0*4",
        exec_vnode="(n1:ncpus=4)",
        exit_status=0,
        resources={"ncpus": "4"},
        trials=((10, 20, 4, "n2/0*4"), (30, 30, 4, "n1/0*4")),
        pauses=((60, 70), (80, 90)),
        sizes=((55, 2), (65, 4)),
    )
    entries = [
        (entry.at, entry.text)
        for entry in trail_of(record)
        if entry.kind == "S" and 0 < entry.at < 90
    ]
    assert entries == [
        (10, "Job Run at request of Scheduler@s on trial on n2/0*4"),
        (20, "its quantum is over; queued again"),
        (30, "Job Run at request of Scheduler@s on trial on n1/0*4"),
        (30, "its quantum is over; queued again"),
        (50, "Job Run at request of Scheduler@s on exec_vnode (n1:ncpus=4)"),
        (55, "Job has 2 processors; asked for 4"),
        (60, "Job suspended"),
        (65, "Job has 4 processors; asked for 4"),
        (70, "Job resumed"),
        (80, "Job suspended"),
    ]


def test_attempts_that_were_lost_stand_before_the_last_one() -> None:
    record = JobRecord(
        id="1.s",
        name="n",
        user="u",
        queue="q",
        state="R",
        server="s",
        queued=0,
        started=90,
        exec_host="n1/0",
        attempt=4,
        trials=((30, 40, 1, "n2/0"),),
        lost=((1, 5, 10, 1, "n2/0"), (1, 15, 20, 1, "n2/0"), (3, 50, 60, 1, "n1/0")),
    )
    assert [
        (entry.at, entry.text)
        for entry in trail_of(record)
        if entry.kind == "S" and 0 < entry.at < 90
    ] == [
        (5, "Job Run at request of Scheduler@s on n2/0, attempt 1"),
        (20, "attempt 1 is lost, job queued again"),
        (30, "Job Run at request of Scheduler@s on trial on n2/0"),
        (40, "its quantum is over; queued again"),
        (50, "Job Run at request of Scheduler@s on n1/0, attempt 3"),
        (60, "attempt 3 is lost, job queued again"),
    ]
    assert record.first_started == 5


def test_a_job_that_still_runs_may_stand_still() -> None:
    record = JobRecord(
        id="1.s",
        name="n",
        user="u",
        queue="q",
        state="S",
        queued=0,
        started=5,
        exec_host="n1/0",
        pauses=((7, None),),
    )
    assert [entry.text for entry in trail_of(record)][-1] == "Job suspended"


def test_the_lines_of_openpbs_from_queue_to_end() -> None:
    record = JobRecord(
        id="1.s",
        name="n",
        user="u",
        owner="u@h",
        group="g",
        queue="q",
        state="F",
        server="s",
        submitted=0,
        queued=0,
        eligible=0,
        started=5_000_000,
        ended=9_000_000,
        session=77,
        attempt=1,
        exec_host="n1/0*4",
        exec_vnode="(n1:ncpus=4)",
        exit_status=0,
        resources={"ncpus": "4"},
        used={"cput": "00:00:01"},
    )
    account = "user=u group=g project=_pbs_project_default jobname=n queue=q"
    begun = (
        f"{account} ctime=0 qtime=0 etime=0 start=5 exec_host=n1/0*4 exec_vnode=(n1:ncpus=4) "
        "Resource_List.ncpus=4"
    )
    assert [(entry.kind, entry.text) for entry in trail_of(record)] == [
        ("S", "enqueuing into q, state Q hop 1"),
        ("S", "Job Queued at request of u@h, owner = u@h, job name = n, queue = q"),
        ("A", account),
        ("L", "Job run"),
        ("S", "Job Run at request of Scheduler@s on exec_vnode (n1:ncpus=4)"),
        ("A", begun),
        ("S", "Obit received momhop:1 serverhop:1 state:R substate:42"),
        ("S", "Exit_status=0 resources_used.cput=00:00:01"),
        ("S", "dequeuing from q, state F"),
        (
            "A",
            f"{begun} session=77 end=9 Exit_status=0 resources_used.cput=00:00:01 "
            "eligible_time=00:00:05 run_count=1",
        ),
    ]
