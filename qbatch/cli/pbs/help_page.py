"""The text, the usage and the options of a PBS command, for ``--help`` and its manual page."""

from __future__ import annotations

from typing import NamedTuple

from qbatch.cli.pbs.command import FLAGS, Command


class CommandHelp(NamedTuple):
    """The help of a command: one line, further paragraphs, and its options as (option, argument, meaning)."""

    summary: str
    paragraphs: tuple[str, ...]
    options: tuple[tuple[str, str, str], ...]


def help_of(command: Command) -> CommandHelp:
    """Return the help of a command."""
    first, *others = (" ".join(part.split()) for part in (command.text or "").split("\n\n"))
    letters = sorted(command.options.items(), key=lambda pair: (pair[0].lower(), pair[0].isupper()))
    options = [(f"-{letter}", argument, meaning) for letter, (argument, meaning) in letters]
    options += [(flag, "", FLAGS[flag]) for flag in (*command.flags, "--help", "--version")]
    summary = first.removeprefix(f"``{command.name}``: ").rstrip(".")
    return CommandHelp(summary, tuple(each for each in others if each), tuple(options))


def help_page(command: Command) -> str:
    """Return the text of ``--help``."""
    import textwrap

    found = help_of(command)
    lines = [f"usage: {command.usage}", "", f"{found.summary[0].upper()}{found.summary[1:]}."]
    for paragraph in found.paragraphs:
        lines += ["", *textwrap.wrap(paragraph.replace("``", ""), 100)]
    lines += ["", "options:"]
    for option, argument, meaning in found.options:
        label = f"  {option} {argument}".rstrip()
        rest = textwrap.wrap(meaning, 72)
        if len(label) > 25:
            lines.append(label)
            label = ""
        lines += [f"{label:<27} {rest[0]}", *(" " * 28 + line for line in rest[1:])]
    return "\n".join(lines) + "\n"
