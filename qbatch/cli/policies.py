"""``qbatch policies``: what there is to choose from."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from qbatch.cli.console import print_table


def policies(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON (schema qbatch.policies/1).")] = False,
) -> None:
    """List the policies with their sources and parameters, and how to name one of your own."""
    from importlib.metadata import entry_points

    from qbatch.policies.registry import GROUP, POLICIES

    announced = sorted(point.name for point in entry_points(group=GROUP))
    if as_json:
        entries = [
            {
                "name": name,
                "meaning": entry.meaning,
                "source": entry.source,
                "parameters": [
                    {"name": each.name, "values": each.values, "default": each.default, "meaning": each.meaning}
                    for each in entry.parameters
                ],
            }
            for name, entry in POLICIES.items()
        ]
        typer.echo(json.dumps({"schema": "qbatch.policies/1", "policies": entries, "announced": announced}, indent=2))
        return
    rows = []
    for name, entry in POLICIES.items():
        rows.append([name, entry.meaning, entry.source])
        rows += [[f"  {each.name}={each.default}", f"  {each.meaning}: {each.values}", ""] for each in entry.parameters]
    print_table("Policies", ["policy", "what it does", "source"], rows, left=3)
    others = f"; announced by other packages: {', '.join(announced)}" if announced else ""
    typer.echo(f"\nName one as NAME:key=value,key=value; one of your own as module:Class{others}")
