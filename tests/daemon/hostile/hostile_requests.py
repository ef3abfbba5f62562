"""Requests with valid verbs and fields and hostile values: drawn from a seed, so that a death can
be repeated.

Every field of every verb has values of its own.  Some are values that a handler takes, so that the
state grows rich; some are of the right type but no handler should take them; now and then one is of
another type.
"""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec

from qbatch.wire.requests import AnyRequest, Changes, Spec

LEFT_OUT = {"Shutdown", "Backup", "Reload"}
"""Verbs that end the daemon, write where the test has no business, or need a file to read."""

KINDS = {
    kind.__struct_config__.tag: kind
    for kind in AnyRequest.__args__
    if kind.__name__ not in LEFT_OUT
}

NUMBERS: tuple[Any, ...] = (
    0,
    1,
    2,
    7,
    -1,
    -2,
    255,
    256,
    511,
    1023,
    1024,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**32,
    2**53,
    2**60,
    2**62,
    -(2**62),
    2**63 - 1,
    10**25,
    60_000_000,
    3_600_000_000,
)
FLOATS: tuple[Any, ...] = (
    0,
    0.0,
    -0.0,
    1,
    -1,
    0.5,
    60,
    5e-324,
    1e-300,
    -1e308,
    1e308,
    1e9,
    1e9 + 1,
    86_400,
    2**63,
)
WORDS = (
    "",
    " ",
    "x",
    "hybrid:depth=3",
    "easy",
    "1",
    "0",
    "-1",
    "²",
    "٣",
    "\0",
    "\n",
    "a\nb",
    "\x1b[2J",
    "\u202e",
    "é" * 40,
    "x" * 3000,
    "9" * 50,
    "1e400",
    "nan",
    "inf",
    "-",
    "--",
    "=",
    ":",
    "a=b",
    ",",
    "+",
    "[",
    "(",
    "*",
    "%s%n",
    "${PBS_JOBID}",
    "$(reboot)",
    "../../etc/passwd",
    "/",
    "/dev/null",
    "/proc/self/mem",
    "'; DROP TABLE history; --",
    "None",
    "true",
    "uos",
    "n",
    "p",
)
SIZES = (
    "1gb",
    "100mb",
    "1.5gb",
    "0",
    "0b",
    "1w",
    "9" * 18 + "pb",
    "-1gb",
    "gb",
    "1e9",
    "hybrid:depth=3",
    "²gb",
    "1 gb",
    "",
)
TIMES = (
    "60",
    "1:00",
    "1:00:00",
    "1:1:1:1",
    "0",
    "0:0:0",
    "999999999:0:0",
    "-1",
    "1:-1",
    "1.5",
    "²",
    "hybrid:depth=3",
    "",
)
COUNTS = ("1", "2", "4", "16", "0", "-1", "1000000", "9" * 30, "1.5", "²", "x", "")
SELECTS = (
    "1",
    "2:ncpus=2",
    "1:ncpus=1+2:ncpus=2:mpiprocs=2",
    "2:ncpus=1:mem=1gb",
    "1:ncpus=0",
    "1:host=n1",
    "1:vnode=n2:ncpus=1",
    "1:host=²",
    "0",
    "-1",
    "1:ncpus=x",
    "1:mem=hybrid:depth=3",
    "1:ngpus=-5",
    "9999999999",
    "+",
    "1:",
    ":",
    "1::",
    "1:ncpus=1:ncpus=2",
    "2:ncpus=2:ompthreads=9999999",
    "1:arch=\x1b",
    "1:software=²",
    "10000000:ncpus=10000000",
)
NODES = (
    "1",
    "2:ppn=2",
    "n1",
    "n1+n2:ppn=2",
    "n9:ppn=2",
    "1:ppn=0",
    "2:ppn=x",
    "²",
    "+",
    "1#shared",
    "2:gpus=1:fast",
    "0",
    ":ppn=1",
    "",
)
PLACES = (
    "free",
    "pack",
    "scatter",
    "scatter:excl",
    "exclhost",
    "vscatter:shared",
    "group=host",
    "x",
    "excl:excl",
    ":",
    "",
)
RESOURCES: dict[str, tuple[str, ...]] = {
    "ncpus": COUNTS,
    "procs": COUNTS,
    "mpiprocs": COUNTS,
    "ompthreads": COUNTS,
    "ngpus": COUNTS,
    "nice": COUNTS,
    "nodect": COUNTS,
    "mem": SIZES,
    "vmem": SIZES,
    "pmem": SIZES,
    "pvmem": SIZES,
    "file": SIZES,
    "size": SIZES,
    "walltime": TIMES,
    "cput": TIMES,
    "pcput": TIMES,
    "min_walltime": TIMES,
    "max_walltime": TIMES,
    "soft_walltime": TIMES,
    "select": SELECTS,
    "nodes": NODES,
    "place": PLACES,
    "host": WORDS,
    "vnode": WORDS,
    "arch": WORDS,
    "software": WORDS,
    "exec_vnode": WORDS,
    "preempt_targets": WORDS,
    "feature": WORDS,
    "deadline": TIMES,
    "x": WORDS,
    "²": WORDS,
    "": WORDS,
}
SCRIPTS = (
    "true",
    "sleep 5\nexit 3",
    "sleep 0",
    "sleep " + "9" * 40,
    "sleep 1e300",
    "sleep -1",
    "sleep nan",
    "exit 256",
    "exit -1",
    "exit " + "9" * 30,
    "kill -9 $$",
    "",
    "\0",
    "#!",
    "#!\r\n",
    "#PBS -l\n",
    "é",
)
DEPENDS = (
    "afterok:1",
    "afterany:1:2:3",
    "beforeok:2",
    "before:1",
    "on:2",
    "on:²",
    "on:0",
    "on:-1",
    "after:1[]",
    "afterok:1[2]",
    "afterok",
    "afterok:",
    ":",
    "x:1",
    "afternotok:999999",
    "afterok:1,afterok:1",
    "beforeany:1,on:1",
    "afterok:1.qbatch@x",
)
ARRAYS = (
    "1-3",
    "1-10:2%3",
    "0-9",
    "1-5%0",
    "1-5%-1",
    "5-1",
    "1",
    "1-1",
    "1-999999999",
    "²-³",
    "a-b",
    "1-3,7",
    "1-3%",
    "-1-3",
    "1-3:0",
    "",
)
JOBS = (
    "1",
    "2",
    "3",
    "4",
    "7",
    "10",
    "1[]",
    "2[1]",
    "3[2].qbatch",
    "5.qbatch@x",
    "1[",
    "²",
    "99999999999999",
    "0",
    "-1",
    "",
    "1[999999999]",
    "\0",
)
HOSTS = ("n1", "n2", "n3", "n4", "n9", "", "²", "\0", "n[1-4]", "N1", "n1.x")
POLICIES = (
    "fcfs",
    "easy",
    "conservative",
    "hybrid:depth=3",
    "lxf-backfill",
    "easy:order=sjf",
    "hybrid:depth=-1",
    "hybrid:depth=" + "9" * 30,
    "x",
    "",
    ":",
    "easy:",
    "easy:order=",
    "easy:order=²",
    "priority-backfill:wait=nan",
    "priority-backfill:wait=1e308",
    "lsf",
    "soon:inner=easy",
    "immediate:inner=immediate",
    "os:system",
    "equispatial",
    "conservative:compress=scratch",
    "\0",
)
TEXTS: dict[str, tuple[str, ...]] = {
    "hold": ("u", "o", "s", "uos", "n", "p", "", "x", "²", "\0"),
    "kinds": ("u", "o", "s", "uos", "n", "", "x"),
    "depend": DEPENDS,
    "array": ARRAYS,
    "job": JOBS,
    "first": JOBS,
    "second": JOBS,
    "after": (*JOBS, ""),
    "script": SCRIPTS,
    "policy": POLICIES,
    "pool": ("", "default", "pool", "x"),
    "destination": ("batch", "narrow", "@", "batch@x", "x", "", "²"),
    "queue": ("", "batch", "narrow", "x", "batch@x"),
    "join": ("n", "oe", "eo", "x", ""),
    "keep": ("n", "oe", "d", "o", "x", "²"),
    "finished": ("no", "also", "only", "x", ""),
    "until": ("end", "start", "x", ""),
    "states": ("", "QR", "Z", "²", "F"),
    "signal": (
        "TERM",
        "SIGKILL",
        "9",
        "0",
        "64",
        "65",
        "-1",
        "suspend",
        "resume",
        "CONT",
        "STOP",
        "²",
        "",
        "RTMIN",
        "NULL",
    ),
    "encoding": ("utf-8", "latin-1", "x", ""),
    "files": ("E", "O", "OE", "x", ""),
    "checkpoint": ("u", "n", "c=5", "²"),
    "kind": (
        "submit-refused",
        "status-slow",
        "status-failed",
        "job-exit",
        "host-down",
        "clear",
        "x",
        "",
    ),
    "pattern": ("", "*", "[", "(", "(a+)+$", "x{99999999}", "\0"),
    "status": ("failed", "0", "-1", "9" * 40, "²", ""),
    "mail_points": ("n", "abe", "x", ""),
    "runtime": WORDS,
    "umask": WORDS,
}
ACTIONS = {
    "host-control": ("drain", "resume", "up", "down", "comment", "x", ""),
    "shadow": ("show", "set", "x"),
    "time": (
        "show",
        "pause",
        "play",
        "step",
        "speed",
        "until",
        "until-start",
        "until-end",
        "until-count",
        "x",
    ),
}
LISTS: dict[str, tuple[str, ...]] = {
    "jobs": JOBS,
    "hosts": HOSTS,
    "queues": ("batch", "narrow", "x", "", "²"),
    "users": ("root", "nobody", "", "\0"),
    "policies": POLICIES,
    "argv": ("sleep", "1", "true", "\0", "", "x" * 2000),
}


