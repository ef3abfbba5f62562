"""What a site decides, as tables of a machine file: read, written, and refused with the line."""

from __future__ import annotations

import pytest

from qbatch.model.errors import InputError
from qbatch.model.machine import Machine
from qbatch.model.machine_file import machine_as_toml, parse_machine
from qbatch.model.site import NO_LIMIT, OF_PARENT, Account, Limits, Passes, Site, UserShare

HOSTS = """schema = 2
[[host]]
name = "n[1-4]"
cpus = 8
memory = "64GB"
resources = { "gpu:a100" = 4 }
[[partition]]
name = "main"
hosts = ["all"]
rank = { tier = 2, priority = 10 }
qos = "high"
"""
SITE = (
    HOSTS
    + """[[qos]]
name = "high"
priority = 100
limits = "gpu"
preempts = ["low"]
grace = 60
[[qos]]
name = "low"
usage_factor = 0.5
exempt = "0:01:00"
preempt_mode = "requeue"
flags = ["deny-on-limit", "over-partition-qos"]
[[share]]
name = "phys"
shares = 40
qos = ["high", "low"]
default_qos = "low"
users = { u1 = 10, "u.2" = { shares = "parent", limits = "gpu", default = true } }
[[share]]
name = "physa"
parent = "phys"
shares = "parent"
[limits.gpu]
max_jobs_per_user = 10
max_per_user = { gpu = 8, memory = "64GB" }
run_minutes = { cpus = 600000 }
max_wall = 0
[priority]
weights = { age = 1000, fairshare = 10000, resources = { gpu = 100, cpus = 0.5 } }
max_age = "7-00:00:00"
period = 60
flags = ["favor-small", "no-normal-qos"]
[fairshare]
kind = "classic"
half_life = 0
dampening = 3
reset = "monthly"
[scheduler]
kind = "slurm"
enforce = ["associations", "limits"]
main = { interval = 30, defer = true }
backfill = { interval = 15, max_test = 50, once_per_job = true, window = "2-00:00:00" }
[preempt]
kind = "qos"
mode = "requeue"
exempt = 30
"""
)


def site_of(machine: Machine) -> Site:
    assert machine.site is not None
    return machine.site


def test_the_tables_of_a_site_are_read_and_written() -> None:
    machine = parse_machine(SITE, "site.toml")
    site = site_of(machine)
    high, low = site.qos
    assert (high.priority, high.limits, high.preempts, high.grace) == (100, "gpu", ("low",), 60)
    assert (low.usage_factor, low.exempt, low.preempt_mode) == (0.5, 60, "requeue")
    assert (high.exempt, low.flags) == (NO_LIMIT, ("deny-on-limit", "over-partition-qos"))
    users = (UserShare("u1", 10), UserShare("u.2", OF_PARENT, "gpu", is_default=True))
    phys = Account("phys", "root", 40, users, qos=("high", "low"), default_qos="low")
    assert site.accounts == (phys, Account("physa", "phys", OF_PARENT))
    gpu = (("gpu", 8), ("memory", 64 * 2**30))
    assert site.limits == (
        Limits(
            "gpu",
            max_jobs_per_user=10,
            max_per_user=gpu,
            run_minutes=(("cpus", 600_000),),
            max_wall=0,
        ),
    )
    priority = site.priority
    assert (priority.kind, priority.age, priority.fairshare) == ("multifactor", 1000, 10_000)
    assert (priority.max_age, priority.period) == (604_800, 60)
    assert priority.resources == (("gpu", 100.0), ("cpus", 0.5))
    assert (site.fairshare.kind, site.fairshare.half_life) == ("classic", 0)
    assert site.passes == Passes(
        interval=30,
        is_deferring=True,
        backfill_interval=15,
        backfill_depth=50,
        backfill_once_per_job=True,
        backfill_window=172_800,
    )
    assert (site.enforces_accounts, site.enforces_limits, site.enforces_qos) == (True, True, False)
    assert (site.preemption.kind, site.preemption.exempt) == ("qos", 30)
    assert (machine.partitions[0].priority, machine.partitions[0].qos) == (10, "high")
    assert parse_machine("\n".join(machine_as_toml(machine)), "again") == machine


def test_a_file_without_them_has_no_site_and_the_same_digest_as_before() -> None:
    plain = HOSTS.replace('qos = "high"\n', "").replace(", priority = 10", "")
    machine = parse_machine(plain, "m.toml")
    assert machine.site is None
    assert "site" not in machine.facts()
    with_site = parse_machine(f"{plain}[priority]\n", "m.toml")
    assert with_site.digest != machine.digest
    assert site_of(with_site).priority.kind == "submit"


def test_users_are_found_by_account_or_by_their_default() -> None:
    text = f"{SITE}[[share]]\nname = 'chem'\nusers = {{ 'u.2' = 1, u3 = 1 }}\n"
    site = site_of(parse_machine(text, "site.toml"))
    numbers = [site.association_of(*each) for each in (("u1", ""), ("u.2", ""), ("u.2", "chem"))]
    assert numbers == [0, 1, 2]
    assert site.association_of("u1", "chem") == -1
    assert site.association_of("unknown", "") == -1


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (('limits = "gpu"', 'limits = "gqu"'), "line 15, key 'limits': there is no set of limits"),
        (('preempts = ["low"]', 'preempts = ["lo"]'), "there is no QOS 'lo'; did you mean 'low'?"),
        (("usage_factor = 0.5", "usage_factor = -1"), "-1 is not a number from 0"),
        (
            ('preempts = ["low"]\n', "[[qos]]\nname = 'high'\n"),
            "the qos 'high' appears twice",
        ),
        (('parent = "phys"', 'parent = "chem"'), "there is no [[share]] 'chem' before 'physa'"),
        (("shares = 40", "shares = -1"), "-1 is neither a whole number from 0"),
        (("u1 = 10", "u1 = true"), "u1 = True is neither shares nor a table"),
        (("{ gpu = 8,", "{ gqu = 8,"), "there is no resource 'gqu'; did you mean 'gpu'?"),
        (('memory = "64GB" }', 'memory = "many" }'), "'many' is not a memory size"),
        (("max_jobs_per_user", "max_job_per_user"), "did you mean 'max_jobs_per_user'?"),
        (("age = 1000", "age = 0.5"), "0.5 is not a whole number"),
        (("gpu = 100", "gpu = 'x'"), "gpu = 'x' is not a number"),
        (('"favor-small"', '"favour"'), "there is no flag 'favour'"),
        (('kind = "classic"', 'kind = "clasic"'), "'clasic'; did you mean 'classic'?"),
        (('kind = "slurm"\n', ""), 'main and backfill need kind = "slurm"'),
        (("max_test = 50", "max_tests = 50"), "is not known in backfill of [scheduler]"),
        (('enforce = ["associations"', 'enforce = ["accounts"'), "there is no thing to enforce"),
        (("[preempt]", "[[preempt]]"), "must be one table: [preempt]"),
        (('qos = "high"\n[[qos]]', 'qos = "hi"\n[[qos]]'), "line 11, key 'qos': there is no QOS"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(change: tuple[str, str], error: str) -> None:
    assert change[0] in SITE
    with pytest.raises(InputError) as refused:
        parse_machine(SITE.replace(*change), "site.toml")
    assert error in str(refused.value)
