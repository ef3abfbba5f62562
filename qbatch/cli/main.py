"""The ``qbatch`` command: find the subcommand, and turn every error into one line and an exit
code."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from qbatch.cli.completion import with_completion
from qbatch.cli.console import command_group
from qbatch.cli.which_daemon import STATE, with_state
from qbatch.distribution import __version__
from qbatch.model.errors import QbatchError, suggestion

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("qbatch.cli.up:up", "Start the daemon."),
    "down": ("qbatch.cli.up:down", "Stop the daemon."),
    "run": ("qbatch.cli.run:app", "Run a command with a private, temporary server."),
    "fault": ("qbatch.cli.control:fault", "Inject faults on demand, to test a tool against them."),
    "top": ("qbatch.cli.top:top", "Watch a daemon or a recorded run, live, in the terminal."),
    "status": ("qbatch.cli.server:status", "Show the state of the server."),
    "submit": ("qbatch.cli.submit:submit", "Queue a job."),
    "jobs": ("qbatch.cli.jobs:jobs", "Show jobs."),
    "wait": ("qbatch.cli.submit:wait", "Wait until jobs have ended."),
    "output": ("qbatch.cli.output:output", "Print what a job has written, or follow it."),
    "explain": (
        "qbatch.cli.server:explain",
        "Explain why a job waits and when it is expected to start.",
    ),
    "forecast": ("qbatch.cli.server:forecast", "Show when every waiting job is expected to start."),
    "shadow": (
        "qbatch.cli.shadow:shadow",
        "Show what other policies would have done with the same jobs.",
    ),
    "history": ("qbatch.cli.server:history", "Search all jobs that have ended."),
    "delete": ("qbatch.cli.control:delete", "Delete jobs."),
    "hold": ("qbatch.cli.control:hold", "Hold jobs."),
    "release": ("qbatch.cli.control:release", "Release held jobs."),
    "rerun": ("qbatch.cli.control:rerun", "Stop running jobs and queue them again."),
    "move": ("qbatch.cli.control:move", "Move waiting jobs to another queue."),
    "signal": ("qbatch.cli.control:signal", "Send a signal to running jobs."),
    "queues": ("qbatch.cli.server:queues", "Show the queues."),
    "queue": ("qbatch.cli.control:queue", "Open and close queues."),
    "hosts": ("qbatch.cli.server:hosts", "Show the hosts."),
    "host": ("qbatch.cli.control:host", "Drain hosts, take them down, or bring them back."),
    "reserve": (
        "qbatch.cli.reservations:reserve",
        "Keep hosts for the jobs of a queue of their own.",
    ),
    "maintenance": (
        "qbatch.cli.reservations:maintenance",
        "Keep hosts free of jobs for some time.",
    ),
    "reservations": ("qbatch.cli.reservations:reservations", "Show reservations, or end them."),
    "time": ("qbatch.cli.server:time", "Control scaled and virtual time."),
    "config": ("qbatch.cli.config:app", "Check, show and explain the configuration."),
    "reload": ("qbatch.cli.server:reload", "Make the daemon read its configuration again."),
    "doctor": (
        "qbatch.cli.doctor:doctor",
        "Find what is wrong with the installation and how to repair it.",
    ),
    "backup": ("qbatch.cli.server:backup", "Write a copy of the store."),
    "restore": ("qbatch.cli.server:restore", "Replace the store with a backup."),
    "check": ("qbatch.cli.server:check", "Check the store and the running state."),
    "export": (
        "qbatch.cli.export:export",
        "Write a schedule, real or simulated, for other programs.",
    ),
    "import": (
        "qbatch.cli.import_log:import_log",
        "Make a workload log from the accounting of PBS or Slurm, or from a table of jobs.",
    ),
    "import site": (
        "qbatch.cli.import_site:import_site",
        "Make a machine file of the configuration of a site that runs Slurm.",
    ),
    "replay": ("qbatch.cli.replay:replay", "Replay a workload log under one or more policies."),
    "sweep": (
        "qbatch.cli.sweep:sweep",
        "Replay a grid of logs, loads, seeds and policies; keep and resume it.",
    ),
    "plot": ("qbatch.cli.plot:plot", "Draw a picture of a result."),
    "report": ("qbatch.cli.report:report", "Write a self-contained HTML page about results."),
    "compare": ("qbatch.cli.compare:compare", "Compare two schedules job by job."),
    "verify": (
        "qbatch.cli.verify:verify",
        "Check a finished schedule against the guarantees of a policy.",
    ),
    "validate": (
        "qbatch.cli.validate:validate",
        "Hold a replay of a site's scheduler against what really happened.",
    ),
    "paper": (
        "qbatch.cli.paper:app",
        "Repeat the experiments of a paper and compare its printed numbers.",
    ),
    "machine": (
        "qbatch.cli.machine:app",
        "Check a machine file, and show what qbatch understood.",
    ),
    "trace": (
        "qbatch.cli.trace:app",
        "Inspect a workload log, generate one, or fetch a public one.",
    ),
    "transform": (
        "qbatch.cli.transform:transform",
        "Change the load, estimates and deadlines of a log.",
    ),
    "generate": (
        "qbatch.cli.generate:app",
        "Generate a workload log from a model of a machine's jobs.",
    ),
    "policy": ("qbatch.cli.policies:app", "Show or set the policy of the live server."),
    "policies": (
        "qbatch.cli.policies:policies",
        "List the policies, their sources and parameters.",
    ),
    "metrics": ("qbatch.cli.metrics:metrics", "List the metrics with their formulas and sources."),
    "states": (
        "qbatch.cli.states:states",
        "Draw the states of a job and the transitions between them.",
    ),
    "demo": (
        "qbatch.cli.demo:demo",
        "Watch a private batch system at work, and compare three policies.",
    ),
}
"""Every subcommand: its place and its one-line help, so that the overview loads no subcommand."""


class LazyGroup(TyperGroup):
    """A command group that loads a subcommand only when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order in which they are shown."""
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the subcommand of the first word, or of the first two (``import site``)."""
        two = " ".join(args[:2])
        if len(args) > 1 and two in COMMANDS:
            return two, self.get_command(ctx, two), args[2:]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load one subcommand, or refuse an unknown name and suggest the nearest one."""
        if cmd_name not in COMMANDS:
            return None
        place, text = COMMANDS[cmd_name]
        module, _, name = place.partition(":")
        found = getattr(importlib.import_module(module), name)
        if isinstance(found, typer.Typer):
            for each in found.registered_commands:
                each.callback = (
                    with_state(with_completion(each.callback))
                    if each.callback is not None
                    else None
                )
            return typer.main.get_command(found)
        single = command_group()
        single.command(name=cmd_name, help=found.__doc__ or text)(
            with_state(with_completion(found))
        )
        return typer.main.get_command(single)

    def invoke(self, ctx: Any) -> Any:
        """Run a subcommand; report an interruption as the parser's ``Abort``, not in silence."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise typer.Abort from interrupt
        except SystemError as error:
            # A compiled call of Numba reports a signal that arrives while it runs in this way.
            if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
                raise typer.Abort from error
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the overview from the table, without loading a subcommand."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"qbatch {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version."
    ),
    state: Path | None = STATE,
) -> None:
    """An emulated batch system: the policy you evaluate is the policy you run."""


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; errors become one line on stderr."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it stays open until the process ends
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    command = typer.main.get_command(app)
    try:
        code = command.main(args=arguments, prog_name="qbatch", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except QbatchError as error:
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as error:
        # The parser exits like this when the reader of our output has closed it (head, less): that
        # is no failure.
        return 0 if error.code == 1 else int(error.code or 0)
    except BrokenPipeError:
        # The reader of our output has closed it (head, less): that is no failure, but nothing more
        # can be written.
        _abandon_output()
        return 0
    except MemoryError:
        return _say("out of memory; replay a part of the log with --first or --from and --to", 1)
    except OSError as error:
        if error.filename is None:
            _abandon_output()
        return _say(f"{error.filename or 'output'}: {error.strerror or error}", 4)
    except Exception as error:
        return _from_the_parser(error)


def _from_the_parser(error: Exception) -> int:
    """Turn an error of the command line parser into a line; any other exception is a defect and
    keeps its traceback."""
    if type(error).__name__ == "Abort":
        return _interrupted()
    message = getattr(error, "format_message", None)
    if message is None:
        raise error
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(str(message()) + "\n")
        return 2
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "qbatch"
    text = " ".join(str(message()).split()).replace(": Value error, ", ": ")
    if text.startswith("No such command"):
        wanted = text.split("'")[1] if "'" in text else ""
        group = getattr(context, "command", None)
        known = list(getattr(group, "list_commands", lambda _: COMMANDS)(context))
        text = f"there is no command {wanted!r}{suggestion(wanted, known)} (see {where} --help)"
    return _say(
        f"{text.rstrip('.')} (see {where} --help)" if "--help" not in text else text, 2, where
    )


def _abandon_output() -> None:
    """Discard what is still buffered for stdout, so that Python's own last flush does not fail as
    well."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupted() -> int:
    return _say("interrupted; nothing was left half-written", 130)


def _say(text: str, code: int, where: str = "qbatch") -> int:
    line = " ".join(text.split("\n"))
    sys.stderr.write(f"{where}: {line}\n")
    return code
