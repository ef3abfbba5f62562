from __future__ import annotations

import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qbatch.cli.pbs.qsub import quoted
from qbatch.cli.pbs.submission import read_attributes, read_date
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcome, Outcomes
from qbatch.wire.requests import Alter, Spec, Submit, Wait
from tests.cli.pbs.harness import Shell


def words(line: str) -> list[str]:
    return line.split()


def submit(
    shell: Shell, script: str = "#!/bin/sh\ntrue\n", *arguments: str, **environment: str
) -> Spec:
    (shell.directory / "job.sh").write_text(script)
    result = shell.run("qsub", *arguments, "job.sh", **environment)
    assert (result.code, result.err) == (0, "")
    return last(shell)


def last(shell: Shell) -> Spec:
    request = [each for each in shell.server.requests if isinstance(each, Submit)][-1]
    return request.spec


def refused(shell: Shell, *arguments: str, script: str = "true\n") -> str:
    shell.stdin = script.encode()
    result = shell.run("qsub", *arguments)
    assert result.out == ""
    assert result.code != 0
    assert not shell.server.requests
    assert result.err.startswith("qsub: ")
    return result.err.splitlines()[0]


def test_only_the_identifier_is_printed(shell: Shell) -> None:
    (shell.directory / "job.sh").write_text("true\n")
    assert shell.run("qsub", "job.sh") == (0, "1.qbatch\n", "")
    assert shell.run("qsub", "-z", "job.sh") == (0, "", "")
    assert shell.run("qsub", "-J", "1-3", "job.sh") == (0, "3[].qbatch\n", "")


def test_a_script_comes_from_a_file_from_stdin_or_is_a_command(shell: Shell) -> None:
    assert submit(shell).name == "job.sh"
    assert last(shell).script == "#!/bin/sh\ntrue\n"
    for operands in ([], ["-"]):
        shell.stdin = b"echo from stdin\n"
        assert shell.run("qsub", *operands).code == 0
        assert (last(shell).name, last(shell).script) == ("STDIN", "echo from stdin\n")
    assert shell.run("qsub", "-q", "batch", "--", "/bin/sleep", "-5", "a b").code == 0
    assert (last(shell).script, last(shell).argv, last(shell).name) == (
        None,
        ("/bin/sleep", "-5", "a b"),
        "STDIN",
    )


def test_a_script_of_other_bytes_arrives_as_it_is(shell: Shell) -> None:
    content = b"#!/bin/sh\n# \xe9\xff\x00\n#PBS -N x\nprintf '\\001'\n"
    (shell.directory / "job.sh").write_bytes(content)
    assert shell.run("qsub", "job.sh").code == 0
    spec = last(shell)
    assert (spec.script or "").encode(spec.encoding) == content
    assert spec.name == "x"


def test_the_command_line_goes_over_the_directives_resource_by_resource(shell: Shell) -> None:
    script = (
        "#!/bin/sh\n#PBS -N inside\n#PBS -l select=2:ncpus=4,walltime=0:2:0\n#PBS -q a -p 5\n"
        "#PBS -v A=1,B=2\ntrue\n"
    )
    spec = submit(shell, script, "-N", "outside", "-l", "walltime=60", "-v", "B=3")
    assert (spec.name, spec.queue, spec.priority) == ("outside", "a", 5)
    assert spec.resources == {"select": "2:ncpus=4", "walltime": "60"}
    assert (spec.variables.get("A"), spec.variables["B"]) == (None, "3")  # the last -v counts
    torque = {"QBATCH_DIALECT": "torque"}
    assert submit(shell, script, "-v", "B=3", **torque).variables["A"] == "1"
    assert submit(shell, script, "-l", "nodes=1:ppn=2", **torque).resources == {
        "nodes": "1:ppn=2",
        "walltime": "0:2:0",
    }
    shell.server.requests.clear()
    said = refused(shell, "-l", "nodes=1:ppn=2", script=script)
    assert said.startswith("qsub: Cannot be used with select or place")


