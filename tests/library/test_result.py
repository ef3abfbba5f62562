"""What a result gives: tables, files, pictures, and what a notebook shows."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import qbatch as qb
from qbatch.library import result as module
from tests.library.commands import DEMO, ROOT, TINY, document, qbatch


@pytest.fixture(scope="module")
def demo() -> qb.ReplayResult:
    return qb.replay(str(ROOT / DEMO), ["fcfs", "easy", "conservative"], first=400, warmup="1d")


def test_the_jobs_are_the_job_rows_of_the_command(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    for log, policies in ((DEMO, ["easy", "conservative"]), (TINY, ["fcfs"])):
        words = [word for policy in policies for word in ("-p", policy)]
        qbatch("replay", log, *words, "--jobs", str(tmp_path / "jobs.parquet"), "--quiet")
        jobs = qb.replay(log, policies).jobs
        written = pq.read_table(tmp_path / "jobs.parquet")
        assert jobs.column_names == written.column_names
        assert jobs.to_pylist() == written.to_pylist()
        assert jobs.schema.field("wait").metadata == {b"unit": b"s"}
        assert jobs.schema.field("slowdown").metadata == {b"unit": b"ratio"}


def test_fractions_of_seconds_and_refusals_are_in_the_table(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(
        "; MaxProcs: 4\n0.25 10.5 2 20\n5 10 1 20\n", encoding="utf-8"
    )
    jobs = qb.replay(tmp_path / "log.txt", "easy").jobs
    assert jobs["submit"].to_pylist() == [0.25, 5.0]
    assert jobs["end"].to_pylist() == [10.75, 15.0]
    made = qb.transform(
        DEMO,
        "take:first=300",
        "duplicate:load=1.8",
        "deadlines:stringency=0.9",
        "artificial",
        seed=2,
    )
    result = qb.replay(made, "qops:others=reject")
    assert (refused := result.metrics["qops:others=reject"]["rejected_count"])
    reasons = [each for each in result.jobs["reason"].to_pylist() if each]
    assert len(reasons) == refused
    assert "rejected" in result.jobs["kind"].to_pylist()


def test_data_frames(demo: qb.ReplayResult) -> None:
    frame, polars = demo.to_pandas(), demo.to_polars()
    assert len(frame) == len(polars) == demo.jobs.num_rows == 3 * 400
    counted = frame[frame["counted"]]
    means = counted.groupby("policy", observed=True)["wait"].mean()
    for policy in demo.policies:
        assert means[policy] == pytest.approx(demo.metrics[policy]["wait_mean_s"], rel=1e-12)
    assert polars["wait"].to_list() == frame["wait"].tolist()
    assert set(polars["policy"].to_list()) == set(demo.policies)
    assert len(demo["easy"].to_pandas()) == 400


def test_metrics_have_units_and_meanings(demo: qb.ReplayResult) -> None:
    rows = demo.metrics_table.to_pylist()
    assert [row["policy"] for row in rows[:: len(rows) // 3]] == list(demo.policies)
    for row in rows:
        assert row["value"] == demo.metrics[row["policy"]][row["metric"]]
        assert row["unit"]
        assert row["meaning"]
    assert len(rows) == sum(len(each) for each in demo.metrics.values())


def test_a_breakdown_is_that_of_the_command(demo: qb.ReplayResult) -> None:
    printed = document(
        "replay", DEMO, "-p", "easy", "--first", "400", "--warmup", "1d", "--by", "size", "--quiet"
    )
    rows = demo["easy"].breakdown("size").to_pylist()
    groups = printed["results"][0]["by"]["size"]
    assert [(row["label"], row["jobs"]) for row in rows] == [
        (str(each["label"]), each["jobs"]) for each in groups
    ]
    for row, group in zip(rows, groups, strict=True):
        assert row["wait_mean_s"] == group["metrics"]["wait_mean_s"]
    with pytest.raises(qb.UsageError, match=r"by 'sise': use one of .*did you mean 'size'"):
        demo.breakdown("sise")


def test_a_part_of_a_result(demo: qb.ReplayResult) -> None:
    part = demo.only("conservative", "fcfs")
    assert part.policies == ("conservative", "fcfs")
    assert list(demo) == ["fcfs", "easy", "conservative"]
    assert len(part) == 2
    assert part["fcfs"] == demo["fcfs"] != demo["easy"]
    assert part.metrics["fcfs"] == demo.metrics["fcfs"]
    assert demo["hybrid:depth=2"] if "hybrid" in demo.policies else True
    with pytest.raises(qb.UsageError, match="no policy 'eazy'; did you mean 'easy'"):
        demo["eazy"]
    assert demo != "no result"


def test_a_saved_result_is_read_back_equal(demo: qb.ReplayResult, tmp_path: Path) -> None:
    demo.save(tmp_path / "out")
    read = qb.read_result(tmp_path / "out")
    assert read == demo
    assert read.document["results"] == demo.document["results"]
    assert qb.read_result(f"{tmp_path / 'out'}:easy") == demo["easy"]
    read.save(tmp_path / "again")
    assert qb.read_result(tmp_path / "again") == demo
    demo["easy"].save(tmp_path / "out")
    part = qb.read_result(tmp_path / "out")
    assert part == demo["easy"]
    assert [each["policy"] for each in part.document["results"]] == ["easy"]


def test_it_is_the_result_of_the_command(demo: qb.ReplayResult, tmp_path: Path) -> None:
    demo.save(tmp_path / "ours")
    words = [
        "-p",
        "fcfs",
        "-p",
        "easy",
        "-p",
        "conservative",
        "--first",
        "400",
        "--warmup",
        "1d",
        "--quiet",
    ]
    qbatch("replay", str(ROOT / DEMO), *words, "--out", str(tmp_path / "theirs"))
    names = sorted(path.name for path in (tmp_path / "ours").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "theirs").iterdir())
    for name in names:
        if name.endswith(".parquet"):
            assert (tmp_path / "ours" / name).read_bytes() == (
                tmp_path / "theirs" / name
            ).read_bytes(), name
    ours, theirs = (dict(qb.read_result(tmp_path / name).document) for name in ("ours", "theirs"))
    for each in (ours, theirs):
        del each["checksums"]["result.json"]  # of the document itself, in which the command stands
    assert {key for key in ours if ours[key] != theirs[key]} <= {"command", "environment"}
    assert ours.keys() == theirs.keys()
    assert (
        document("metrics", str(tmp_path / "ours"))["results"][1]["metrics"] == demo.metrics["easy"]
    )


def test_jobs_in_pieces_are_saved_too(tmp_path: Path) -> None:
    result = qb.replay(DEMO, ["equispatial", "immediate"], first=300, audit=True)
    assert all(each.pieces is not None for each in result.schedules)
    result.save(tmp_path / "out")
    assert qb.read_result(tmp_path / "out") == result


def test_what_others_hold_is_not_overwritten(demo: qb.ReplayResult, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(qb.OutputError, match="is not empty and no result"):
        demo.save(tmp_path)
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "mine"
    with pytest.raises(qb.InputError, match="is no result of qbatch"):
        qb.read_result(tmp_path)


def test_what_really_happened_is_read_from_a_log(tmp_path: Path) -> None:
    qbatch("replay", DEMO, "-p", "easy", "--swf", str(tmp_path / "done.swf"), "--quiet")
    read = qb.read_result(tmp_path / "done.swf")
    assert read.policies == ("log",)
    assert (
        read.metrics["log"]["wait_mean_s"] == qb.replay(DEMO, "easy").metrics["easy"]["wait_mean_s"]
    )
    assert repr(read).startswith(
        "<ReplayResult done.swf: 2,000 jobs on 128 processors; mean wait: log "
    )


@pytest.mark.parametrize(
    "kind", ["gantt", "utilisation", "queue", "wait-hist", "slowdown-by-size", "estimates"]
)
def test_every_picture_is_a_figure_that_shows_itself(
    kind: str, demo: qb.ReplayResult, tmp_path: Path
) -> None:
    from matplotlib.figure import Figure

    figure = demo.plot(kind, policies=["easy"], title="a title")
    assert isinstance(figure, Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    figure.savefig(tmp_path / "picture.pdf")
    assert (tmp_path / "picture.pdf").read_bytes().startswith(b"%PDF")


def test_a_figure_survives_a_process_border(demo: qb.ReplayResult) -> None:
    import pickle

    assert pickle.loads(pickle.dumps(demo.plot("queue"))).get_size_inches()[0] == 7.2


def test_a_picture_that_cannot_be_is_refused(demo: qb.ReplayResult) -> None:
    for arguments, words in (
        ({"kind": "gant"}, "no picture 'gant'; did you mean 'gantt'"),
        ({"kind": "gantt", "since": -100, "before": -50}, "no job in this window"),
        ({"kind": "gantt", "since": "soon"}, "^since 'soon': should be log seconds"),
        ({"kind": "gantt", "colour_by": "mood"}, "colour_by 'mood': use size or user"),
        ({"kind": "gantt", "policies": "esay"}, "no policy 'esay'"),
    ):
        with pytest.raises(qb.UsageError, match=words):
            demo.plot(**arguments)  # type: ignore[arg-type]


def test_a_notebook_shows_table_and_picture(demo: qb.ReplayResult) -> None:
    bundle = demo._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "image/png"}
    assert bundle["image/png"].startswith(b"\x89PNG")
    page = bundle["text/html"]
    assert page.count("<tr>") == page.count("</tr>") >= 10
    assert "<th>easy</th>" in page
    assert f"{demo.metrics['easy']['wait_mean_s']:.1f}" in page
    assert 'src="data:image/png;base64,' in page
    assert len(repr(demo)) < 200
    assert "\n" not in repr(demo)


HOSTILE = "<script>alert(1)</script>&\"'.swf"


def test_texts_of_others_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / HOSTILE.replace("/", "%")
    path.write_bytes((ROOT / "traces" / "tiny.txt").read_bytes())

    class Odd:
        name = "<b>odd</b>"

        def decide(self, view):
            return ()

    log = qb.read_log(path)
    log.notes.append("<i>note</i>")
    result = qb.replay(log, ["fcfs", "easy"])
    page = result._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<i>" not in page
    assert "&lt;i&gt;note" in page
    found = qb.compare(result)._repr_html_()
    assert "<script" not in found
    from qbatch.library.html import picture_html, table_html

    assert "<b>" not in table_html("<b>", ["<b>"], [["<b>"]], ["<b>"]) + picture_html(b"", '"><b>')


@pytest.mark.parametrize(
    ("missing", "ask", "words"),
    [
        (
            "pyarrow",
            lambda result: result.jobs,
            r"needs pyarrow: pip install '\.\[report\]' in the folder of the sources",
        ),
        ("pyarrow", lambda result: result.metrics_table, "needs pyarrow"),
        ("pyarrow", lambda result: result.save("nowhere"), "needs pyarrow"),
        ("pandas", lambda result: result.to_pandas(), "needs pandas: pip install pandas"),
        ("polars", lambda result: result.to_polars(), "needs polars: pip install polars"),
        (
            "matplotlib",
            lambda result: result.plot("gantt"),
            r"drawing needs matplotlib: pip install '\.\[report\]'",
        ),
    ],
)
def test_what_is_not_installed_is_named(
    missing: str, ask, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = qb.replay(TINY, "easy")
    monkeypatch.setattr(
        module, "find_spec", lambda name: None if name == missing else find_spec(name)
    )
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(qb.UsageError, match=words) as caught:
        ask(result)
    assert "\n" not in str(caught.value)
    assert not Path("nowhere").exists()


def test_metrics_and_a_table_need_no_extra() -> None:
    code = """
