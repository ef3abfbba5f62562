"""The map of the packages, drawn from the imports: ``python -m tests.documents.package_map`` writes
docs/images/packages.svg.

A row is a layer of the import contract in pyproject.toml; an arrow is an import, unless a longer
way of arrows leads there too.
"""

from __future__ import annotations

import tomllib

import grimp

from tests.documents.blocks import ROOT

PICTURE = ROOT / "docs" / "images" / "packages.svg"
WIDE, HIGH, GAP, STEP = 110, 30, 24, 66


def layers() -> list[list[str]]:
    """Return the packages of each layer, the highest first, without the name of the whole."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    (found,) = [
        each["layers"]
        for each in contracts
        if each["type"] == "layers" and "containers" not in each
    ]
    return [[name.strip().removeprefix("qbatch.") for name in layer.split("|")] for layer in found]


def arrows() -> list[tuple[str, str]]:
    """Return pairs of importer and imported package, without those that follow from others."""
    graph = grimp.build_graph("qbatch", cache_dir=None)
    names = [name for layer in layers() for name in layer]
    for name in names:
        graph.squash_module(f"qbatch.{name}")
    direct = {
        one: {
            other
            for other in names
            if other != one
            and graph.direct_import_exists(importer=f"qbatch.{one}", imported=f"qbatch.{other}")
        }
        for one in names
    }
    reached: dict[str, set[str]] = {}
    for one in reversed(names):
        reached[one] = direct[one].union(
            *(reached[other] for other in direct[one] if other in reached)
        )
    return [
        (one, other)
        for one in names
        for other in sorted(direct[one])
        if not any(other in reached.get(way, ()) for way in direct[one] - {other})
    ]


def picture() -> str:
    """Return the map as SVG."""
    rows = layers()
    width = max(len(row) for row in rows) * (WIDE + GAP) + GAP
    place = {}
    for down, row in enumerate(rows):
        left = (width - len(row) * (WIDE + GAP) + GAP) // 2
        place.update(
            {
                name: (left + across * (WIDE + GAP), GAP + down * STEP)
                for across, name in enumerate(row)
            }
        )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {len(rows) * STEP}"',
        ' font-family="sans-serif" font-size="13">',
        (
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto">'
        ),
        '<path d="M0 0 8 4 0 8z" fill="#777"/></marker></defs>',
        f'<rect width="{width}" height="{len(rows) * STEP}" fill="white"/>',
    ]
    for one, other in arrows():
        (left, top), (right, bottom) = place[one], place[other]
        lines.append(
            f'<line x1="{left + WIDE // 2}" y1="{top + HIGH}" x2="{right + WIDE // 2}" '
            f'y2="{bottom}"'
            ' stroke="#999" marker-end="url(#head)"/>'
        )
    for name, (left, top) in place.items():
        lines.append(
            f'<rect x="{left}" y="{top}" width="{WIDE}" height="{HIGH}" rx="5" fill="#e8eef7" '
            'stroke="#45618c"/>'
        )
        lines.append(
            f'<text x="{left + WIDE // 2}" y="{top + 20}" text-anchor="middle">{name}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
