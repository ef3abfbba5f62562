"""What a script finds when it runs, and what its end is called."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from qbatch.daemon.executors.attempt import Started
from qbatch.daemon.executors.process import ProcessExecutor

from .world import World, until

PYTHON = f"#!{sys.executable} -ISu\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("exit 256", 0),
        ("kill -9 $$", 137),
        ("kill -15 $$", 143),
    ],
)
@pytest.mark.parametrize("first", ["", "#!/bin/bash\n"])
@pytest.mark.parametrize("login", [True, False])
def test_exit_codes_and_signals(
    world: World, first: str, login: bool, code: str, status: int
) -> None:
    """A signal that ends the script is a status of the shell that runs it, as in OpenPBS."""
    script = f"{first}echo said\necho complained >&2\n{code}\n"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(world.base)}
    end = world.run(script, shell="/bin/bash", login=login, environment=environment)
    assert (end.status, end.why) == (status, "")
    said, *shell = world.text("1.1.e").splitlines()
    assert (world.text("1.1.o"), said) == ("said\n", "complained")
    name = f"{world.root / '1.1/1.1.SC'}"
    if status == 137:
        assert re.fullmatch(rf".*: line 1: +\d+ Killed +{re.escape(name)}", shell[0])
    else:
        assert shell == (["Terminated"] if status == 143 else [])
    start = world.reports[0]
    assert isinstance(start, Started)
    assert start.at <= end.at


def test_first_line_names_the_interpreter_else_the_shell_runs_the_file(world: World) -> None:
    assert world.run(PYTHON + "import sys; print(sys.argv, 6 * 7)", "1.1").status == 0
    assert world.text("1.1.o") == f"[{str(world.root / '1.1/1.1.SC')!r}] 42\n"
    assert world.run("print(6 * 7)", "2.1", shell=sys.executable).status == 0
    assert world.text("2.1.o") == "42\n"
    # saga: an empty line before it.
    assert world.run("\n#!/bin/false\necho $0 $1", "3.1").status == 0
    assert world.text("3.1.o") == f"{world.root / '3.1/3.1.SC'}\n"


def test_plain_command_without_a_shell(world: World) -> None:
    assert world.run(None, argv=("printf", "%s|", "a b", "$HOME", "*")).status == 0
    assert world.text("1.1.o") == "a b|$HOME|*|"
    assert world.run(None, "2.1", argv=("sh", "-c", "kill -9 $$")).status == 265


def test_a_signal_that_ends_the_shell_of_a_job_ends_the_job(world: World) -> None:
    """OpenPBS writes 256 and the signal for the process that its mom started."""
    end = world.run("kill -USR1 $PPID; touch too-late; sleep 600; echo went on")
    assert end.status == 256 + signal.SIGUSR1
    assert world.text("1.1.o") == ""


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_the_script_is_a_child_of_its_login_shell(world: World, shell: str) -> None:
    """As in OpenPBS: the script is no login shell, its input is empty, its name is its path."""
    script = (
        'echo "$0"; cat; tty; tr "\\0" " " < /proc/$PPID/cmdline | cut -d" " -f1; '
        'test "$(ps -o sid= -p $$ | tr -d " ")" = $PPID && echo leader\n'
    )
    if shell.endswith("bash"):
        script += "shopt -q login_shell || echo no login shell\n"
    world.run(script, shell=shell, environment={"PATH": "/usr/bin:/bin", "HOME": "/nowhere"})
    lines = [f"{world.root / '1.1/1.1.SC'}", "not a tty", f"-{os.path.basename(shell)}", "leader"]
    assert world.text("1.1.o").splitlines() == lines + ["no login shell"] * shell.endswith("bash")


def test_a_long_path_reaches_the_shell(world: World) -> None:
    path = ":".join(["/usr/bin", "/bin", *(f"/long/{'x' * 100}/{number}" for number in range(900))])
    assert world.run("echo ${#PATH}", environment={"PATH": path}).status == 0
    assert int(world.text("1.1.o")) >= len(path) > 65_536


@pytest.mark.parametrize(
    ("script", "changes", "word", "status"),
    [
        (None, {"argv": ("no-such-command",)}, "no-such-command", -1),
        (None, {"argv": ()}, "empty command", -1),
        ("exit 0", {"shell": "/no/such/shell"}, "/no/such/shell", -1),
        ("#!/no/such/first\n", {"shell": sys.executable}, "/no/such/first", -1),
    ],
)
def test_what_cannot_be_executed_is_not_started_and_says_why(
    world: World, script: str | None, changes: dict[str, object], word: str, status: int
) -> None:
    end = world.run(script, **changes)
    assert end.status == status
    assert word in end.why
    assert world.text("1.1.o") == ""
    assert word in world.text("1.1.e")
    assert world.started("1.1") is None


@pytest.mark.parametrize("first", ["#!/no/such/interpreter", "#!/bin/sh\r"])
def test_a_first_line_that_names_no_program_is_said_by_the_shell_and_explained(
    world: World, first: str
) -> None:
    end = world.run(f"{first}\necho ran\n")
    assert end.status in (126, 127)  # as the shell says
    why = f"no interpreter {first[2:]!r} (its first line)"
    assert end.why == why
    assert world.text("1.1.o") == ""
    shell, ours = world.text("1.1.e").splitlines()
    assert shell.startswith("-sh: ")
    assert ours == f"qbatch: {why}"
    assert world.run("exit 127", "2.1").why == ""


def test_environment_is_exactly_what_was_given_and_the_run_directory(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NOTIFY_SOCKET", "LISTEN_FDS", "LD_PRELOAD_NOT", "PYTHONPATH", "SECRET"):
        monkeypatch.setenv(name, "daemon")
    given = {"A": "1", "EMPTY": "", "WORDS": 'two "words"\nand a line ä', "PATH": "/usr/bin:/bin"}
    script = PYTHON + (
        "import os, json; print(json.dumps({k.decode(): v.decode() for k, v in "
        "os.environb.items()}))"
    )
    assert world.run(script, environment=given, login=False).status == 0
    found = json.loads(world.text("1.1.o"))
    token = found.pop("QBATCH_ATTEMPT")
    assert len(token) == 32
    for name in ("LC_CTYPE", "PWD", "OLDPWD"):  # what Python and the shell do
        found.pop(name, None)
    run = str(world.root / "1.1")
    ours = {"PBS_NODEFILE": f"{run}/nodes", "PBS_JOBDIR": str(world.base), "TMPDIR": f"{run}/tmp"}
    assert found == {**given, **ours, "QBATCH_ALLOCATION": f"{run}/allocation"}
    assert (world.root / "1.1" / "nodes").read_text(encoding="utf-8") == "alpha\nalpha\nbeta\n"


def test_variables_of_the_run_directory_do_not_replace_what_was_given(world: World) -> None:
    world.run(
        "echo $TMPDIR $PBS_JOBDIR $PBS_NODEFILE",
        environment={"TMPDIR": "/a", "PBS_JOBDIR": "/b", "PBS_NODEFILE": "/c"},
    )
    assert world.text("1.1.o") == "/a /b /c\n"


def test_only_three_descriptors_a_session_of_its_own_and_default_signals(world: World) -> None:
    script = PYTHON + (
        "import os\n"
        "print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1], "
        "os.readlink('/proc/self/fd/0')[:5],"
        " os.getsid(0) == os.getppid() == os.getpgid(0), oct(os.umask(0)), os.getcwd())\n"
    )
    leaked = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leaked, True)
    world.run(script, umask=0o027)
    os.close(leaked)
    assert world.text("1.1.o") == f"[0, 1, 2] pipe: True 0o27 {world.base}\n"
    assert (world.base / "1.1.o").stat().st_mode & 0o777 == 0o640
    world.run("exec grep -E 'Sig(Blk|Ign)' /proc/self/status", "2.1")
    own_to_glibc = 0b11 << 31  # 32 and 33: no program can reset them
    assert [
        int(line.split()[1], 16) & ~own_to_glibc for line in world.text("2.1.o").splitlines()
    ] == [0, 0]


def test_without_its_directory_a_job_runs_in_the_root_and_its_output_says_so(world: World) -> None:
    assert world.run("pwd; echo $PBS_JOBDIR", directory="/no/such/place").status == 0
    assert world.text("1.1.o") == "/\n/\n"
    assert "/no/such/place" in world.text("1.1.e")


def test_temporary_directory_is_private_and_gone_afterwards_however_deep(world: World) -> None:
    script = PYTHON + (
        "import os\n"
        "os.chdir(os.environ['TMPDIR']); print(oct(os.stat('.').st_mode & 0o777))\n"
        "open('file', 'w').close(); os.symlink('/etc', 'link'); os.mkdir('closed', 0)\n"
        "for _ in range(3000): os.mkdir('deep'); os.chdir('deep')\n"
    )
    assert world.run(script).status == 0
    assert world.text("1.1.o") == "0o700\n"
    assert not (world.root / "1.1" / "tmp").exists()
    assert Path("/etc/passwd").exists()


def test_used_resources_are_measured(world: World) -> None:
    burn = "import time\nlarge = bytearray(60_000_000)\nwhile time.process_time() < 0.3: pass\n"
    used = world.run(
        PYTHON
        + burn
        + (
            "import os\nif os.fork() == 0:\n    while time.process_time() < 0.2: pass\nelse: "
            "os.wait()\n"
        )
    ).used
    assert 0.4 <= used["cput"] < 20
    assert used["mem"] >= 60_000_000
    assert used["walltime"] >= 0.3


def test_other_users_and_strange_keys_are_refused(world: World) -> None:
    end = world.run("echo no", uid=os.getuid() + 1)
    assert end.status == -1
    assert str(os.getuid() + 1) in end.why
    assert not (world.root / "1.1").exists()

    async def go() -> None:
        async with world.running() as executor:
            for key in ("", "..", "a", "1/2", "1\n", ".1", "../1", "1\0", "-1", "1" * 200):
                with pytest.raises(ValueError):
                    executor.launch(world.attempt(key, "true"))
                with pytest.raises(ValueError):
                    executor.stop(key, 1.0)
                with pytest.raises(ValueError):
                    executor.forget(key)
            executor.launch(world.attempt("12-3.1", "exit 4"))
            assert (await world.end_of("12-3.1")).status == 4

    asyncio.run(go())


def test_launching_twice_runs_once_and_forget_waits_for_the_end(world: World) -> None:
    async def go(executor: ProcessExecutor | None = None) -> None:
        attempt = world.attempt("1.1", "echo once >> ran; until test -e go; do sleep 0.05; done")
        async with world.running() as executor:
            executor.launch(attempt)
            executor.launch(attempt)
            await world.start_of("1.1")
            executor.launch(attempt)
            with pytest.raises(ValueError, match="not ended"):
                executor.forget("1.1")
            (world.base / "go").touch()
            await world.end_of("1.1")
            executor.launch(attempt)  # reported again, not run again
            await until(lambda: len(world.reports) == 4)
            executor.forget("1.1")
            assert not (world.root / "1.1").exists()
        assert os.listdir(world.root) == ["events"]

    asyncio.run(go())
    assert world.text("ran") == "once\n"


def test_job_can_be_followed_while_it_runs(world: World) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(
                world.attempt("1.1", "echo early; until test -e go; do sleep 0.05; done; echo late")
            )
            spool = Path(executor.spools("1.1")[0])
            await until(lambda: spool.exists() and spool.read_text(encoding="utf-8") == "early\n")
            assert not (world.base / "1.1.o").exists()  # delivered whole, when the job has ended
            (world.base / "go").touch()
            await world.end_of("1.1")

    asyncio.run(go())
    assert world.text("1.1.o") == "early\nlate\n"


def test_signal_numbers_are_checked(world: World) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.signal("1.1", signal.SIGTERM)  # unknown attempt: nothing happens
            for number in (0, -1, 65):
                with pytest.raises(ValueError):
                    executor.signal("1.1", number)

    asyncio.run(go())


def test_arguments_reach_the_script(world: World) -> None:
    assert world.run("#!/bin/sh\nprintf '%s|' \"$@\"\n", arguments=("a b", "c")).status == 0
    assert world.text("1.1.o") == "a b|c|"
    assert world.run("printf '%s|' \"$@\"\n", "2.1", arguments=("d", "*")).status == 0
    assert world.text("2.1.o") == "d|*|"


def test_files_are_copied_before_and_after_and_a_directory_of_its_own_goes(
    world: World, tmp_path: Path
) -> None:
    home, own = tmp_path / "home", tmp_path / "home/own"
    (home / "data/deep").mkdir(parents=True)
    (home / "data/in.txt").write_text("in\n")
    (home / "data/deep/file").write_text("deep\n")
    end = world.run(
        (
            "pwd; cat in.txt data/deep/file; echo 1 > r1.txt; echo 2 > r2.txt; mkdir tree; echo 3 "
            "> "
            "tree/x"
        ),
        directory=str(own),
        home=str(home),
        is_private=True,
        stage_in=(("in.txt", str(home / "data/in.txt")), ("", "data")),
        stage_out=(("r*.txt", "data"), ("tree", str(home / "back"))),
    )
    assert (end.status, end.why) == (0, "")
    assert world.text("1.1.o") == f"{own}\nin\ndeep\n"
    assert not own.exists()
    assert [(home / name).read_text() for name in ("data/r1.txt", "data/r2.txt", "back/x")] == [
        "1\n",
        "2\n",
        "3\n",
    ]
    assert (home / "data/in.txt").read_text() == "in\n"


def test_what_cannot_be_staged_is_said(world: World, tmp_path: Path) -> None:
    end = world.run(
        "echo ran", directory=str(tmp_path), home=str(tmp_path), stage_in=(("x", "/no/such"),)
    )
    assert end.status == -1
    assert "stagein /no/such" in end.why
    assert "No such file" in world.text("1.1.e")
    assert world.text("1.1.o") == ""
    own = tmp_path / "own"
    end = world.run(
        "echo kept > kept",
        "2.1",
        directory=str(own),
        home=str(tmp_path),
        is_private=True,
        stage_out=(("missing", "/tmp"), ("kept", "/no/such/place/kept")),
    )
    assert end.status == 0
    assert "stageout" in end.why
    assert (own / "kept").read_text() == "kept\n"  # nothing is lost that could not be copied


def test_a_copy_onto_itself_is_none(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("as it was\n")
    staged = (("file", str(tmp_path / "file")),)
    end = world.run(
        "cat file", directory=str(tmp_path), home=str(tmp_path), stage_in=staged, stage_out=staged
    )
    assert (end.status, end.why) == (0, "")
    assert (tmp_path / "file").read_text() == "as it was\n"


def test_output_files_go_if_that_is_asked_for_and_the_job_ended_well(world: World) -> None:
    assert world.run("echo x", remove="oe").status == 0
    assert not (world.base / "1.1.o").exists()
    assert world.run("echo x; exit 3", "2.1", remove="oe").status == 3
    assert world.text("2.1.o") == "x\n"


def test_removing_outputs_touches_only_what_the_job_wrote(world: World, tmp_path: Path) -> None:
    old, folder = tmp_path / "old", tmp_path / "folder"
    old.write_text("from before\n")
    folder.mkdir()
    assert world.run("echo x", remove="oe", join="oe", error=str(old)).status == 0
    assert old.read_text() == "from before\n"  # the error went to the output
    assert (
        world.run(
            "mkdir made; echo x",
            "2.1",
            remove="o",
            directory=str(tmp_path),
            output=str(tmp_path / "made"),
        ).status
        == 0
    )
    assert not list((tmp_path / "made").iterdir())
    assert (
        world.run("echo x", "3.1", remove="o", output=str(tmp_path / "direct"), direct="o").status
        == 0
    )
    assert not (tmp_path / "direct").exists()


def test_a_directory_of_its_own_that_was_there_before_is_never_removed(
    world: World, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "kept").write_text("from before\n")
    end = world.run("echo ran", directory=str(own), home=str(tmp_path), is_private=True)
    assert end.status == -1
    assert "File exists" in end.why
    assert (own / "kept").read_text() == "from before\n"


PROFILE = """
module() { echo "module $*"; }
export MODULEPATH=/modules
PATH=/usr/bin:/bin
echo "profile read" >&2
"""


def home_of(folder: Path, name: str, text: str = PROFILE) -> dict[str, str]:
    """Return an environment with a home that has a profile file of that name."""
    (folder / name).write_text(text, encoding="utf-8")
    return {"HOME": str(folder), "PATH": "/opt/ours:/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("shell", "profile"), [("/bin/bash", ".bash_profile"), ("/bin/sh", ".profile")]
)
def test_a_script_without_a_first_line_gets_what_the_profile_exports(
    world: World, tmp_path: Path, shell: str, profile: str
) -> None:
    """As in OpenPBS: the login shell reads the profile, the script is its child."""
    script = (
        'echo "$MODULEPATH $PATH"; type module > /dev/null 2>&1; echo $?; echo "$0 $1"\nexit 3\n'
    )
    end = world.run(script, shell=shell, environment=home_of(tmp_path, profile), arguments=("a b",))
    assert end.status == 3
    path, found, name = world.text("1.1.o").splitlines()
    assert path == "/modules /opt/ours:/usr/bin:/bin"
    assert found != "0"  # a function that is not exported
    assert name == f"{world.root / '1.1/1.1.SC'} a b"
    assert world.text("1.1.e") == "profile read\n"


@pytest.mark.parametrize("first", ["", "#!/bin/bash", "#! /bin/bash -e", "#!/usr/bin/env bash"])
def test_a_shell_that_the_first_line_names_gets_what_the_profile_exports(
    world: World, tmp_path: Path, first: str
) -> None:
    """Lmod and Environment Modules export their function for bash; the options of the line
    count."""
    environment = home_of(tmp_path, ".bash_profile", PROFILE + "export -f module\n")
    script = f'{first}\nmodule load gcc; echo "$MODULEPATH $PATH"; echo "$0 $1"\nfalse\nexit 4\n'
    end = world.run(script, shell="/bin/bash", environment=environment, arguments=("a b",))
    assert end.status == (1 if "-e" in first else 4)
    assert world.text("1.1.o").splitlines() == [
        "module load gcc",
        "/modules /opt/ours:/usr/bin:/bin",
        f"{world.root / '1.1/1.1.SC'} a b",
    ]


def test_the_shell_that_was_asked_for_reads_the_profile_before_the_one_of_the_first_line(
    world: World, tmp_path: Path
) -> None:
    environment = home_of(tmp_path, ".profile")
    (tmp_path / ".bash_profile").write_text("export MODULEPATH=/of/bash\n", encoding="utf-8")
    assert (
        world.run(
            '#!/bin/sh\necho "$MODULEPATH"\n', shell="/bin/bash", environment=environment
        ).status
        == 0
    )
    assert world.text("1.1.o") == "/of/bash\n"


def test_the_path_keeps_what_the_job_was_given_and_what_the_profile_puts_before_it(
    world: World, tmp_path: Path
) -> None:
    environment = home_of(tmp_path, ".profile", "PATH=/first:/usr/bin:/bin:/last\n")
    environment["PATH"] = "/opt/ours:/usr/bin:/venv/bin:/bin"
    assert world.run('echo "$PATH"; set', environment=environment).status == 0
    path, *variables = world.text("1.1.o").splitlines()
    assert path == "/opt/ours:/venv/bin:/first:/usr/bin:/bin:/last"
    assert not [line for line in variables if line[:2] in ("p=", "n=", "d=")]


def test_scripts_of_other_languages_get_what_the_profile_exports(
    world: World, tmp_path: Path
) -> None:
    script = PYTHON + "import os, sys; print(sys.argv[1:], 'MODULEPATH' in os.environ)"
    assert (
        world.run(script, environment=home_of(tmp_path, ".profile"), arguments=("a",)).status == 0
    )
    assert world.text("1.1.o") == "['a'] True\n"
    assert world.text("1.1.e") == "profile read\n"


def test_a_profile_that_ends_the_shell_ends_the_job(world: World, tmp_path: Path) -> None:
    end = world.run("echo ran", environment=home_of(tmp_path, ".profile", "exit 5\n"))
    assert (end.status, world.text("1.1.o")) == (5, "")


def test_without_a_login_shell_scripts_run_without_a_profile(world: World, tmp_path: Path) -> None:
    environment = home_of(tmp_path, ".profile")
    for key, first in (("1.1", ""), ("2.1", "#!/bin/sh\n")):
        assert (
            world.run(
                f'{first}echo "$MODULEPATH$PATH"', key, environment=environment, login=False
            ).status
            == 0
        )
        assert world.text(f"{key}.o") == "/opt/ours:/usr/bin:/bin\n"