def test_of_two_resources_in_directives_the_first_counts_and_on_the_command_line_the_last(
    shell: Shell,
) -> None:
    script = (
        "#PBS -l select=1:ncpus=2,walltime=60\n#PBS -l select=1:ncpus=3\n#PBS -l walltime=70,Mem=1gb\n"
        "#PBS -N one\n#PBS -N two\n"
    )
    spec = submit(shell, script)
    assert spec.resources == {"select": "1:ncpus=2", "walltime": "60", "mem": "1gb"}
    assert spec.name == "two"
    spec = submit(shell, "true\n", "-l", "walltime=60,ncpus=1", "-l", "NCPUS=2,Walltime=70")
    assert spec.resources == {"walltime": "70", "ncpus": "2"}
    assert submit(shell, "true\n", "-l", "").resources == {}


def test_psij_batchspawner_and_saga_scripts(shell: Shell) -> None:
    spec = submit(
        shell,
        (
            '\n#!/bin/bash\n#PBS -N="test_1"\n#PBS \n#PBS -v "A=1","B=x"\n#PBS -V \n#PBS -e '
            "/dev/null\n"
        ),
    )
    assert spec.name == "test_1"
    assert spec.error == "/dev/null"
    assert spec.variables["A"] == "1"


def test_the_prefix_of_directives(shell: Shell) -> None:
    script = "#!/bin/sh\n#SGE -N sge\n#PBS -N pbs\ntrue\n"
    assert submit(shell, script, "-C", "#SGE").name == "sge"
    assert submit(shell, script, PBS_DPREFIX="#SGE").name == "sge"
    assert submit(shell, script, "-C", "").name == "job.sh"
    assert submit(shell, script, "-C", "#PBS", PBS_DPREFIX="#SGE").name == "pbs"


def test_variables_of_the_submission(shell: Shell) -> None:
    shell.environment.update(LANG="C", SHELL="/bin/sh", SECRET="no", LIST="a,b")
    spec = submit(shell, "true\n", "-v", "LIST,X='1,2',PBS_O_MISSING,E=", PWD=str(shell.directory))
    assert spec.variables == {
        "PBS_O_HOME": "/home/alice",
        "PBS_O_LANG": "C",
        "PBS_O_LOGNAME": "alice",
        "PBS_O_PATH": "/bin",
        "PBS_O_SHELL": "/bin/sh",
        "PBS_O_HOST": os.uname().nodename,
        "PBS_O_WORKDIR": str(shell.directory),
        "PBS_O_SYSTEM": "Linux",
        "LIST": "a,b",
        "X": "1,2",
        "E": "",
    }
    whole = submit(
        shell, "true\n", "-V", "-v", "SECRET=yes", PBS_O_WORKDIR="/of/the/outer/job", BAD="\udc80"
    ).variables
    assert whole["SECRET"] == "yes"
    assert whole["PBS_O_WORKDIR"] == str(shell.directory)
    assert "BAD" not in whole


@pytest.mark.parametrize(
    ("given_", "path"),
    [
        ("out.txt", "{}/out.txt"),
        ("logs/", "{}/logs/"),
        ("./a", "{}/a"),
        ("/dev/null", "/dev/null"),
        ("localhost:/x/y", "localhost:/x/y"),
        ("localhost:rel", "localhost:{}/rel"),
        ("o.^array_index^", "{}/o.^array_index^"),
        ("/x/$PBS_JOBID.o", "/x/$PBS_JOBID.o"),
        ("${PBS_JOBID}.o", "{}/${PBS_JOBID}.o"),
        ("~/o", "/home/alice/o"),
        ("$HOME/o", "/home/alice/o"),
        ("$PBS_O_WORKDIR/o", "{}/o"),
        (".", "{}/."),
    ],
)
def test_paths_are_absolute_and_otherwise_left_alone(given_: str, path: str, shell: Shell) -> None:
    spec = submit(shell, "true\n", "-o", given_, "-e", given_)
    expected = path.replace("{}/", f"{shell.directory}/", 1)
    assert (spec.output, spec.error) == (expected, expected)


