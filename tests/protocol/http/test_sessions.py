import re

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from promptkit.protocol.http.sessions import LIFETIME_S, MAX_LENGTH, SealedSession, Sessions
from promptkit.protocol.key_ring import KeyRing
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
        """Tell the time."""
        return self.now


def sessions(*keys, audience="tests", clock=None, **options):
    """Sessions under known keys, at a time that stands still."""
    return Sessions(KeyRing(keys or KEYS[:1], audience), clock=clock or Clock(), **options)


def sealed(by=None):
    """The id of a session like many."""
    return (by or sessions()).seal(REVISION, CLIENT, CAPABILITIES)


def said(session):
    """What a session says of the client."""
    return session and (session.revision, session.client, session.capabilities)


class TestASession:
    @given(SESSIONS)
    def test_it_opens_to_what_the_client_said(self, opening):
        """
        Revision, client and capabilities come back, in another worker as in the one that issued the id.
        """
        issuing = sessions()
        session_id = issuing.seal(*opening)
        assume(len(msgspec.json.encode(opening[1:])) < 1200)

        assert said(issuing.open(session_id)) == opening
        assert said(sessions().open(session_id)) == opening

    @given(SESSIONS)
    def test_it_is_a_header(self, opening):
        """
        An id has visible ASCII characters alone, as the specification demands.
        """
        session_id = sessions().seal(*opening)

        assert re.fullmatch(r"[\x21-\x7e]+", session_id)

    def test_no_two_are_equal(self):
        """
        Clients that say the same at the same time have different sessions.
        """
        assert len({sealed() for _ in range(100)}) == 100

    def test_it_lasts_as_long_as_programs_run(self):
        """
        It ends after thirty days, also where it is known already.
        """
        clock = Clock()
        known, fresh = sessions(clock=clock), sessions(clock=clock)
        session_id = sealed(known)

        clock.now += LIFETIME_S
        in_time = known.open(session_id)
        clock.now += 1

        assert in_time == SealedSession(REVISION, CLIENT, CAPABILITIES, int(NOW + 0.5 + 30 * 86400))
        assert (known.open(session_id), fresh.open(session_id)) == (None, None)


class TestAnIdThatDoesNotVerify:
    @given(st.data())
    def test_a_changed_one_is_none(self, data):
        """
        With a character replaced, left out or put in it opens nothing, though the right one is known.
        """
        opening = sessions()
        session_id = sealed(opening)
        assert opening.open(session_id)
        at = data.draw(st.integers(0, len(session_id)))
        new = data.draw(st.characters() | st.sampled_from("0123456789abcdefABCDEF.v-_=+/ \n\0") | st.just(""))
        changed = session_id[:at] + new + session_id[at + data.draw(st.sampled_from([0, 1])) :]
        assume(changed != session_id)

        assert opening.open(changed) is None

    @given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
    @example("")
    @example("0" * MAX_LENGTH)
    @example("\ud800" * 9)
    @example("é")
    def test_any_text_is_none(self, text):
        """
        Whatever a client sends, it is no error.
        """
        assert sessions().open(text) is None

    def test_endless_ones_are_none(self):
        """
        What is longer than any id is not even looked at.
        """
        session_id = sealed()

        assert sessions().open(session_id + "A" * MAX_LENGTH) is None

    @pytest.mark.parametrize(
        "other",
        [
            sessions(KEYS[1]),
            sessions(audience="another"),
            Sessions(KeyRing(), clock=Clock()),
        ],
        ids=["key", "audience", "random key"],
    )
    def test_of_another_server(self, other):
        """
        Ids of a server with other keys, or of another name, open nothing.
        """
        assert other.open(sealed()) is None
        assert sessions().open(sealed(other)) is None

    @pytest.mark.parametrize("purpose", ["session id", "requestState"])
    @pytest.mark.parametrize(
        "payload", [b"", b"{}", b"\xff", b'["", "2020-01-01", null, {}]', b"[" * 999], ids=repr
    )
    def test_of_another_program(self, purpose, payload):
        """
        What the ring has sealed for something else, or another version of the server for this, opens nothing.
        """
        token = KeyRing(KEYS[:1], "tests").seal(purpose, int(NOW) + 9, payload)

        assert sessions().open(token) is None


