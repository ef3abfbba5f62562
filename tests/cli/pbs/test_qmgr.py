"""``qmgr``: how commands are read, what they ask for, what is refused and why."""

from __future__ import annotations

import re

import pytest

from qbatch.cli.pbs.qmgr import (
    NODE_KEYS,
    QUEUE_KEYS,
    SERVER_KEYS,
    Change,
    Directive,
    SyntaxFault,
    parse,
)
from qbatch.daemon.settings import KEYS
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.wire.records import HostRecord, QueueRecord
from tests.cli.pbs.harness import Shell
from tests.cli.pbs.test_others import sent


@pytest.mark.parametrize(
    ("line", "directive"),
    [
        ("list server", Directive("list", "server")),
        ("l s", Directive("list", "server")),
        (
            "l s default total_jobs",
            Directive("list", "server", (), (Change("total_jobs", "", ""),)),
        ),
        ("PRINT queue a,b@here", Directive("print", "queue", ("a", "b@here"))),
        ("p q @default", Directive("print", "queue", ("@default",))),
        (
            "list node n[1],n-2.x state, comment",
            Directive(
                "list",
                "node",
                ("n[1]", "n-2.x"),
                (Change("state", "", ""), Change("comment", "", "")),
            ),
        ),
        (
            "s q batch enabled=True,started = f",
            Directive(
                "set",
                "queue",
                ("batch",),
                (Change("enabled", "=", "True"), Change("started", "=", "f")),
            ),
        ),
        (
            'set node n1 comment = "down, till noon"',
            Directive("set", "node", ("n1",), (Change("comment", "=", "down, till noon"),)),
        ),
        (
            "set node n1 state += offline",
            Directive("set", "node", ("n1",), (Change("state", "+=", "offline"),)),
        ),
        (
            "set queue enabled = True",
            Directive("set", "queue", (), (Change("enabled", "=", "True"),)),
        ),
        (
            "set server scheduling = True",
            Directive("set", "server", (), (Change("scheduling", "=", "True"),)),
        ),
        (
            "set server default scheduling=1",
            Directive("set", "server", (), (Change("scheduling", "=", "1"),)),
        ),
        (
            "unset node n1 comment",
            Directive("unset", "node", ("n1",), (Change("comment", "", ""),)),
        ),
        ("create queue x", Directive("create", "queue", ("x",))),
        ("q", Directive("quit")),
        ("?", Directive("help")),
    ],
)
def test_commands_are_read(line: str, directive: Directive) -> None:
    assert parse(line) == directive


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("frob queue x", "Illegal operation: frob"),
        ("list", "No object type given: list"),
        ("list cow", "Illegal object type: cow"),
        ("set queue batch", "set: an attribute is missing"),
        ("set queue batch enabled", "set takes attribute = value, not 'enabled'"),
        ("list queue batch enabled = True", "list takes attribute, not 'enabled = True'"),
        ("set queue batch enabled = ", "not of the form attribute = value, ...: 'enabled ='"),
        ("set queue batch enabled = True,", "not of the form"),
        ("set queue batch comment = 'open", "not of the form"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(line: str, why: str, shell: Shell) -> None:
    with pytest.raises(SyntaxFault, match=".*".join(["^", *why.split("...")]).replace("?", r"\?")):
        parse(line)
    result = shell.run("qmgr", "-c", line)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("qmgr: ")
    assert shell.server.requests == []


@pytest.mark.parametrize(
    ("line", "request_"),
    [
        ("set queue batch enabled = True", requests.QueueControl(queues=("batch",), enabled=True)),
        (
            "s q batch started = 0, enabled = n",
            requests.QueueControl(queues=("batch",), enabled=False, started=False),
        ),
        ("set node n1 state = offline", requests.HostControl(hosts=("n1",), action="drain")),
        ("set node n1 state += offline", requests.HostControl(hosts=("n1",), action="drain")),
        ("set node n1 state -= offline", requests.HostControl(hosts=("n1",), action="resume")),
        ("s n n1,n2 state = free", requests.HostControl(hosts=("n1", "n2"), action="resume")),
        (
            "s n n1 comment = 'x y'",
            requests.HostControl(hosts=("n1",), action="comment", comment="x y"),
        ),
        ("unset n n1 comment", requests.HostControl(hosts=("n1",), action="comment", comment="")),
    ],
)
def test_what_commands_ask_for(line: str, request_: object, shell: Shell) -> None:
    result = shell.run("qmgr", "-c", line)
    assert (result.code, result.out, result.err) == (0, "", "")
    assert sent(shell) == request_


def test_at_a_server_all_that_it_has_is_meant(shell: Shell) -> None:
    shell.server.queues = [QueueRecord(name="fast"), QueueRecord(name="slow")]
    result = shell.run("qmgr", "-c", "set queue @default started = False")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert sent(shell) == requests.QueueControl(queues=("fast", "slow"), started=False)


def test_what_is_shown(shell: Shell) -> None:
    shell.server.queues = [
        QueueRecord(name="fast", max_running=3, users=("alice", "bob"), enabled=False)
    ]
    shell.server.hosts = [
        HostRecord(name="n1", pool="main", state="offline", cpus=4, comment="down, again")
    ]
    assert shell.run("qmgr", "-c", "list queue fast enabled,max_running").out == (
        "Queue fast\n    max_running = 3\n    enabled = False\n\n"
    )
    assert shell.run("qmgr", "-c", "list node").out.startswith("Node n1\n    Mom = n1\n")
    assert shell.run("qmgr", "-c", "list server").out.startswith(
        "Server qbatch\n    server_state = Active\n"
    )
    said = shell.run("qmgr", "-c", "print queue fast").out
    assert [line for line in said.splitlines() if not line.startswith("#")] == [
        "create queue fast",
        "set queue fast queue_type = Execution",
        "set queue fast max_running = 3",
        "set queue fast acl_users = alice",
        "set queue fast acl_users += bob",
        "set queue fast enabled = False",
        "set queue fast started = True",
    ]
    said = shell.run("qmgr", "-c", "print node n1").out
    assert (
        "set node n1 state = offline\nset node n1 resources_available.ncpus = 4\nset node n1 "
        'comment = "down, again"\n'
    ) in said
    said = shell.run("qmgr", "-c", "print server").out
    assert "create queue fast\n" in said
    assert "set server default_queue = batch\n" in said
    assert said.endswith("set server job_history_enable = True\n")
    assert "assigned" not in said


@pytest.mark.parametrize(
    ("line", "code", "why"),
    [
        (
            "s q batch max_run = 3",
            155,
            "obj=batch .* the key max_running of its \\[\\[queue\\]\\], then qbatch reload",
        ),
        ("s q batch resources_max.walltime = 1:00", 155, "the key max_walltime of its"),
        ("s s default_queue = fast", 155, "the key default_queue at the top"),
        ("s s scheduling = False", 155, "qstop QUEUE stops a queue"),
        ("s n n1 resources_available.ncpus = 8", 155, "the key cpus of its \\[\\[pool\\]\\]"),
        ("s n n1 state = down", 166, "state is offline or free, not 'down'"),
        ("s q batch enabled = maybe", 166, "enabled is True or False, not 'maybe'"),
        ("s q batch enabled = True, max_run = 3", 155, "max_running"),
        ("s q batch total_jobs = 3", 155, "read only: total_jobs"),
        ("s q batch colour = red", 154, "Undefined attribute: a queue has no colour"),
        ("s q enabled = True", 181, "No Active Queues, nothing done"),
        ("c q fast", 181, "write a table \\[\\[queue\\]\\] in the configuration"),
        ("d n n1", 181, "the hosts of a \\[\\[pool\\]\\]"),
        ("l hook", 181, "no objects of the kind hook"),
    ],
)
def test_what_is_refused_names_the_way_out_and_changes_nothing(
    line: str, code: int, why: str, shell: Shell
) -> None:
    result = shell.run("qmgr", "-c", line)
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("qmgr obj=")
    assert re.search(why, result.err), result.err
    assert not [
        each
        for each in shell.server.requests
        if isinstance(each, requests.QueueControl | requests.HostControl)
    ]
    assert shell.run("qmgr", "-z", "-c", line).err == ""


def test_every_key_that_is_named_is_one_of_the_configuration() -> None:
    named = {*SERVER_KEYS.values(), *QUEUE_KEYS.values(), *NODE_KEYS.values()}
    assert named - {key.name for key in KEYS} == set()


def test_a_server_that_says_no(shell: Shell) -> None:
    def refuse(_: object) -> object:
        raise Refusal(
            "not-permitted",
            "Unauthorized Request: QueueControl needs the role operator; bob is user",
        )

    shell.server.overrides["QueueControl"] = refuse
    result = shell.run("qmgr", "-c", "s q batch enabled = True")
    assert result.code == 159
    assert result.err.startswith("qmgr obj=batch svr=default: Unauthorized Request")


def test_commands_come_from_standard_input(shell: Shell) -> None:
    shell.stdin = (
        b"# queues\n\nactive queue batch\nset queue enabled = True, \\\n  started = False\n"
        b"frob\nl q\nquit\nfrob\n"
    )
    result = shell.run("qmgr", "-e")
    assert result.code == 1
    assert result.err.startswith("qmgr: Illegal operation: frob")
    assert result.err.endswith("\nTry 'help' if you are having trouble.\n")
    assert result.err.count("Illegal operation") == 1
    assert "set queue enabled = True,   started = False\n" in result.out
    assert "Queue batch\n" in result.out
    controls = [each for each in shell.server.requests if isinstance(each, requests.QueueControl)]
    assert [(each.queues, each.enabled, each.started) for each in controls] == [
        (("batch",), True, False)
    ]
    shell.stdin = b"frob\nset queue batch enabled = True\n"
    before = len(shell.server.requests)
    assert shell.run("qmgr", "-a").code == 1  # the first error ends it
    shell.stdin = b"set queue batch enabled = True\n"
    assert shell.run("qmgr", "-n").code == 0  # only read
    assert len(shell.server.requests) == before
