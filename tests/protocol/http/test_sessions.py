import re

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from promptkit.protocol.key_ring import MAX_SESSION_ID, SESSION_LIFETIME_S, KeyRing, SealedSession, Sessions
from promptkit.protocol.revisions import REVISIONS
from promptkit.protocol.wire import ClientInfo

KEYS = [bytes([n]) * 32 for n in range(3)]
HANDSHAKE = [revision for revision in REVISIONS.values() if not revision.stateless]
REVISION = HANDSHAKE[-1]
CLIENT = ClientInfo("claude-code", "2.1.0")
CAPABILITIES = {"roots": {"listChanged": True}, "elicitation": {}}
NOW = 1_790_000_000.5

TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
CLIENTS = st.none() | st.builds(ClientInfo, TEXT, TEXT)
SESSIONS = st.tuples(st.sampled_from(HANDSHAKE), CLIENTS, st.dictionaries(TEXT, JSON, max_size=4))


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        """Return the time."""
        return self.now


def sessions(*keys, audience="tests", clock=None, **options):
    """Return a `Sessions` object with known keys and a stopped clock."""
    return Sessions(KeyRing(keys or KEYS[:1], audience), clock=clock or Clock(), **options)


def typical_id(by=None):
    """Return a typical session id."""
    return (by or sessions()).seal(REVISION, CLIENT, CAPABILITIES)


def contents(session):
    """Return the contents of a session."""
    return session and (session.revision, session.client, session.capabilities)


class TestSession:
    @given(SESSIONS)
    def test_round_trip(self, opening):
        """Revision, client and capabilities are restored, even by another worker."""
        issuing = sessions()
        session_id = issuing.seal(*opening)
        assume(len(msgspec.json.encode(opening[1:])) < 1200)

        assert contents(issuing.open(session_id)) == opening
        assert contents(sessions().open(session_id)) == opening

    @given(SESSIONS)
    def test_id_is_a_valid_header(self, opening):
        """An id consists of visible ASCII characters, as the specification requires."""
        session_id = sessions().seal(*opening)

        assert re.fullmatch(r"[\x21-\x7e]+", session_id)

    def test_ids_are_unique(self):
        """The ids of equal clients are different, even at the same time."""
        assert len({typical_id() for _ in range(100)}) == 100

    def test_lifetime(self):
        """A session expires after 30 days, even if it is cached."""
        clock = Clock()
        cached, fresh = sessions(clock=clock), sessions(clock=clock)
        session_id = typical_id(cached)

        clock.now += SESSION_LIFETIME_S
        in_time = cached.open(session_id)
        clock.now += 1

        assert in_time == SealedSession(REVISION, CLIENT, CAPABILITIES, int(NOW + 0.5 + 30 * 86400))
        assert (cached.open(session_id), fresh.open(session_id)) == (None, None)


class TestInvalidId:
    @given(st.data())
    def test_altered_id(self, data):
        """An id with a changed, missing or additional character is invalid, even if the original is known."""
        opening = sessions()
        session_id = typical_id(opening)
        assert opening.open(session_id)
        at = data.draw(st.integers(0, len(session_id)))
        new = data.draw(st.characters() | st.sampled_from("0123456789abcdefABCDEF.v-_=+/ \n\0") | st.just(""))
        changed = session_id[:at] + new + session_id[at + data.draw(st.sampled_from([0, 1])) :]
        assume(changed != session_id)

        assert opening.open(changed) is None

    @given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
    @example("")
    @example("0" * MAX_SESSION_ID)
    @example("\ud800" * 9)
    @example("é")
    def test_arbitrary_text(self, text):
        """Arbitrary text is invalid, and raises no exception."""
        assert sessions().open(text) is None

    def test_overlong_id(self):
        """An id above the maximum length is invalid."""
        session_id = typical_id()

        assert sessions().open(session_id + "A" * MAX_SESSION_ID) is None

    @pytest.mark.parametrize(
        "other",
        [
            sessions(KEYS[1]),
            sessions(audience="another"),
            Sessions(KeyRing(), clock=Clock()),
        ],
        ids=["key", "audience", "random key"],
    )
    def test_id_of_another_server(self, other):
        """Ids of a server with another key or name are invalid."""
        assert other.open(typical_id()) is None
        assert sessions().open(typical_id(other)) is None

    @pytest.mark.parametrize("purpose", ["session id", "requestState"])
    @pytest.mark.parametrize(
        "payload", [b"", b"{}", b"\xff", b'["", "2020-01-01", null, {}]', b"[" * 999], ids=repr
    )
    def test_token_of_another_purpose(self, purpose, payload):
        """Tokens for another purpose, or with another payload, are invalid."""
        token = KeyRing(KEYS[:1], "tests").seal(purpose, int(NOW) + 9, payload)

        assert sessions().open(token) is None


