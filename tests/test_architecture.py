"""The shape of the code: sizes, docstrings of packages, what is quick to import, no file of a
forbidden kind."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from qbatch import __version__

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "qbatch").rglob("*.py"))
FORBIDDEN_NAMES = {"utils", "helpers", "misc", "manager", "base", "common"}


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in FILES]


# Everything else about size is judged by a reader (docs/design.md, "The packages").


def test_no_file_is_above_1500_lines() -> None:
    sizes = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: size for name, size in sizes.items() if size > 1500} == {}


def test_no_class_has_more_than_20_public_methods() -> None:
    wide = []
    for path, tree in trees():
        for node in (each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)):
            methods = [
                each
                for each in node.body
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
            if sum(not each.name.startswith("_") for each in methods) > 20:
                wide.append(f"{path.name}:{node.name}")
    assert wide == []


def test_every_package_says_what_it_holds_and_what_it_must_never_hold() -> None:
    for package in sorted(
        path.parent for path in FILES if path.name == "__init__.py" and path.parent.name != "qbatch"
    ):
        text = (
            ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
            or ""
        )
        assert "never" in text.lower(), package.name
        assert len(text.split()) >= 20, package.name


def test_every_public_thing_has_a_docstring() -> None:
    bare = []
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bare += [f"{path.name}:{node.name}"] if ast.get_docstring(node) is None else []
        for node in tree.body:
            if (
                isinstance(node, ast.FunctionDef)
                and not node.name.startswith("_")
                and ast.get_docstring(node) is None
            ):
                bare.append(f"{path.name}:{node.name}")
        assert ast.get_docstring(tree), path
    assert bare == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert {path.stem for path in FILES} & FORBIDDEN_NAMES == set()


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("qbatch.model", {"numpy", "numba", "asyncio", "typer", "rich"}),
        ("qbatch.model.machine", {"numpy", "numba", "asyncio", "typer", "rich"}),
        (
            "qbatch.cli.main",
            {"numpy", "numba", "matplotlib", "pyarrow", "qbatch.engine", "qbatch.planning"},
        ),
        ("qbatch.cli.replay", {"numpy", "numba", "matplotlib", "pyarrow"}),
        ("qbatch.cli.report", {"numpy", "numba", "matplotlib", "pyarrow", "jinja2"}),
        ("qbatch.cli.compare", {"numpy", "numba", "matplotlib", "pyarrow"}),
        ("qbatch.reports.report.page", {"matplotlib", "pyarrow", "numba", "jinja2"}),
        ("qbatch.workloads", {"numba"}),
        ("qbatch.policies", {"numpy.random", "numba", "matplotlib"}),
        ("qbatch.engine.states", {"numpy", "numba"}),
        ("qbatch.reports.plots", {"matplotlib", "pyarrow", "numba"}),
    ],
)
def test_what_an_import_must_not_cost(module: str, forbidden: set[str]) -> None:
    code = f"import sys, {module}; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert forbidden & set(done.stdout.split()) == set()


def test_nothing_is_committed_at_the_top_but_what_belongs_there() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    if listed.returncode != 0:
        pytest.skip("this is no checkout: git lists no files")
    tops = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    rooms = {"qbatch", "tests", "traces", "systemd", "docs", ".ci", "pyproject.toml", "README.md"}
    build = {"Makefile", "constraints.txt", "hatch_build.py", "mkdocs.yml"}
    assert tops - rooms == {
        ".gitignore",
        ".github",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "LICENSE",
        *build,
    }


def test_no_lock_file_and_no_package_host_is_committed() -> None:
    names = {path.name for path in ROOT.iterdir()}
    assert names & {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"} == set()
    assert "http" not in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_the_citation_is_of_this_version() -> None:
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {__version__}" in lines
    assert {"cff-version: 1.2.0", "type: software", "license: MIT"} <= set(lines)
    assert {"message", "title", "authors"} <= {line.partition(":")[0] for line in lines}
