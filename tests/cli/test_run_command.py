"""qbatch run and qbatch fault, as processes: exit codes, signals, and that nothing is left
behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONG = "sleep 987"


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    place = tmp_path / "t"
    place.mkdir(exist_ok=True)
    return {
        **os.environ,
        "TMPDIR": str(place),
        "PYTHONPATH": str(ROOT),
        "MARK": str(tmp_path),
        **more,
    }


def run(tmp_path: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "qbatch", "run", *arguments],
        env=environment(tmp_path, **more),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert leftovers(tmp_path) == ([], [])
    return done


def begin(tmp_path: Path, script: str) -> subprocess.Popen[str]:
    """Start ``qbatch run`` with a shell script, and wait for its first line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "qbatch", "run", "sh", "-c", script],
        env=environment(tmp_path),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    return process


def leftovers(tmp_path: Path) -> tuple[list[str], list[str]]:
    """Processes that carry our mark, or were started with a path under our directory; and files
    that are left."""
    own = f"MARK={tmp_path}".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                variables = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
                line = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if own in variables or f"{tmp_path}/t/".encode() in line:
                found.append(line.replace(b"\0", b" ").decode())
    return found, os.listdir(tmp_path / "t")


def until_nothing_is_left(tmp_path: Path, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while leftovers(tmp_path) != ([], []):
        assert time.monotonic() < deadline, leftovers(tmp_path)
        time.sleep(0.05)


def test_the_commands_work_and_the_code_comes_back(tmp_path: Path) -> None:
    script = (
        'printf "" | cat; echo "echo $PBS_JOBID-$QBATCH_STATE-$(command -v qsub)";'
        'echo "echo in job; command -v qsub" | qsub -W block=true -j oe -o out; qstat -x | tail '
        "-1; cat out; exit 7"
    )
    done = run(tmp_path, "--", "sh", "-c", script, PBS_JOBID="1.outer", QBATCH_STATE="/nowhere")
    assert done.returncode == 7, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"echo -{tmp_path}/t/qbatch-")
    assert lines[0].endswith("/bin/qsub")
    assert lines[1] == "1.qbatch"
    assert lines[2].split()[4] == "F"
    assert lines[3] == "in job"
    assert lines[4].endswith("/bin/qsub")
    assert done.stderr == ""


def test_codes_of_signals_and_of_what_cannot_be_run(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no program\n")
    for code, said, command in (
        (128 + 9, "", ("sh", "-c", "kill -9 $$")),
        (127, "no-such-command: command not found", ("no-such-command",)),
        (127, "./nothing: No such file or directory", ("./nothing",)),
        (126, "./plain: Permission denied", ("./plain",)),
        (0, "", ("qstat", "-Q")),
    ):
        done = run(tmp_path, "--", *command)
        assert done.returncode == code, (command, done)
        assert (said in done.stderr) if said else not done.stderr, done.stderr


def test_a_server_that_cannot_start_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('colour = "red"\n')
    done = run(tmp_path, "--config", "bad.toml", "--", "true")
    assert done.returncode == 3, done
    assert "bad.toml: line 1, key 'colour'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    done = run(tmp_path, "--config", "none.toml", "--", "true")
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1), done
    assert run(tmp_path, "--executor", "magic", "--", "true").returncode == 2
    assert run(tmp_path).returncode == 2