def test_every_option_reaches_its_field(shell: Shell) -> None:
    spec = submit(
        shell,
        "true\n",
        *words(
            "-A acct -c c=5 -h -j oe -k oed -m abe -M a@b,c@d -N n -p -7 -P proj -q fast@srv -r n "
            "-S /bin/zsh"
        ),
        *words(
            "-W depend=afterok:1:2,afterany:3[],group_list=g,umask=027,block=false,sandbox=PRIVATE"
        ),
        *words("-a 203001021530.10"),
    )
    assert spec == Spec(
        name="n",
        script="true\n",
        queue="fast@srv",
        account="acct",
        checkpoint="c=5",
        hold="u",
        join="oe",
        keep="oed",
        mail_points="abe",
        mail_users="a@b,c@d",
        priority=-7,
        project="proj",
        is_rerunnable=False,
        shell="/bin/zsh",
        depend="afterok:1:2,afterany:3[]",
        group_list="g",
        umask=0o27,
        extra={"sandbox": "PRIVATE"},
        not_before=int(time.mktime((2030, 1, 2, 15, 30, 10, 0, 0, -1))) * 1_000_000,
        variables=spec.variables,
        directory=str(shell.directory),
        host=os.uname().nodename,
        submit_arguments=spec.submit_arguments,
    )
    assert spec.submit_arguments.startswith("-A acct -c c=5 -h -j oe")


def test_arrays_of_both_dialects(shell: Shell) -> None:
    spec = submit(shell, "#PBS -J 1-9:2%3\ntrue\n")
    assert (spec.array, spec.is_torque) == ("1-9:2%3", False)
    assert submit(shell, "true\n", "-J", "1-3%0").array == "1-3"
    torque = {"QBATCH_DIALECT": "torque"}
    spec = submit(shell, "#PBS -t 1-4\ntrue\n", **torque)  # ipyparallel
    assert (spec.array, spec.is_torque) == ("1-4", True)
    assert submit(shell, "true\n", QBATCH_DIALECT="torque").is_torque


def test_torques_options_are_taken(shell: Shell) -> None:
    shell.environment["QBATCH_DIALECT"] = "torque"
    spec = submit(shell, "true\n", *words("-b 5 -d /work -D / -E -f -F a -n -u bob -w /w -o out"))
    assert spec.resources == {"nodes": "1#excl"}
    assert spec.extra == {"init_dir": "/work", "script_arguments": "a", "user_list": "bob"}
    assert (spec.directory, spec.variables["PBS_O_WORKDIR"], spec.output) == ("/w", "/w", "/w/out")
    here = str(shell.directory)
    assert submit(shell, "true\n", "-w", "sub").extra == {"init_dir": f"{here}/sub"}
    assert submit(shell, "true\n", "-d", "sub").extra == {"init_dir": f"{here}/sub"}
    assert submit(shell, "true\n", "-n", "-l", "nodes=2:ppn=2").resources == {
        "nodes": "2:ppn=2#excl"
    }
    assert submit(shell, "true\n", "-n", "-l", "ncpus=3").resources == {
        "ncpus": "3",
        "nodes": "1:ppn=3#excl",
    }
    whole = submit(shell, "true\n", "-n", "-l", "select=2", "-l", "place=scatter").resources
    assert whole == {"select": "2", "place": "scatter:excl"}


@pytest.mark.parametrize("option", words("-b5 -d/x -D/ -E -F x -G -K5 -Lx -n -t1 -Tx -wx -x"))
def test_options_that_only_torque_has_are_unknown_in_openpbs(option: str, shell: Shell) -> None:
    if option.startswith("-"):
        line = f"qsub: invalid option -- '{option[1]}'"
        assert refused(shell, option, "x") == line
        shell.stdin = f"#PBS {option} x\n".encode()
        code, out, err = shell.run("qsub")
        directive = f"qsub: directive error: {option} x\n"
        assert (code, out, err) == (1, "", f"{line}\n{directive}")


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("-D /x", "-D cannot be honoured"),
        ("-G", "-G cannot be honoured"),
        ("-K 5", "-K cannot be honoured"),
        ("-L tasks=1", "-L cannot be honoured"),
        ("-T x", "-T cannot be honoured"),
        ("-x", "-x cannot be honoured"),
        ("-X", "X11 Forwarding possible only for interactive jobs"),
    ],
)
def test_what_of_torque_cannot_be_honoured_is_refused_by_name(
    option: str, why: str, shell: Shell
) -> None:
    shell.environment["QBATCH_DIALECT"] = "torque"
    assert refused(shell, *words(option)).startswith(f"qsub: {why}")


