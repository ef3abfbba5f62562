"""``python -m tests.golden [--write] [--only TEXT] [--processes N]``: compute every hash anew;
compare, or write the file."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.golden.cases import Case, cases
from tests.golden.table import FILE, line_of, read


def main() -> int:
    """Compare or write, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the cases into the file in place of comparing with it",
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="TEXT",
        help="only cases with TEXT in their line",
    )
    parser.add_argument("--processes", type=int, default=2, help="how many processes compute")
    options = parser.parse_args()
    chosen = [case for case in cases() if options.only in f"{case.policy} on {case.on}"]
    with ProcessPoolExecutor(options.processes) as pool:
        lines = []
        for count, line in enumerate(pool.map(_line, chosen, chunksize=4), 1):
            lines.append(line)
            if sys.stderr.isatty():
                print(f"\r{count} of {len(chosen)} cases", end="", file=sys.stderr)
    if options.write:
        made = dict(zip(chosen, lines, strict=True))
        kept = read()
        whole = [
            made.get(each) or f"{each.policy} on {each.on} = {' '.join(kept[each])}"
            for each in cases()
        ]
        FILE.write_text("\n".join(whole) + "\n", encoding="utf-8")
        print(f"{FILE}: {len(lines)} of {len(whole)} cases written anew", file=sys.stderr)
        return 0
    return _compare(chosen, lines)


def _line(case: Case) -> str:
    try:
        return line_of(case)
    except Exception as error:
        return f"{case.policy} on {case.on} = {type(error).__name__}: {error}"


def _compare(chosen: list[Case], lines: list[str]) -> int:
    kept = read()
    wrong = 0
    for case, line in zip(chosen, lines, strict=True):
        found = line.partition(" = ")[2].split()
        if kept.get(case) != found:
            wrong += 1
            print(
                f"{case.policy} on {case.on}: {' '.join(found)} is not "
                f"{' '.join(kept.get(case, ['in the file']))}"
            )
    print(f"{len(chosen)} cases, {wrong} differ", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
