"""What ``--help`` of a PBS command shows, and what its manual page is made of: its text, its usage, its options."""

from __future__ import annotations

from typing import NamedTuple

from qbatch.cli.pbs.command import FLAGS, Command


class CommandHelp(NamedTuple):
    """A command in words: one line, paragraphs beyond it, and its options as (how it is written, argument, meaning)."""

    summary: str
    paragraphs: tuple[str, ...]
    options: tuple[tuple[str, str, str], ...]


def help_of(command: Command) -> CommandHelp:
    """Return a command in words."""
    first, *others = (" ".join(part.split()) for part in (command.text or "").split("\n\n"))
    letters = sorted(command.options.items(), key=lambda pair: (pair[0].lower(), pair[0].isupper()))
    options = [(f"-{letter}", argument, meaning) for letter, (argument, meaning) in letters]
    options += [(flag, "", FLAGS[flag]) for flag in (*command.flags, "--help", "--version")]
    summary = first.removeprefix(f"``{command.name}``: ").rstrip(".")
    return CommandHelp(summary, tuple(each for each in others if each), tuple(options))


def help_page(command: Command) -> str:
    """Return the text of ``--help``."""
    import textwrap

    said = help_of(command)
    lines = [f"usage: {command.usage}", "", f"{said.summary[0].upper()}{said.summary[1:]}."]
    for paragraph in said.paragraphs:
        lines += ["", *textwrap.wrap(paragraph.replace("``", ""), 100)]
    lines += ["", "options:"]
    for option, argument, meaning in said.options:
        label = f"  {option} {argument}".rstrip()
        rest = textwrap.wrap(meaning, 72)
        if len(label) > 25:
            lines.append(label)
            label = ""
        lines += [f"{label:<27} {rest[0]}", *(" " * 28 + line for line in rest[1:])]
    return "\n".join(lines) + "\n"
