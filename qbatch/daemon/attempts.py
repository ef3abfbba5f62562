"""What an executor needs to start a job: environment, node file, output files (docs/spec/pbs.md 3 and 4)."""

from __future__ import annotations

import os
import pwd
import shlex
from typing import TYPE_CHECKING

from qbatch.daemon.core.records import asked_queue, limits_of, output_path, slots_of
from qbatch.daemon.executors.attempt import Attempt
from qbatch.wire.identifiers import ARRAY, JobKey
from qbatch.wire.staging import parse_staging

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob
    from qbatch.daemon.core.state import Core

_PATH = "/usr/local/bin:/usr/bin:/bin"


def attempt_of(core: Core, job: BatchJob, surroundings: dict[str, str], scripts: str = "") -> Attempt:
    """Return the present attempt of a running job.

    ``scripts``: the directory of long scripts.  ``surroundings``: variables that every job gets from the daemon
    (QBATCH_SOCKET, the directory of the PBS commands).
    """
    spec = job.spec
    account = _account(job.uid)
    shell = (spec.shell.split(",")[0].partition("@")[0] or account.pw_shell) if account else spec.shell
    if not shell or shell.endswith(("nologin", "false")):
        shell = "/bin/sh"
    home = home_of(account)
    home = home if os.path.isdir(home) else "/"
    slots = slots_of(core, job)
    hosts = core.pool_of(job).machine.hosts
    node_file = tuple(hosts[host].name for host, _, _, count in slots for _ in range(count))
    directory, is_private = _directory(core, job, home)
    output, error = _path(job, core, "out", home), _path(job, core, "err", home)
    if "o" in spec.keep and "d" not in spec.keep and not spec.output:
        output = f"{home}/{os.path.basename(output)}"
    if "e" in spec.keep and "d" not in spec.keep and not spec.error:
        error = f"{home}/{os.path.basename(error)}"
    return Attempt(
        key=job.file_key,
        job_id=core.id_of(job.key),
        script=spec.script,
        argv=spec.argv,
        shell=shell,
        environment=_environment(core, job, home, shell, node_file, surroundings),
        directory=directory,
        output=output,
        error=error,
        join=spec.join,
        node_file=node_file,
        walltime=job.prepared.walltime / 1e6,
        grace=core.settings.kill_delay / 1e6,
        umask=0o077 if spec.umask is None else spec.umask,
        uid=job.uid,
        gid=account.pw_gid if account else os.getgid(),
        encoding=spec.encoding,
        procs=job.size,
        share=job.size / job.prepared.request.procs,
        limits={name: most for name, most in limits_of(job).items() if name in core.pool_of(job).settings.enforce},
        direct="".join(letter for letter in "oe" if letter in spec.keep),
        home=home,
        script_file=f"{scripts}/{spec.script_digest}" if spec.script_digest else "",
        stage_in=_staged(spec.extra.get("stagein", "")),
        stage_out=_staged(spec.extra.get("stageout", "")),
        is_private=is_private,
        arguments=_arguments(spec.extra.get("script_arguments", "")),
        remove=spec.extra.get("remove", ""),
        host=hosts[slots[0][0]].name if slots else "",
        login=core.settings.login_shell,
    )


def _directory(core: Core, job: BatchJob, home: str) -> tuple[str, bool]:
    """Return the directory in which a job begins, and whether it is made for the job."""
    extra = job.spec.extra
    sandbox = extra.get("sandbox", "HOME")
    if sandbox == "PRIVATE":
        return f"{home.rstrip('/')}/pbs.{core.id_of(job.key)}.x8z", True
    if sandbox == "O_WORKDIR" and job.spec.directory:
        return job.spec.directory, False
    return extra.get("init_dir") or home, False


def _staged(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((part.local, part.remote) for part in parse_staging(text)) if text else ()


def _arguments(text: str) -> tuple[str, ...]:
    """Return the words of Torque's -F."""
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return tuple(text.split())


def _account(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return None


def home_of(account: pwd.struct_passwd | None) -> str:
    """Return the home directory of a user; for the user who runs the daemon it is the daemon's ``HOME``, as in a shell."""
    if account is None:
        return "/"
    own = os.environ.get("HOME", "") if account.pw_uid == os.geteuid() else ""
    return own if os.path.isabs(own) else account.pw_dir


def _path(job: BatchJob, core: Core, which: str, home: str) -> str:
    return local_path(output_path(job, which), job.spec.directory or home, core.id_of(job.key), which)


def local_path(text: str, directory: str, identifier: str, which: str) -> str:
    """Return the absolute path of an output (``out``) or error (``err``) file.

    A leading ``host:`` is dropped; the name of the file is added to a directory.
    """
    host, colon, rest = text.partition(":")
    path = rest if colon and "/" not in host else text
    path = path.replace("${PBS_JOBID}", identifier).replace("$PBS_JOBID", identifier)
    if not path.startswith("/"):
        path = f"{directory}/{path}"
    if path == "/dev/null":
        return path
    if path.endswith("/") or os.path.isdir(path):
        path = f"{path.rstrip('/')}/{identifier}.{'OU' if which == 'out' else 'ER'}"
    return path


def _environment(
    core: Core, job: BatchJob, home: str, shell: str, node_file: tuple[str, ...], surroundings: dict[str, str]
) -> dict[str, str]:
    demand = job.prepared.demand
    identifier = core.id_of(job.key)
    first = demand.chunks[0]
    procs = min(first.procs, job.size)
    threads = first.threads or procs
    environment = {
        "PATH": _PATH,
        "HOME": home,
        "USER": job.user,
        "LOGNAME": job.user,
        "SHELL": shell,
        **job.spec.variables,
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBID": identifier,
        "PBS_JOBNAME": job.name,
        "PBS_QUEUE": job.queue,
        "PBS_O_QUEUE": asked_queue(core, job),
        "PBS_TASKNUM": "1",
        "PBS_NODENUM": "0",
        "PBS_VNODENUM": "0",
        "PBS_MOMPORT": "15003",
        "PBS_JOBCOOKIE": f"{job.sequence:016X}{job.attempts:016X}",
        "NCPUS": str(procs),
        "OMP_NUM_THREADS": str(threads),
        "PBS_NUM_NODES": str(demand.hosts),
        "PBS_NUM_PPN": str(procs),
        "PBS_NP": str(len(node_file)),
        "PBS_WALLTIME": str(job.prepared.walltime // 1_000_000),
        "PBS_O_INITDIR": job.spec.extra.get("init_dir") or job.spec.directory or home,
        **surroundings,
    }
    environment.setdefault("PBS_O_WORKDIR", job.spec.directory or home)
    if surroundings.get("QBATCH_BIN"):
        environment["PATH"] = f"{environment.pop('QBATCH_BIN')}:{environment['PATH']}"
    if job.is_subjob:
        array = core.id_of(JobKey(job.sequence, ARRAY))
        environment |= {
            "PBS_ARRAY_INDEX": str(job.member),
            "PBS_ARRAYID": str(job.member),
            "PBS_ARRAY_ID": array,
        }
    return environment
