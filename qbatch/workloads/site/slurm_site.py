"""A whole site that runs Slurm, of its own files: hosts, partitions, accounts, QOS, limits, weights
and passes, as one machine (docs/spec/production.md, section 7)."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from qbatch.model.errors import InputError
from qbatch.model.machine import Machine, expand_names
from qbatch.workloads.accounting.slurm_conf import conf_lines, read_site
from qbatch.workloads.site.notes import SiteNotes
from qbatch.workloads.site.sacctmgr import (
    Association,
    read_accounts,
    read_associations,
    read_dump,
    read_qos,
)
from qbatch.workloads.site.slurm_settings import Setting, read_settings

_OF_MACHINES = ("clustername", "selecttypeparameters", "selecttype")


class SlurmFiles(NamedTuple):
    """The files of a site: ``slurm.conf``, ``gres.conf``, a dump of ``sacctmgr`` or its table of
    associations, its table of QOS, and the output of ``scontrol show reservation -o``."""

    conf: str
    gres: str | None = None
    dump: str | None = None
    associations: str | None = None
    qos: str | None = None
    reservations: str | None = None


def read_slurm_site(files: SlurmFiles, notes: SiteNotes) -> Machine:
    """Return the machine of a site, with what it decides.

    Raises:
        InputError: names the file, the line and the reason.
    """
    found = read_site(files.conf, files.reservations)
    settings = {name: Setting(*pair) for name, pair in found.settings.items()}
    for name in _OF_MACHINES:
        if name in settings:
            notes.use(settings[name].place, name, "hosts")
    for remark in found.remarks:
        name, _, text = remark.partition(": ")
        notes.ignore(files.conf, name, text)
    site = read_settings(settings, notes)
    qos, limits = ((), []) if files.qos is None else read_qos(files.qos, notes)
    known = {each.name for each in qos}
    lines: list[Association] = []
    if files.dump is not None:
        lines = read_dump(files.dump)
    elif files.associations is not None:
        lines = read_associations(files.associations)
    accounts, of_accounts = read_accounts(lines, known, notes)
    partitions = []
    for each in found.machine.partitions:
        name = found.partition_qos.get(each.name, "")
        if name and name not in known:
            notes.ignore(files.conf, f"QOS={name} of partition {each.name}", "no file defines it")
            name = ""
        partitions.append(msgspec.structs.replace(each, qos=name))
    if files.gres is not None:
        _check_gres(files.gres, found.machine, notes)
    return msgspec.structs.replace(
        found.machine,
        partitions=tuple(partitions),
        site=msgspec.structs.replace(
            site, accounts=accounts, qos=qos, limits=(*limits, *of_accounts)
        ),
    )


def _check_gres(path: str, machine: Machine, notes: SiteNotes) -> None:
    """Hold a ``gres.conf`` against the nodes: ``slurm.conf`` says how much each has, and Slurm
    drains a node that has less."""
    places = {host.name: dict(host.resources) for host in machine.hosts}
    for place, pairs in conf_lines(path):
        if "name" not in pairs:
            notes.ignore(place, next(iter(pairs)), "has no effect on decisions")
            continue
        name = pairs["name"].lower()
        many = len(expand_names(pairs["file"])) if "file" in pairs else 1
        if re.fullmatch(r"\d{1,6}", pairs.get("count", "")):
            many = int(pairs["count"])
        typed = f"{name}:{pairs['type']}" if "type" in pairs else name
        for host in expand_names(pairs["nodename"]) if "nodename" in pairs else places:
            there = places.get(host, {}).get(typed, 0)
            if "nodename" in pairs and host not in places:
                raise InputError(f"{place}: there is no node {host!r} in slurm.conf")
            if "nodename" in pairs and there > many:
                text = f"node {host} has {there} {typed} in slurm.conf and {many} here"
                notes.ignore(place, typed, f"{text}; Slurm would drain it")
        notes.use(place, typed, "[[host]] resources, as slurm.conf has them")
