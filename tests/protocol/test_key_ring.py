import json
import re
import secrets
import subprocess
import sys
from base64 import urlsafe_b64decode
from itertools import count, pairwise

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import assume, given
from hypothesis import strategies as st

from promptkit.protocol.key_ring import OVERHEAD, InvalidTokenError, KeyRing, TokenExpiredError

KEYS = [bytes([n]) * 32 for n in range(4)]
NOW = 1_790_000_000
EXPIRES = NOW + 900

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
KEY = st.binary(min_size=32, max_size=80)
TIMES = st.integers(0, 10**15 - 1)


def ring(*keys, audience="tests"):
    """Return a ring with known keys."""
    return KeyRing(keys or KEYS[:1], audience)


def open_token(token, by=None, purpose="p", bound=b"b", now=NOW):
    """Open a token, and return its payload, or the type of the error."""
    try:
        return (by or ring()).open(purpose, token, now, bound=bound)[0]
    except InvalidTokenError as error:
        return type(error)


def seal_token(payload=b"held", by=None, purpose="p", bound=b"b", expires=EXPIRES):
    """Return a token that is sealed by *by*, or by default by a ring with known keys."""
    return (by or ring()).seal(purpose, expires, payload, bound=bound)


class TestValidToken:
    @given(st.lists(KEY, min_size=1, max_size=3), st.tuples(TEXT, TEXT), TIMES, st.binary(), st.binary())
    def test_round_trip(self, keys, names, expires, payload, bound):
        """A token opens to its payload, in any process, until it expires."""
        audience, purpose = names
        token = KeyRing(keys, audience).seal(purpose, expires, payload, bound=bound)

        result = KeyRing(keys, audience).open(purpose, token, expires, bound=bound)

        assert result == (payload, expires)

    @given(TIMES, st.floats(0.001, 1e15))
    def test_expired(self, expires, late):
        """A token cannot be opened after its expiry."""
        assume(expires + late > expires)

        assert open_token(seal_token(expires=expires), now=expires + late) is TokenExpiredError

    @given(st.binary(), TIMES)
    def test_characters_and_length(self, payload, expires):
        """A token needs no escaping in URLs and headers, and has the documented length."""
        token = seal_token(payload, expires=expires)

        assert re.fullmatch(r"v2\.[A-Za-z0-9._-]+", token)
        assert len(token) <= OVERHEAD + -(-len(payload) * 4 // 3)

    @given(*[st.tuples(TEXT, TIMES, st.binary(max_size=8), st.binary(max_size=8))] * 2)
    def test_tokens_are_unique(self, first, second):
        """Tokens with any different input are different."""
        assume(first != second)

        tokens = [
            ring().seal(purpose, at, payload, bound=bound) for purpose, at, payload, bound in (first, second)
        ]

        assert tokens[0] != tokens[1]

    def test_reference_implementation(self):
        """The key derivation (HKDF, RFC 5869) and the MAC (HMAC) match those of another library."""
        secret = bytes(range(40))
        token = KeyRing([secret], "tests").seal("p", EXPIRES, b"held?>", bound=b"b")
        head, _, mac = token.rpartition(".")

        def derived(*info):
            info = json.dumps(["v2", *info], separators=(",", ":")).encode()
            return HKDF(SHA256(), 32, None, info).derive(secret)

        hashed = HMAC(derived("token", "p", "tests"), SHA256())
        hashed.update(head.encode() + b"\0b")
        assert head == f"v2.{derived('key id')[:4].hex()}.{EXPIRES}.aGVsZD8-"
        assert hashed.finalize() == urlsafe_b64decode(mac + "=")


class TestInvalidToken:
    @given(st.data())
    def test_altered_token(self, data):
        """A token with a replaced, missing or additional character is rejected."""
        token = seal_token()
        at = data.draw(st.integers(0, len(token)))
        new = data.draw(st.characters() | st.sampled_from("0123456789abcdefABCDEF.v-_=+/ \n\0") | st.just(""))
        changed = token[:at] + new + token[at + data.draw(st.sampled_from([0, 1])) :]
        assume(changed != token)

        assert open_token(changed) is InvalidTokenError

    def test_every_character_counts(self):
        """No character of a token can be replaced, not even the unused bits of the last character."""
        token = seal_token()
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

        changed = {
            token[:at] + letter + token[at + 1 :]
            for at, own in enumerate(token)
            for letter in letters
            if letter != own
        }

        assert {open_token(token) for token in changed} == {InvalidTokenError}

    @given(st.integers(0, 200))
    def test_truncated_token(self, length):
        """A token without its beginning or end is rejected."""
        token = seal_token()
        length = length % len(token)

        for part in (token[:length], token[len(token) - length :]):
            assert open_token(part) is InvalidTokenError

    @given(*[st.tuples(KEY, TEXT, TEXT, st.binary(max_size=12))] * 2, st.binary(max_size=12))
    def test_another_use(self, first, second, payload):
        """A token is invalid with another key, audience, purpose or bound value."""
        assume(first != second)
        (key, audience, purpose, bound), (other_key, other_audience, other_purpose, other_bound) = (
            first,
            second,
        )
        token = KeyRing([key], audience).seal(purpose, EXPIRES, payload, bound=bound)

        by = KeyRing([other_key], other_audience)

        assert open_token(token, by, other_purpose, other_bound) is InvalidTokenError

    @pytest.mark.parametrize("changed", ["key", "audience", "purpose", "bound"])
    def test_single_difference(self, changed):
        """A different key, audience, purpose or bound value alone makes the token invalid."""
        right = {"key": KEYS[0], "audience": "tests", "purpose": "p", "bound": b"b"}
        wrong = {"key": KEYS[1], "audience": "test", "purpose": "", "bound": b""}

        def open_with(key, audience, purpose, bound):
            return open_token(seal_token(), KeyRing([key], audience), purpose, bound)

        assert open_with(**right) == b"held"
        assert open_with(**{**right, changed: wrong[changed]}) is InvalidTokenError

    @given(st.sampled_from([("ab", "c", b""), ("a", "bc", b""), ("", "abc", b""), ("abc", "", b"\0")]))
    def test_boundaries_between_parts_are_authenticated(self, use):
        """The boundaries between audience, purpose and bound value are part of the MAC."""
        audience, purpose, bound = use
        token = ring(audience="a").seal("b", EXPIRES, bound=b"c")

        assert open_token(token, ring(audience=audience), purpose, bound) is InvalidTokenError

    def test_payload_and_bound_value_are_separate(self):
        """Text cannot be moved between the payload and the bound value."""
        token = seal_token(b"", bound=b".aGVsZA")
        head, _, mac = token.rpartition(".")

        assert open_token(token, bound=b".aGVsZA") == b""
        assert open_token(f"{head}.aGVsZA.{mac}", bound=b"") is InvalidTokenError

    @given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
    def test_arbitrary_text(self, text):
        """Arbitrary text is malformed, and raises no other exception."""
        assert open_token(text) is InvalidTokenError

    @given(
        st.from_regex(
            r"v2\.([0-9a-f]{8}|KEYID)\.[0-9]{1,15}(\.[A-Za-z0-9_-]{1,99})?\.[A-Za-z0-9_-]{43}", fullmatch=True
        )
    )
    def test_forged_token(self, text):
        """Text in the form of a token is rejected, even with the id of a known key."""
        assert open_token(text.replace("KEYID", seal_token().split(".")[1])) is InvalidTokenError

    @given(st.data())
    def test_parts_of_several_tokens(self, data):
        """No valid token can be combined from the parts of others."""
        both = ring(*KEYS[:2])
        tokens = {
            by.seal("p", expires, payload, bound=b"b")
            for by in (both, ring(KEYS[1]))
            for expires in (EXPIRES, EXPIRES + 1)
            for payload in (b"", b"held", b"held, too")
        }
        parts = sorted({part for token in tokens for part in token.split(".")})

        combined = ".".join(data.draw(st.lists(st.sampled_from(parts), min_size=3, max_size=5)))
        combined = f"v2.{combined}"
        original = data.draw(st.sampled_from(sorted(tokens))).split(".")
        at = data.draw(st.integers(0, len(original) - 1))
        swapped = ".".join([*original[:at], data.draw(st.sampled_from(parts)), *original[at + 1 :]])

        for token in {combined, swapped} - tokens:
            assert open_token(token, both) is InvalidTokenError

    def test_altered_token_is_not_reported_as_expired(self):
        """A forger does not learn a valid time."""
        token = seal_token(expires=1)

        assert open_token(token) is TokenExpiredError
        assert open_token(token[:-1] + ("A" if token[-1] != "A" else "E")) is InvalidTokenError


class TestRotation:
    @given(st.permutations(range(4)), st.sets(st.integers(0, 3), min_size=1), st.sampled_from(range(4)))
    def test_position_of_the_key(self, order, held, sealing):
        """A token is valid in every ring with its key, at any position, and in no other."""
        token = seal_token(by=ring(KEYS[sealing]))
        by = ring(*(KEYS[n] for n in order if n in held))

        assert open_token(token, by) == (b"held" if sealing in held else InvalidTokenError)

    def test_stepwise_replacement(self):
        """While replicas are restarted in turn, each accepts the tokens of the others at every step."""
        old, new = KEYS[:2]
        steps = [ring(old), ring(old, new), ring(new, old), ring(new)]

        for before, after in pairwise(steps):
            if after is not steps[-1]:
                assert open_token(seal_token(by=before), after) == b"held"
            assert open_token(seal_token(by=after), before) == b"held"
        assert open_token(seal_token(by=steps[0]), steps[-1]) is InvalidTokenError

    def test_first_key_signs(self):
        """The first key seals tokens, and its id is in the token."""
        both = ring(*KEYS[:2])

        assert seal_token(by=both) == seal_token(by=ring(KEYS[0]))
        assert seal_token(by=both).split(".")[1] == seal_token(by=ring(KEYS[0])).split(".")[1]

    def test_keys_with_equal_ids(self):
        """If two keys have the same short id, tokens of both are valid."""
        seen = {}
        for key in (n.to_bytes(32, "big") for n in count()):
            key_id = seal_token(by=ring(key)).split(".")[1]
            if key_id in seen:
                break
            seen[key_id] = key
        both = ring(seen[key_id], key)

        assert {open_token(seal_token(by=ring(owner)), both) for owner in (seen[key_id], key)} == {b"held"}
        assert open_token(seal_token(by=ring(key)), ring(seen[key_id])) is InvalidTokenError

    def test_key_id(self):
        """The id in a token identifies its key."""
        first, second = (seal_token(by=ring(key)).split(".")[1] for key in KEYS[:2])

        assert first != second
        assert seal_token(by=ring(KEYS[1], KEYS[0], KEYS[1])).split(".")[1] == second
        assert re.fullmatch("[0-9a-f]{8}", first)


class TestKeys:
    @pytest.mark.parametrize("key", [b"", b"k", b"k" * 15, b"k" * 31])
    def test_short_key(self, key):
        """A short key is rejected, at any position."""
        with pytest.raises(ValueError, match="can be guessed") as error:
            KeyRing([KEYS[0], key])

        assert str(error.value) == (
            f"a key of {len(key)} bytes can be guessed: use 32 bytes, for example secrets.token_bytes(32)"
        )

    def test_random_key(self):
        """Rings without given keys do not accept each other's tokens."""
        first, second = KeyRing(), KeyRing()

        assert open_token(seal_token(by=first), first) == b"held"
        assert open_token(seal_token(by=first), second) is InvalidTokenError

    def test_is_shared(self):
        """Only given keys can be shared with other servers."""
        assert (KeyRing().is_shared, KeyRing(KEYS).is_shared) == (False, True)

    def test_changing_keys(self):
        """The keys can come from a function; a token is valid while its key is returned."""
        held = [KEYS[:1]]
        changing = KeyRing(lambda: tuple(held[-1]), "tests")
        token, digest = seal_token(by=changing), changing.digest("p", b"")
        assert changing.is_shared
        held.append([KEYS[1], KEYS[0]])
        later = seal_token(by=changing)

        assert (open_token(token, changing), open_token(later, changing)) == (b"held", b"held")
        assert (open_token(later, ring(KEYS[1])), open_token(later, ring(KEYS[0]))) == (
            b"held",
            InvalidTokenError,
        )
        assert changing.digest("p", b"") == ring(KEYS[1]).digest("p", b"") != digest
        held.append([KEYS[1]])
        assert (open_token(token, changing), open_token(later, changing)) == (InvalidTokenError, b"held")

    def test_keys_are_not_shown(self):
        """Neither the representation nor a token contains a key."""
        held = ring()
        token = seal_token(by=held)

        assert not any(text in f"{held!r} {token}" for text in (repr(KEYS[0]), KEYS[0].hex()))

    def test_recommended_key(self):
        """The key that the error message recommends is accepted."""
        assert KeyRing([secrets.token_bytes(32)]).is_shared


def test_forked_processes_share_the_random_key():
    """Workers that are forked after the ring was created accept each other's tokens."""
    script = """
import os, sys
from promptkit.protocol.key_ring import KeyRing
ring = KeyRing()
reading, writing = os.pipe()
if not os.fork():
    os.write(writing, ring.seal("p", 2**40, b"from a worker").encode())
    os._exit(0)
os.wait()
print(ring.open("p", os.read(reading, 999).decode(), 0.0)[0].decode())
"""
    ran = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout == "from a worker\n"
