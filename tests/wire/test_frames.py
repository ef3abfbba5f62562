from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.wire import errors, requests
from qbatch.wire.frames import FrameError, Splitter, encode
from qbatch.wire.requests import REQUESTS, AnyRequest, Submit

bodies = st.lists(st.binary(min_size=1, max_size=300), max_size=8)


@given(bodies, st.integers(1, 64))
def test_any_cutting_of_the_stream_gives_the_bodies_back(sent: list[bytes], piece: int) -> None:
    stream = b"".join(encode(body) for body in sent)
    splitter = Splitter(1000)
    got: list[bytes] = []
    for place in range(0, len(stream), piece):
        got += splitter.feed(stream[place : place + piece])
    assert got == sent
    assert splitter.is_empty


@given(st.lists(st.binary(max_size=50), max_size=10))
def test_garbage_is_bodies_or_a_frame_error_and_never_more_than_was_fed(
    pieces: list[bytes],
) -> None:
    splitter = Splitter(100)
    size = 0
    try:
        for piece in pieces:
            size += sum(len(body) + 4 for body in splitter.feed(piece))
    except FrameError:
        return
    assert size <= sum(map(len, pieces))


@pytest.mark.parametrize("length", [0, 101, 2**32 - 1])
def test_a_frame_of_no_bytes_or_too_many_is_refused(length: int) -> None:
    with pytest.raises(FrameError, match=str(length)):
        Splitter(100).feed(length.to_bytes(4, "big") + b"x")


def test_every_request_has_a_verb_of_its_own_and_goes_round() -> None:
    kinds = {
        kind
        for kind in vars(requests).values()
        if isinstance(kind, type) and issubclass(kind, requests.Request)
    }
    assert kinds - {requests.Request, requests.Command, requests.Question} == set(REQUESTS)
    tags = [kind.__struct_config__.tag for kind in REQUESTS]
    assert len(set(tags)) == len(tags)
    sent = Submit(spec=requests.Spec(script="x", resources={"ncpus": "2"}), key="k", id=7)
    body = msgspec.json.encode(sent)
    assert msgspec.json.decode(body)["verb"] == "submit"
    assert msgspec.json.decode(body, type=AnyRequest) == sent


def test_a_refusal_goes_over_the_wire_and_comes_back() -> None:
    for code in errors.CODES:
        refusal = errors.Refusal(code, "no\nway", "1.srv")
        back = errors.refusal_of(
            msgspec.json.decode(msgspec.json.encode(refusal.record), type=errors.ErrorRecord)
        )
        assert (back.code, str(back), back.job) == (code, "no way", "1.srv")
    assert errors.refusal_of(errors.ErrorRecord("from-the-future", "?")).code == "failed"
