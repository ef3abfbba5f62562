"""The numbers of a log and what is off in it, against docs/spec/workloads.md, table 1.4."""

from pathlib import Path

import pytest

from qbatch.workloads import read_log
from qbatch.workloads.findings import findings
from qbatch.workloads.log import facts, wall_clock

from .samples import HEADER, public_log, row, written

# log, machine, load, mean interarrival, mean run, median run, serial %, power of 2 %, distinct
# estimates, ties
TABLE = [
    ("KTH-SP2-1996-2.1-cln", 100, 0.701, 1010, 8872, 847, 32.9, 73.5, 271, 332),
    ("CTC-SP2-1996-3.1-cln", 338, 0.842, 379, 11_277, 1114, 42.0, 82.7, 265, 501),
    ("SDSC-SP2-1998-4.2-cln", 128, 0.834, 1055, 6687, 237, 21.0, 76.6, 562, None),
    ("LANL-CM5-1994-4.1-cln", 1024, 0.744, 510, 2582, 414, 0, 100.0, 122, None),
    ("SDSC-BLUE-2000-4.2-cln", 1152, 0.770, 346, 4052, 189, 0, 85.3, 563, 1333),
]
ESTIMATES = {
    "KTH-SP2-1996-2.1-cln": [14400, 300, 600, 60, 3600],
    "CTC-SP2-1996-3.1-cln": [64800, 900, 300, 600, 21600],
    "SDSC-SP2-1998-4.2-cln": [300, 3600, 64800, 600, 14400],
    "LANL-CM5-1994-4.1-cln": [3600, 300, 10800],
    "SDSC-BLUE-2000-4.2-cln": [7200, 1800, 900, 7140],
}


@pytest.mark.parametrize("expected", TABLE, ids=lambda expected: expected[0])
def test_real_logs_give_the_published_numbers(expected: tuple[object, ...]) -> None:
    name, procs, load, interarrival, run_mean, run_median, serial, power, distinct, ties = expected
    log = read_log(public_log(str(name)))
    numbers = facts(log)
    assert numbers["machine"]["procs"] == procs
    assert round(numbers["load"]["offered"], 3) == load
    assert round(numbers["load"]["interarrival_mean_s"]) == interarrival
    assert round(numbers["load"]["run_mean_s"]) == run_mean
    assert numbers["load"]["run_median_s"] == pytest.approx(run_median, abs=0.5)
    assert round(numbers["sizes"]["serial_percent"], 1) == serial
    assert round(numbers["sizes"]["power_of_two_percent"], 1) == power
    # The table counts "no estimate" as one more distinct value.
    assert numbers["estimates"]["distinct"] + (numbers["jobs"]["without_estimate"] > 0) == distinct
    top = [popular["time_s"] for popular in numbers["estimates"]["top"]]
    assert top[: len(ESTIMATES[str(name)])] == ESTIMATES[str(name)]
    assert ties is None or numbers["submit_ties"] == ties
    assert log.notes == []
    assert all(finding.severity != "error" for finding in findings(log))


def test_dates_follow_the_zone_of_the_log() -> None:
    log = read_log(public_log("KTH-SP2-1996-2.1-cln"))
    assert wall_clock(log.header, 0) == "1996-09-23T14:00:31+02:00"
    assert wall_clock(log.header, 86400 * 60) == "1996-11-22T13:00:31+01:00"


def test_dates_beyond_the_calendar_are_unknown(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, "; UnixStartTime: 0\n" + row(1, 2**50)))
    assert facts(log)["span"]["submit_first"] is None


def test_one_row_has_facts(tmp_path: Path) -> None:
    numbers = facts(read_log(written(tmp_path, row())))
    assert numbers["load"]["offered"] is None
    assert numbers["load"]["interarrival_mean_s"] is None


def test_everything_that_is_off_is_found(tmp_path: Path) -> None:
    content = "; MaxJobs: 99\n; MaxProcs: 64\n; TimeZoneString: Mars/Olympus\n"  # lines 1 to 3
    # 4 to 8.
    content += row(1, 10) + row(2, 5) + row(1, 11) + row(3, 12, run=-1) + row(4, 13, procs=65)
    # 9 to 11.
    content += (
        row(5, 14, run=101) + row(6, 15, run=-7) + row(7, 16).replace(" 1 1 1 -1", " 9 1 1 -1")
    )
    content += "short\n" + row(8, 17).replace(" 100 ", " -1 ") + row(9, 18, procs=1.5)  # type: ignore[arg-type]  # 12 to 14
    found = {
        finding.code: finding
        for finding in findings(read_log(written(tmp_path, content), lenient=True))
    }
    lines = {code: finding.lines for code, finding in found.items()}
    assert lines == {
        "bad_row": (12,),
        "out_of_order": (5,),
        "duplicate_job": (6,),
        "never_ran": (7, 10),
        "wider_than_machine": (8,),
        "longer_than_estimate": (9,),
        "unknown_status": (11,),
        "procs_not_whole": (14,),
        "negative_run": (10,),
        "without_estimate": (13,),
        "maxjobs_differs": (),
        "missing_keyword": (),
        "unknown_zone": (),
    }
    assert found["bad_row"].severity == "error"


def test_cancelled_jobs_are_called_cancelled(tmp_path: Path) -> None:
    cancelled = row(2, 12, run=-1).replace(" 100 -1 1 ", " 100 -1 5 ")
    log = read_log(written(tmp_path, HEADER + row(1, 10) + cancelled + row(3, 13, run=-1)))
    found = {finding.code: finding for finding in findings(log)}
    lines = len(HEADER.splitlines())
    assert (found["cancelled"].severity, found["cancelled"].lines) == ("note", (lines + 2,))
    assert found["never_ran"].lines == (lines + 3,)
    jobs = facts(log)["jobs"]
    assert (jobs["never_ran"], jobs["cancelled"]) == (2, 1)


def test_a_log_without_a_job_that_could_run_is_unusable(tmp_path: Path) -> None:
    found = findings(read_log(written(tmp_path, HEADER + row(1, run=-1) + row(2, procs=0))))
    assert found[0].code == "no_job"
    assert found[0].severity == "error"
