"""Type scripts at PBS commands, and write their answers without what differs from run to run.

Numbers of jobs, times, users, home and spool directories become words; the columns of tables keep
their widths.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

SECONDS = 12
"""How long a script may take; ``qsub -W block=true`` of a held job never ends."""

TIMEOUT = "TIMEOUT"

_USER = "pbsuser1"
_DAYS, _MONTHS = "Mon|Tue|Wed|Thu|Fri|Sat|Sun", "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"


class Answer(NamedTuple):
    """What a script gave: its exit code (or ``TIMEOUT``) and its streams."""

    exit: int | str
    stdout: str
    stderr: str


class Site(NamedTuple):
    """Where scripts are typed: the names that the answers hold, and the environment of a user."""

    server: str
    host: str
    user: str
    home: Path
    environment: Mapping[str, str]


def type_script(site: Site, script: str, directory: Path) -> Answer:
    """Run one script in a directory, and return its answer as it is; P's user in it is ours."""
    script = re.sub(rf"\b{_USER}\b", site.user, script)
    environment = {**site.environment, "PWD": str(directory)}
    process = subprocess.Popen(
        ["bash", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=directory,
        env=environment,
        text=True,
        errors="replace",
        umask=0o077,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=SECONDS)
        return Answer(process.returncode, out, err)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return Answer(TIMEOUT, out, err)


def type_all(
    site: Site, scripts: list[str], workers: int, own_directories: bool = True
) -> list[Answer]:
    """Type scripts, ``workers`` at a time, and return their normalised answers in order."""
    site.home.mkdir(exist_ok=True)

    def one(place: int) -> Answer:
        directory = site.home
        if own_directories:
            directory = site.home / f"s{place:03d}"
            directory.mkdir()
        return normalised(site, directory, type_script(site, scripts[place], directory))

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, range(len(scripts))))


def normalised(site: Site, directory: Path, answer: Answer) -> Answer:
    """Return an answer without what differs from run to run."""
    places = dict.fromkeys((str(directory), str(site.home)))
    texts = []
    for text in (answer.stdout, answer.stderr):
        for place in places:
            text = text.replace(place, f"/home/{_USER}")
        texts.append(_without_numbers(_with_user(text, site.user), site))
    return Answer(answer.exit, *texts)


def _with_user(text: str, user: str) -> str:
    """Put P's user in the place of ours; in tables the columns keep their widths."""
    if user == _USER:
        return text
    longer = len(_USER) - len(user)

    def padded(found: re.Match[str]) -> str:
        blanks = found[1]
        if len(blanks) > 1:
            blanks = " " * max(len(blanks) - longer, 1)
        return _USER + blanks

    return re.sub(rf"(?<![\w/.-]){re.escape(user)}(?![\w.-])( *)", padded, text)


def _without_numbers(text: str, site: Site) -> str:
    """Put words in the place of identifiers, times, sizes and numbers of processes."""

    def identifier(found: re.Match[str]) -> str:
        blanks = found[3]
        if len(blanks) > 1:
            # P's numbers had four digits.
            blanks = " " * max(len(blanks) + len(found[1]) - 4, 1)
        return f"ID{found[2] or ''}.vm{blanks}"

    text = re.sub(rf"\b(\d+)(\[\d*\])?\.{re.escape(site.server)}\b( *)", identifier, text)
    text = _SESSION.sub(lambda found: found[1] + "SESS".rjust(len(found[2])), text)
    text = _VARIABLES.sub(lambda found: found[0].replace("\n\t", ""), text)
    for pattern, word in _WORDS:
        text = re.sub(pattern, word, text)
    return text


_SESSION = re.compile(r"(?m)^(ID\S*\.vm +\S+ +\S+ +\S+)( +\d+)(?= +\d+ +\d+ )")

_VARIABLES = re.compile(r"(?m)^    Variable_List = .*(?:\n\t.*)*")
"""The environment of a submission: where its lines break depends on the length of PATH."""

_WORDS = (
    (r"PBS_O_INTERACTIVE_\w+=[^,\\\n]*\\?,", ""),  # how P's interactive jobs are connected
    (r'"PBS_O_INTERACTIVE_\w+":\s*"[^"]*",\n\t*', ""),
    (r"PBS_O_PATH=[^,\\\n]*", "PBS_O_PATH=PATH"),
    (r'"PBS_O_PATH":\t"[^"]*"', '"PBS_O_PATH":\t"PATH"'),
    (r"/\S*/(ID\S*\.vm\.SC)", r"/var/spool/pbs_n1/mom_priv/jobs/\1"),
    (rf"\b(?:{_DAYS}) (?:{_MONTHS}) [ \d]\d \d\d:\d\d:\d\d \d{{4}}", "DATE"),
    (rf"\b(?:{_DAYS}) (?:{_MONTHS}) [ \d]\d at (?:\d\d:\d\d|HH:MM)", "Fri Nov 27 at HH:MM"),
    (r"\b\d\d/\d\d/\d{4} \d\d:\d\d:\d\d", "DATE"),
    (r"\b\d+:\d\d:\d\d\b", "HH:MM:SS"),
    (r"\b\d\d:\d\d\b", "HH:MM"),
    (r"(?<=\.[eo])\d+", "N"),
    (r"(?<=line 1: )[ \d]{5}\d?(?= Killed)", "PID"),
    (r"\b1[5-9]\d{8}\b", "EPOCH"),
    (r"(?<=session_id = )\d+", "N"),
    (r"(?<=resources_used.(?:vm)em = )\d+(?=kb)", "N"),
    (r"(?<=cpupercent = )\d+", "N"),
    (r"(?<=total_jobs = )\d{2,}", "N"),
    (r"(?<=pcpus = )\d+", "N"),
    (r"walltime \d+ exceeded limit", "walltime N exceeded limit"),
    (r"\d+(?=kb\b)", "N"),
    (r"pbs_version = \S+", "pbs_version = V"),
)
