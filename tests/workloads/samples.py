"""What the tests of this folder build logs from."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

from qbatch.model.errors import InputError
from qbatch.workloads import FIELDS, Log, read_log

REPOSITORY = Path(__file__).resolve().parents[2]
SHIPPED = REPOSITORY / "traces"
PUBLIC = REPOSITORY.parent / "shared" / "traces"

HEADER = "; Version: 2.2\n; MaxProcs: 64\n"


def row(job: int = 1, submit: float = 0, run: float = 10, procs: int = 1) -> str:
    """Return one row of SWF."""
    return f"{job} {submit} -1 {run} {procs} -1 -1 {procs} 100 -1 1 1 1 -1 1 -1 -1 -1\n"


def written(folder: Path, content: str | bytes, name: str = "log.swf") -> str:
    """Write a log and return its path."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def refused(path: str, **options: object) -> str:
    """Return the message with which a log is refused; it is one line and names the log."""
    with pytest.raises(InputError) as caught:
        read_log(path, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    assert path in message or "standard input" in message
    return message


def same(left: Log, right: Log) -> bool:
    """Return whether two logs hold the same rows and the same header."""
    if left.header != right.header or len(left) != len(right):
        return False
    return all(left[name].tolist() == right[name].tolist() for name in FIELDS)


def public_log(name: str) -> str:
    """Return the path of a log of the archive, or skip the test where these logs are not at
    hand."""
    path = PUBLIC / f"{name}.swf.gz"
    if not path.exists():
        pytest.skip(f"{name} is not carried by the project; it would stand in {PUBLIC}")
    return str(path)


_whole = st.one_of(st.just(-1), st.integers(-3, 10**6), st.integers(-(2**53), 2**53))
_decimal = st.integers(-(10**12), 10**12).map(lambda micro: micro / 10**6)
numbers = st.one_of(_whole, _whole, _decimal)
rows = st.lists(st.tuples(*[numbers] * len(FIELDS)), min_size=1, max_size=30)
_comment_text = st.text(
    st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=30
)
_keywords = st.sampled_from(
    ["MaxProcs", "MaxNodes", "Note", "Queue", "max jobs", "Version", "UnixStartTime", "X-Y"]
)
comments = st.lists(
    st.one_of(
        _comment_text.map(lambda text: f";{text}"),
        st.builds("; {}: {}".format, _keywords, _comment_text),
    ),
    max_size=6,
)
