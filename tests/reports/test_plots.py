from __future__ import annotations

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from qbatch.model.errors import InputError, OutputError, UsageError
from qbatch.model.record import MICROSECONDS, LogClock
from qbatch.reports.plot_style import DAY, SUFFIXES, write_figure
from qbatch.reports.plots import PICTURES, draw, instant, view_of
from qbatch.results.result import Result, write_result
from tests.reports.samples import KTH_CLOCK, by_hand, random_workload, scheduled, workload

S = MICROSECONDS
MAGIC = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}
OF_A_POOL = [kind for kind in PICTURES if kind != "hosts"]
"""The kinds of pictures that need no hosts; test_host_map.py draws the other one."""
END = {".png": b"IEND\xaeB`\x82", ".svg": b"</svg>\n", ".pdf": b"%%EOF\n"}


def result(*schedules):
    return Result(schedules)


@pytest.fixture(scope="module")
def small():
    work = random_workload(20, clock=None)
    return result(scheduled(work), scheduled(work, "conservative"))


@pytest.fixture(scope="module")
def large():
    """2,000 jobs that a queue of four servers would start, with ties and jobs of no length."""
    work = random_workload(2000, clock=KTH_CLOCK)
    free = np.zeros(4, np.int64)
    procs, run, start = np.minimum(work.procs, 4), work.run.copy(), work.submit.copy()
    run[::50] = 0
    for row in range(len(work)):
        server = int(free.argmin())
        start[row] = max(int(free[server]), int(work.submit[row]))
        free[server] = start[row] + run[row]
    return result(by_hand(work.changed(procs=procs, run=run), start, kind=np.arange(2000) % 3))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", OF_A_POOL)
def test_each_picture_of_few_jobs_is_a_whole_file_in_each_form(tmp_path, small, kind, suffix):
    path = tmp_path / f"picture{suffix}"
    write_figure(draw(small, kind), path)
    data = path.read_bytes()
    assert data.startswith(MAGIC[suffix])
    assert data.endswith(END[suffix])
    assert len(data) > 3000


@pytest.mark.parametrize("kind", OF_A_POOL)
def test_each_picture_of_many_jobs_is_drawn(tmp_path, large, kind):
    path = tmp_path / "picture.pdf"
    write_figure(draw(large, kind), path)
    data = path.read_bytes()
    assert data.startswith(b"%PDF-")
    assert data.endswith(b"%%EOF\n")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", ["gantt", "utilisation"])
def test_the_same_result_gives_the_same_bytes(tmp_path, small, kind, suffix, monkeypatch):
    first, second = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    write_figure(draw(small, kind), first)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    import matplotlib

    with matplotlib.rc_context({"font.size": 20, "svg.hashsalt": "other", "lines.linewidth": 9}):
        write_figure(draw(small, kind), second)
    assert first.read_bytes() == second.read_bytes()


def test_no_picture_drags_in_pyplot(small):
    sys.modules.pop("matplotlib.pyplot", None)
    draw(small, "queue")
    assert "matplotlib.pyplot" not in sys.modules


def test_a_caption_says_how_many_jobs(large):
    texts = [
        text.get_text() for text in draw(large, "gantt").findobj() if hasattr(text, "get_text")
    ]
    assert any("2,000 jobs on 16 processors" in text for text in texts)
    used = [
        text.get_text() for text in draw(large, "estimates").findobj() if hasattr(text, "get_text")
    ]
    assert any("% of 2,000 jobs used exactly 100 %" in text for text in used)


def test_a_title_is_taken_as_it_is(tmp_path, small):
    figure = draw(small, "queue", title="costs $5 and $6_x")
    assert figure.get_suptitle() == r"costs \$5 and \$6_x"
    write_figure(figure, tmp_path / "picture.png")


def test_the_mean_use_of_a_policy_is_to_its_own_last_end(small) -> None:
    """To the last end of all, every policy has done the same work in the same time: one number for
    all of them."""
    first = small.schedules[0]
    later = replace(first, policy="later", start=first.start + 40 * DAY, end=first.end + 40 * DAY)
    caption = draw(replace(small, schedules=(first, later)), "utilisation").get_supxlabel()
    means = re.findall(r"(\w+)\s+([\d.]+)%", caption.split("until its last job ends:")[1])
    assert float(dict(means)[first.policy]) > 3 * float(dict(means)["later"])


def test_a_title_of_our_own_names_the_log_and_not_its_folders(small):
    figure = draw(small.with_facts(name="/home/ada/logs/KTH-1996.swf.gz"), "wait-hist")
    assert figure.get_suptitle() == "Waits: KTH-1996"


