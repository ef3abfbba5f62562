"""qbatch answers as OpenPBS does, but for the differences that ``differences.toml`` names."""

from __future__ import annotations

import pytest

from tests.cli.pbs.openpbs.table import (
    answered,
    begins,
    differences,
    intended,
    shown,
)
from tests.cli.pbs.openpbs.typed import Answer


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> list[Answer]:
    return answered(tmp_path_factory.mktemp("site"))


def test_qbatch_answers_as_openpbs_does(typed: list[Answer]) -> None:
    new = differences(typed) - set(intended())
    assert not new, "\n".join(shown(*each, typed) for each in sorted(new))


def test_every_intended_difference_is_there(typed: list[Answer]) -> None:
    stale = set(intended()) - differences(typed)
    assert not stale, f"equal now; take them out of differences.toml: {sorted(stale)}"


def test_words_behind_those_of_openpbs_are_allowed() -> None:
    assert begins("qsub: illegal -N value: no blanks\n", "qsub: illegal -N value\n")
    assert not begins("qsub: an illegal -N value\n", "qsub: illegal -N value\n")
    assert not begins("qsub: something\n", "")
