import math
import re
import subprocess
import sys

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from promptkit.protocol.jsonrpc import InvalidParams
from promptkit.protocol.key_ring import KeyRing, RequestStateSigner

KEY = bytes(range(32))
METHOD = "prompts/get"
PARAMS = {"name": "review", "arguments": {"diff": "a", "depth": "2"}}
REFUSED = "requestState was not issued by this server for this request: send the request without it"
EXPIRED = "expired"

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now=1_790_000_000.5):
        self.now = now

    def __call__(self):
        """Return the time."""
        return self.now


def signer(clock=None, *, keys=(KEY,), audience="tests", **options) -> RequestStateSigner:
    """Return a signer with a known key and a stopped clock."""
    return RequestStateSigner(KeyRing(keys, audience), **{"clock": clock or Clock(), **options})


def find_error(token, method=METHOD, params=PARAMS, by=None) -> str | None:
    """Return the error of a rejected token, or None."""
    try:
        if not (by or signer()).is_fresh(token, method, params):
            return EXPIRED
    except InvalidParams as error:
        return str(error)
    return None


def reverse_keys(value):
    """Return a JSON value with the keys of every object in reverse order."""
    if isinstance(value, dict):
        return {key: reverse_keys(value[key]) for key in reversed(value)}
    return [reverse_keys(item) for item in value] if isinstance(value, list) else value


class TestSameRequest:
    @given(TEXT, JSON)
    def test_accepted(self, method, params):
        """A token is accepted with its request, whatever the request is."""
        assert find_error(signer().sign(method, params), method, params) is None

    @given(JSON)
    def test_order_of_keys(self, params):
        """The order of the keys in an object is ignored."""
        assert find_error(signer().sign(METHOD, params), METHOD, reverse_keys(params)) is None

    def test_reuse(self):
        """A token can be used more than once while it is valid."""
        token, fixed = signer().sign(METHOD, PARAMS), signer()

        assert [find_error(token, by=fixed), find_error(token, by=fixed)] == [None, None]

    def test_another_process_with_the_key(self):
        """A token needs no state except the key."""
        first, second = (RequestStateSigner(KeyRing([KEY], "tests")) for _ in range(2))

        assert find_error(first.sign(METHOD, PARAMS), by=second) is None


class TestToken:
    @given(JSON)
    def test_characters(self, params):
        """A token has a version, and no characters that need escaping."""
        assert re.fullmatch(r"v2\.[A-Za-z0-9._~-]+", signer().sign(METHOD, params))

    def test_token_hides_params_and_key(self):
        """A token contains neither the params nor the key, and its length does not depend on the params."""
        short, long = signer().sign(METHOD, "a"), signer().sign(METHOD, "secret " * 999)

        assert len(short) == len(long)
        assert "secret" not in long
        assert KEY.hex() not in short

    def test_format_is_stable(self):
        """Tokens of this version do not change, so that newer servers accept them."""
        issued = "v2.09679e85.1790000901.sEOnD6zSy-Ict1DPB9B_gNsHJkaw-A7tXp9c6OeXnNA"

        assert signer().sign(METHOD, PARAMS) == issued