class TestRotation:
    def test_the_old_key_opens_until_it_is_removed(self):
        """
        Sessions survive the replacement of a key while the ring still has the old one.
        """
        session_id = sealed()

        assert said(sessions(KEYS[1], KEYS[0]).open(session_id)) == (REVISION, CLIENT, CAPABILITIES)
        assert sessions(KEYS[1]).open(session_id) is None


class TestBounds:
    @given(
        st.none() | st.builds(ClientInfo, st.text("x\0é€😀", max_size=3000), st.text(max_size=9)),
        st.dictionaries(TEXT, st.text("x\0é€😀", max_size=3000), max_size=30),
    )
    def test_an_id_is_never_too_long(self, client, capabilities):
        """
        Whatever a client says, its id has at most 2,048 characters, and what it holds is what was said.
        """
        session_id = sessions().seal(REVISION, client, capabilities)
        found = sessions().open(session_id)

        assert len(session_id) <= MAX_LENGTH
        assert found.client in (None, client)
        assert found.capabilities.items() <= capabilities.items()

    def test_the_largest_is_left_out(self):
        """
        One long value does not push out the short ones.
        """
        capabilities = {"a": {}, "long": "x" * 1500, "b": {}, "less": "x" * 1000}

        found = sessions().open(sessions().seal(REVISION, CLIENT, capabilities))

        assert said(found) == (REVISION, CLIENT, {"a": {}, "b": {}, "less": "x" * 1000})

    def test_a_long_name_is_left_out(self):
        """
        A client whose name and version are too long is unknown, and its capabilities are not.
        """
        found = sessions().open(sessions().seal(REVISION, ClientInfo("n", "v" * 9999), CAPABILITIES))

        assert said(found) == (REVISION, None, CAPABILITIES)

    def test_many_small_ones(self):
        """
        Of a hundred thousand capabilities some are kept, at once.
        """
        capabilities = {f"c{n}": {} for n in range(100_000)}

        session_id = sessions().seal(REVISION, CLIENT, capabilities)

        assert MAX_LENGTH - 99 < len(session_id) <= MAX_LENGTH
        assert len(sessions().open(session_id).capabilities) > 100

    def test_a_usual_one_is_short(self):
        """
        An id for what clients say takes a few hundred characters.
        """
        assert len(sealed()) < 300


class TestKnownSessions:
    @pytest.fixture
    def verified(self, monkeypatch):
        """A list that gets every id that the ring is asked to open."""
        asked, own = [], KeyRing.open

        def opening(self, purpose, token, *arguments, **options):
            asked.append(token)
            return own(self, purpose, token, *arguments, **options)

        monkeypatch.setattr(KeyRing, "open", opening)
        return asked

    def test_an_id_is_verified_once(self, verified):
        """
        The requests of one session verify its id once.
        """
        opening = sessions()
        session_id = sealed(opening)

        found = [opening.open(session_id) for _ in range(9)]

        assert verified == [session_id]
        assert all(one is found[0] for one in found)

    def test_what_a_removed_key_has_sealed_is_forgotten(self, verified):
        """
        An id that was opened is opened again under other keys, and refused if the one that sealed it is gone.
        """
        held = [tuple(KEYS[:1])]
        opening = Sessions(KeyRing(lambda: held[-1], "tests"), clock=Clock())
        session_id = sealed(opening)
        assert opening.open(session_id)
        held.append((KEYS[1], KEYS[0]))
        assert opening.open(session_id)
        held.append((KEYS[1],))

        assert opening.open(session_id) is None
        held.append((KEYS[0],))
        assert opening.open(session_id)
        assert verified == [session_id] * 3

    def test_forged_ids_push_none_out(self, verified):
        """
        What is refused is not kept, so that made-up ids slow no session down.
        """
        opening = sessions()
        session_id = sealed(opening)
        opening.open(session_id)
        for n in range(2000):
            opening.open(f"{session_id[:-20]}{n:020}")
        verified.clear()

        assert opening.open(session_id)
        assert verified == []

    def test_what_is_known_is_bounded(self, verified):
        """
        Of thousands of sessions the last ones are known, and the others are verified again.
        """
        opening = sessions()
        ids = [sealed(opening) for _ in range(2000)]
        for session_id in ids:
            opening.open(session_id)
        verified.clear()

        assert all(opening.open(session_id) for session_id in reversed(ids))
        assert len(verified) == 2000 - 512