@pytest.mark.parametrize(
    ("option", "code", "why"),
    [
        ("-X", 2, "DISPLAY not set"),
        ("-W qos=high", 154, "Error (15002) submitting job"),
        ("-W x=NACCESSPOLICY:SINGLEJOB", 154, "Error (15002) submitting job"),
        (
            "-W comment=x",
            155,
            "Cannot set attribute, read only or insufficient permission  comment",
        ),
        ("-W interactive=true", 2, "illegal -W value: interactive jobs are not supported"),
        ("-W sandbox=ELSEWHERE", 2, "illegal -W value: sandbox is one of"),
        ("-W stagein=a", 2, "illegal -W value: stagein: 'a' is not of the form"),
        ("-W tolerate_node_failures=maybe", 166, "Illegal attribute or resource value"),
        ("-W block=1", 2, "illegal -W value"),
        ("-W depend=afterok:1[2]", 2, "cannot have dependancy on subjob or range"),
        ("-W depend=afteranyarray:1[]", 2, "illegal -W value"),
        ("-W group_list=", 2, "illegal -W value"),
        ("-W foo", 2, "illegal -W value"),
        ("-r n -J 1-2", 2, " cannot submit non-rerunable Array Job"),
        ("-v UNSET", 1, "cannot send environment with the job: -v UNSET"),
        ("-v =1", 1, "cannot send environment with the job"),
        ("-l select=1:ncpus=2:ncpus=3", 12, "duplicated resource within a section"),
        ("-l mem=4GiB", 166, "Illegal attribute or resource value Resource_List.mem"),
        ("-l select=1:mem=x", 166, "Illegal attribute or resource value select.mem"),
        ("-o nosuch.invalid:/x", 2, "illegal -o value: there is no host nosuch.invalid"),
        ("-M a,,b", 2, "illegal -M value"),
        ("-S bin/sh", 2, "illegal -S value"),
        ("-S /bin/sh,/bin/bash", 2, "illegal -S value"),
        ("-u a,b", 2, "illegal -u value"),
        ("-k d", 2, "illegal -k value"),
        ("-k no", 2, "illegal -k value"),
        ("-R n", 2, "illegal -R value"),
        ("-c u", 2, "illegal -c value"),
        ("-m f", 2, "illegal -m value"),
    ],
)
def test_what_openpbs_refuses_is_refused_with_its_words_and_code(
    option: str, code: int, why: str, shell: Shell
) -> None:
    assert refused(shell, *words(option)).startswith(f"qsub: {why}")
    shell.stdin = b"true\n"
    assert shell.run("qsub", *words(option)).code == code


@pytest.mark.parametrize("name", ["a%b", "a b", "a=b", "a,b", "a:b", "a[1]", "a@b", "a#b", "é", ""])
def test_a_name_has_letters_digits_and_four_signs(name: str, shell: Shell) -> None:
    assert refused(shell, "-N", name).startswith("qsub: illegal -N value")
    shell.stdin = b"true\n"
    assert shell.run("qsub", "-N", "1a.b-c+d_e").code == 0


def test_attributes_without_an_effect_are_kept_and_shown(shell: Shell) -> None:
    given = "release_nodes_on_stageout=true,tolerate_node_failures=job_start,umask=999,run_count=3"
    spec = submit(shell, "true\n", "-W", given)
    assert spec.umask is None
    assert spec.extra == {
        "release_nodes_on_stageout": "True",
        "tolerate_node_failures": "job_start",
        "umask": "999",
        "run_count": "3",
    }