def test_a_window_of_a_picture_is_half_open_and_checked(small):
    view = view_of(small, begin="600", end="1200.5")
    assert (view.begin, view.end) == (600 * S, 1_200_500_000)
    whole = view_of(small)
    assert whole.begin == small.schedules[0].workload.submit.min()
    assert whole.end == max(rows.end.max() for rows in small.schedules)
    for bounds, reason in (
        ({"begin": "5", "end": "5"}, "is not before"),
        ({"begin": "99999999"}, "--from 99999999 is not before --to the last end"),
        ({"begin": "99999999", "end": "199999999"}, "no job in this window"),
        ({"begin": "noon"}, "should be log seconds or an ISO time"),
        ({"end": "1996-10-01"}, "no clock"),
    ):
        with pytest.raises(UsageError, match=reason):
            view_of(small, **bounds)
    with pytest.raises(UsageError, match="no counted job"):
        draw(small, "wait-hist", begin=str(int(small.schedules[0].workload.submit.max() // S) + 1))


def test_an_iso_time_is_in_the_log_s_zone():
    assert instant("1996-09-23T17:42:14", KTH_CLOCK, "--from") == 0
    assert instant("1996-09-23T15:42:14.5+00:00", KTH_CLOCK, "--from") == 500_000
    assert instant("12.25", LogClock(), "--from") == 12_250_000
    assert instant("1970-01-02", LogClock(0, "No/Where"), "--to") == 86400 * S


def test_what_cannot_be_drawn_is_refused(small, large, tmp_path):
    with pytest.raises(UsageError, match="did you mean 'gantt'"):
        draw(small, "gant")
    with pytest.raises(UsageError, match="no policy 'sjf'"):
        draw(small, "gantt", policies=["sjf"])
    with pytest.raises(UsageError, match=r"\.png, \.svg or \.pdf"):
        write_figure(draw(small, "queue"), tmp_path / "picture.gif")
    with pytest.raises(UsageError, match="by size or by user"):
        draw(small, "gantt", colour_by="mood")
    with pytest.raises(UsageError, match="at most 6 policies"):
        draw(Result(small.schedules * 4), "gantt")
    with pytest.raises(InputError, match="no job ran"):
        draw(Result((small.schedules[0].only(np.zeros(20, bool)),)), "gantt")
    with pytest.raises(OutputError):
        write_figure(draw(small, "queue"), tmp_path / "none" / "picture.png")


def test_without_matplotlib_the_extra_is_named(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.style", raising=False)
    with pytest.raises(
        UsageError, match=r"pip install '\.\[report\]' in the folder of the sources"
    ):
        draw(small, "queue")


ODD = {
    "one job": workload([5 * S], [1], [9 * S], [9 * S]),
    "no length": workload([5 * S] * 3, [1, 16, 3], [0, 0, 1], [0, 0, 0]),
    "a microsecond": workload([0, 1], [1, 2], [2, 2], [1, 1]),
    "a century": workload([0, 3_000_000_000 * S], [1, 2], [9 * S] * 2, [9 * S] * 2),
    "no user": workload([0] * 70, [1] * 70, [9 * S] * 70, [9 * S] * 70, procs_total=70),
}


@pytest.mark.parametrize("kind", OF_A_POOL)
@pytest.mark.parametrize("case", ODD)
def test_odd_results_are_drawn(tmp_path, case, kind):
    clock = LogClock() if case in ("no length", "no user") else KTH_CLOCK
    schedule = by_hand(ODD[case].changed(clock=clock), ODD[case].submit)
    write_figure(draw(result(schedule), kind), tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_bytes().rstrip().endswith(b"</svg>")


def test_suspended_jobs_may_hold_more_than_the_machine(tmp_path):
    work = workload([0, 0], [10, 10], [9 * S] * 2, [9 * S] * 2)
    schedule = by_hand(work, [0, 0], end=[20 * S, 20 * S])
    figure = draw(result(schedule), "gantt")
    assert figure.axes[0].get_ylim() == (0, 20)
    assert draw(result(schedule), "utilisation")


def test_the_command_writes_what_it_says(tmp_path, monkeypatch):
    import typer

    from qbatch.cli.plot import Kind, plot

    assert [kind.value for kind in Kind] == list(PICTURES)
    app = typer.Typer()
    app.command()(plot)
    work = random_workload(20)
    write_result(tmp_path / "out", {}, [scheduled(work), scheduled(work, "fcfs")])
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        app, ["out", "--kind", "wait-hist", "--policy", "easy", "--title", "T"]
    )
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "wrote wait-hist.png: wait-hist of sample\n"
    assert (tmp_path / "wait-hist.png").read_bytes().startswith(MAGIC[".png"])
    refused = CliRunner().invoke(app, ["out", "--kind", "gantt", "-o", "x.bmp"])
    assert isinstance(refused.exception, UsageError)
    user = CliRunner().invoke(
        app, ["out", "--kind", "gantt", "-o", "x.svg", "--colour-by", "user", "--from", "100"]
    )
    assert user.exit_code == 0
