"""The policies of the guides and the tutorial keep the contract, and what the pages say of each is
so."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qbatch.engine.engine import Engine
from qbatch.model.actions import Reject
from qbatch.model.events import Finished, Submitted
from qbatch.model.job import Job
from qbatch.model.machine import one_host
from qbatch.policies import load_policy
from qbatch.simulation import run
from tests.contract.test_policies import MACHINES, cases
from tests.documents.blocks import ROOT, blocks_of
from tests.harness import command

DOCUMENTS = [
    ROOT / "docs" / "reference" / "policy-interface.md",
    ROOT / "docs" / "tutorials" / "your-own-policy.md",
    *sorted((ROOT / "docs" / "how-to").glob("*policy*.md")),
]
SECOND = 1_000_000
ON_ONE_POOL = {"BestFit"}
IN_CONTRACT = ("WidestFirst", "FairShare", "ManyFactors", "Express", "Guarded")


def codes() -> list[str]:
    """Return the code of each policy that a page lets its reader write into a file, once."""
    blocks = [
        block
        for path in DOCUMENTS
        for block in blocks_of(path)
        if block.language == "python" and block.file
    ]
    return list(
        {name_of(block.text): block.text for block in blocks if "def decide" in block.text}.values()
    )


def name_of(code: str) -> str:
    (name,) = re.findall(r"^class (\w+)(?:\(CompiledPolicy\))?:$", code, re.MULTILINE)
    return str(name)


def policies() -> dict[str, type[Any]]:
    """Return the policies in Python; the compiled one has a test of its own
    (tests/planning/test_compiled_policy.py)."""
    found: dict[str, type[Any]] = {}
    for code in codes():
        if "CompiledPolicy" in code:
            continue
        name = name_of(code)
        space: dict[str, Any] = {"__name__": "mine"}
        # What is read from no file has no place in a cache.
        exec(code.replace("cache=True", ""), space)
        found[name] = space[name]
    return found


OWN = policies()


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())
@pytest.mark.parametrize("name", OWN)
def test_every_job_runs_or_is_refused(name: str, machine: Any) -> None:
    if name in ON_ONE_POOL and not machine.is_one_pool:
        machine = MACHINES["spanned hosts"]
    for seed, work in cases(machine, 12):
        schedule = run(work, machine, OWN[name](), is_audited=True)
        refused = {each.row for each in schedule.rejected}
        assert {row for row, ran in enumerate(schedule.ran.tolist()) if not ran} == refused, seed
        assert name == "NoLongQueue" or not refused, seed


def test_the_contract_is_kept(tmp_path: Path) -> None:
    for code in codes():
        name = name_of(code)
        (tmp_path / f"{name.lower()}.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [
            Path(sys.executable).with_name("pytest"),
            "-v",
            "-p",
            "no:cacheprovider",
            ROOT / "tests" / "contract",
            *(word for name in IN_CONTRACT for word in ("--policy", f"{name.lower()}:{name}")),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in IN_CONTRACT:
        assert len(re.findall(rf"\[{name.lower()}:{name}\b.* PASSED", done.stdout)) > 10, (
            done.stdout
        )


def test_the_examples_compare_policies_under_which_jobs_wait(tmp_path: Path) -> None:
    (tmp_path / "widest.py").write_text(
        next(code for code in codes() if "WidestFirst" in code), encoding="utf-8"
    )
    lines = [line for block in blocks_of(DOCUMENTS[0]) for line in block.lines]
    replays = 0
    for line in (
        line for line in lines if line.startswith(("qbatch replay", "qbatch generate origin2000"))
    ):
        words = [
            str(ROOT / word) if word.startswith("traces/") else word for word in line.split()[1:]
        ]
        is_replay = words[0] == "replay"
        done = command(*words, *(["--json", "--quiet"] if is_replay else []), cwd=tmp_path)
        if is_replay:
            waits = [each["metrics"]["wait_mean_s"] for each in json.loads(done.stdout)["results"]]
            assert len(waits) == 2
            assert min(waits) > 60, line
            replays += 1
    assert replays == 2


def test_a_quote_is_what_a_submission_would_be_answered() -> None:
    answers = set()
    for seed in range(40):
        rng = random.Random(seed)
        engine = Engine(one_host(8), OWN["NoLongQueue"](), is_audited=True)
        assert engine.may_refuse
        for number in range(20):
            job = Job(number=number, submit=number, procs=rng.randint(1, 8), estimate=SECOND)
            quote = engine.quote(job, number)
            done = engine.handle(number, [Submitted(job)])
            is_refused = any(isinstance(action, Reject) for action in done.actions)
            assert quote is not None
            assert (quote.reason is not None) == is_refused, (seed, number)
            answers.add(is_refused)
    assert answers == {True, False}


def test_the_least_used_user_comes_first() -> None:
    engine = Engine(one_host(4), OWN["FairShare"]())
    jobs = [
        Job(number=n, submit=0, procs=4, estimate=SECOND, user=user)
        for n, user in enumerate((1, 1, 2))
    ]
    engine.handle(0, [Submitted(job) for job in jobs])
    engine.handle(SECOND, [Finished(0)])
    assert list(engine.view().running) == [2]


def test_what_the_document_names_is_there() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    for path in re.findall(r"`(qbatch/[\w/]+\.py)`", text):
        assert (ROOT / path).exists(), path
    view = engine_view()
    for name in set(re.findall(r"`view\.(\w+)", text)):
        assert hasattr(view, name), name
    for name in set(re.findall(r"`view\.space\.(\w+)", text)):
        assert hasattr(view.resources, name), name
    for name in set(re.findall(r"`profile\.(\w+)", text)):
        assert hasattr(view.resources.profile(), name), name


def engine_view() -> Any:
    return Engine(one_host(4), load_policy("easy")).view()