def test_a_backslash_in_a_value_stays(shell: Shell) -> None:
    spec = submit(shell, "true\n", "-v", r"""A=r\s,B=a\,b,C="x,y",D='p"q',E=\\,F=say\"s""")
    assert [spec.variables[name] for name in "ABCDEF"] == [
        r"r\s",
        "a,b",
        "x,y",
        'p"q',
        r"\\",
        'say"s',
    ]


def test_torque_takes_names_with_slashes_and_variables_that_are_not_set(shell: Shell) -> None:
    spec = submit(
        shell, "true\n", "-N", "project/bundle/1", "-v", "UNSET,A=1", QBATCH_DIALECT="torque"
    )
    assert spec.name == "project/bundle/1"
    assert "UNSET" not in spec.variables
    torque = {"QBATCH_DIALECT": "torque"}
    assert submit(
        shell, "#PBS -l procs=\n#PBS -l mem=1gb,procs=,walltime=60\n", **torque
    ).resources == {
        "mem": "1gb",
        "walltime": "60",
    }
    shell.server.requests.clear()
    assert refused(shell, "-N", "project/x").startswith("qsub: illegal -N value")


def test_every_attribute_can_be_given_by_its_name(shell: Shell) -> None:
    script = (
        "#PBS -WJob_Name='inside' -W account_name=acc,Priority=-3,Rerunable=False,Join_Path=oe\n"
        "#PBS -W Output_Path=out,Error_Path=/x/err,Keep_Files=oe,Mail_Points=ab,Mail_Users=a@b,c@d\n"
        "#PBS -W Hold_Types=u,Shell_Path_List=/bin/zsh,Variable_List=A=1,project=p,Checkpoint=c=5\n"
        "#PBS -W Execution_Time=1900000000,array_indices_submitted=1-9,max_run_subjobs=3,Remove_Files=oe\n"
        "#PBS -W stagein=a@h:/b -W stagein=c@h:/d,stageout=e@h:/f,run_count=2,sandbox=private\n"
        "#PBS Account_Name=arc\n"
    )
    spec = submit(shell, script + "true\n", "-W", "Job_Name=outside")
    here = str(shell.directory)
    assert (spec.name, spec.account, spec.priority, spec.is_rerunnable) == (
        "outside",
        "arc",
        -3,
        False,
    )
    assert (spec.output, spec.error, spec.join, spec.keep) == (f"{here}/out", "/x/err", "oe", "oe")
    assert (spec.mail_points, spec.mail_users, spec.hold, spec.shell) == (
        "ab",
        "a@b,c@d",
        "u",
        "/bin/zsh",
    )
    assert (spec.variables["A"], spec.project, spec.checkpoint) == ("1", "p", "c=5")
    assert (spec.not_before, spec.array) == (1_900_000_000_000_000, "1-9%3")
    assert spec.extra == {
        "remove": "oe",
        "stagein": "a@h:/b,c@h:/d",
        "stageout": "e@h:/f",
        "run_count": "2",
        "sandbox": "PRIVATE",
    }


def test_qalter_takes_attributes_and_says_what_it_cannot_change(shell: Shell) -> None:
    assert shell.run("qalter", "-W", "Job_Name=new,Priority=7,Account_Name=x", "1").code == 0
    request = shell.sent()
    assert isinstance(request, Alter)
    assert (request.changes.name, request.changes.priority, request.changes.account) == (
        "new",
        7,
        "x",
    )
    for option in ("-W sandbox=PRIVATE", "-u bob", "-W stagein=a@h:/b"):
        result = shell.run("qalter", *words(option), "1")
        assert (result.code, result.out) == (2, "")
        assert "cannot be changed" in result.err


