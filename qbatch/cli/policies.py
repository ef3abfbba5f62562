"""``qbatch policies`` and ``qbatch policy``: list the policies, and show or set the one of the live
server."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from qbatch.cli.console import command_group, print_table


def policies(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON (schema qbatch.policies/1).")
    ] = False,
) -> None:
    """List the policies with their sources and parameters, and explain how to name one of your
    own."""
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
                    {
                        "name": each.name,
                        "values": each.values,
                        "default": each.default,
                        "meaning": each.meaning,
                    }
                    for each in entry.parameters
                ],
            }
            for name, entry in POLICIES.items()
        ]
        typer.echo(
            json.dumps(
                {"schema": "qbatch.policies/1", "policies": entries, "announced": announced},
                indent=2,
            )
        )
        return
    rows = []
    for name, entry in POLICIES.items():
        rows.append([name, entry.meaning, entry.source])
        rows += [
            [f"  {each.name}={each.default}", f"  {each.meaning}: {each.values}", ""]
            for each in entry.parameters
        ]
    print_table("Policies", ["policy", "what it does", "source"], rows, left=3)
    others = f"; from other packages: {', '.join(announced)}" if announced else ""
    typer.echo(f"\nName one as NAME:key=value,key=value; one of your own as module:Class{others}")


app = command_group("Show or set the policy of the live server.")


@app.command(name="show")
def policy_show(
    socket: Annotated[str | None, typer.Option("--socket", help="Socket of the daemon.")] = None,
) -> None:
    """Show the policy of each pool."""
    from qbatch.cli.daemon_answers import ask
    from qbatch.wire import records, requests

    said = ask(requests.QueueStatus(), records.Queues, socket)
    found = {queue.pool: queue.policy for queue in said.queues if queue.policy}
    print_table("", ["pool", "policy"], [[pool, name] for pool, name in found.items()], left=2)


@app.command(name="set")
def policy_set(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="Policy, as in --policy.")],
    pool: Annotated[str, typer.Option("--pool", help="Change only this pool.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the effect on jobs and promises.")
    ] = False,
    socket: Annotated[str | None, typer.Option("--socket", help="Socket of the daemon.")] = None,
) -> None:
    """Change the policy until the configuration names another; print the effect on jobs and
    promises first."""
    import subprocess
    import sys

    from qbatch.cli.console import talk
    from qbatch.cli.daemon_answers import ask
    from qbatch.policies import load_policy
    from qbatch.policies.registry import POLICIES
    from qbatch.wire import records, requests

    if policy.partition(":")[0] in POLICIES:
        load_policy(policy)
    said = ask(requests.PolicySet(policy=policy, pool=pool, is_dry_run=True), records.Text, socket)
    if dry_run:
        typer.echo(said.text, nl=False)
        return
    talk(said.text.rstrip())
    # Compile the kernels of the policy here, so that the daemon finds them in the cache.
    subprocess.run(
        [sys.executable, "-m", "qbatch.daemon.warm", policy], check=False, stderr=subprocess.DEVNULL
    )
    ask(requests.PolicySet(policy=policy, pool=pool), records.Text, socket)
