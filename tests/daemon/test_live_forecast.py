"""Every waiting job has a forecast, or a reason why it has none: in ``qbatch forecast``,
``explain`` and ``qstat -T``."""

from __future__ import annotations

import json
import re
from pathlib import Path

from qbatch.client import ClientSession
from qbatch.wire.records import Forecasts
from qbatch.wire.requests import Forecast
from tests.daemon.harness import Daemon, emulated

LIMITED = emulated("n1", queues='[[queue]]\nname = "shut"\nstarted = false\n').replace(
    'default_walltime = "10:00"', 'default_walltime = "10:00"\nmax_running_per_user = 2'
)


def test_no_waiting_job_is_left_out(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=LIMITED
    ) as daemon:

        def submit(**fields: object) -> str:
            return daemon.submit(
                "sleep 100\n", resources={"ncpus": "1", "walltime": "100"}, **fields
            )

        running = [submit(), submit()]
        daemon.run("qbatch", "time", "until", "1")
        gated = [submit(), submit(), submit()]
        after = submit(depend=f"afterok:{gated[2]}")
        later = submit(not_before=1_000_000_000)
        held = submit(hold="u")
        never = submit(depend=f"afternotok:{running[0]}")
        behind = submit(depend=f"afterok:{held}")
        shut = submit(queue="shut")
        daemon.run("qbatch", "host", "drain", "n1")
        drained = submit(queue="batch")
        said = json.loads(daemon.run("qbatch", "forecast", "--json").stdout)
        # With no host nothing would start.
        assert {each["code"] for each in said["jobs"]} > {"no-start", "held"}
        assert {each["job"] for each in said["jobs"]} == {
            *gated,
            after,
            later,
            held,
            never,
            behind,
            shut,
            drained,
        }
        daemon.run("qbatch", "host", "resume", "n1")
        daemon.run("qdel", drained)
        said = json.loads(daemon.run("qbatch", "forecast", "--json").stdout)
        starts = {
            each["job"]: each["start"] // 1_000_000 for each in said["jobs"] if "start" in each
        }
        assert starts == {gated[0]: 100, gated[1]: 100, gated[2]: 200, after: 300, later: 1000}
        reasons = {
            each["job"]: (each["code"], each["reason"])
            for each in said["jobs"]
            if "start" not in each
        }
        assert {job: code for job, (code, _) in reasons.items()} == {
            held: "held",
            never: "dependency",
            behind: "dependency",
            shut: "queue-stopped",
        }
        with ClientSession(daemon.socket) as session:
            for limit, count in (
                (2, 2),
                (7, 7),
                (1 << 62, len(said["jobs"])),
                (-1, len(said["jobs"])),
            ):
                assert len(session.ask(Forecast(limit=limit), Forecasts).jobs) == count
        assert reasons[held][1] == "is held (u) until somebody releases it"
        table = daemon.run("qbatch", "forecast").stdout
        for job in (*gated, after, later, held, never, behind, shut):
            assert re.search(rf"^{job}\s", table, re.MULTILINE), table
        assert "expected to start" in daemon.run("qbatch", "explain", gated[2]).stdout
        assert "no forecast: is held (u)" in daemon.run("qbatch", "explain", held).stdout
        rows = daemon.run("qstat", "-T", "-w").stdout
        # A held job has a row of its own and no more, as in OpenPBS; qbatch explain gives the reason.
        assert rows.count("No forecast: ") == 1
        assert re.search(rf"^{held} .* H    --\n(?! )", rows, re.MULTILINE)
        assert re.search(rf"^{shut} .*\n   No forecast: queue shut is stopped", rows, re.MULTILINE)


def test_a_limited_array_has_the_forecast_of_its_first_job_and_each_of_its_own(
    tmp_path: Path,
) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=emulated("n1")
    ) as daemon:
        array = daemon.submit(
            "sleep 100\n", resources={"ncpus": "1", "walltime": "100"}, array="1-6%2"
        )
        daemon.run("qbatch", "time", "until", "1")
        said = json.loads(daemon.run("qbatch", "forecast", "--json").stdout)
        assert [each["start"] // 1_000_000 for each in said["jobs"]] == [100, 100, 200, 200]
        rows = daemon.run("qstat", "-T", array).stdout
        assert "No forecast" not in rows
        assert not re.search(rf"^{re.escape(array)}.*\?$", rows, re.MULTILINE)
