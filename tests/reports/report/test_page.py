from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from qbatch.cli.main import run
from qbatch.model.errors import UsageError
from qbatch.reports.comparison import Side, compare
from qbatch.reports.plot_style import styled
from qbatch.reports.report import page as module
from qbatch.reports.report.charts import SERIES, STYLE, difference_chart, inline_svg
from qbatch.reports.report.page import Wishes, render
from qbatch.reports.report.study import gather
from qbatch.results.result import write_result
from tests.reports.report.results import EVIL, unpromised, write_evil, write_small
from tests.reports.samples import by_hand, workload


class Outline(HTMLParser):
    """The tags of a page, its ids, its links, and the order of its headings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[int] = []
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name in ("href", "src", "action", "srcset", "poster"):
            value = given.get(name) or ""
            if value.startswith("#"):
                self.links.append(value[1:])
            elif value and not value.startswith("data:"):
                self.outside.append(value)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    return render(gather([write_small(folder / "a")]), Wishes(command=("qbatch", "report", "a")))


def test_the_page_needs_nothing_from_outside(text) -> None:
    outline = Outline(text)
    assert outline.outside == []
    assert not {"link", "iframe", "object", "embed", "base"} & set(outline.tags)
    assert "url(http" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_ids_are_unique_links_lead_somewhere_and_headings_step_by_one(text) -> None:
    outline = Outline(text)
    assert len(set(outline.ids)) == len(outline.ids)
    assert set(outline.links) <= set(outline.ids)
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(outline.headings, outline.headings[1:], strict=False))


def test_charts_have_words_and_take_the_colours_of_the_page(text) -> None:
    charts = re.findall(r'<svg class="chart".*?</svg>', text, re.DOTALL)
    assert len(charts) >= 7
    for chart in charts:
        assert "<title" in chart
        assert "<desc" in chart
        assert "var(--s0)" in chart or "var(--s1)" in chart
        assert not [colour for colour in SERIES if colour in chart]
        assert "DejaVu" not in chart
        assert "#0102" not in chart


def test_what_was_run_is_reported(text) -> None:
    for fact in (
        "qbatch replay sample.swf",
        "qbatch report a",
        f"{1:064d}",
        "16 processors",
        "Seed",
        "NumPy",
        "load 1.0",
    ):
        assert fact in text, fact
    assert "sample-1 under fcfs, easy and conservative" in text
    assert "200 jobs on 16 processors, 1996-09-23 to" in text


def test_hostile_names_are_inert(tmp_path) -> None:
    text = render(gather([write_evil(tmp_path / "a")]), Wishes(title=EVIL, command=(EVIL,)))
    assert "<img src=x" not in text
    assert text.count("</script>") == 2
    assert "&lt;/script&gt;&lt;img" in text


@pytest.mark.parametrize(
    ("run_time", "rows", "counted"),
    [(5, 1, True), (0, 1, True), (0, 12, True), (7, 12, False), (5, 12, True)],
)
def test_the_smallest_results_make_a_page(tmp_path, run_time, rows, counted) -> None:
    second = 1_000_000
    times = np.full(rows, run_time * second)
    work = workload(
        np.arange(rows) * second, np.ones(rows), times, times, counted=np.full(rows, counted)
    )
    later = by_hand(work, work.submit + second, "$a$b\\frac{$")
    write_result(
        tmp_path / "a", {}, [by_hand(work, work.submit, "at once", promise=work.submit), later]
    )
    text = render(gather([str(tmp_path / "a")]))
    assert "at once" in text
    warm = "" if counted else f" ({rows} of them warm-up, not counted)"
    assert f"{rows} job{'s' * (rows != 1)}{warm} on 16 processors" in text
    assert ("no counted job in common" in text) != counted


def test_bare_job_rows_make_a_page(tmp_path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("job_id,submit,start,end,procs\n4000000000,0,5.5,10,2\n2,1,5.5,20,1\n")
    text = render(gather([str(path)]))
    assert "2 jobs on 3 processors" in text
    assert "Loss of capacity" not in text, "the result does not hold it"


def test_a_single_policy_without_promises_says_so(tmp_path) -> None:
    text = render(gather([unpromised(tmp_path / "a")]))
    assert "There is only one policy, so there is nothing to compare." in text
    assert "These results hold no promises" in text


def test_replicas_are_listed_and_other_logs_are_noted(tmp_path) -> None:
    text = render(gather([write_small(tmp_path / f"r{seed}", seed) for seed in (1, 2, 3)]))
    assert "The replicas" in text
    assert f"the first replica is shown: {tmp_path / 'r1'}." in text
    assert "results of 3 different logs" in text
    assert "Student" in text


def test_a_log_without_a_clock_has_log_seconds(tmp_path) -> None:
    assert "s of the log" in render(gather([write_small(tmp_path / "a", clock=None)]))


def test_the_same_result_gives_the_same_page(tmp_path) -> None:
    paths = [write_small(tmp_path / "a")]
    assert render(gather(paths)) == render(gather(paths))


def test_without_jinja_the_extra_is_named(tmp_path, monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        UsageError, match=r"pip install '\.\[report\]' in the folder of the sources"
    ):
        render(gather([write_small(tmp_path / "a")]))


def test_a_chart_s_ids_are_its_own() -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2, 2))
    figure.add_subplot().plot([1, 2], color=SERIES[3])
    one, two = (Outline(inline_svg(figure, name, "<t>", "&d")) for name in ("one", "two"))
    assert not set(one.ids) & set(two.ids)
    assert "&lt;t&gt;" in inline_svg(figure, "one", "<t>", "&d")


@pytest.mark.parametrize("number", ["5 %", "3.2 h", "10 min", "1.5 points"])
def test_no_line_ends_between_a_number_and_its_unit(number) -> None:
    assert " " not in module._tight(number)
    assert module._tight("2 jobs") == "2 jobs"


# ------------------------------------------------------------------------------------------------
# the command


def test_the_command_writes_the_page_and_says_so(tmp_path, capfd) -> None:
    result = write_small(tmp_path / "a")
    assert (
        run(
            [
                "report",
                result,
                "-o",
                str(tmp_path / "x.html"),
                "--baseline",
                "easy",
                "--title",
                "Hello",
            ]
        )
        == 0
    )
    out, err = capfd.readouterr()
    assert out == ""
    assert "200 jobs, easy, fcfs, conservative" in err
    assert "<h1>Hello</h1>" in (tmp_path / "x.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["none"], 3, "cannot be read"),
        (["a", "-o", "x.pdf"], 2, "a page ends in .html"),
        (["a", "--policy", "eas"], 2, "did you mean 'easy'"),
        (["a", "--baseline", "eas"], 2, "did you mean 'easy'"),
        (["a", "--confidence", "95"], 2, "0.95 is usual"),
        (["a", "a"], 3, "leave one of the two out"),
        (["a", "-o", "/proc/none/x.html"], 4, "cannot be created"),
    ],
)
def test_mistakes_are_one_line(tmp_path, monkeypatch, capfd, arguments, code, reason) -> None:
    write_small(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    assert run(["report", *arguments]) == code
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert reason in err
    assert not (tmp_path / "report.html").exists()


def test_a_figure_has_its_texts_as_texts_wherever_it_is_put_into_a_page() -> None:
    """Drawn in the style of a page and written outside of it, texts were outlines of another size;
    and 0.005 became 0.00."""
    with styled(STYLE):
        figure = Figure(figsize=(3, 2))
        axes = figure.add_subplot()
        axes.plot([0.001234567, 1.0])
        axes.set_yticks([0.005], ["0.005"])
        axes.set_ylabel("Mean wait (h)")
    svg = inline_svg(figure, "chart", "title", "text")
    assert re.search(r"<text[^>]*>Mean wait \(h\)</text>", svg)
    assert re.search(r"<text[^>]*>0\.005</text>", svg)
    assert "<use" not in re.sub(r'<use [^>]*href="#chart-m', "", svg)  # marks of ticks, no letters
    assert not re.search(r'="[^"]*\d\.\d{3}', svg)


def test_waits_against_the_baseline_are_ratios(tmp_path) -> None:
    """Turned over, they are the reciprocals: on this scale no policy looks better for being the
    baseline."""
    study = gather([write_small(tmp_path / "a")])
    charts = []
    for base, other in (("fcfs", "easy"), ("easy", "fcfs")):
        sides = [
            Side(study.first.result, study.first.schedule(name), name, name)
            for name in (base, other)
        ]
        charts.append(difference_chart([compare(*sides)], [1]))
    ratios = [[float(row[chart.headings.index("Ratio")]) for row in chart.rows] for chart in charts]
    assert len(ratios[0]) == 3  # all jobs, and the two classes that there are
    assert np.multiply(*ratios) == pytest.approx(np.ones(3), rel=0.02)
    assert "Mean wait, divided by that of fcfs" in charts[0].svg
    for chart in charts:
        assert re.search(r"<text[^>]*>1</text>", chart.svg)
