from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.cli.pbs.directives import scan, split_words


def test_directives_end_at_the_first_executable_line() -> None:
    script = "#!/bin/sh\n#PBS -N one\n\n# a comment\n   #PBS -q batch  \necho hi\n#PBS -N two\n"
    assert scan(script).lines == [["-N", "one"], ["-q", "batch"]]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('#PBS -N="x"', ["-N=x"]),  # PSI/J
        ('#PBS -v "A=1","B=2"', ["-v", "A=1,B=2"]),  # saga
        ("#PBS -V ", ["-V"]),
        ("#PBS -l walltime=60\r", ["-l", "walltime=60"]),
        ("#PBS-N x", ["-N", "x"]),
        ("#PBS -N 'a b' -q c", ["-N", "a b", "-q", "c"]),
        ("#PBS -l select=1 # one host", ["-l", "select=1", "#", "one", "host"]),
        ('#PBS -v A="x\\y"', ["-v", "A=x\\y"]),
        ("#PBSX -N x", ["X", "-N", "x"]),
        ("#PBS -v A=x\\ y", ["-v", "A=x y"]),
    ],
)
def test_words_of_a_directive(line: str, words: list[str]) -> None:
    assert scan(f"#!/bin/sh\n{line}\ntrue\n").lines == [words]


@pytest.mark.parametrize(
    "line", ["#PBS ", "#PBS", "# PBS -N x", "#pbs -N x", ":PBS -N x", "#QBATCHES x"]
)
def test_lines_that_direct_nothing(line: str) -> None:
    assert scan(f"{line}\ntrue\n") == ([], [])


def test_a_line_that_names_a_shell_or_begins_with_a_colon_is_no_directive() -> None:
    assert scan(": -N x\n#PBS -N y\n").lines == [["-N", "y"]]
    # Saga begins with an empty line.
    assert scan("\n#!/bin/bash\n#PBS -N y\n").lines == [["-N", "y"]]


def test_other_prefixes_and_none() -> None:
    script = "#!/bin/sh\n#SGE -N a\n#PBS -N b\n#QBATCH runtime=5 exit=1\n"
    assert scan(script, "#SGE").lines == [["-N", "a"]]
    assert scan(script, "").lines == []
    assert scan(script, "").own == [["runtime=5", "exit=1"]]
    assert scan("REM -N x\nREM -q y\ncls\n", "REM").lines == [["-N", "x"], ["-q", "y"]]


def test_a_line_goes_on_after_a_backslash() -> None:
    assert scan("#PBS -l select=1:\\\nncpus=2 \\\n  -N x\n#PBS -q y\n").lines == [
        ["-l", "select=1:ncpus=2", "-N", "x"],
        ["-q", "y"],
    ]
    with pytest.raises(ValueError, match="unexpected end-of-file or read error in script"):
        scan("#PBS -N x \\")


def test_an_open_quote_is_named() -> None:
    with pytest.raises(ValueError, match="unmatched '"):
        scan("#PBS -N 'x\n")


@given(st.text(max_size=200), st.sampled_from(["#PBS", "", "#", "-", "\\"]))
def test_no_script_breaks_the_scan(text: str, prefix: str) -> None:
    for script in (text, f"#PBS {text}", text.replace(" ", "\n#PBS ")):
        try:
            found = scan(script, prefix)
        except ValueError:
            continue
        assert all(isinstance(word, str) for line in found.lines + found.own for word in line)


@given(
    st.lists(
        st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), max_size=12), max_size=5
    )
)
def test_what_a_shell_would_quote_is_read_back(words: list[str]) -> None:
    assert split_words(shlex.join(words)) == words
