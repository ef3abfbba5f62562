"""What real jobs use, as people and programs see it: while they run, after a kill -9 of the daemon,
and for ever."""

from __future__ import annotations

import re
import sys
import time

from tests.daemon.harness import Daemon, emulated

REAL = emulated("n1").replace('"emulated"', '"process"')
WORK = f"""#!/bin/sh
{sys.executable} -S -c 'import time
x = b"x" * (50 << 20)
while time.process_time() < 1.2: pass
open("worked", "w")
time.sleep(300)'
"""


def attributes(daemon: Daemon, job: str, *more: str) -> dict[str, str]:
    text = daemon.run("qstat", "-f", "-w", *more, job).stdout
    return dict(line.strip().split(" = ", 1) for line in text.splitlines() if " = " in line)


def seconds(text: str) -> int:
    hours, minutes, rest = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(rest)


def measured(daemon: Daemon, job: str) -> dict[str, str]:
    deadline = time.monotonic() + 60
    while True:
        found = attributes(daemon, job)
        if (
            seconds(found["resources_used.cput"]) >= 1
            and int(found["resources_used.mem"].removesuffix("kb")) > 51200
        ):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def test_the_use_of_a_real_job_is_reported_everywhere(tmp_path) -> None:
    with Daemon(tmp_path, config=REAL) as daemon:
        job = daemon.submit(WORK, directory=str(tmp_path))
        found = measured(daemon, job)
        assert int(found["resources_used.vmem"].removesuffix("kb")) >= int(
            found["resources_used.mem"].removesuffix("kb")
        )
        assert int(found["resources_used.cpupercent"]) > 0
        assert re.search(
            rf"^{job} .* 00:00:0[1-9] R", daemon.run("qstat", job).stdout, re.MULTILINE
        )
        daemon.kill()
        daemon.start()
        assert measured(daemon, job)["job_state"] == "R"
        daemon.run("qdel", job)
        record = daemon.until(job, "F")
        assert seconds(record.used["cput"]) >= 1
        assert int(record.used["mem"].removesuffix("kb")) > 51200
        assert record.used["vmem"] != record.used["mem"]
        lines: list[str] = []
        deadline = time.monotonic() + 30
        while not lines and time.monotonic() < deadline:
            texts = [path.read_text() for path in (daemon.state / "accounting").iterdir()]
            lines = [line for text in texts for line in text.splitlines() if f";E;{job};" in line]
        (line,) = lines
        for name in ("cput", "mem", "vmem", "cpupercent"):
            assert f"resources_used.{name}={record.used[name]}" in line
        spent = daemon.submit(WORK, directory=str(tmp_path), resources={"cput": "1"})
        assert daemon.until(spent, "F").exit_status == -28
        assert re.search(
            r"=>> PBS: job killed: cput \d+ exceeded limit 1$",
            daemon.run("qbatch", "output", "-e", spent).stdout,
            re.MULTILINE,
        )


def test_memory_is_held_to_only_where_the_pool_says_so_and_what_is_exceeded_is_shown(
    tmp_path,
) -> None:
    """As in OpenPBS (``enforce_mem = 0``)."""
    script = f"""#!/bin/sh
{sys.executable} -S -c 'import os, time
x = b"x" * (50 << 20)
while not os.path.exists("go"): time.sleep(0.05)'
"""
    beyond = r"mem \d+kb exceeds the 20mb asked for \(not enforced\)"
    with Daemon(tmp_path, config=REAL) as daemon:
        for number, resources in enumerate(({"mem": "20mb"}, {"pmem": "20mb"})):
            # Only in Torque does pmem ask for memory.
            folder = tmp_path / str(number)
            folder.mkdir()
            job = daemon.submit(
                script,
                directory=str(folder),
                extra={"init_dir": str(folder)},
                resources=resources,
                is_torque="pmem" in resources,
            )
            deadline = time.monotonic() + 60
            while (
                int((found := attributes(daemon, job))["resources_used.mem"].removesuffix("kb"))
                <= 51200
            ):
                assert time.monotonic() < deadline, found
                time.sleep(0.1)
            assert found["job_state"] == "R"
            assert re.search(beyond, found["comment"])
            assert re.search(beyond, daemon.run("qbatch", "explain", job).stdout)
            (folder / "go").touch()
            record = daemon.until(job, "F")
            assert record.exit_status == 0
            assert re.search(beyond, record.comment)
        assert re.search(beyond, daemon.run("qbatch", "explain", job).stdout)
        config = tmp_path / "qbatch.toml"
        config.write_text(config.read_text().replace("cpus = 4", 'cpus = 4\nenforce = ["mem"]'))
        assert daemon.run("qbatch", "reload").returncode == 0
        for resources in ({"mem": "20mb"}, {"pmem": "20mb"}):
            job = daemon.submit(
                script,
                directory=str(tmp_path),
                extra={"init_dir": str(tmp_path)},
                resources=resources,
                is_torque="pmem" in resources,
            )
            record = daemon.until(job, "F")
            assert record.exit_status == -27
            assert "not enforced" not in record.comment


def test_processor_time_that_is_not_enforced_is_shown_for_the_job_and_for_one_process(
    tmp_path,
) -> None:
    script = f"""#!/bin/sh
{sys.executable} -S -c 'import os, time
while time.process_time() < 1.6: pass
while not os.path.exists("go"): time.sleep(0.05)'
"""
    names = ("cput", "pcput")
    beyond = {
        name: rf"\b{name} 00:00:0[2-9] exceeds the 00:00:01 asked for \(not enforced\)"
        for name in names
    }
    with Daemon(tmp_path, config=REAL.replace("cpus = 4", "cpus = 4\nenforce = []")) as daemon:
        jobs = [
            daemon.submit(script, extra={"init_dir": str(tmp_path)}, resources={name: "1"})
            for name in names
        ]
        for name, job in zip(names, jobs, strict=True):
            deadline = time.monotonic() + 120
            while not re.search(
                beyond[name], comment := attributes(daemon, job).get("comment", "")
            ):
                assert time.monotonic() < deadline, comment
                time.sleep(0.2)
        (tmp_path / "go").touch()
        for name, job in zip(names, jobs, strict=True):
            record = daemon.until(job, "F")
            assert record.exit_status == 0
            assert re.search(beyond[name], record.comment)
