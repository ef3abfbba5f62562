"""The page in a real browser, without a network: what a reader sees, points at, types and
prints."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from qbatch.metrics.per_job import bounded_slowdowns, job_times
from qbatch.reports.report.page import Wishes, render
from qbatch.reports.report.study import gather
from qbatch.results.boxes import assign
from tests.reports.report.results import (
    EVIL,
    small_work,
    suspended,
    unpromised,
    write_evil,
    write_on_machine,
    write_small,
)
from tests.reports.samples import scheduled

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
S = 1_000_000

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here (Debian: apt-get install chromium)"
)

CANVAS = "#gantt-canvas"
PIXELS = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Map();
    for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] < 255) continue;
        const key = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
        colours.set(key, (colours.get(key) || 0) + 1);
    }
    return [...colours].sort((one, other) => other[1] - one[1]).slice(0, 12);
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The pages on disk: an ordinary one, one full of attacks, one of a single policy."""
    folder = tmp_path_factory.mktemp("pages")
    texts = {
        "small": render(gather([write_small(folder / "a")])),
        "evil": render(gather([write_evil(folder / "b")]), Wishes(title=EVIL, command=(EVIL,))),
        "single": render(gather([unpromised(folder / "c")])),
        "pieces": render(gather([suspended(folder / "d")])),
        "machine": render(gather([write_on_machine(folder / "e")])),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return folder


class Open:
    """A page that is open: what it said on its console, what it asked for, and its chart."""

    def __init__(
        self, browser, path: Path, *, width: int = 1200, script: str = "", **options
    ) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        if script:
            self.page.add_init_script(script)
        self.page.goto(path.as_uri())
        if options.get("java_script_enabled", True) and not script:
            self.page.wait_for_selector("html.has-script")

    def __enter__(self) -> Open:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    @property
    def shown(self) -> dict[str, float]:
        """What the chart says of itself, after the next frame."""
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        dataset = self.page.eval_on_selector(CANVAS, "canvas => ({ ...canvas.dataset })")
        return {
            name: float(value) if name not in ("policy", "colour", "job") else value
            for name, value in dataset.items()
        }

    @property
    def span(self) -> float:
        shown = self.shown
        return shown["end"] - shown["begin"]

    def at(self, seconds: float, proc: float) -> tuple[float, float]:
        """The place in the window of an instant and a processor."""
        shown, box = self.shown, self.page.locator(CANVAS).bounding_box()
        share = (seconds - shown["begin"]) / (shown["end"] - shown["begin"])
        x = shown["left"] + share * (shown["right"] - shown["left"])
        y = shown["bottom"] - proc / shown["height"] * (shown["bottom"] - shown["top"])
        return box["x"] + x, box["y"] + y

    def to_chart(self) -> Open:
        self.page.locator(CANVAS).scroll_into_view_if_needed()
        return self


def bounded_slowdown(schedule, job: int) -> float:
    times = job_times(schedule)
    return float(bounded_slowdowns(times.response, times.run)[job])


def shown_jobs(policy: str):
    """Jobs that a pointer can hit: for each, its rows' place, the middle of its time, and of its
    first processors."""
    rows = scheduled(small_work(), policy)
    boxes = assign(rows, 16)
    origin = int(rows.workload.submit.min())
    for box in np.flatnonzero((rows.end - rows.start)[boxes.job] > 900 * S)[::9].tolist():
        job = int(boxes.job[box])
        middle = (int(rows.start[job]) + int(rows.end[job])) / 2 - origin
        yield rows, job, middle / S, (boxes.low[box] + boxes.high[box]) / 2


def test_nothing_is_asked_for_and_nothing_goes_wrong(browser, pages) -> None:
    for name in ("small", "single"):
        with Open(browser, pages / f"{name}.html", offline=True) as opened:
            opened.page.evaluate("scrollTo(0, document.body.scrollHeight)")
            assert opened.shown
            assert opened.errors == []
            assert [url for url in opened.asked if not url.startswith(("file:", "data:"))] == []


def test_the_charts_are_drawn(browser, pages) -> None:
    with Open(browser, pages / "small.html") as opened:
        colours = opened.page.eval_on_selector(CANVAS, PIXELS)
        assert len(colours) >= 5
        assert colours[0][1] > 10_000
        charts = opened.page.locator("svg.chart")
        assert charts.count() >= 7
        for place in range(charts.count()):
            box = charts.nth(place).bounding_box()
            assert box["width"] > 200
            assert box["height"] > 40
            assert charts.nth(place).locator("path, use").count() > 5
        assert (
            opened.page.eval_on_selector("#gantt-static", "one => getComputedStyle(one).display")
            == "none"
        )


def test_a_job_in_pieces_has_gaps_and_is_found_in_each_piece(browser, pages) -> None:
    with Open(browser, pages / "pieces.html") as opened:
        opened.to_chart()

        def under(seconds: float, proc: float) -> str:
            opened.page.mouse.move(*opened.at(seconds, proc))
            return opened.shown["job"]

        # Jobs 1 and 2 stand still from 700 s to 760 s, while job 5 has a quantum on their
        # processors.
        assert [under(at, 2) for at in (300, 730, 2000)] == ["1", "5", "1"]
        assert [under(at, 6) for at in (300, 730, 2000)] == ["2", "5", "2"]
        assert under(5170, 4) == "5"
        assert under(4500, 2) == ""
        opened.page.fill("#gantt-find", "5")
        opened.page.keyboard.press("Enter")
        status = opened.page.locator("#gantt-status").inner_text()
        assert "waited in all 1.21 h" in status
        assert "intervals 2, until" in status
        assert opened.errors == []


def test_buttons_and_keys_zoom_and_move(browser, pages) -> None:
    with Open(browser, pages / "small.html") as opened:
        whole = opened.span
        opened.page.click("[data-do=in]")
        assert opened.span == pytest.approx(whole / 2)
        begin = opened.shown["begin"]
        opened.page.click("[data-do=right]")
        assert opened.shown["begin"] == pytest.approx(begin + whole / 8)
        opened.page.focus(CANVAS)
        opened.page.keyboard.press("ArrowLeft")
        assert opened.shown["begin"] == pytest.approx(begin)
        opened.page.keyboard.press("+")
        assert opened.span == pytest.approx(whole / 4)
        opened.page.keyboard.press("-")
        assert opened.span == pytest.approx(whole / 2)
        opened.page.click("[data-do=out]")
        opened.page.keyboard.press("Home")
        opened.page.click("[data-do=whole]")
        assert (opened.shown["begin"], opened.span) == (0, whole)
        for _ in range(40):
            opened.page.click("[data-do=in]")
        assert opened.span == pytest.approx(30), "there is an end to it"
        opened.page.wait_for_selector("#gantt-status:has-text('Shown: fcfs, 1996-')")


def test_the_wheel_zooms_where_it_points_once_the_chart_is_chosen(browser, pages) -> None:
    with Open(browser, pages / "small.html") as opened:
        opened.to_chart()
        whole = opened.span
        x, y = opened.at(whole / 4, 8)
        opened.page.mouse.move(x, y)
        before = opened.page.evaluate("scrollY")
        opened.page.mouse.wheel(0, 120)
        opened.page.wait_for_function("before => scrollY !== before", arg=before)
        assert opened.span == whole, "a chart that is not chosen lets the page scroll"
        opened.to_chart()
        opened.page.focus(CANVAS)
        x, y = opened.at(whole / 4, 8)
        opened.page.mouse.move(x, y)
        before = opened.page.evaluate("scrollY")
        opened.page.mouse.wheel(0, -300)
        opened.page.wait_for_function(
            f"Number(document.querySelector('{CANVAS}').dataset.end) < {0.9 * whole}"
        )
        assert opened.span < 0.7 * whole
        assert opened.at(whole / 4, 8)[0] == pytest.approx(x, abs=1.5), (
            "what is under the pointer stays there"
        )
        assert opened.page.evaluate("scrollY") == before


def test_dragging_moves_the_time_with_the_pointer(browser, pages) -> None:
    with Open(browser, pages / "small.html") as opened:
        opened.to_chart()
        opened.page.click("[data-do=in]")
        time = opened.shown["begin"] + opened.span / 2
        x, y = opened.at(time, 8)
        opened.page.mouse.move(x, y)
        opened.page.mouse.down()
        opened.page.mouse.move(x - 60, y, steps=4)
        opened.page.mouse.move(x - 120, y)
        opened.page.mouse.up()
        assert opened.at(time, 8)[0] == pytest.approx(x - 120, abs=1.5)


def test_a_finger_points_and_drags_and_two_pinch(browser, pages) -> None:
    with Open(browser, pages / "small.html", has_touch=True) as opened:
        opened.to_chart()
        whole = opened.span
        rows, job, seconds, proc = next(shown_jobs("fcfs"))
        x, y = opened.at(seconds, proc)
        opened.page.touchscreen.tap(x, y)
        assert opened.page.inner_text("#gantt-tip").startswith(f"Job {rows.workload.number[job]}")
        raw = opened.context.new_cdp_session(opened.page)

        def touch(kind: str, *places: float) -> None:
            points = [{"x": at, "y": y, "id": number} for number, at in enumerate(places)]
            raw.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        middle = opened.at(whole / 2, 8)[0]
        touch("touchStart", middle - 50, middle + 50)
        for apart in (80, 110, 150, 200):
            touch("touchMove", middle - apart, middle + apart)
        touch("touchEnd")
        assert opened.span == pytest.approx(whole / 4, rel=0.15)
        begin = opened.shown["begin"]
        touch("touchStart", middle)
        for by in (20, 60, 100):
            touch("touchMove", middle - by)
        touch("touchEnd")
        assert opened.shown["begin"] > begin


@pytest.mark.parametrize("policy", ["fcfs", "conservative"])
def test_the_pointer_shows_the_job_that_lies_there(browser, pages, policy) -> None:
    with Open(browser, pages / "small.html", width=1500) as opened:
        opened.page.select_option("#gantt-policy", label=policy)
        opened.to_chart()
        checked = 0
        for rows, job, seconds, proc in shown_jobs(policy):
            opened.page.mouse.move(*opened.at(seconds, proc))
            text = opened.page.inner_text("#gantt-tip")
            lines = dict(zip(*[iter(text.split("\n")[1:])] * 2, strict=False))
            assert text.split("\n")[0] == f"Job {rows.workload.number[job]}"
            assert lines["user"] == str(rows.workload.user[job])
            assert lines["queue"] == str(rows.workload.queue[job])
            assert lines["processors"] == str(rows.workload.procs[job])
            assert opened.shown["job"] == str(rows.workload.number[job])
            assert ("promised" in lines) == (rows.promise[job] >= 0)
            bounded = float(lines["slowdown"].split()[0])
            assert bounded == pytest.approx(bounded_slowdown(rows, job), rel=1e-3)
            checked += 1
        assert checked >= 10
        opened.page.mouse.move(5, 5)
        assert not opened.page.is_visible("#gantt-tip")


def test_times_are_those_of_the_log_s_zone(browser, pages) -> None:
    rows = scheduled(small_work(), "fcfs")
    with Open(browser, pages / "small.html", timezone_id="Pacific/Auckland") as opened:
        opened.page.fill("#gantt-find", str(rows.workload.number[0]))
        opened.page.press("#gantt-find", "Enter")
        from datetime import datetime
        from zoneinfo import ZoneInfo

        stamp = 843493334 + int(rows.workload.submit[0]) // S
        local = datetime.fromtimestamp(stamp, ZoneInfo("Europe/Stockholm")).strftime(
            "%Y-%m-%d %H:%M"
        )
        assert local in opened.page.inner_text("#gantt-tip")


def test_keys_go_from_job_to_job_and_say_it(browser, pages) -> None:
    rows = scheduled(small_work(), "fcfs")
    order = rows.workload.number[np.argsort(rows.start, kind="stable")].tolist()
    with Open(browser, pages / "small.html") as opened:
        opened.page.focus(CANVAS)
        for expected in (order[0], order[1], order[2]):
            opened.page.keyboard.press("ArrowDown")
            assert opened.shown["job"] == str(expected)
            assert opened.page.inner_text("#gantt-status").startswith(f"Job {expected}: user ")
        opened.page.keyboard.press("ArrowUp")
        assert opened.shown["job"] == str(order[1])
        opened.page.keyboard.press("Escape")
        assert opened.shown["job"] == ""


def test_a_job_is_found_by_its_number(browser, pages) -> None:
    with Open(browser, pages / "small.html") as opened:
        opened.page.fill("#gantt-find", "150")
        opened.page.click("text=Find")
        assert opened.shown["job"] == "150"
        assert opened.page.inner_text("#gantt-tip").startswith("Job 150")
        for wrong in ("99999", "1x", "-1"):
            opened.page.fill("#gantt-find", wrong)
            opened.page.click("text=Find")
            assert opened.page.inner_text("#gantt-status") == f"There is no job {wrong} here."


def test_policies_and_colours_are_chosen(browser, pages) -> None:
    with Open(browser, pages / "small.html") as opened:
        # Most start in one way.
        assert opened.shown["colour"] == opened.page.input_value("#gantt-colour") == "size"
        procs = small_work().procs
        counts = [
            ((procs >= low) & (procs <= high)).sum()
            for low, high in ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16))
        ]
        words = (
            "1 processor",
            "2 processors",
            "3 to 4 processors",
            "5 to 8 processors",
            "9 to 16 processors",
        )
        legend = [f"{word} ({count})" for word, count in zip(words, counts, strict=True) if count]
        assert opened.page.inner_text("#gantt-legend").split("\n") == legend
        opened.page.select_option("#gantt-colour", "kind")
        opened.page.select_option("#gantt-policy", label="fcfs")
        fcfs = opened.page.eval_on_selector(CANVAS, PIXELS)
        assert "backfilled" not in opened.page.inner_text("#gantt-legend")
        opened.page.select_option("#gantt-policy", label="easy")
        assert opened.shown["policy"] == "easy"
        assert opened.page.eval_on_selector(CANVAS, PIXELS) != fcfs
        assert "backfilled" in opened.page.inner_text("#gantt-legend")
        for by, word in (("user", "user "), ("queue", "queue 1"), ("slowdown", "at most 1")):
            opened.page.select_option("#gantt-colour", by)
            assert opened.shown["colour"] == by
            assert word in opened.page.inner_text("#gantt-legend")
            assert len(opened.page.eval_on_selector(CANVAS, PIXELS)) >= 5