import sys
for name in ("pyarrow", "matplotlib", "pandas", "polars", "jinja2"):
    sys.modules[name] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if sys.modules.get(name, 0) is None else real(name, *rest)
import qbatch
result = qbatch.replay("traces/tiny.txt")
assert result.metrics["easy"]["jobs"] == 12
bundle = result._repr_mimebundle_()
assert set(bundle) == {"text/plain", "text/html"} and "<img" not in bundle["text/html"]
print(result, qbatch.compare(result["fcfs"], result["easy"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "<ReplayResult tiny.txt: 12 jobs on 8 processors; mean wait: fcfs "
    )


def test_metrics_are_measured_where_they_are_not_given(tmp_path: Path) -> None:
    qbatch("replay", DEMO, "-p", "easy", "--jobs", str(tmp_path / "jobs.csv"), "--quiet")
    read = qb.read_result(tmp_path / "jobs.csv", procs=128)
    whole = qb.replay(DEMO, "easy")
    assert read.procs == 128
    assert read.metrics["easy"]["wait_mean_s"] == whole.metrics["easy"]["wait_mean_s"]
    assert np.array_equal(read.schedules[0].start, whole.schedules[0].start)


@pytest.mark.parametrize(
    ("kind", "panels"),
    [
        ("utilisation", 1),
        ("slowdown-by-size", 1),
        ("wait-hist", 2),
        ("queue", 2),
        ("estimates", 2),
        ("gantt", 2),
    ],
)
def test_a_picture_is_drawn_into_axes_of_yours_and_returns_them(
    demo, kind: str, panels: int
) -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots(panels, 1, squeeze=False)[:, 0]
    two = demo.only(*demo.policies[:2])
    given = axes[0] if panels == 1 else list(axes)
    assert two.plot(kind, ax=given) is given
    assert all(one.has_data() for one in axes)
    assert figure.get_suptitle() == ""
    with pytest.raises(qb.UsageError, match=f"this picture has {panels} panels, not 3"):
        two.plot(kind, ax=figure.subplots(3, 1))


def test_a_picture_for_print_is_narrow_and_grey(demo) -> None:
    figure = demo.plot("utilisation", columns=1, grey=True)
    assert figure.get_figwidth() == 3.5
    colours = {line.get_color() for line in figure.axes[0].lines}
    assert not colours & {"#0072B2", "#D55E00"}
    with pytest.raises(qb.UsageError, match="columns 3: use 1 or 2"):
        demo.plot("queue", columns=3)


def test_an_unknown_metric_is_answered_with_the_right_name(demo) -> None:
    metrics = demo.metrics["easy"]
    with pytest.raises(
        KeyError, match="there is no metric 'wait_mean'; did you mean 'wait_mean_s'"
    ):
        metrics["wait_mean"]
    assert metrics.get("wait_mean") is None
