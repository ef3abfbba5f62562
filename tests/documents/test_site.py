"""The site builds, strictly and without a network: no dead link, no page that is left out; a page
is found by search."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

from tests.documents.blocks import ROOT


def test_the_site_builds_and_asks_no_other_host(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            Path(sys.executable).with_name("mkdocs"),
            "build",
            "--quiet",
            "--strict",
            "--site-dir",
            str(tmp_path),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = [path for path in tmp_path.rglob("*.html") if path.name != "404.html"]
    assert len(pages) == len(list((ROOT / "docs").rglob("*.md")))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?:)?//', text) == [], page
    index = (tmp_path / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "reference/policies.html#easy" in index


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"- ([\w/.-]+\.md)", text))
    assert named == {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert yaml.safe_load(text)["strict"] is True
