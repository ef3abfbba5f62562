"""Permissions: every verb as the owner, another user, root, an operator, a manager and a user
without a name, over one socket."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qbatch.wire.requests import REQUESTS
from tests.daemon.harness import Daemon, emulated
from tests.daemon.hostile.tools import REAL, all_jobs, needs_root

pytestmark = needs_root

PYTHON = "/usr/bin/python3"
OWNER, OTHER, OPERATOR, MANAGER, NOBODY = 30001, 30002, 1, 2, 65534
PEOPLE = {
    "owner": OWNER,
    "other": OTHER,
    "root": 0,
    "operator": OPERATOR,
    "manager": MANAGER,
    "nobody": NOBODY,
}
"""User 1 is called daemon and user 2 bin, everywhere."""

CONFIG = emulated(
    top="""
operators = ["daemon"]
managers = ["bin"]
"""
)

EVERYONE = {"owner", "other", "root", "operator", "manager", "nobody"}
OWN = {"owner", "root", "operator", "manager"}
OPERATE = {"root", "operator", "manager"}
MANAGE = {"root", "manager"}
MATRIX = {
    "Submit": EVERYONE,
    "Delete": OWN,
    "Alter": OWN,
    "Hold": OWN,
    "Release": OWN,
    "Move": OWN,
    "Order": OWN,
    "Rerun": OWN,
    "ForceStart": OPERATE,
    "Message": OWN,
    "Signal": OWN,
    "QueueControl": OPERATE,
    "HostControl": OPERATE,
    "Reserve": EVERYONE,
    "Unreserve": EVERYONE,
    "ReservationStatus": EVERYONE,
    "Fault": MANAGE,
    "PolicySet": MANAGE,
    "Hello": EVERYONE,
    "JobStatus": EVERYONE,
    "QueueStatus": EVERYONE,
    "HostStatus": EVERYONE,
    "ServerStatus": EVERYONE,
    "Explain": EVERYONE,
    "Wait": EVERYONE,
    "Trail": EVERYONE,
    "JobOutput": OWN,
    "History": EVERYONE,
    "Subscribe": EVERYONE,
    "Time": OPERATE,
    "Upload": EVERYONE,
    "Forecast": EVERYONE,
    "Shadow": OPERATE,
    "Metrics": EVERYONE,
    "Backup": MANAGE,
    "Check": OPERATE,
    "ConfigShow": EVERYONE,
    "Reload": MANAGE,
    "Shutdown": MANAGE,
}
"""Written down here from the PBS rules, not taken from the code."""


def ask(
    daemon: Daemon, uid: int, *requests: dict[str, Any], gid: int | None = None
) -> list[dict[str, Any]]:
    """Ask as another user, with no other group, and return the replies."""
    asker = (Path(__file__).parent / "asker.py").read_bytes()
    done = subprocess.run(
        [
            "setpriv",
            f"--reuid={uid}",
            f"--regid={uid if gid is None else gid}",
            "--clear-groups",
            PYTHON,
            "-I",
            "-c",
            asker.decode(),
            daemon.socket,
        ],
        input="\n".join(json.dumps(each) for each in requests).encode(),
        capture_output=True,
        timeout=60,
        check=True,
        cwd="/",
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory(prefix="qbatch-open-") as place:
        os.chmod(place, 0o755)
        with Daemon(Path(place), "--time", "virtual", "--paused", config=CONFIG).start() as running:
            os.chmod(running.socket, 0o666)
            yield running


def submitted(daemon: Daemon, uid: int = OWNER, **fields: Any) -> str:
    (reply,) = ask(
        daemon, uid, {"verb": "submit", "spec": {"script": "sleep 5\n", "name": "secret", **fields}}
    )
    return str(reply["result"]["job"])


def request_of(daemon: Daemon, verb: str) -> dict[str, Any]:
    """Return a request of this verb about new jobs of the owner."""
    tag = "".join("-" + letter.lower() if letter.isupper() else letter for letter in verb).lstrip(
        "-"
    )
    job = (
        submitted(daemon, hold="u")
        if verb
        in ("Delete", "Alter", "Hold", "Release", "Move", "Order", "Explain", "Trail", "JobOutput")
        else ""
    )
    fields: dict[str, dict[str, Any]] = {
        "Submit": {"spec": {"script": "x", "hold": "u"}},
        "Alter": {"jobs": [job], "changes": {"priority": 3}},
        "Move": {"jobs": [job], "destination": "batch"},
        "Order": {"first": job, "second": job},
        "Rerun": {"jobs": ["1"]},
        "ForceStart": {"jobs": ["1"]},
        "Message": {"jobs": ["1"], "text": "hello"},
        "Signal": {"jobs": ["1"], "signal": "0"},
        "QueueControl": {"queues": ["batch"], "started": True},
        "HostControl": {"hosts": ["n1"], "action": "up"},
        "Reserve": {"hosts": ["n1"], "duration": 0},
        "Unreserve": {"reservations": ["R9"]},
        "Fault": {"kind": "clear"},
        "PolicySet": {"policy": "easy"},
        "Explain": {"job": job},
        "Wait": {"jobs": ["1"], "timeout": 0.0},
        "Trail": {"job": job},
        "JobOutput": {"job": job},
        "Time": {"action": "pause"},
        "Shadow": {"action": "set"},
        "Backup": {"path": "/nowhere/at/all"},
        "Upload": {"upload": "ab" * 6, "offset": 0, "data": "eA=="},
    }
    body: dict[str, Any] = fields.get(
        verb, {"jobs": [job]} if job and verb not in ("Order",) else {}
    )
    return {"verb": tag, **body}


def is_refused(reply: dict[str, Any]) -> bool:
    """Whether a reply says that the asker may not."""
    errors = (
        [reply["error"]]
        if "error" in reply
        else [one["error"] for one in reply["result"].get("outcomes", []) if "error" in one]
    )
    return any(error["code"] == "not-permitted" for error in errors)


def test_every_verb_is_in_both_tables() -> None:
    assert {kind.__name__ for kind in REQUESTS} == set(MATRIX)


@pytest.mark.parametrize("who", PEOPLE)
def test_every_verb_as_every_user(daemon: Daemon, who: str) -> None:
    submitted(daemon)
    verbs = [verb for verb in MATRIX if verb != "Shutdown" or who not in MANAGE]
    requests = [request_of(daemon, verb) for verb in verbs]
    replies = ask(daemon, PEOPLE[who], *requests)
    assert len(replies) == len(verbs)
    wrong = [
        (verb, reply)
        for verb, reply in zip(verbs, replies, strict=True)
        if is_refused(reply) == (who in MATRIX[verb])
    ]
    assert wrong == []


def test_a_user_without_a_name_is_the_one_that_the_socket_names(daemon: Daemon) -> None:
    (hello,) = ask(daemon, 65534, {"verb": "hello"})
    assert hello["result"]["role"] == "user"
    (hello,) = ask(daemon, 4242, {"verb": "hello"})
    assert (hello["result"]["user"], hello["result"]["role"]) == ("4242", "user")
    (hello,) = ask(daemon, OTHER, {"verb": "hello"}, gid=0)  # root's group is not root
    assert hello["result"]["role"] == "user"


FORGED = [
    {"verb": "hello", "uid": 0},
    {"verb": "hello", "user": "root"},
    {"verb": "delete", "jobs": ["1"], "role": "manager"},
    {"verb": "submit", "spec": {"script": "x", "user": "root"}},
    {"verb": "submit", "spec": {"script": "x", "uid": 0}},
    {"verb": "submit", "spec": {"script": "x"}, "actor": [0, "root", "root", "manager"]},
    {"verb": "alter", "jobs": ["1"], "changes": {"owner": "root"}},
    {"verb": "hello", "pid": 1},
]


def test_what_a_message_says_of_its_sender_is_refused(daemon: Daemon) -> None:
    for reply in ask(daemon, OTHER, *FORGED):
        assert reply["error"]["code"] == "bad-request"
    host = {
        "verb": "submit",
        "spec": {"script": "x", "hold": "u", "host": "root@localhost", "account": "root"},
    }
    (reply,) = ask(daemon, OTHER, host)
    assert all_jobs(daemon)[reply["result"]["job"]].user == str(OTHER)


def test_what_a_user_may_not_by_a_detour(daemon: Daemon) -> None:
    another = submitted(daemon, hold="u")
    secret = submitted(
        daemon, hold="u", variables={"TOKEN": "hunter2"}, submit_arguments="-v TOKEN=hunter2"
    )
    spec = {"script": "x", "hold": "u"}
    replies = ask(
        daemon,
        OTHER,
        # Would hold another's job.
        {"verb": "submit", "spec": {**spec, "depend": f"beforeok:{another}"}},
        {"verb": "submit", "spec": {**spec, "hold": "s"}},
        {"verb": "delete", "jobs": [another], "is_forced": True, "with_history": True},
        {"verb": "order", "first": another, "second": secret},
        {"verb": "hold", "jobs": [another], "kinds": "o"},
    )
    assert [is_refused(reply) for reply in replies] == [True] * 5, replies
    assert all_jobs(daemon)[another].hold == "u"
    (own,) = ask(daemon, OWNER, {"verb": "job-status", "jobs": [secret]})
    assert "hunter2" in json.dumps(own)
    asked = [
        {"verb": "job-status", "jobs": [secret]},
        {"verb": "job-status"},
        {"verb": "trail", "job": secret},
        {"verb": "explain", "job": secret},
        {"verb": "config-show"},
    ]
    for reply in ask(daemon, OTHER, *asked):
        assert "hunter2" not in json.dumps(reply)
    ask(daemon, OWNER, {"verb": "delete", "jobs": [secret]})
    asked = [
        {"verb": "history", "limit": 1000},
        {"verb": "job-status", "finished": "only"},
        {"verb": "trail", "job": secret},
        {"verb": "job-status", "finished": "also", "jobs": [secret]},
    ]
    for reply in ask(daemon, OTHER, *asked):
        assert secret in json.dumps(reply)
        assert "hunter2" not in json.dumps(reply)
    assert "hunter2" not in daemon.log()


def test_the_same_key_of_two_users_makes_two_jobs(daemon: Daemon) -> None:
    request = {"verb": "submit", "spec": {"script": "x", "hold": "u"}, "key": "mine"}
    names = [ask(daemon, uid, request)[0]["result"]["job"] for uid in (OWNER, OTHER, OWNER)]
    assert names[0] == names[2] != names[1]


def test_the_process_executor_refuses_jobs_of_others_by_name_and_keeps_them_out_after_a_restart() -> (
    None
):
    with tempfile.TemporaryDirectory(prefix="qbatch-open-") as place:
        os.chmod(place, 0o755)
        daemon = Daemon(Path(place), config=REAL).start()
        for _ in range(2):
            os.chmod(daemon.socket, 0o666)
            for dry in (False, True):
                (reply,) = ask(
                    daemon, OTHER, {"verb": "submit", "spec": {"script": "id\n"}, "is_dry_run": dry}
                )
                assert reply["error"]["code"] == "unsupported"
                assert reply["error"]["exit"] == 8
                assert str(OTHER) in reply["error"]["message"]
                assert "root" in reply["error"]["message"]
            own = daemon.submit("true\n", output="/dev/null", error="/dev/null")
            daemon.until(own, "F")
            daemon.kill()
            daemon.start()
        assert {job.user for job in all_jobs(daemon).values()} == {"root"}
        daemon.kill(signal.SIGTERM)


def test_files_are_private_from_their_first_instant(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, config=REAL)
    trace = tmp_path / "trace"
    old_mask = os.umask(0)
    try:
        wrap: tuple[str, ...] = ()
        if os.path.exists("/usr/bin/strace"):
            wrap = (
                "strace",
                "-f",
                "-qq",
                "-o",
                str(trace),
                "-e",
                "trace=openat,mkdir,mkdirat,bind,mknodat,fchmod,chmod",
            )
        daemon.start(wrap=wrap)
        daemon.until(daemon.submit("true\n", output="/dev/null", error="/dev/null"), "F")
        waiting = daemon.submit("sleep 20\n", output="/dev/null", error="/dev/null")
        daemon.until(waiting, "R")
        assert stat.S_IMODE(daemon.state.stat().st_mode) == 0o700
        assert stat.S_IMODE(os.lstat(daemon.socket).st_mode) == 0o600
        wide = [
            (str(path), oct(path.lstat().st_mode))
            for path in daemon.state.rglob("*")
            if not path.is_symlink() and path.lstat().st_mode & 0o077
        ]
        assert wide == []
        daemon.run("qdel", waiting)
        daemon.run("qbatch", "down")
    finally:
        os.umask(old_mask)
    made = (
        [
            line
            for line in trace.read_text(encoding="utf-8", errors="replace").splitlines()
            if "O_CREAT" in line
        ]
        if wrap
        else []
    )
    ours = [line for line in made if str(daemon.state) in line and "= -1" not in line]
    # SQLite makes its files with 0644 under the mask of 0077 that is set around it; the others say
    # 0600 themselves.
    wide = [
        (line, "")
        for line in ours
        if "0600" not in line and "qbatch.db" not in line and "0700" not in line
    ]
    assert wide == []
