"""``qsub``: submit a job and print its identifier, nothing else."""

from __future__ import annotations

import os
from typing import Any

from qbatch.cli.pbs.command import (
    BAD_HOST,
    Call,
    Command,
    CommandFault,
    Surroundings,
    UsageFault,
    parse_options,
)
from qbatch.cli.pbs.directives import scan
from qbatch.cli.pbs.format_attributes import price_text
from qbatch.cli.pbs.submission import (
    LONGEST_NAME,
    SUBMISSION_OPTIONS,
    TORQUE_LETTERS,
    Gathered,
    is_attribute,
    standard_variables,
)
from qbatch.cli.pbs.text import ctime
from qbatch.client import ClientSession
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Done, Outcomes, SubmissionRecord
from qbatch.wire.requests import Spec, Submit, Upload, Wait

USAGE = "\n\t".join(
    (
        "qsub [-a date_time] [-A account_string] [-c interval]",
        "[-C directive_prefix] [-e path] [-f ] [-h ] [-I [-X]] [-j oe|eo] [-J X-Y[:Z]]",
        "[-k keep] [-l resource_list] [-m mail_options] [-M user_list]",
        "[-N jobname] [-o path] [-p priority] [-P project] [-q queue] [-r y|n]",
        "[-R o|e|oe] [-S path] [-u user_list] [-W otherattributes=value...]",
        "[-v variable_list] [-V ] [-z] [script | -- command [arg1 ...]]",
    )
)
"""The usage text of OpenPBS."""

NEVER_RAN = 3
"""With ``-W block=true``, the exit code for a job that was deleted before it ran."""

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-[]^{}")


def quoted(words: list[str]) -> str:
    """Return words quoted for a shell."""
    return " ".join(
        word if word and not set(word) - _PLAIN else "'" + word.replace("'", "'\"'\"'") + "'"
        for word in words
    )


def working_directory(here: Surroundings) -> str:
    """Return the working directory under the user's name for it: ``$PWD`` if that is the same
    directory."""
    named = here.environment.get("PWD", "")
    try:
        if named.startswith("/") and os.path.samefile(named, here.directory):
            return named
    except OSError:
        pass
    return here.directory


LONGEST_SCRIPT = 100 << 20
"""Bytes of the longest script."""

LONGEST_SENT = 1 << 17
"""Bytes of the longest script that is a part of its submission; a longer one is uploaded before."""

_PART = 1 << 19
_HEAD = 1 << 16


def _script_text(call: Call) -> tuple[str | None, str, str, tuple[str, ...]]:
    """Return the script's text, its encoding, the job's name and the words of a command without a
    shell."""
    given = call.given
    if given.after_dashes is not None and not given.operands:
        if not given.after_dashes:
            raise UsageFault("no command after --")
        return None, "utf-8", "STDIN", tuple(given.after_dashes)
    operands = given.operands + (given.after_dashes or [])
    if len(operands) > 1:
        raise UsageFault(f"too many operands: {quoted(operands)}")
    name = "STDIN"
    if operands and operands[0] != "-":
        path = os.path.join(call.here.directory, operands[0])
        name = os.path.basename(operands[0].rstrip("/"))
        try:
            with open(path, "rb") as stream:
                content = stream.read(LONGEST_SCRIPT + 1)
        except OSError as error:
            what, code = (
                ("opening script file:", 8)
                if isinstance(error, PermissionError)
                else ("script file:", 1)
            )
            text = f"{what}: {error.strerror} ({operands[0]})"
            if isinstance(error, IsADirectoryError):
                text = f"script not a file: {operands[0]}"
            raise CommandFault(text, code) from None
    else:
        stdin = call.here.stdin
        if stdin is None:
            raise CommandFault("there is no standard input to read a script from")
        if stdin.isatty():
            call.here.err.write(
                "Job script will be read from standard input. Submit with CTRL+D.\n"
            )
        content = stdin.read(LONGEST_SCRIPT + 1)
    if len(content) > LONGEST_SCRIPT:
        raise CommandFault(f"the script is too long: at most {LONGEST_SCRIPT} bytes (100 MB)")
    name = "".join(
        "_" if letter.isspace() or not letter.isprintable() else letter for letter in name
    )
    try:
        return content.decode(), "utf-8", name[:LONGEST_NAME], ()
    except UnicodeDecodeError:
        return content.decode("latin-1"), "latin-1", name[:LONGEST_NAME], ()


