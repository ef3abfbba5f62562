"""ReFrame: two checks pass and one fails through its back end pbs, torque or pbspro (the first
argument)."""

import json
import subprocess
import sys
import time
from pathlib import Path

SETTINGS = """\
site_configuration = {
    "systems": [{
        "name": "here", "hostnames": [".*"], "modules_system": "nomod",
        "partitions": [
            {"name": "nodes", "scheduler": "KIND", "launcher": "local", "environs": ["builtin"], "max_jobs": 4}
        ],
    }],
    "environments": [{"name": "builtin", "cc": "", "cxx": "", "ftn": ""}],
    "logging": [{"handlers": [{"type": "stream", "level": "info"}]}],
}
"""

CHECKS = """\
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Hello(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    code = parameter([0, 0.5, 3])
    num_tasks = 2
    num_tasks_per_node = 2
    time_limit = "2m"
    executable = "sh"

    @run_before("run")
    def set_options(self):
        self.executable_opts = ["-c", f"'echo hello $PBS_JOBID; sleep {self.code % 1}; exit {int(self.code)}'"]

    @sanity_function
    def check(self):
        return sn.all([
            sn.assert_found(r"hello \\d+\\.qbatch", self.stdout),
            sn.assert_eq(int(self.code), 0),
        ])
"""


def main() -> None:
    Path("settings.py").write_text(SETTINGS.replace("KIND", sys.argv[1]))
    Path("checks.py").write_text(CHECKS)
    command = [str(Path(sys.executable).with_name("reframe"))]
    done = subprocess.run(
        [*command, "-C", "settings.py", "-c", "checks.py", "-r", "--report-file", "report.json"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    (run,) = json.loads(Path("report.json").read_text())["runs"]
    results = sorted(
        (case["display_name"].rpartition("=")[2], case["result"]) for case in run["testcases"]
    )
    assert results == [("0", "pass"), ("0.5", "pass"), ("3", "fail")], (results, done.stdout)
    # ReFrame goes by the output files, which are there a moment before the end of the job is
    # committed.
    limit = time.monotonic() + 30
    while True:
        table = subprocess.run(
            ["qstat"], check=True, capture_output=True, text=True
        ).stdout.splitlines()[2:]
        states = {line.split()[4] for line in table}
        if states <= {"C"} or time.monotonic() > limit:  # Torque shows what has completed
            break
        time.sleep(0.2)
    assert states <= {"C"}, table
    print("done", results)


if __name__ == "__main__":
    main()
