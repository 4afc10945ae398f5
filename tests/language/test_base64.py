import json
from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from promptkit.language import base64 as encoding
from promptkit.language.base64 import base64_json, base64_text

LARGE = encoding._MIN_CACHED_BYTES


@given(st.binary(max_size=300) | st.builds(lambda part: part * LARGE, st.binary(min_size=1, max_size=2)))
def test_json_holds_the_text(data):
    """
    Whatever the bytes, and however often they are asked for, both are their base64.
    """
    assert json.loads(base64_json(data)) == base64_text(data) == b64encode(data).decode()
    assert base64_json(data) == base64_json(data)


def test_the_same_bytes_are_encoded_once():
    """
    An author's constant is encoded once, and not again for each request.
    """
    data = bytes(range(256)) * (LARGE // 256)

    assert base64_json(data) is base64_json(data)


def test_equal_bytes_are_not_looked_through():
    """
    Other bytes that are equal are encoded by themselves.
    """
    data = b"x" * LARGE
    other = bytes(bytearray(data))

    assert base64_json(data) == base64_json(other)
    assert base64_json(data) is not base64_json(other)


def test_what_is_kept_is_bounded(monkeypatch):
    """
    Media that differ from request to request do not fill memory, and what is used stays.
    """
    monkeypatch.setattr(encoding, "_cache", encoding._Cache())
    often = b"!" * LARGE
    kept = base64_json(often)
    for number in range(400):
        base64_json(bytes([number % 256]) * (LARGE + number))
        assert base64_json(often) is kept

    held = encoding._cache._encoded.values()
    assert sum(len(data) + len(encoded) for data, encoded in held) == encoding._cache._size
    assert encoding._MAX_CACHED_BYTES // 2 < encoding._cache._size <= encoding._MAX_CACHED_BYTES