class TestAnotherRequest:
    @pytest.mark.requirement("mrtr/state-integrity")
    @given(st.data())
    def test_altered_token(self, data):
        """A token with a replaced, missing or additional character is rejected."""
        token = signer().sign(METHOD, PARAMS)
        at = data.draw(st.integers(0, len(token) - 1))
        new = data.draw(st.characters() | st.sampled_from("0123456789abcdefABCDEF.v \n") | st.just(""))
        changed = token[:at] + new + token[at + data.draw(st.sampled_from([0, 1])) :]
        assume(changed != token)

        assert find_error(changed) == REFUSED

    @pytest.mark.requirement("mrtr/state-origin")
    @given(JSON, JSON)
    @example({"a": "b"}, {"a": "b", "c": None})
    @example(["a", "b"], ["a,b"])
    @example({"a": {"b": 1}}, {"a": {}, "b": 1})
    @example("1", 1)
    @example(None, {})
    def test_other_params(self, params, other_params):
        """A token is invalid with other params."""
        assume(params != other_params)

        assert find_error(signer().sign(METHOD, params), METHOD, other_params) == REFUSED

    @pytest.mark.requirement("mrtr/state-origin")
    @given(TEXT)
    def test_another_method(self, method):
        """A token is invalid with another method."""
        assume(method != METHOD)

        assert find_error(signer().sign(METHOD, PARAMS), method) == REFUSED

    @pytest.mark.requirement("mrtr/state-integrity")
    @given(st.binary(min_size=32, max_size=80))
    def test_another_key(self, key):
        """A token with another key is rejected, without a reason."""
        assume(key != KEY)

        assert find_error(signer(keys=[key]).sign(METHOD, PARAMS)) == REFUSED

    def test_random_key(self):
        """Without a given key, each signer has a random one."""
        assert find_error(RequestStateSigner().sign(METHOD, PARAMS), by=RequestStateSigner()) == REFUSED

    def test_boundaries_between_parts_are_authenticated(self):
        """The boundary between method and params is part of the MAC."""
        assert find_error(signer().sign("a", "bc"), "ab", "c") == REFUSED
        assert find_error(signer().sign('a","b', "c"), "a", ["b", "c"]) == REFUSED

    @pytest.mark.requirement("mrtr/state-expiry")
    @pytest.mark.parametrize("expiry", ["1790000902", "999999999999999", "01790000901", "0"])
    def test_altered_expiry(self, expiry):
        """The expiry is authenticated, and an altered token is not reported as expired."""
        version, key, _, mac = signer().sign(METHOD, PARAMS).split(".")

        assert find_error(f"{version}.{key}.{expiry}.{mac}") == REFUSED

    @pytest.mark.parametrize(
        "token",
        [
            "",
            "v2",
            "v2...",
            f"v2.{'0' * 8}.1790000901",
            f"v2.{'0' * 8}.1790000901.{'A' * 42}",
            f"v2.{'0' * 8}.1790000901.{'A' * 43}\n",
            f"v2.{'0' * 8}.1790000901.{'A' * 42}=",
            f"v2.{'F' * 8}.1790000901.{'A' * 43}",
            f"v2.{'0' * 7}.1790000901.{'A' * 43}",
            f"v2.{'0' * 8}.-5.{'A' * 43}",
            f"v2.{'0' * 8}.{'9' * 5000}.{'A' * 43}",
            f"v2.{'0' * 8}.١٧٩.{'A' * 43}",
            f"v1.1790000901.{'0' * 64}",
            f"v3.{'0' * 8}.1790000901.{'A' * 43}",
            "\ud800",
        ],
        ids=ascii,
    )
    def test_malformed_token(self, token):
        """Text in another form is rejected before anything is computed."""
        assert find_error(token) == REFUSED

    @pytest.mark.requirement("mrtr/hostile-state")
    @given(st.text())
    def test_arbitrary_text(self, token):
        """Arbitrary text is rejected, and raises no other exception."""
        assert find_error(token) == REFUSED


class TestLifetime:
    @given(st.floats(0, 4e9), st.floats(0.001, 1e6), st.floats(0, 1))
    def test_valid(self, now, lifetime, part):
        """A token is accepted until its lifetime has passed."""
        clock = Clock(now)
        fixed = signer(clock, lifetime=lifetime)
        token = fixed.sign(METHOD, PARAMS)

        clock.now = now + part * lifetime

        assert find_error(token, by=fixed) is None

    @given(st.floats(0, 4e9), st.floats(0.001, 1e6), st.floats(1, 1e6))
    def test_expired(self, now, lifetime, late):
        """A token is rejected from one second after its lifetime."""
        clock = Clock(now)
        fixed = signer(clock, lifetime=lifetime)
        token = fixed.sign(METHOD, PARAMS)

        clock.now = math.ceil(now + lifetime) + late

        assert find_error(token, by=fixed) == EXPIRED

    @pytest.mark.requirement("mrtr/state-expiry")
    def test_default(self):
        """The default lifetime is 15 minutes, the time for filling in a form."""
        clock = Clock(1000.0)
        fixed = signer(clock)
        token = fixed.sign(METHOD, PARAMS)

        clock.now = 1900.0
        in_time = find_error(token, by=fixed)
        clock.now = 1900.1

        assert (in_time, find_error(token, by=fixed)) == (None, EXPIRED)


class TestKeyRing:
    def test_another_audience(self):
        """Servers that share keys but not their name reject each other's tokens."""
        assert find_error(signer(audience="other").sign(METHOD, PARAMS)) == REFUSED

    def test_replaced_key(self):
        """A token is valid while the ring contains its key, so that people can finish a form."""
        new = bytes(reversed(KEY))
        token = signer().sign(METHOD, PARAMS)

        assert find_error(token, by=signer(keys=[new, KEY])) is None
        assert find_error(token, by=signer(keys=[new])) == REFUSED

    def test_another_purpose(self):
        """A token that the ring sealed for another purpose is rejected."""
        bound = b'["prompts/get",null]'
        own, other = (
            KeyRing([KEY], "tests").seal(purpose, 1_790_000_900, bound=bound)
            for purpose in ("requestState", "session id")
        )

        assert find_error(own, params=None) is None
        assert find_error(other, params=None) == REFUSED


def test_lazy_import():
    """A server that never asks for input does not import `hmac`."""
    script = """
import sys
from promptkit.protocol.key_ring import KeyRing
from promptkit.protocol.key_ring import RequestStateSigner
signer = RequestStateSigner()
assert "hmac" not in sys.modules
signer.is_fresh(signer.sign("a", 1), "a", 1)
print("hmac" in sys.modules)
"""
    completed = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )

    assert completed.stdout.strip() == "True"
