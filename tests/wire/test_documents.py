"""The page about the protocol is made from the code (tests/documents/test_reference.py); what it
says of a field is not empty."""

from __future__ import annotations

from qbatch.daemon.settings import KEYS
from qbatch.wire import requests


def test_every_verb_is_explained() -> None:
    assert all(len(str(kind.__doc__).split()) > 3 for kind in requests.REQUESTS)


def test_every_key_of_the_configuration_says_what_it_means() -> None:
    assert len({(key.table, key.name) for key in KEYS}) == len(KEYS)
    assert all(len(key.meaning) > 10 for key in KEYS)
