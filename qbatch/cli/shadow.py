"""``qbatch shadow``: run what-if policies over the same submissions and compare them with the real
one."""

from __future__ import annotations

import sys
import time

import typer

from qbatch.cli.console import print_table, talk
from qbatch.cli.daemon_answers import ask, print_json
from qbatch.model.errors import UsageError, suggestion
from qbatch.results.shown import clean, moment
from qbatch.wire.records import Shadows
from qbatch.wire.requests import Shadow

_ACTIONS = ("show", "set", "off")
_HEADINGS = [
    "policy",
    "pool",
    "started",
    "ended",
    "waiting",
    "mean wait s",
    "max wait s",
    "bounded slowdown",
    "utilisation",
    "provisional",
]


def shadow(
    action: str = typer.Argument(
        "show", metavar="show|set|off", help="Show the table, set the policies, or end them."
    ),
    policies: list[str] = typer.Argument(
        None, metavar="POLICY", help="For set: at most four policies (see qbatch policies)."
    ),
    json: bool = typer.Option(False, "--json", help="Print all fields as JSON."),
    watch: float = typer.Option(
        0.0, "--watch", metavar="SECONDS", min=0.0, help="Show again at this interval."
    ),
    socket: str | None = typer.Option(None, "--socket", help="Socket of the daemon."),
) -> None:
    """Show what other policies would have done with the same jobs, or set those policies."""
    names = tuple(policies or ())
    if action not in _ACTIONS:
        raise UsageError(
            f"there is no action {action!r}{suggestion(action, _ACTIONS)} (known: "
            f"{', '.join(_ACTIONS)})"
        )
    if (action == "set") != bool(names):
        raise UsageError(
            "name the policies: qbatch shadow set fcfs conservative (off ends them)"
            if action == "set"
            else (
                f"shadow {action} takes no policy; did you mean: qbatch shadow set "
                f"{' '.join(names)}"
            )
        )
    if action == "off":
        ask(Shadow(action="set"), Shadows, socket)
        return
    if action == "set":
        said = ask(Shadow(action="set", policies=names), Shadows, socket)
        if json:
            print_json("shadows", said)
        else:
            talk(
                f"what-if policies since {moment(said.since)}: {', '.join(names)}; see: qbatch "
                "shadow"
            )
        return
    while True:
        said = ask(Shadow(), Shadows, socket)
        if watch and sys.stdout.isatty():
            sys.stdout.write("\x1b[H\x1b[2J")
        if json:
            print_json("shadows", said)
        else:
            _show(said)
        if not watch:
            return
        time.sleep(watch)


def _show(said: Shadows) -> None:
    rows = [
        [
            row.policy + (" (real)" if row.is_real else ""),
            row.pool,
            str(row.started),
            str(row.ended),
            str(row.waiting),
            *("-" if wait is None else f"{wait:.1f}" for wait in (row.wait_mean_s, row.wait_max_s)),
            "-" if row.bounded_slowdown_mean is None else f"{row.bounded_slowdown_mean:.2f}",
            "-" if row.utilisation is None else f"{100 * row.utilisation:.1f} %",
            str(row.provisional or "-"),
        ]
        for row in said.policies
    ]
    if rows:
        print_table("", _HEADINGS, rows, left=2)
    if said.since is None:
        talk("there are no what-if policies; set some with: qbatch shadow set fcfs conservative")
    elif said.made is not None:
        since = f"jobs submitted since {moment(said.since)}, as of {moment(said.made)}"
        hint = (
            "; provisional: number of jobs that count with their walltime, because their run "
            "time is unknown"
        )
        talk(since + (hint if any(row.provisional for row in said.policies) else ""))
    if said.note:
        talk(f"note: {clean(said.note)}")