def test_our_own_directives_make_emulated_jobs(shell: Shell) -> None:
    spec = submit(
        shell,
        "#!/bin/sh\n#QBATCH runtime=90.5 exit=3\n#QBATCH\ntrue\n#QBATCH exit=4\n",
        "-C",
        "#SGE",
    )
    assert (spec.runtime, spec.fate) == (90_500_000, 3)
    assert submit(shell, "#QBATCH runtime=1:00:00\n").runtime == 3_600_000_000


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["-l", "walltime=soon"],
            "qsub: Illegal attribute or resource value Resource_List.walltime: 'soon' is no time",
        ),
        (
            ["-l", "nodes=1", "-l", "select=1"],
            "qsub: Cannot be used with select or place: nodes",
        ),
        (["-l", "mem=lots"], "qsub: Illegal attribute or resource value Resource_List.mem"),
        (["-l", "=2"], "qsub: illegal -l value"),
        (["-l", "ncpus=1,"], "qsub: illegal -l value"),
        (["-N", "a b"], "qsub: illegal -N value"),
        (["-N", "a/b"], "qsub: illegal -N value"),
        (["-N", ""], "qsub: illegal -N value"),
        (["-N", "x" * 231], "qsub: Job name is too long"),
        (["-N", "\x1b[2J"], "qsub: illegal -N value"),
        (["-p", "1024"], "qsub: illegal -p value"),
        (["-p", "x"], "qsub: illegal -p value"),
        (["-j", "x"], "qsub: illegal -j value"),
        (["-r", "maybe"], "qsub: illegal -r value"),
        (["-m", "na"], "qsub: illegal -m value"),
        (["-k", "z"], "qsub: illegal -k value"),
        (["-J", "3-1"], "qsub: illegal -J value"),
        (["-a", "99999999"], "qsub: illegal -a value"),
        (["-c", "q"], "qsub: illegal -c value"),
        (["-v", "A='x"], "qsub: cannot send environment with the job"),
        (["-W", "depnd=1"], "qsub: Error (15002) submitting job: -W depnd is no attribute"),
        (["-W", "depend=afterwards:1"], "qsub: illegal -W value"),
        (["-W", "depend=afterok:x"], "qsub: illegal -W value"),
        (["-W", "umask=x"], "qsub: illegal -W value"),
        (["-Y"], "qsub: invalid option -- 'Y'"),
        (["-q"], "qsub: option requires an argument -- 'q'"),
        (["a", "b"], "qsub: too many operands: a b"),
        (["absent.sh"], "qsub: script file:: No such file or directory (absent.sh)"),
        (["."], "qsub: script not a file: ."),
        (["-I"], "qsub: interactive jobs are not supported yet; leave -I out and give a script"),
        (["--"], "qsub: no command after --"),
    ],
)
def test_what_is_refused_before_it_is_sent(arguments: list[str], line: str, shell: Shell) -> None:
    said = refused(shell, *arguments)
    assert said.startswith(line)
    if "illegal" in line:
        shell.stdin = b"true\n"
        code, out, err = shell.run("qsub", *arguments)
        assert (code, out) == (2, "")
        assert err.startswith(f"{said}\nusage: qsub [-a date_time]")


@pytest.mark.parametrize(
    "script",
    [
        "#PBS -Y\n",
        "#PBS foo\n",
        "#PBS -N 'x\n",
        "#PBS -q\n",
        "#QBATCH runtime=x\n",
        "#QBATCH wibble=1\n",
    ],
)
def test_a_wrong_directive_is_named(script: str, shell: Shell) -> None:
    shell.stdin = script.encode()
    result = shell.run("qsub")
    assert (result.code in (1, 2), result.out) == (True, "")
    assert any(
        words in result.err for words in ("directive error: ", "illegal #QBATCH", "unmatched '")
    )


def test_a_value_in_a_directive_is_refused_as_one_of_the_command_line(shell: Shell) -> None:
    for script, code, err in (
        ("#PBS -N 'a b'\n", 2, "qsub: illegal -N value"),
        ("#PBS -l mem=x\n", 166, "qsub: Illegal attribute or resource value Resource_List.mem"),
        ("#PBS -W depend=x\n", 2, "qsub: illegal -W value"),
        ("#PBS -a x\n", 1, "qsub: illegal -a value"),
        ("#PBS -r x\n", 1, "qsub: illegal -r value"),
        ("#PBS -l =1\n", 1, "qsub: illegal -l value"),
        ("#PBS -N x # comment\n", 1, "qsub: directive error: -N x # comment"),
    ):
        assert refused(shell, script=script).startswith(err)
        shell.stdin = script.encode()
        result = shell.run("qsub")
        assert result.code == code, script
        assert ("directive error: " in result.err) == (code == 1), script