class Hostile:
    """Draws requests.

    Args:
        seed: of the draws.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def request(self) -> bytes:
        """Return the body of one request; submissions come more often than the rest."""
        verb = "submit" if self._random.random() < 0.25 else self._random.choice(sorted(KINDS))
        body = {
            "verb": verb,
            "id": self._random.randrange(1 << 30),
            **self._fields(KINDS[verb], verb),
        }
        return json.dumps(body).encode()

    def _fields(self, kind: Any, verb: str) -> dict[str, Any]:
        found = {}
        for field in msgspec.structs.fields(kind):
            if field.name in ("v", "id"):
                continue
            if field.required or self._random.random() < (0.2 if kind in (Spec, Changes) else 0.6):
                found[field.name] = self._value(field.name, str(field.type), verb)
        if kind is Spec and self._random.random() < 0.8:
            found.pop("argv", None)
            found["script"] = self._random.choice(SCRIPTS[:3])
        if verb == "wait":
            found["timeout"] = self._random.choice((0, 0.001, -1, 0.01))
        return found

    def _value(self, name: str, kind: str, verb: str) -> Any:
        draw = self._random
        if draw.random() < 0.02:
            return draw.choice((None, True, -1, 1.5, "x", [], {}, [None], {"a": 1}, 10**25))
        if "Spec" in kind:
            return self._fields(Spec, verb)
        if "Changes" in kind:
            return self._fields(Changes, verb)
        if "dict" in kind:
            return self._mapping(name)
        if "tuple" in kind:
            values = LISTS.get(name, WORDS)
            return [draw.choice(values) for _ in range(draw.choice((0, 1, 1, 1, 2, 3)))]
        if "bool" in kind:
            return draw.random() < 0.5
        if "float" in kind:
            return draw.choice(FLOATS)
        if "int" in kind:
            return draw.choice(NUMBERS)
        if name == "action":
            return draw.choice(ACTIONS[verb])
        plausible = TEXTS.get(name, WORDS)
        return draw.choice(plausible if draw.random() < 0.9 else WORDS)

    def _mapping(self, name: str) -> dict[str, str]:
        draw = self._random
        if name == "resources":
            names = draw.sample(sorted(RESOURCES), draw.choice((0, 1, 1, 2, 3)))
            return {
                each: draw.choice(RESOURCES[each] if draw.random() < 0.9 else WORDS)
                for each in names
            }
        return {draw.choice(WORDS): draw.choice(WORDS) for _ in range(draw.choice((0, 1, 2)))}
