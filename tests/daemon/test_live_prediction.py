"""Predicted run times on a live server: a waiting job shows its prediction and the jobs of which
user it comes from."""

from __future__ import annotations

import getpass
import json
from pathlib import Path

from tests.daemon.harness import Daemon, emulated

CONFIG = 'policy = "predicted"\nforecast_run_times = "predictions"\n' + emulated("n1")


def test_explain_names_the_prediction_and_the_forecast_goes_by_it(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=CONFIG
    ) as daemon:

        def submit(walltime: str) -> str:
            return daemon.submit("sleep 100\n", resources={"ncpus": "2", "walltime": walltime})

        for _ in range(2):
            submit("100")
        daemon.run("qbatch", "time", "until", "200")
        running, waiting = submit("3000"), ""
        while not waiting:
            job = submit("3000")
            daemon.run("qbatch", "time", "until", "201")
            waiting = job if " Q " in daemon.run("qstat", job).stdout else ""
        text = daemon.run("qbatch", "explain", waiting).stdout
        assert (
            f"it is predicted to run 0:01:40 by the last 2 jobs of {getpass.getuser()}" in text
        ), text
        (said,) = json.loads(daemon.run("qbatch", "forecast", "--json").stdout)["jobs"]
        assert (said["job"], said["start"] // 1_000_000, said["end"] // 1_000_000) == (
            waiting,
            300,
            400,
        )
        daemon.run("qbatch", "policy", "set", "easy")
        assert "predicted" not in daemon.run("qbatch", "explain", waiting).stdout
        daemon.run("qbatch", "policy", "set", "predicted:inner=conservative")
        assert "predicted:inner=conservative" in daemon.run("qbatch", "policy", "show").stdout
        assert " R " in daemon.run("qstat", running).stdout