def test_what_the_daemon_refuses(shell: Shell) -> None:
    for said in ("no queue 'nope'; known are batch", "Unknown queue nope"):

        def refuse(_: object, said: str = said) -> Submit:
            raise Refusal("unknown-queue", said)

        shell.server.overrides["Submit"] = refuse
        shown = said if said.startswith("Unknown") else f"Unknown queue ({said})"
        assert shell.run("qsub", "-q", "nope", "--", "true") == (170, "", f"qsub: {shown}\n")


@pytest.mark.parametrize(
    ("status", "code"), [(0, 0), (7, 7), (271, 15), (None, 3), (-29, 227), (512, 1)]
)
def test_block_waits_and_exits_like_the_job(status: int | None, code: int, shell: Shell) -> None:
    shell.server.overrides["Wait"] = lambda request: Outcomes(
        outcomes=(Outcome(name=request.jobs[0], exit_status=status, has_run=True),)
    )
    assert shell.run("qsub", "-W", "block=true", "--", "true") == (code, "1.qbatch\n", "")
    assert shell.sent() == Wait(jobs=("1.qbatch",), id=2)


def test_parts_of_w_without_a_sign_belong_to_the_part_before() -> None:
    assert read_attributes('depend="afterok:1,afterany:2:3",block=true,stagein=a@h:b,c@h:d') == {
        "depend": "afterok:1,afterany:2:3",
        "block": "true",
        "stagein": "a@h:b,c@h:d",
    }
    assert read_attributes("depend=on:2")["depend"] == "on:2"


def test_dates_that_are_past_are_of_the_next_day_month_or_year() -> None:
    now = time.mktime((2026, 11, 20, 12, 0, 0, 0, 0, -1))

    def local(*parts: int) -> int:
        return int(time.mktime((*parts, 0, 0, -1))) * 1_000_000  # type: ignore[arg-type]

    assert read_date("a", "1300", now) == local(2026, 11, 20, 13, 0, 0)
    assert read_date("a", "1100", now) == local(2026, 11, 21, 11, 0, 0)
    assert read_date("a", "191100", now) == local(2026, 12, 19, 11, 0, 0)
    assert read_date("a", "01021100", now) == local(2027, 1, 2, 11, 0, 0)
    assert read_date("a", "2601021100.30", now) == local(2026, 1, 2, 11, 0, 30)
    assert read_date("a", "199912312359", now) == local(1999, 12, 31, 23, 59, 0)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None
)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                words(
                    "-l -v -W -N -o -e -j -J -t -a -p -m -k -C -S -z -V -h -r select=1:ncpus=2 A=1 "
                    "1-3"
                )
            ),
            st.text(max_size=15),
        ),
        max_size=6,
    ),
    st.text(max_size=100),
)
def test_no_command_line_and_no_script_break_it(
    shell: Shell, arguments: list[str], script: str
) -> None:
    shell.stdin = f"#PBS {script}".encode()
    result = shell.run("qsub", *[each.replace("\0", "") for each in arguments])
    assert result.code == 0 or (result.err.startswith("qsub: ") and result.out == "")


def test_words_are_quoted_as_for_a_shell() -> None:
    assert quoted(["-N", "a b", "it's", "", "x,y=1"]) == "-N 'a b' 'it'\"'\"'s' '' x,y=1"


def test_a_walltime_with_a_part_of_a_second_is_rounded_as_in_openpbs(shell: Shell) -> None:
    assert shell.run("qsub", "-l", "walltime=0:1.5", "--", "true").code == 0
    assert last(shell).resources["walltime"] == "2"