def brightness(opened: Open) -> float:
    colour = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in colour.strip("rgb()").split(",")) / 3


def test_the_dark_is_dark_and_the_light_light(browser, pages) -> None:
    drawn = {}
    for scheme in ("light", "dark"):
        with Open(browser, pages / "small.html", color_scheme=scheme) as opened:
            assert (brightness(opened) < 60) == (scheme == "dark")
            drawn[scheme] = opened.page.eval_on_selector(CANVAS, PIXELS)
            opened.page.emulate_media(color_scheme="light" if scheme == "dark" else "dark")
            assert opened.shown
            assert opened.page.eval_on_selector(CANVAS, PIXELS) != drawn[scheme], (
                "the chart follows a change"
            )
    assert drawn["light"] != drawn["dark"]


def test_paper_has_the_whole_as_a_picture(browser, pages) -> None:
    with Open(browser, pages / "small.html", color_scheme="dark") as opened:
        opened.page.emulate_media(media="print", color_scheme="dark")
        assert not opened.page.is_visible(CANVAS)
        assert opened.page.is_visible("#gantt-static img")
        assert opened.page.eval_on_selector("#gantt-static img", "one => one.naturalWidth") > 500
        assert brightness(opened) == 255
        assert (
            opened.page.eval_on_selector("tbody tr", "one => getComputedStyle(one).breakInside")
            == "avoid"
        )
        assert opened.page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("width", [320, 360, 800, 1600])
