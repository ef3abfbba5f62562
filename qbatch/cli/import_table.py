"""``qbatch import table``: convert tables of jobs into a workload log and its side file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack

import typer

from qbatch.cli.console import progress_bar, talk
from qbatch.cli.import_outputs import check_output, print_summary
from qbatch.model.errors import UsageError


def import_table(
    files: list[str],
    *,
    map_given: str | None,
    out: str,
    resources: str | None,
    timezone: str | None,
    machine_procs: int | None,
    computer: str | None,
    installation: str | None,
    note: str,
    as_json: bool,
    is_quiet: bool,
) -> None:
    """Write the log of some tables, its side file of resources, and a report of what was left out.

    Raises:
        UsageError: options or the map do not go together.
        InputError: a table cannot be used.
    """
    from qbatch.results.output import check_folder, log_file, whole_file
    from qbatch.workloads.accounting.importing import accounting_files
    from qbatch.workloads.accounting.record import ImportCounts
    from qbatch.workloads.resource_rows import side_file_of
    from qbatch.workloads.tables.importing import TableOptions, import_tables
    from qbatch.workloads.tables.reading import Table, open_table
    from qbatch.workloads.tables.table_map import SHIPPED, read_map

    if map_given is None:
        raise UsageError(
            f"a table needs --map: the name of a map ({', '.join(SHIPPED)}) or a file.toml"
        )
    table_map = read_map(map_given)
    side = resources or (None if out == "-" else side_file_of(out))
    is_file = map_given.endswith(".toml")
    check_output(out, [*files, *([map_given] if is_file else []), *filter(None, (side,))])
    if side is not None:
        check_folder(side)
    options = TableOptions(timezone, machine_procs, computer, installation, (note,))
    counts = ImportCounts()
    with progress_bar("reading", None, "DownloadColumn", is_quiet=is_quiet) as update:

        def tables() -> Iterator[Table]:
            for path in accounting_files(files):

                def move(done: int, total: int | None, path: str = path) -> None:
                    if update is not None:
                        size = os.path.getsize(path) if os.path.isfile(path) else None
                        update(
                            description=os.path.basename(path), completed=done, total=total or size
                        )

                yield open_table(path, table_map, counts, move)

        made = import_tables(tables(), table_map, options, counts)
    with ExitStack() as stack:
        log = stack.enter_context(log_file(out))
        side_out = None if side is None else stack.enter_context(whole_file(side))
        described = made.write(log, side_out)
    made.document["resources"] = {"file": side, "jobs": described}
    if not is_quiet:
        print_summary(made.document, out, side)
        for each in table_map.notes:
            talk(f"{table_map.name}: {each}")
        if side is not None:
            talk(f"{side}: what {described:,} jobs ask for; replay takes it with --resources")
    if as_json:
        typer.echo(json.dumps(made.document, indent=2))
