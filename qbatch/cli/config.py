"""``qbatch config check|show|keys``: check the configuration file, print it with origins, list its
keys."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import typer

from qbatch.cli.console import command_group, print_table, talk
from qbatch.wire import paths

app = command_group("Check, show and explain the configuration.")
_FILE = typer.Option(None, "--config", help="Configuration file, instead of the usual one.")


@app.command("check")
def check(
    file: Path | None = typer.Argument(
        None, metavar="FILE", help="Configuration file, instead of the usual one."
    ),
    config: Path | None = _FILE,
) -> None:
    """Check a configuration file: every key, every value, and whether they fit together."""
    from qbatch.daemon.config import read_config

    path = file or config or paths.config_path()
    settings = read_config(path)
    hosts = sum(len(pool.hosts) for pool in settings.pools)
    talk(f"{path}: ok, {len(settings.queues)} queues, {hosts} hosts in {len(settings.pools)} pools")


@app.command("show")
def show(
    config: Path | None = _FILE,
    origin: bool = typer.Option(False, "--origin", help="Show where each value comes from."),
) -> None:
    """Print the configuration that a daemon would have, as TOML."""
    from qbatch.daemon.config import as_toml, default_settings, read_config

    path = config or paths.config_path()
    exists = path.exists() or config is not None
    settings = read_config(path) if exists else default_settings()
    text = as_toml(settings)
    if origin:
        written = tomllib.loads(path.read_text(encoding="utf-8")) if exists else {}
        text = _with_origins(text, written, str(path))
    sys.stdout.write(text)


def _with_origins(text: str, written: dict[str, object], source: str) -> str:
    lines = []
    table, place = "", {"pool": -1, "queue": -1}
    for line in text.splitlines():
        if line.startswith("["):
            table = line.strip("[]")
        if line.startswith("[[") and table in place:
            place[table] += 1
        if " = " in line:
            name = line.partition(" = ")[0]
            # The key `machine` in the file produces the tables of the machine.
            tables, number = written.get(table, []) if table else [written], place.get(table, 0)
            known = tables[number] if isinstance(tables, list) and number < len(tables) else {}
            is_written = table.startswith("pool.") or name in known
            line = f"{line}  # {source if is_written else 'default'}"
        lines.append(line)
    return "\n".join(lines) + "\n"


@app.command("keys")
def keys() -> None:
    """List every key with its default and its meaning."""
    from qbatch.daemon.settings import KEYS

    rows = [
        [f"[[{key.table}]]" if key.table else "top", key.name, key.default, key.meaning]
        for key in KEYS
    ]
    print_table("", ["table", "key", "default", "meaning"], rows, left=4)
