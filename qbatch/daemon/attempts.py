"""What an executor needs to start a job: environment, node file, output files (docs/spec/pbs.md 3
and 4)."""

from __future__ import annotations

import os
import pwd
import shlex
from typing import TYPE_CHECKING

from qbatch.daemon.core.counted import GPU
from qbatch.daemon.core.records import (
    asked_queue,
    directory_of,
    limits_of,
    output_path,
    slots_of,
)
from qbatch.daemon.executors.attempt import Attempt
from qbatch.wire.identifiers import ARRAY, JobKey
from qbatch.wire.staging import parse_staging

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob
    from qbatch.daemon.core.state import Core


def attempt_of(
    core: Core, job: BatchJob, surroundings: dict[str, str], scripts: str = ""
) -> Attempt:
    """Return the present attempt of a running job.

    ``scripts``: the directory of long scripts.  ``surroundings``: variables that every job gets
    from the daemon (QBATCH_SOCKET, the directory of the PBS commands).
    """
    spec, identifier = job.spec, core.id_of(job.key)
    try:
        account = pwd.getpwuid(job.uid)
    except KeyError:
        account = None
    shell = (
        (spec.shell.split(",")[0].partition("@")[0] or account.pw_shell) if account else spec.shell
    )
    if not shell or shell.endswith(("nologin", "false")):
        shell = "/bin/sh"
    home = home_of(account)
    home = home if os.path.isdir(home) else "/"
    slots = slots_of(core, job)
    hosts = core.pool_of(job).machine.hosts
    node_file = tuple(hosts[slot.host].name for slot in slots for _ in range(slot.lines))
    directory = directory_of(spec, identifier, home)
    paths = []
    for which, letter, asked in (("out", "o", spec.output), ("err", "e", spec.error)):
        path = local_path(output_path(job, which), spec.directory or home, identifier, which)
        is_kept = letter in spec.keep and "d" not in spec.keep and not asked
        paths.append(f"{home}/{os.path.basename(path)}" if is_kept else path)
    try:
        arguments = shlex.split(spec.extra.get("script_arguments", ""))  # Torque's -F
    except ValueError:
        arguments = spec.extra["script_arguments"].split()
    limits = {
        name: most
        for name, most in limits_of(job).items()
        if name in core.pool_of(job).settings.enforce
    }
    return Attempt(
        key=job.file_key,
        job_id=identifier,
        uid=job.uid,
        gid=account.pw_gid if account else os.getgid(),
        script=spec.script,
        script_file=f"{scripts}/{spec.script_digest}" if spec.script_digest else "",
        argv=spec.argv,
        arguments=tuple(arguments),
        encoding=spec.encoding,
        shell=shell,
        login=core.settings.login_shell,
        home=home,
        directory=directory,
        is_private=spec.extra.get("sandbox") == "PRIVATE",
        environment=_environment(core, job, home, shell, node_file, surroundings),
        output=paths[0],
        error=paths[1],
        join=spec.join,
        direct="".join(letter for letter in "oe" if letter in spec.keep),
        umask=0o077 if spec.umask is None else spec.umask,
        remove=spec.extra.get("remove", ""),
        stage_in=_staged(spec.extra.get("stagein", "")),
        stage_out=_staged(spec.extra.get("stageout", "")),
        host=hosts[slots[0].host].name if slots else "",
        node_file=node_file,
        procs=job.size,
        share=job.size / job.prepared.request.procs,
        limits=limits,
        walltime=job.prepared.walltime / 1e6,
        grace=core.settings.kill_delay / 1e6,
    )


def _gpus_on_first_host(job: BatchJob) -> str:
    """Return the numbers of a job's GPUs on the host on which its script runs, as
    CUDA_VISIBLE_DEVICES lists them; empty: it sees none."""
    slots = job.present.slots
    return ",".join(
        str(number)
        for slot in slots
        if slot.host == slots[0].host
        for first, last in slot.gpu_ranges
        for number in range(first, last + 1)
    )


def _staged(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((part.local, part.remote) for part in parse_staging(text)) if text else ()


def home_of(account: pwd.struct_passwd | None) -> str:
    """Return the home directory of a user; for the user who runs the daemon it is the daemon's
    ``HOME``, as in a shell."""
    if account is None:
        return "/"
    own = os.environ.get("HOME", "") if account.pw_uid == os.geteuid() else ""
    return own if os.path.isabs(own) else account.pw_dir


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
    core: Core,
    job: BatchJob,
    home: str,
    shell: str,
    node_file: tuple[str, ...],
    surroundings: dict[str, str],
) -> dict[str, str]:
    demand = job.prepared.demand
    identifier = core.id_of(job.key)
    first = demand.chunks[0]
    procs = min(first.procs, job.size)
    threads = first.threads or procs
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "USER": job.user,
        "LOGNAME": job.user,
        "SHELL": shell,
        **job.spec.variables,
        "ENVIRONMENT": "BATCH",
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
    if GPU in core.pool_of(job).machine.resources:
        environment["CUDA_VISIBLE_DEVICES"] = _gpus_on_first_host(job)
    if job.is_subjob:
        array = core.id_of(JobKey(job.sequence, ARRAY))
        environment |= {
            "PBS_ARRAY_INDEX": str(job.member),
            "PBS_ARRAYID": str(job.member),
            "PBS_ARRAY_ID": array,
        }
    return environment
