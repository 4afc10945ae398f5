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
MALFORMED = "requestState was not issued by this server: send it back as it came, or leave it out"
CHANGED = "requestState was changed or belongs to another request: send this one again without it"
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
        """Tell the time."""
        return self.now


def signer(clock=None, *, keys=(KEY,), audience="tests", **options) -> RequestStateSigner:
    """A signer with a known key and a clock that stands still."""
    return RequestStateSigner(KeyRing(keys, audience), **{"clock": clock or Clock(), **options})


def refusal(token, method=METHOD, params=PARAMS, by=None) -> str | None:
    """Why a token is refused; None if it is taken."""
    try:
        if not (by or signer()).is_fresh(token, method, params):
            return EXPIRED
    except InvalidParams as refused:
        return str(refused)
    return None


def reordered(value):
    """A JSON value with the keys of every object the other way round."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


class TestTheSameRequest:
    @given(TEXT, JSON)
    def test_it_is_accepted(self, method, params):
        """
        A token is taken with the request that it was given for, whatever that is.
        """
        assert refusal(signer().sign(method, params), method, params) is None

    @given(JSON)
    def test_the_order_of_keys_does_not_matter(self, params):
        """
        Clients may write the members of an object in any order.
        """
        assert refusal(signer().sign(METHOD, params), METHOD, reordered(params)) is None

    def test_it_is_accepted_again(self):
        """
        A token may be used more than once while it is valid.
        """
        token, fixed = signer().sign(METHOD, PARAMS), signer()

        assert [refusal(token, by=fixed), refusal(token, by=fixed)] == [None, None]

    def test_another_process_with_the_key_takes_it(self):
        """
        All that a token needs is in it, and in the key.
        """
        one, another = (RequestStateSigner(KeyRing([KEY], "tests")) for _ in range(2))

        assert refusal(one.sign(METHOD, PARAMS), by=another) is None


class TestTheToken:
    @given(JSON)
    def test_it_is_safe_in_urls(self, params):
        """
        It has a version, and nothing that has to be escaped anywhere.
        """
        assert re.fullmatch(r"v2\.[A-Za-z0-9._~-]+", signer().sign(METHOD, params))

    def test_it_does_not_tell_what_it_signs(self):
        """
        It shows neither the params nor the key, and is no longer for longer params.
        """
        short, long = signer().sign(METHOD, "a"), signer().sign(METHOD, "secret " * 999)

        assert len(short) == len(long)
        assert "secret" not in long
        assert KEY.hex() not in short

    def test_it_is_always_made_the_same_way(self):
        """
        Tokens of this version stay what they are, so that a newer server takes them.
        """
        issued = "v2.09679e85.1790000901.sEOnD6zSy-Ict1DPB9B_gNsHJkaw-A7tXp9c6OeXnNA"

        assert signer().sign(METHOD, PARAMS) == issued


class TestAnotherRequest:
    @pytest.mark.requirement("mrtr/state-integrity")
    @given(st.data())
    def test_a_changed_token_is_refused(self, data):
        """
        A token with one character replaced, left out or put in is refused.
        """
        token = signer().sign(METHOD, PARAMS)
        at = data.draw(st.integers(0, len(token) - 1))
        new = data.draw(st.characters() | st.sampled_from("0123456789abcdefABCDEF.v \n") | st.just(""))
        changed = token[:at] + new + token[at + data.draw(st.sampled_from([0, 1])) :]
        assume(changed != token)

        assert refusal(changed) in (MALFORMED, CHANGED)

    @pytest.mark.requirement("mrtr/state-origin")
    @given(JSON, JSON)
    @example({"a": "b"}, {"a": "b", "c": None})
    @example(["a", "b"], ["a,b"])
    @example({"a": {"b": 1}}, {"a": {}, "b": 1})
    @example("1", 1)
    @example(None, {})
    def test_other_params_are_refused(self, params, others):
        """
        A token is worth nothing for other params.
        """
        assume(params != others)

        assert refusal(signer().sign(METHOD, params), METHOD, others) == CHANGED

    @pytest.mark.requirement("mrtr/state-origin")
    @given(TEXT)
    def test_another_method_is_refused(self, method):
        """
        Nor is it for another method.
        """
        assume(method != METHOD)

        assert refusal(signer().sign(METHOD, PARAMS), method) == CHANGED

    @pytest.mark.requirement("mrtr/state-integrity")
    @given(st.binary(min_size=32, max_size=80))
    def test_another_key_is_refused(self, key):
        """
        A token of a server with another key is refused, without a reason.
        """
        assume(key != KEY)

        assert refusal(signer(keys=[key]).sign(METHOD, PARAMS)) == CHANGED

    def test_every_signer_has_a_key_of_its_own(self):
        """
        Without a given key each has a random one.
        """
        assert refusal(RequestStateSigner().sign(METHOD, PARAMS), by=RequestStateSigner()) == CHANGED

    def test_the_parts_of_a_request_cannot_be_shifted(self):
        """
        What belongs to the method in one request cannot belong to the params in another.
        """
        assert refusal(signer().sign("a", "bc"), "ab", "c") == CHANGED
        assert refusal(signer().sign('a","b', "c"), "a", ["b", "c"]) == CHANGED

    @pytest.mark.requirement("mrtr/state-expiry")
    @pytest.mark.parametrize("expiry", ["1790000902", "999999999999999", "01790000901", "0"])
    def test_it_cannot_be_made_to_last(self, expiry):
        """
        The time of expiry is signed, too; a changed token is refused as changed before it is as expired.
        """
        version, key, _, mac = signer().sign(METHOD, PARAMS).split(".")

        assert refusal(f"{version}.{key}.{expiry}.{mac}") == CHANGED

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
    def test_what_is_no_token_is_malformed(self, token):
        """
        Text of another form is refused before anything is computed.
        """
        assert refusal(token) == MALFORMED

    @pytest.mark.requirement("mrtr/hostile-state")
    @given(st.text())
    def test_any_text_is_refused(self, token):
        """
        No text that this server did not give is taken, and none is an error of another kind.
        """
        assert refusal(token) in (MALFORMED, CHANGED)


class TestTime:
    @given(st.floats(0, 4e9), st.floats(0.001, 1e6), st.floats(0, 1))
    def test_it_is_taken_for_its_lifetime(self, now, lifetime, part):
        """
        A token is taken until its lifetime has passed.
        """
        clock = Clock(now)
        fixed = signer(clock, lifetime=lifetime)
        token = fixed.sign(METHOD, PARAMS)

        clock.now = now + part * lifetime

        assert refusal(token, by=fixed) is None

    @given(st.floats(0, 4e9), st.floats(0.001, 1e6), st.floats(1, 1e6))
    def test_a_late_one_is_refused(self, now, lifetime, late):
        """
        A second after that it is refused, for ever.
        """
        clock = Clock(now)
        fixed = signer(clock, lifetime=lifetime)
        token = fixed.sign(METHOD, PARAMS)

        clock.now = math.ceil(now + lifetime) + late

        assert refusal(token, by=fixed) == EXPIRED

    @pytest.mark.requirement("mrtr/state-expiry")
    def test_a_quarter_of_an_hour(self):
        """
        That is how long people have to fill in a form.
        """
        clock = Clock(1000.0)
        fixed = signer(clock)
        token = fixed.sign(METHOD, PARAMS)

        clock.now = 1900.0
        in_time = refusal(token, by=fixed)
        clock.now = 1900.1

        assert (in_time, refusal(token, by=fixed)) == (None, EXPIRED)


class TestTheRing:
    def test_a_token_of_a_server_of_another_name_is_refused(self):
        """
        Servers that share keys, but not their name, take no tokens of each other.
        """
        assert refusal(signer(audience="other").sign(METHOD, PARAMS)) == CHANGED

    def test_a_token_of_a_replaced_key_is_taken(self):
        """
        As long as the ring holds the old key, people may finish the form that they are filling in.
        """
        new = bytes(reversed(KEY))
        token = signer().sign(METHOD, PARAMS)

        assert refusal(token, by=signer(keys=[new, KEY])) is None
        assert refusal(token, by=signer(keys=[new])) == CHANGED

    def test_a_token_for_something_else_is_refused(self):
        """
        What the ring seals for another purpose is no requestState, though all else is the same.
        """
        bound = b'["prompts/get",null]'
        own, other = (
            KeyRing([KEY], "tests").seal(purpose, 1_790_000_900, bound=bound)
            for purpose in ("requestState", "session id")
        )

        assert refusal(own, params=None) is None
        assert refusal(other, params=None) == CHANGED


def test_what_it_needs_is_loaded_when_it_is_used():
    """
    A server that never asks for input loads no cryptography.
    """
    script = """
import sys
from promptkit.protocol.key_ring import KeyRing
from promptkit.protocol.key_ring import RequestStateSigner
signer = RequestStateSigner()
assert "hmac" not in sys.modules
signer.is_fresh(signer.sign("a", 1), "a", 1)
print("hmac" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "True"
