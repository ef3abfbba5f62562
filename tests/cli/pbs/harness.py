"""Running PBS commands inside a test: canned jobs, and ``Shell.run("qstat", "-f", "1")``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

from qbatch.cli.pbs.command import Surroundings
from qbatch.cli.pbs.start import command_of
from qbatch.wire.records import JobRecord
from tests.wire.fake_server import FakeServer

NOW = 1_790_000_000_000_000


class Result(NamedTuple):
    code: int
    out: str
    err: str


class Shell:
    def __init__(self, server: FakeServer, directory: Path) -> None:
        self.server = server
        self.directory = directory
        self.environment = {
            "QBATCH_SOCKET": server.path,
            "HOME": "/home/alice",
            "PATH": "/bin",
            "LOGNAME": "alice",
        }
        self.stdin = b""
        self.invoked_as = ""

    def run(self, command: str, *arguments: str, **environment: str) -> Result:
        out, err = io.StringIO(), io.StringIO()
        here = Surroundings(
            {**self.environment, **environment},
            str(self.directory),
            io.BytesIO(self.stdin),
            out,
            err,
            self.invoked_as,
        )
        code = command_of(command).run(list(arguments), here)
        return Result(code, out.getvalue(), err.getvalue())

    def sent(self) -> object:
        return self.server.requests[-1]


def job(sequence: int = 1, state: str = "R", **fields: object) -> JobRecord:
    running = state in "RSE"
    given: dict[str, object] = {
        "id": f"{sequence}.qbatch",
        "name": "job.sh",
        "user": "alice",
        "owner": "alice@host",
        "queue": "batch",
        "state": state,
        "server": "qbatch",
        "submitted": NOW - 7_200_000_000,
        "queued": NOW - 7_200_000_000,
        "eligible": NOW - 7_200_000_000,
        "modified": NOW - 3_600_000_000,
        "started": NOW - 3_600_000_000 if running or state == "F" else None,
        "ended": NOW - 60_000_000 if state == "F" else None,
        "exec_host": "n0/0*2+n1/0*2" if running or state == "F" else "",
        "exec_vnode": "(n0:ncpus=2)+(n1:ncpus=2)" if running or state == "F" else "",
        "resources": {
            "mem": "8gb",
            "ncpus": "4",
            "nodect": "2",
            "place": "free",
            "select": "2:ncpus=2",
            "walltime": "02:00:00",
        },
        "used": {
            "cpupercent": "99",
            "cput": "00:59:00",
            "mem": "1024kb",
            "ncpus": "4",
            "vmem": "1mb",
            "walltime": "01:00:00",
        }
        if running or state == "F"
        else {},
        "exit_status": 0 if state == "F" else None,
        "output": "host:/home/alice/job.sh.o1",
        "error": "host:/home/alice/job.sh.e1",
        "variables": {"PBS_O_HOME": "/home/alice", "A": "x,y", "N": "4"},
        "submit_arguments": "-l select=2 job.sh",
        "session": 4242 if running else None,
    }
    given.update(fields)
    return JobRecord(**given)  # type: ignore[arg-type]


def jobs() -> list[JobRecord]:
    array = job(
        5,
        "B",
        id="5[].qbatch",
        is_array=True,
        array_submitted="1-3",
        array_remaining="2-3",
        array_counts={"Q": 2, "R": 0, "E": 0, "X": 1},
        exec_host="",
        session=None,
    )
    return [
        job(1),
        job(2, "Q"),
        job(3, "F"),
        job(4, "H", hold="u", user="bob", owner="bob@host"),
        array,
    ]
