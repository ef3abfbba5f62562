"""What real jobs use, as people and programs see it: while they run, after a kill -9 of the daemon, and for ever."""

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
        if seconds(found["resources_used.cput"]) >= 1 and int(found["resources_used.mem"].removesuffix("kb")) > 51200:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def test_the_use_of_a_real_job_is_told_everywhere(tmp_path) -> None:
    with Daemon(tmp_path, config=REAL) as daemon:
        job = daemon.submit(WORK, directory=str(tmp_path))
        found = measured(daemon, job)
        assert int(found["resources_used.vmem"].removesuffix("kb")) >= int(
            found["resources_used.mem"].removesuffix("kb")
        )
        assert int(found["resources_used.cpupercent"]) > 0
        assert re.search(rf"^{job} .* 00:00:0[1-9] R", daemon.run("qstat", job).stdout, re.MULTILINE)
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
        over = daemon.submit(WORK, directory=str(tmp_path), resources={"mem": "20mb"})
        spent = daemon.submit(WORK, directory=str(tmp_path), resources={"cput": "1"})
        assert daemon.until(over, "F").exit_status == -27
        assert daemon.until(spent, "F").exit_status == -28
        assert re.search(r"=>> PBS: job killed: cput \d+ exceeded limit 1$",
                         daemon.run("qbatch", "output", "-e", spent).stdout, re.MULTILINE)  # fmt: skip
