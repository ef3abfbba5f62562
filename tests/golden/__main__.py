"""``python -m tests.golden [--write | --keys] [--only TEXT] [--processes N]``: compute every hash
anew; compare, or write the file.

``--keys`` computes the first schedules of each policy that has a new key, and writes the keys of
those that are as in the table (:mod:`.keys`).
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.golden.cases import Case, cases
from tests.golden.keys import key_of, read_keys, write_keys
from tests.golden.table import FILE, first_difference, is_of_log, line_of, read


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
    parser.add_argument(
        "--keys", action="store_true", help="make the first schedules, and write the keys"
    )
    parser.add_argument("--processes", type=int, default=2, help="how many processes compute")
    options = parser.parse_args()
    chosen = [case for case in cases() if options.only in f"{case.policy} on {case.on}"]
    if options.keys:
        return _write_keys(sorted({case.policy for case in chosen}), options.processes)
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


def _write_keys(names: list[str], processes: int) -> int:
    keys, wrong = read_keys(), 0
    stale = [name for name in names if keys.get(name) != key_of(name)]
    with ProcessPoolExecutor(processes) as pool:
        for name, difference in zip(stale, pool.map(_difference, stale), strict=True):
            if difference is None:
                keys[name] = key_of(name)
            else:
                wrong += 1
                print(f"not the schedule of the table: {difference}")
    write_keys({name: keys[name] for name in sorted({each.policy for each in cases()} & set(keys))})
    print(f"{len(stale)} policies made anew, {wrong} differ", file=sys.stderr)
    return 1 if wrong else 0


def _difference(policy: str) -> str | None:
    mine = [case for case in cases() if case.policy == policy and not is_of_log(case)]
    return first_difference(mine, read(), 1)


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
