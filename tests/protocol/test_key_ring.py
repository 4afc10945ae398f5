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

from promptkit.protocol.key_ring import OVERHEAD, KeyRing, Opened, Refusal, TokenRefusedError

KEYS = [bytes([n]) * 32 for n in range(4)]
NOW = 1_790_000_000
EXPIRES = NOW + 900

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
KEY = st.binary(min_size=32, max_size=80)
TIMES = st.integers(0, 10**15 - 1)


def ring(*keys, audience="tests"):
    """A ring of known keys."""
    return KeyRing(keys or KEYS[:1], audience)


def opened(token, by=None, purpose="p", bound=b"b", now=NOW):
    """What a token holds, or why it is refused."""
    try:
        return (by or ring()).open(purpose, token, now, bound=bound).payload
    except TokenRefusedError as refused:
        return refused.refusal


def sealed(payload=b"held", by=None, purpose="p", bound=b"b", expires=EXPIRES):
    """A token, of a known ring unless another one is named."""
    return (by or ring()).seal(purpose, expires, payload, bound=bound)


class TestASealedToken:
    @given(st.lists(KEY, min_size=1, max_size=3), st.tuples(TEXT, TEXT), TIMES, st.binary(), st.binary())
    def test_it_opens_to_what_was_sealed(self, keys, names, expires, payload, bound):
        """
        Whatever is sealed comes back, in another process, too, until the second in which it expires.
        """
        audience, purpose = names
        token = KeyRing(keys, audience).seal(purpose, expires, payload, bound=bound)

        found = KeyRing(keys, audience).open(purpose, token, expires, bound=bound)

        assert found == Opened(payload, expires)

    @given(TIMES, st.floats(0.001, 1e15))
    def test_then_it_is_refused(self, expires, late):
        """
        After that second it is not opened any more.
        """
        assume(expires + late > expires)

        assert opened(sealed(expires=expires), now=expires + late) is Refusal.EXPIRED

    @given(st.binary(), TIMES)
    def test_urls_and_headers_hold_it(self, payload, expires):
        """
        It has letters, digits and three marks that are never escaped, and is as long as is said.
        """
        token = sealed(payload, expires=expires)

        assert re.fullmatch(r"v2\.[A-Za-z0-9._-]+", token)
        assert len(token) <= OVERHEAD + -(-len(payload) * 4 // 3)

    @given(*[st.tuples(TEXT, TIMES, st.binary(max_size=8), st.binary(max_size=8))] * 2)
    def test_no_two_are_equal(self, one, other):
        """
        Tokens differ if anything differs that they were sealed with.
        """
        assume(one != other)

        tokens = [ring().seal(purpose, at, held, bound=bound) for purpose, at, held, bound in (one, other)]

        assert tokens[0] != tokens[1]

    def test_it_is_what_others_compute(self):
        """
        The key is derived by HKDF (RFC 5869) and the MAC is an HMAC, as another library makes them.
        """
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


class TestAForgedToken:
    @given(st.data())
    def test_a_changed_one_is_refused(self, data):
        """
        One with a character replaced, left out or put in is not opened.
        """
        token = sealed()
        at = data.draw(st.integers(0, len(token)))
        new = data.draw(st.characters() | st.sampled_from("0123456789abcdefABCDEF.v-_=+/ \n\0") | st.just(""))
        changed = token[:at] + new + token[at + data.draw(st.sampled_from([0, 1])) :]
        assume(changed != token)

        assert opened(changed) in (Refusal.MALFORMED, Refusal.FORGED)

    def test_every_character_counts(self):
        """
        No other letter, digit or mark stands for one of the token's, not even for the last one's spare bits.
        """
        token = sealed()
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

        changed = {
            token[:at] + letter + token[at + 1 :]
            for at, own in enumerate(token)
            for letter in letters
            if letter != own
        }

        assert {opened(one) for one in changed} == {Refusal.MALFORMED, Refusal.FORGED}

    @given(st.integers(0, 200))
    def test_a_part_is_refused(self, length):
        """
        Nor is a token of which the beginning or the end is missing.
        """
        token = sealed()
        length = length % len(token)

        for part in (token[:length], token[len(token) - length :]):
            assert opened(part) in (Refusal.MALFORMED, Refusal.FORGED)

    @given(*[st.tuples(KEY, TEXT, TEXT, st.binary(max_size=12))] * 2, st.binary(max_size=12))
    def test_another_use_is_refused(self, one, other, payload):
        """
        A token is worth nothing under another key, for another audience or purpose, or with other bytes.
        """
        assume(one != other)
        (key, audience, purpose, bound), (other_key, other_audience, other_purpose, other_bound) = one, other
        token = KeyRing([key], audience).seal(purpose, EXPIRES, payload, bound=bound)

        by = KeyRing([other_key], other_audience)

        assert opened(token, by, other_purpose, other_bound) is Refusal.FORGED

    @pytest.mark.parametrize("changed", ["key", "audience", "purpose", "bound"])
    def test_one_thing_is_enough(self, changed):
        """
        Each of them alone makes the token worthless.
        """
        right = {"key": KEYS[0], "audience": "tests", "purpose": "p", "bound": b"b"}
        wrong = {"key": KEYS[1], "audience": "test", "purpose": "", "bound": b""}

        def found(key, audience, purpose, bound):
            return opened(sealed(), KeyRing([key], audience), purpose, bound)

        assert found(**right) == b"held"
        assert found(**{**right, changed: wrong[changed]}) is Refusal.FORGED

    @given(st.sampled_from([("ab", "c", b""), ("a", "bc", b""), ("", "abc", b""), ("abc", "", b"\0")]))
    def test_nothing_can_be_shifted(self, use):
        """
        What belongs to one part of a use cannot belong to another.
        """
        audience, purpose, bound = use
        token = ring(audience="a").seal("b", EXPIRES, bound=b"c")

        assert opened(token, ring(audience=audience), purpose, bound) is Refusal.FORGED

    def test_the_payload_cannot_become_what_it_is_bound_to(self):
        """
        The end of the token's text is clear, whatever the bytes that follow it.
        """
        token = sealed(b"", bound=b".aGVsZA")
        head, _, mac = token.rpartition(".")

        assert opened(token, bound=b".aGVsZA") == b""
        assert opened(f"{head}.aGVsZA.{mac}", bound=b"") is Refusal.FORGED

    @given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
    def test_any_text_is_refused(self, text):
        """
        No text is an error of another kind, whatever bytes it was.
        """
        assert opened(text) is Refusal.MALFORMED

    @given(
        st.from_regex(
            r"v2\.([0-9a-f]{8}|KEYID)\.[0-9]{1,15}(\.[A-Za-z0-9_-]{1,99})?\.[A-Za-z0-9_-]{43}", fullmatch=True
        )
    )
    def test_what_looks_like_a_token_is_refused(self, text):
        """
        Nor is anything opened that has the form of a token, also if it names a key of the ring.
        """
        assert opened(text.replace("KEYID", sealed().split(".")[1])) is Refusal.FORGED

    @given(st.data())
    def test_parts_of_several_make_no_other(self, data):
        """
        From the parts of tokens, no new one can be put together.
        """
        both = ring(*KEYS[:2])
        tokens = {
            by.seal("p", expires, payload, bound=b"b")
            for by in (both, ring(KEYS[1]))
            for expires in (EXPIRES, EXPIRES + 1)
            for payload in (b"", b"held", b"held, too")
        }
        parts = sorted({part for token in tokens for part in token.split(".")})

        made = ".".join(data.draw(st.lists(st.sampled_from(parts), min_size=3, max_size=5)))
        made = f"v2.{made}"
        whole = data.draw(st.sampled_from(sorted(tokens))).split(".")
        at = data.draw(st.integers(0, len(whole) - 1))
        swapped = ".".join([*whole[:at], data.draw(st.sampled_from(parts)), *whole[at + 1 :]])

        for one in {made, swapped} - tokens:
            assert opened(one, both) in (Refusal.MALFORMED, Refusal.FORGED)

    def test_changed_comes_before_expired(self):
        """
        A forger does not learn what would be the right time.
        """
        token = sealed(expires=1)

        assert opened(token) is Refusal.EXPIRED
        assert opened(token[:-1] + ("A" if token[-1] != "A" else "E")) is Refusal.FORGED

    def test_the_text_of_the_errors(self):
        """
        Each says why the token is not opened.
        """
        assert [str(TokenRefusedError(refusal)) for refusal in Refusal] == [
            "this is not a token",
            "no key of the ring has sealed this token for this use",
            "the token has expired",
        ]


class TestRotation:
    @given(st.permutations(range(4)), st.sets(st.integers(0, 3), min_size=1), st.sampled_from(range(4)))
    def test_who_has_the_key_opens(self, order, held, sealing):
        """
        A token is opened by every ring that has its key, at any place, and by no other.
        """
        token = sealed(by=ring(KEYS[sealing]))
        by = ring(*(KEYS[n] for n in order if n in held))

        assert opened(token, by) == (b"held" if sealing in held else Refusal.FORGED)

    def test_a_replacement_step_by_step(self):
        """
        While replicas are restarted one by one, each opens what the others seal, at every step.
        """
        old, new = KEYS[:2]
        steps = [ring(old), ring(old, new), ring(new, old), ring(new)]

        for before, after in pairwise(steps):
            if after is not steps[-1]:
                assert opened(sealed(by=before), after) == b"held"
            assert opened(sealed(by=after), before) == b"held"
        assert opened(sealed(by=steps[0]), steps[-1]) is Refusal.FORGED

    def test_the_first_seals(self):
        """
        The token names the key that sealed it, which is the first.
        """
        both = ring(*KEYS[:2])

        assert sealed(by=both) == sealed(by=ring(KEYS[0]))
        assert sealed(by=both).split(".")[1] == sealed(by=ring(KEYS[0])).split(".")[1]

    def test_keys_of_the_same_id(self):
        """
        If two keys happen to have the same short id, tokens of both are opened.
        """
        seen = {}
        for key in (n.to_bytes(32, "big") for n in count()):
            key_id = sealed(by=ring(key)).split(".")[1]
            if key_id in seen:
                break
            seen[key_id] = key
        both = ring(seen[key_id], key)

        assert {opened(sealed(by=ring(one)), both) for one in (seen[key_id], key)} == {b"held"}
        assert opened(sealed(by=ring(key)), ring(seen[key_id])) is Refusal.FORGED

    def test_ids_belong_to_keys(self):
        """
        The id in a token tells which key sealed it: the first.
        """
        first, second = (sealed(by=ring(key)).split(".")[1] for key in KEYS[:2])

        assert first != second
        assert sealed(by=ring(KEYS[1], KEYS[0], KEYS[1])).split(".")[1] == second
        assert re.fullmatch("[0-9a-f]{8}", first)


class TestTheKeys:
    @pytest.mark.parametrize("key", [b"", b"k", b"k" * 15, b"k" * 31])
    def test_a_short_one_is_refused(self, key):
        """
        A key that could be guessed is an error where it is given, at any place.
        """
        with pytest.raises(ValueError, match="can be guessed") as refused:
            KeyRing([KEYS[0], key])

        assert str(refused.value) == (
            f"a key of {len(key)} bytes can be guessed: use 32, as secrets.token_bytes(32) makes them"
        )

    def test_without_any_it_has_one_of_its_own(self):
        """
        Two rings that were given no keys do not open each other's tokens.
        """
        one, other = KeyRing(), KeyRing()

        assert opened(sealed(by=one), one) == b"held"
        assert opened(sealed(by=one), other) is Refusal.FORGED

    def test_it_says_whether_others_may_have_them(self):
        """
        Only keys that were given can be given to other servers, too.
        """
        assert (KeyRing().is_shared, KeyRing(KEYS).is_shared) == (False, True)

    def test_they_may_change(self):
        """
        A function says which hold: what the first of them seals is opened as long as that key is there.
        """
        held = [KEYS[:1]]
        changing = KeyRing(lambda: tuple(held[-1]), "tests")
        token, digest = sealed(by=changing), changing.digest("p", b"")
        assert changing.is_shared
        held.append([KEYS[1], KEYS[0]])
        later = sealed(by=changing)

        assert (opened(token, changing), opened(later, changing)) == (b"held", b"held")
        assert (opened(later, ring(KEYS[1])), opened(later, ring(KEYS[0]))) == (b"held", Refusal.FORGED)
        assert changing.digest("p", b"") == ring(KEYS[1]).digest("p", b"") != digest
        held.append([KEYS[1]])
        assert (opened(token, changing), opened(later, changing)) == (Refusal.FORGED, b"held")

    def test_they_are_not_shown(self):
        """
        Neither a log nor a traceback tells a key.
        """
        held = ring()
        token = sealed(by=held)

        assert not any(shown in f"{held!r} {token}" for shown in (repr(KEYS[0]), KEYS[0].hex()))

    def test_the_advice_is_good(self):
        """
        What the refusal of a short key recommends is taken.
        """
        assert KeyRing([secrets.token_bytes(32)]).is_shared


def test_processes_that_are_forked_share_the_random_key():
    """
    Workers that are forked after the ring was made open each other's tokens.
    """
    script = """
import os, sys
from promptkit.protocol.key_ring import KeyRing
ring = KeyRing()
reading, writing = os.pipe()
if not os.fork():
    os.write(writing, ring.seal("p", 2**40, b"from a worker").encode())
    os._exit(0)
os.wait()
print(ring.open("p", os.read(reading, 999).decode(), 0.0).payload.decode())
"""
    ran = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout == "from a worker\n"