@pytest.mark.parametrize("name", ["small", "evil", "machine"])
def test_no_page_scrolls_sideways(browser, pages, width, name) -> None:
    with Open(browser, pages / f"{name}.html", width=width) as opened:
        opened.page.evaluate(
            "document.querySelectorAll('details').forEach(one => { one.open = true; })"
        )
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_table_that_is_too_wide_scrolls_next_to_its_first_column_and_says_so(
    browser, pages
) -> None:
    with Open(browser, pages / "small.html", width=320) as opened:
        table = opened.page.locator(".summary .scroll, .scroll").first
        wide, room = table.evaluate("node => [node.scrollWidth, node.clientWidth]")
        assert wide > room, "the table fits; the test needs a wider one"
        assert "gradient" in table.evaluate("node => getComputedStyle(node).backgroundImage")
        name = table.locator("tbody tr th").first
        before = name.bounding_box()
        table.evaluate("node => node.scrollLeft = node.scrollWidth")
        assert name.bounding_box() == before
        last, frame = table.locator("tbody tr td").last.bounding_box(), table.bounding_box()
        assert frame["x"] < last["x"]
        assert last["x"] + last["width"] <= frame["x"] + frame["width"] + 1


def test_hostile_names_do_nothing(browser, pages) -> None:
    with Open(browser, pages / "evil.html") as opened:
        opened.page.focus(CANVAS)
        opened.page.keyboard.press("ArrowDown")
        assert opened.page.is_visible("#gantt-tip")
        assert opened.errors == []
        assert opened.page.evaluate("window.pwned === undefined")
        assert opened.page.locator("img:not([src^='data:'])").count() == 0
        assert opened.page.inner_text("h1") == EVIL
        assert opened.page.locator("#gantt-policy option").first.inner_text() == EVIL


def test_without_a_script_or_in_an_old_browser_there_is_a_picture(browser, pages) -> None:
    with Open(browser, pages / "small.html", java_script_enabled=False) as opened:
        assert opened.page.is_visible("#gantt-static img")
        assert not opened.page.is_visible("#gantt")
    with Open(browser, pages / "small.html", script="delete window.DecompressionStream") as opened:
        opened.page.wait_for_selector("#gantt-failed:visible")
        assert "needs a newer browser" in opened.page.inner_text("#gantt-failed")
        assert opened.page.is_visible("#gantt-static img")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["small", "single", "machine"])
def test_the_rules_of_accessibility_hold(browser, pages, scheme, name) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed"
    )
    with Open(browser, pages / f"{name}.html", color_scheme=scheme, bypass_csp=True) as opened:
        opened.page.evaluate(
            "document.querySelectorAll('details').forEach(one => { one.open = true; })"
        )
        broken = axe.Axe().run(opened.page).response["violations"]
        problems = [
            (one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in broken
        ]
        assert problems == []
