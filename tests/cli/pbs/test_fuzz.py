"""Any arguments: an exit code and a message, never a traceback, and nothing that steers a
terminal."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.pbs.harness import Shell

COMMANDS = [
    "qstat",
    "qdel",
    "qalter",
    "qhold",
    "qrls",
    "qmove",
    "qmsg",
    "qrerun",
    "qselect",
    "qsig",
    "pbsnodes",
    "tracejob",
    "qorder",
    "qenable",
    "qdisable",
    "qstart",
    "qstop",
]
WORDS = [
    "1",
    "999",
    "3",
    "5[]",
    "5[1-2]",
    "batch",
    "@qbatch",
    "-f",
    "-w",
    "-x",
    "-a",
    "-n",
    "-1",
    "-t",
    "-F",
    "json",
    "dsv",
    "-D",
    "-u",
    "alice",
    "-h",
    "u",
    "-s",
    "R",
    "-W",
    "force",
    "-l",
    "ncpus.ge.1",
    "-T",
    "-H",
    "-Q",
    "-B",
    "-q",
    "-p",
    "--",
    "-",
    "-J",
    "-c",
    "-o",
    "all",
    "-N",
    "-S",
    "-j",
    "-L",
    "-i",
    "-r",
    "-G",
    "-M",
    "-E",
    "\x1b[2J",
    "9" * 30,
]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None
)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=5), st.booleans())
@pytest.mark.parametrize("command", COMMANDS)
def test_no_arguments_break_a_command(
    command: str, shell: Shell, arguments: list[str], is_torque: bool
) -> None:
    given_ = [word.replace("\0", "") for word in arguments]
    result = shell.run(command, *given_, QBATCH_DIALECT="torque" if is_torque else "")
    assert 0 <= result.code <= 255
    assert (result.out + result.err).replace("\n", "").replace("\t", "").isprintable()
    assert bool(result.err) or result.code == 0
