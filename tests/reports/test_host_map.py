"""Maps of hosts: the share of each host in use over time, compared with plain sums."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from matplotlib.patches import Rectangle

from qbatch.cli.main import run as command
from qbatch.library.on_hosts import held_on_hosts, host_map_of
from qbatch.model.errors import UsageError
from qbatch.model.machine import Reservation
from qbatch.model.record import finished_run
from qbatch.policies import load_policy
from qbatch.reports.host_map import shares
from qbatch.reports.plots import draw, view_of
from qbatch.results.result import Result
from qbatch.simulation import run
from tests.metrics.test_on_hosts import random_site, site_work
from tests.referee.samples import OWN, imported


@pytest.mark.parametrize("resource", ["processors", "gpu"])
def test_each_pixel_is_the_mean_share_of_its_time(resource: str) -> None:
    seen = 0
    for seed in range(12):
        rng = random.Random(seed)
        machine = random_site(rng)
        done = run(site_work(rng, machine), machine, load_policy("easy"), driver="engine")
        if not done.ran.any() or (resource != "processors" and resource not in machine.resources):
            continue
        shown = host_map_of(machine, resource)
        view = view_of(Result((done,)))
        view = replace(view, begin=view.begin + view.span // 5)
        (ran,) = view.schedules
        found, lines = shares(view, shown, ran), shown.lines_of(ran)
        width = view.span / found.shape[1]
        for _ in range(60):
            host, column = rng.randrange(found.shape[0]), rng.randrange(found.shape[1])
            low, high = view.begin + column * width, view.begin + (column + 1) * width
            area = 0.0
            for on, begin, end, amount in zip(*(each.tolist() for each in lines), strict=True):
                area += amount * max(0.0, min(end, high) - max(begin, low)) * (on == host)
            there = max(int(shown.there[host]), 1)
            assert found[host, column] == pytest.approx(area / width / there, abs=1e-6)
            seen += area > 0
        assert found.max(initial=0.0) <= 1 + 1e-6
        held = held_on_hosts(ran, machine)
        assert held is not None
        assert sorted(h for each in shown.classes for h in each.hosts) == list(range(len(found)))
    assert seen > 20


def test_reservations_are_hatched_on_their_hosts_at_their_times() -> None:
    rng = random.Random(3)
    machine = random_site(rng)
    while len(machine.real_hosts) < 3:
        machine = random_site(rng)
    work = site_work(rng, machine)
    begin, hour = int(work.submit.min()) / 1e6, 3600 * 10**6
    kept = (Reservation("r", (0, 2), f"{begin + 10}", hour), Reservation("m", (1,), "0", hour))
    done = run(work, machine, load_policy("easy"), driver="engine")
    shown = host_map_of(msgspec.structs.replace(machine, reservations=kept), "processors")
    axes = draw(Result((done,)), "hosts", of_hosts=shown).axes[0]
    rows = [host for each in shown.classes for host in each.hosts]
    hatched = {
        (rows[int(box.get_y()) + row], round(box.get_x(), 6))
        for box in axes.patches
        if isinstance(box, Rectangle) and box.get_hatch()
        for row in range(int(box.get_height()))
    }
    assert {host for host, _ in hatched} == {0, 1, 2}
    starts = dict(hatched)
    assert starts[0] == starts[2] > starts[1]


def test_hosts_stand_by_rack_with_a_line_between_racks() -> None:
    rng = random.Random(3)
    machine = random_site(rng)
    while len(machine.real_hosts) < 4:
        machine = random_site(rng)
    racks = ["r2", "r1"] * 20
    hosts = [
        msgspec.structs.replace(host, rack=racks[place])
        for place, host in enumerate(machine.real_hosts)
    ]
    hosts += machine.hosts[len(hosts) :]
    racked = msgspec.structs.replace(machine, hosts=tuple(hosts))
    done = run(site_work(rng, racked), racked, load_policy("easy"), driver="engine")
    shown = host_map_of(racked, "processors")
    order = [racks[host] for each in shown.classes for host in each.hosts]
    assert order == sorted(order, reverse=True)
    axes = draw(Result((done,)), "hosts", of_hosts=shown).axes[0]
    labels = [text.get_text().splitlines()[0] for text in axes.get_yticklabels()]
    assert labels == ["r2", "r1"]
    assert [line.get_ydata()[0] for line in axes.lines] == [order.count("r2")]


def test_a_machine_of_one_host_for_each_job_needs_no_files() -> None:
    second = 1_000_000
    done = finished_run(
        "easy",
        number=np.array([1, 2]),
        submit=np.zeros(2, np.int64),
        start=np.zeros(2, np.int64),
        end=np.array([10, 20]) * second,
        procs=np.array([2, 1]),
        estimate=np.array([10, 20]) * second,
        run=np.array([10, 20]) * second,
        host=np.array([0, 1]),
        procs_total=6,
    )
    machine = {"host_cpus": [4, 2], "host_names": ["a", "b"]}
    result = Result((done,), {"machine": machine})
    figure = draw(result, "hosts")
    (image,) = figure.axes[0].get_images()
    pixels = np.asarray(image.get_array())
    assert pixels[0, 0] == pytest.approx(0.5)
    assert pixels[0, -1] == pytest.approx(0)
    assert pixels[1] == pytest.approx(np.full(pixels.shape[1], 0.5))
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["a\n4 processors", "b\n2 processors"]
    with pytest.raises(UsageError, match="not known on which hosts"):
        draw(replace(result, document={}), "hosts")


def test_the_command_draws_a_replay_and_a_real_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of = imported(OWN / "partitions-gpu", tmp_path)
    site = Path(of.machine)
    # A replay with tiers records the hosts of jobs with any driver.
    site.write_text(re.sub(r"(?m)^rank = .*\n", "", site.read_text()))
    files = ["--machine", of.machine, "--resources", of.resources]
    for driver in ("engine", "auto"):
        asked = ["replay", of.log, *files, "-p", "easy", "--driver", driver, "-q"]
        assert command([*asked, "--out", str(tmp_path / driver)]) == 0
    for schedule in (of.log, str(tmp_path / "engine")):
        out = tmp_path / "map.png"
        asked = ["plot", schedule, "--kind", "hosts", *files, "--resource", "gpu", "-o", str(out)]
        assert command(asked) == 0
        assert out.stat().st_size > 5_000
        out.unlink()
    capsys.readouterr()
    for options, words in (
        ([str(tmp_path / "auto"), *files], "a replay with --driver engine records them"),
        ([str(tmp_path / "auto")], "not known on which hosts"),
        ([of.log, *files[:2]], "go together"),
        ([of.log, *files, "--resource", "gpus"], "did you mean 'gpu'?"),
    ):
        assert command(["plot", *options, "--kind", "hosts", "-o", str(tmp_path / "no.png")]) == 2
        assert words in capsys.readouterr().err.splitlines()[-1]
    assert command(["plot", of.log, "--kind", "queue", "--resource", "gpu"]) == 2