def _take_directives(call: Call, gathered: Gathered, script: str) -> None:
    """Take the directives of a script, line by line.  OpenPBS reports what it finds while it reads
    an option, then the line; other values it refuses as it does those of the command line."""
    prefix = (
        call.given.last("C").strip("\"'")
        if call.given.has("C")
        else call.here.environment.get("PBS_DPREFIX", "") or "#PBS"
    )
    try:
        directives = scan(script, prefix)
    except ValueError as error:
        raise CommandFault(str(error)) from None
    options: list[tuple[str, str]] = []
    for words in directives.lines:
        shown = f"directive error: {' '.join(words)}"
        try:
            given = parse_options(words, qsub.options_in(is_torque=call.here.is_torque))
            if given.after_dashes or not all(is_attribute(word) for word in given.operands):
                raise CommandFault(shown)
            # ARC writes `#PBS Account_Name=x`, which older releases of PBS accepted.
            found = [("W", word) for word in given.operands]
            # PSI/J writes -N="x".
            found += [(letter, value.removeprefix("=")) for letter, value in given.options]
            gathered.check(found)
        except UsageFault as fault:
            if fault.is_of_server:
                raise
            call.complain(str(fault))
            raise CommandFault(shown) from None
        options += found
    gathered.take(options, is_directive=True)
    for words in directives.own:
        gathered.take_own(words)


def specification(call: Call) -> tuple[Spec, bool]:
    """Return the specification from the directives and options of a call, and whether to print no
    identifier.

    Raises:
        UsageFault: an option or a directive is wrong.
        CommandFault: the script cannot be read, or a value is illegal.
    """
    script, encoding, name, command = _script_text(call)
    directory = working_directory(call.here)
    gathered = Gathered(directory, call.here.environment, is_torque=call.here.is_torque)
    gathered.check(call.given.options)
    if script is not None:
        _take_directives(call, gathered, script)
    gathered.take(call.given.options)
    if "I" in gathered.letters:
        raise CommandFault(
            "interactive jobs are not supported yet; leave -I out and give a script", 15029 % 256
        )
    queue = str(gathered.fields.get("queue", ""))
    fields: dict[str, Any] = {
        "name": name,
        **gathered.specification(standard_variables(call.here.environment, directory, queue)),
        "script": script,
        "encoding": encoding,
        "argv": command,
        "host": os.uname().nodename,
        "submit_arguments": quoted(call.arguments),
    }
    if call.here.is_torque:
        fields["is_torque"] = True
    own = {name: value for name, value in fields.items() if name in Spec.__struct_fields__}
    others = {name: str(value) for name, value in fields.items() if name not in own}
    return Spec(**{**own, "extra": {**fields["extra"], **others}}), "z" in gathered.letters


def uploaded(session: ClientSession, spec: Spec) -> Spec:
    """Send a long script in parts before its submission; return the specification that names it.

    Raises:
        Refusal: the daemon refuses it.
    """
    if spec.script is None or len(spec.script) <= LONGEST_SENT:
        return spec
    import hashlib

    from msgspec.structs import replace

    content = spec.script.encode(spec.encoding)
    digest, upload = hashlib.sha256(content).hexdigest(), os.urandom(12).hex()
    for offset in range(0, len(content), _PART):
        is_last = offset + _PART >= len(content)
        data = content[offset : offset + _PART]
        request = Upload(upload=upload, offset=offset, data=data, digest=digest if is_last else "")
        session.ask(request, Done, timeout=300.0)
    return replace(spec, script=spec.script[:_HEAD], script_digest=digest)


def _act(call: Call) -> int:
    spec, is_quiet = specification(call)
    if call.flags:
        record = call.ask(Submit(spec=spec, is_dry_run=True), SubmissionRecord)
        lines, quote = [record.comment], record.quote
        if quote is not None:
            instants = {
                "planned_start": quote.start,
                "planned_end": quote.end,
                "earliest_deadline": quote.earliest_deadline,
            }
            lines += [
                f"    {name} = {ctime(at)}" for name, at in instants.items() if at is not None
            ]
            lines += [f"    price = {price_text(quote.price)}"] if quote.price is not None else []
        call.write("\n".join(lines) + "\n")
        return 0
    spec = uploaded(call.session, spec)
    try:
        job = call.ask(Submit(spec=spec), SubmissionRecord).job
    except Refusal as refusal:
        if refusal.pbs != BAD_HOST:
            raise
        call.here.err.write("Unknown Host.\n")
        raise CommandFault(str(refusal), BAD_HOST % 256) from None
    if not is_quiet:
        call.write(f"{job}\n")
    if not spec.is_blocking:
        return 0
    call.here.out.flush()
    call.session.patience = 600.0  # The job runs on while its daemon restarts.
    outcomes = call.session.ask(Wait(jobs=(job,)), Outcomes, timeout=None).outcomes
    if not outcomes or outcomes[0].exit_status is None or not outcomes[0].has_run:
        return NEVER_RAN
    return outcomes[0].exit_status % 256 or (1 if outcomes[0].exit_status else 0)


qsub = Command(
    "qsub",
    __doc__,
    USAGE,
    SUBMISSION_OPTIONS,
    _act,
    flags=("--quote",),
    torque=TORQUE_LETTERS,
)