def test_configuration_time_policy_and_dialect_reach_the_server(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text('server = "mine"\n[[pool]]\nhosts = "x[1-2]"\ncpus = 3\n')
    arguments = (
        "--config",
        "my.toml",
        "--executor",
        "emulated",
        "--time",
        "x3600",
        "--policy",
        "fcfs",
        "--torque",
    )
    script = "echo 'sleep 1800' | qsub -W block=true; qstat 1; qbatch status --json; qbatch down"
    done = run(tmp_path, *arguments, "sh", "-c", script)
    assert done.returncode == 0, done
    assert "1.mine" in done.stdout
    assert " C batch" in done.stdout
    assert '"emulated"' in done.stdout
    assert '"fcfs"' in done.stdout


def test_a_long_or_missing_temporary_directory(tmp_path: Path) -> None:
    long = tmp_path / ("long" * 30)
    long.mkdir()
    for place in (str(long), str(tmp_path / "missing")):
        done = run(
            tmp_path,
            "--",
            "sh",
            "-c",
            'qstat -Q > /dev/null && dirname "$QBATCH_SOCKET"',
            TMPDIR=place,
        )
        assert done.returncode == 0, done
        assert len(done.stdout) < 100
        assert not os.path.exists(done.stdout.strip())


def test_keep_leaves_the_files(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "qbatch", "run", "--keep", "true"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    directory = Path(done.stderr.split()[-1])
    assert (directory / "log").read_text()
    assert directory.stat().st_mode & 0o777 == 0o700
    assert leftovers(tmp_path)[0] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_command_and_nothing_is_left(
    tmp_path: Path, number: signal.Signals
) -> None:
    script = (
        f"echo 'trap \"\" TERM; {LONG} & {LONG}' | qsub > /dev/null; trap 'exit 9' TERM INT; "
        "echo go; "
    )
    process = begin(tmp_path, script + "while :; do sleep 0.1; done")
    time.sleep(0.3)
    process.send_signal(number)
    assert process.wait(30) == 9
    assert leftovers(tmp_path) == ([], [])


def test_what_the_command_leaves_in_the_background_ends_too(tmp_path: Path) -> None:
    process = begin(
        tmp_path,
        f"echo go; echo {LONG!r} | qsub -W block=true > /dev/null & sleep 0.3; {LONG} & exit 4",
    )
    assert process.wait(30) == 4
    assert leftovers(tmp_path) == ([], [])


@pytest.mark.parametrize("killed", ["run", "keeper", "daemon"])
def test_after_kill_9_nothing_is_left(tmp_path: Path, killed: str) -> None:
    # The command ignores its own end, so that only the death of its parent can end it.
    script = (
        f"echo '{LONG} & setsid {LONG}' | qsub > /dev/null; qbatch status --json > status; "
        f"echo go; exec {LONG}"
    )
    process = begin(tmp_path, script)
    daemon = int((tmp_path / "status").read_text().partition('"pid": ')[2].partition(",")[0])
    keeper = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
    time.sleep(0.3)
    os.kill({"run": process.pid, "keeper": keeper, "daemon": daemon}[killed], signal.SIGKILL)
    if killed != "run":
        assert process.stderr is not None
        assert "killed" in process.stderr.readline()
        process.terminate()
    assert process.wait(30) == (-signal.SIGKILL if killed == "run" else 128 + signal.SIGTERM)
    until_nothing_is_left(tmp_path)


def test_the_end_of_the_server_is_the_code_of_a_command_that_succeeds(tmp_path: Path) -> None:
    script = (
        "kill -9 $(qbatch status --json | sed -n 's/.*\"pid\": \\([0-9]*\\).*/\\1/p'); sleep 0.3"
    )
    done = run(tmp_path, "sh", "-c", script)
    assert (done.returncode, done.stderr.count("\n")) == (128 + 9, 1), done
    assert "killed by SIGKILL" in done.stderr


FAULTS = r"""
set -u
say() { echo "$*: $?"; }
qbatch fault submit-refused --message 'go away' --count 1
echo true | qsub; say refused
echo 'sleep 0' | qsub -W block=true; say taken
qbatch fault status-failed --count 1
qstat; say failed
qstat; say shown
qbatch fault status-slow --seconds 0.7 --count 1
begin=$(date +%s%N); qstat; [ $(($(date +%s%N) - begin)) -gt 700000000 ]; say slow
qbatch fault job-exit --status 7 --pattern '^bad'
echo 'sleep 0' | qsub -W block=true -N bad1; say bad
echo 'sleep 0' | qsub -W block=true -N good; say good
qbatch fault clear
echo 'sleep 0' | qsub -W block=true -N bad2; say cleared
qbatch fault job-lost --count 1
echo 'sleep 0' | qsub -W block=true -r n; say lost
qbatch fault job-lost --count 1
echo 'sleep 0' | qsub -W block=true -N again; say again
qstat -x -f 6 | grep -E 'run_count|Exit_status|comment'
id=$(echo 'sleep 300' | qsub); while ! qstat | grep -q ' R '; do sleep 0.05; done
qbatch fault host-down n1
while ! qstat -f $id | grep -q 'exec_host = n2'; do sleep 0.05; done
pbsnodes n1 | grep 'state = '
qbatch fault host-up n1
pbsnodes n1 | grep 'state = '
qdel -W force $id
qbatch fault nonsense; say nonsense
qbatch fault host-down; say no-host
qbatch fault host-down n1 n77; say bad-host
qbatch fault status-slow; say no-seconds
"""


@pytest.mark.parametrize("executor", ["process", "emulated"])
def test_each_fault_does_what_it_says(tmp_path: Path, executor: str) -> None:
    done = run(tmp_path, "--executor", executor, "sh", "-c", FAULTS)
    said = dict(
        line.rsplit(": ", 1)
        for line in done.stdout.splitlines()
        if line.rpartition(": ")[2].isdigit()
    )
    assert said == {
        "refused": "162",
        "taken": "0",
        "failed": "162",
        "shown": "0",
        "slow": "0",
        "bad": "7",
        "good": "0",
        "cleared": "0",
        "lost": "244",
        "again": "0",
        "nonsense": "2",
        "no-host": "2",
        "bad-host": "6",
        "no-seconds": "2",
    }, done
    assert "qsub: go away" in done.stderr
    lines = [line.strip() for line in done.stdout.splitlines() if " = " in line]
    assert "run_count = 2" in lines
    assert "Exit_status = 0" in lines
    assert lines[-2:] == ["state = down", "state = free"]