class TestRotation:
    def test_old_key_is_valid_until_it_is_removed(self):
        """Sessions survive the replacement of a key while the ring still has the old one."""
        session_id = typical_id()

        assert contents(sessions(KEYS[1], KEYS[0]).open(session_id)) == (REVISION, CLIENT, CAPABILITIES)
        assert sessions(KEYS[1]).open(session_id) is None


class TestBounds:
    @given(
        st.none() | st.builds(ClientInfo, st.text("x\0é€😀", max_size=3000), st.text(max_size=9)),
        st.dictionaries(TEXT, st.text("x\0é€😀", max_size=3000), max_size=30),
    )
    def test_maximum_length(self, client, capabilities):
        """
        An id has at most 2,048 characters, whatever the client sends. Values are omitted, but not changed.
        """
        session_id = sessions().seal(REVISION, client, capabilities)
        session = sessions().open(session_id)

        assert len(session_id) <= MAX_SESSION_ID
        assert session.client in (None, client)
        assert session.capabilities.items() <= capabilities.items()

    @pytest.mark.parametrize(
        ("client", "capabilities"),
        [(CLIENT, {"long": "x" * 2000}), (ClientInfo("n", "v" * 9999), CAPABILITIES)],
    )
    def test_client_that_does_not_fit_is_omitted(self, client, capabilities):
        """A client whose description is too long still gets a session."""
        session = sessions().open(sessions().seal(REVISION, client, capabilities))

        assert contents(session) == (REVISION, None, {})

    def test_typical_length(self):
        """A typical id has fewer than 300 characters."""
        assert len(typical_id()) < 300


class TestCache:
    @pytest.fixture
    def verified(self, monkeypatch):
        """Return the list of the ids that the ring verifies."""
        tokens, original = [], KeyRing.open

        def opening(self, purpose, token, *arguments, **options):
            tokens.append(token)
            return original(self, purpose, token, *arguments, **options)

        monkeypatch.setattr(KeyRing, "open", opening)
        return tokens

    def test_id_is_verified_once(self, verified):
        """The id of a session is verified only in its first request."""
        opening = sessions()
        session_id = typical_id(opening)

        opened = [opening.open(session_id) for _ in range(9)]

        assert verified == [session_id]
        assert all(session is opened[0] for session in opened)

    def test_cache_is_invalidated_when_keys_change(self, verified):
        """A cached id is verified again after a change of keys, and rejected if its key was removed."""
        held = [tuple(KEYS[:1])]
        opening = Sessions(KeyRing(lambda: held[-1], "tests"), clock=Clock())
        session_id = typical_id(opening)
        assert opening.open(session_id)
        held.append((KEYS[1], KEYS[0]))
        assert opening.open(session_id)
        held.append((KEYS[1],))

        assert opening.open(session_id) is None
        held.append((KEYS[0],))
        assert opening.open(session_id)
        assert verified == [session_id] * 3

    def test_invalid_ids_are_not_cached(self, verified):
        """Invalid ids do not evict valid ones."""
        opening = sessions()
        session_id = typical_id(opening)
        opening.open(session_id)
        for n in range(2000):
            opening.open(f"{session_id[:-20]}{n:020}")
        verified.clear()

        assert opening.open(session_id)
        assert verified == []

    def test_cache_is_bounded(self, verified):
        """Only the latest sessions are cached, and older ones are verified again."""
        opening = sessions()
        ids = [typical_id(opening) for _ in range(2000)]
        for session_id in ids:
            opening.open(session_id)
        verified.clear()

        assert all(opening.open(session_id) for session_id in reversed(ids))
        assert len(verified) == 2000 - 512
