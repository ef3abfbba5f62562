"""From a job that starts to what an executor needs: environment, node file, output files (spec/pbs.md sections 3, 4)."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

from qbatch.daemon.core.records import output_path, slots_of
from qbatch.daemon.executors.attempt import Attempt
from qbatch.wire.identifiers import ARRAY, JobKey
from qbatch.wire.resources import parse_duration, parse_size

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob
    from qbatch.daemon.core.state import Core

_PATH = "/usr/local/bin:/usr/bin:/bin"


def attempt_of(core: Core, job: BatchJob, surroundings: dict[str, str]) -> Attempt:
    """Return the present attempt of a running job.

    ``surroundings``: variables that every job gets from the daemon (QBATCH_SOCKET, the way to the PBS commands).
    """
    spec = job.spec
    account = _account(job.uid)
    shell = (spec.shell.split(",")[0].partition("@")[0] or account.pw_shell) if account else spec.shell
    if not shell or shell.endswith(("nologin", "false")):
        shell = "/bin/sh"
    home = account.pw_dir if account and os.path.isdir(account.pw_dir) else "/"
    slots = slots_of(core, job)
    hosts = core.pool_of(job).machine.hosts
    node_file = tuple(hosts[host].name for host, _, _, count in slots for _ in range(count))
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
        directory=home,
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
        limits=_limits(job),
        direct="".join(letter for letter in "oe" if letter in spec.keep),
    )


def _limits(job: BatchJob) -> dict[str, float]:
    """Return what a job may use of what it asked for: a limit that it did not ask for does not hold."""
    resources, demand = job.spec.resources, job.prepared.demand
    limits: dict[str, float] = {
        name: parse_duration(resources[name]) / 1e6 for name in ("cput", "pcput") if name in resources
    }
    if demand.memory:
        limits["mem"] = float(demand.memory)
    if "vmem" in resources:
        limits["vmem"] = float(parse_size(resources["vmem"]))
    return limits


def _account(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return None


def _path(job: BatchJob, core: Core, which: str, home: str) -> str:
    return local_path(output_path(job, which), job.spec.directory or home, core.id_of(job.key), which)


def local_path(text: str, directory: str, identifier: str, which: str) -> str:
    """Return the absolute path of an output (``out``) or error (``err``) file: ``host:`` goes, a directory gets a file's name."""
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
        "PBS_O_QUEUE": job.spec.queue or core.settings.default_queue,
        "PBS_TASKNUM": "1",
        "PBS_NODENUM": "0",
        "PBS_VNODENUM": "0",
        "PBS_MOMPORT": "15003",
        "PBS_JOBCOOKIE": f"{job.sequence:016X}{job.attempt:016X}",
        "NCPUS": str(procs),
        "OMP_NUM_THREADS": str(threads),
        "PBS_NUM_NODES": str(demand.hosts),
        "PBS_NUM_PPN": str(procs),
        "PBS_NP": str(len(node_file)),
        "PBS_WALLTIME": str(job.prepared.walltime // 1_000_000),
        "PBS_O_INITDIR": job.spec.directory or home,
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
