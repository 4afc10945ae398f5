import base64
import os
import secrets
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from promptkit.protocol.key_ring import KeyRing
from promptkit.transports.secret_files import (
    MAKE_A_KEY,
    InvalidSecretsError,
    own_key,
    read_key_file,
    read_keys,
    state_keys,
)

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are of POSIX")
as_root = pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="only root gives folders to others"
)

FIRST, SECOND = bytes(range(32)), bytes(range(224, 256)) + b"?>"

ENCODINGS = {
    "hexadecimal": bytes.hex,
    "capitals": lambda key: key.hex().upper(),
    "base64": lambda key: base64.b64encode(key).decode(),
    "base64url": lambda key: base64.urlsafe_b64encode(key).decode(),
    "unpadded": lambda key: base64.urlsafe_b64encode(key).decode().rstrip("="),
}


def refusal(text):
    """Why a text is refused."""
    with pytest.raises(InvalidSecretsError) as refused:
        read_keys(text)
    return str(refused.value)


class TestReading:
    @given(
        st.lists(st.tuples(st.binary(min_size=32, max_size=80), st.sampled_from(sorted(ENCODINGS)))),
        st.data(),
    )
    def test_every_encoding_is_read(self, keys, data):
        """
        Keys in any encoding come back in their order, between lines, commas, blanks and comments.
        """
        between = st.sampled_from(["\n", ",", "\r\n", " , ", "\n\n# old, once\n", " # new\n", ",\n\t"])
        text = "".join(ENCODINGS[name](key) + data.draw(between) for key, name in keys)

        if keys:
            assert read_keys(text) == tuple(key for key, _ in keys)
        else:
            assert refusal(text).startswith("there is no key")

    def test_what_the_command_prints_is_read(self):
        """
        The command that the errors name prints a key that is taken.
        """
        _, *arguments = shlex.split(MAKE_A_KEY)
        ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)

        (key,) = read_keys(ran.stdout)

        assert len(key) == 32
        assert KeyRing([key]).is_shared

    @pytest.mark.parametrize("size", range(32, 40))
    def test_what_secrets_makes_is_read(self, size):
        """
        So is whatever else the standard library makes, of any length.
        """
        assert len(read_keys(secrets.token_urlsafe(size))[0]) == size
        assert len(read_keys(secrets.token_hex(size))[0]) == size


class TestRefusals:
    def test_no_key(self):
        """
        A file without keys is an error, and no reason to make one up.
        """
        expected = f"there is no key; a command that prints one: {MAKE_A_KEY}"

        assert {refusal(text) for text in ("", "\n", " , ,", "# later\n")} == {expected}

    @pytest.mark.parametrize(
        "word", ["hello world", "ä" * 43, "z" * 45, "a" * 65, "A" * 43 + "===", "=", "\0"]
    )
    def test_no_encoding(self, word):
        """
        What is neither base64 nor hexadecimal digits is named by its line.
        """
        assert refusal(f"# keys\n{FIRST.hex()}\n{word}\n") == (
            f"line 3: this is neither base64 nor hexadecimal; a command that prints a key: {MAKE_A_KEY}"
        )

    @pytest.mark.parametrize(
        ("word", "size"),
        [("c2VjcmV0", 6), ("z" * 42, 31), (secrets.token_hex(16), 16), (secrets.token_hex(31), 31)],
        ids=["word", "base64", "half", "nearly"],
    )
    def test_too_short(self, word, size):
        """
        A short key is named by its line and size; digits that are hexadecimal never count as base64.
        """
        assert refusal(f"{word}\n") == (
            f"line 1: a key of {size} bytes can be guessed; a command that prints one of 32: {MAKE_A_KEY}"
        )

    def test_several_in_a_line(self):
        """
        One of several keys in a line is refused as one that stands alone.
        """
        assert refusal(f"{FIRST.hex()},,oh no, {FIRST.hex()}").startswith("line 1: this is neither")

    @given(st.text(st.sampled_from("01aFzZ+/-_=!ä ,\n"), min_size=10) | st.text(min_size=10))
    @example("A" * 42)
    @example("p4ssw0rd!!!!!")
    def test_keys_are_never_shown(self, text):
        """
        No error shows what was read, nor does one that it came of.
        """
        errors = []
        try:
            read_keys(text)
        except InvalidSecretsError as refused:
            errors = [refused, refused.__context__]
        words = [word.strip() for line in text.split("\n") for word in line.split(",")]

        shown = repr(errors).replace(MAKE_A_KEY, "")
        assert not any(word in shown for word in words if len(word) > 9)


@pytest.fixture
def key_file(tmp_path):
    """A function that writes a file of keys, readable by its owner alone, and returns its path."""

    def write(data, mode=0o600):
        path = tmp_path / "state.keys"
        path.write_bytes(data)
        path.chmod(mode)
        return str(path)

    return write


class TestAFile:
    def test_its_keys_are_read(self, key_file):
        """
        Also with a mark at its beginning, and with comments in whatever encoding.
        """
        data = b"\xef\xbb\xbf# Schl\xfcssel\r\n%b\r\n%b\r\n" % (
            FIRST.hex().encode(),
            base64.b64encode(SECOND),
        )

        assert read_key_file(key_file(data)) == (FIRST, SECOND)

    @posix
    @pytest.mark.parametrize("mode", [0o600, 0o400, 0o440, 0o640])
    def test_its_owner_and_group_may_read_it(self, key_file, mode):
        """
        That is how secrets are mounted into containers, too.
        """
        assert read_key_file(key_file(FIRST.hex().encode(), mode)) == (FIRST,)

    @posix
    @pytest.mark.parametrize(
        ("mode", "can"),
        [
            (0o644, "every user can read it"),
            (0o444, "every user can read it"),
            (0o604, "every user can read it"),
            (0o666, "every user can read it"),
            (0o660, "others can change it"),
            (0o602, "others can change it"),
        ],
        ids=str,
    )
    def test_others_may_not(self, key_file, mode, can):
        """
        A key that others know, or have chosen, protects nothing.
        """
        path = key_file(FIRST.hex().encode(), mode)

        with pytest.raises(InvalidSecretsError) as refused:
            read_key_file(path)

        assert (
            str(refused.value)
            == f"{path}: {can} (mode {mode:04o}): make new keys, and chmod g-w,o-rwx {path}"
        )

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"# none\n", "there is no key; a command that prints one"),
            (
                b"\nsecret!",
                "line 2: this is neither base64 nor hexadecimal; a command that prints a key",
            ),
            (
                bytes(range(128, 160)),
                "line 1: this is neither base64 nor hexadecimal; a command that prints a key",
            ),
            (b"\n" * 65537, "cannot be read: it has more than 65,536 bytes"),
        ],
        ids=["none", "no key", "binary", "large"],
    )
    def test_what_it_should_not_hold(self, key_file, data, reason):
        """
        The error names the file and the line.
        """
        path = key_file(data)

        with pytest.raises(InvalidSecretsError) as refused:
            read_key_file(path)

        assert str(refused.value).removesuffix(f": {MAKE_A_KEY}") == f"{path}: {reason}"

    def test_one_that_cannot_be_opened(self, tmp_path):
        """
        The error says why.
        """
        missing = str(tmp_path / "none")

        with pytest.raises(InvalidSecretsError) as refused:
            read_key_file(missing)
        with pytest.raises(
            InvalidSecretsError, match=r"cannot be read: Is a directory|cannot be read: Permission denied"
        ):
            read_key_file(str(tmp_path))

        assert str(refused.value) == f"{missing}: cannot be read: No such file or directory"


class TestWhereKeysComeFrom:
    def test_the_file_comes_first(self, key_file):
        """
        What is said for one start counts more than the environment.
        """
        environment = {"PROMPTKIT_STATE_KEYS": SECOND.hex()}

        assert state_keys(key_file(FIRST.hex().encode()), environment)() == (FIRST,)
        assert state_keys(None, environment) == (SECOND,)

    def test_the_environment_of_the_process(self, monkeypatch):
        """
        The variable is that of the process unless others are given, with commas or lines.
        """
        for between in (",", "\n", " , "):
            monkeypatch.setenv("PROMPTKIT_STATE_KEYS", f"{FIRST.hex()}{between}{SECOND.hex()}")

            assert state_keys(None) == (FIRST, SECOND)

    def test_none(self):
        """
        Who is given no keys has none: the ring then makes one.
        """
        assert state_keys(None, {}) == ()
        assert not KeyRing(state_keys(None, {})).is_shared

    @pytest.mark.parametrize("text", ["", "  ", "changeme"])
    def test_an_empty_variable_is_an_error(self, text):
        """
        A deployment whose secret is empty is told so, and does not serve with a random key.
        """
        with pytest.raises(InvalidSecretsError, match=r"^PROMPTKIT_STATE_KEYS: (there is no key|line 1: )"):
            state_keys(None, {"PROMPTKIT_STATE_KEYS": text})


class TestAKeyOfOnesOwn:
    @pytest.fixture
    def cache(self, tmp_path, monkeypatch):
        """The cache of a user, in which there is nothing yet."""
        cache = tmp_path / "cache"
        cache.mkdir()
        monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: cache / "promptkit")
        return cache

    def test_it_outlives_the_server(self, cache, tmp_path, monkeypatch):
        """
        Servers of the same target have the same, however that is written; those of others have others.
        """
        monkeypatch.chdir(tmp_path)
        key = own_key("recipes")

        assert len(key) == 32
        assert {own_key("recipes"), own_key(tmp_path / "recipes"), own_key("./recipes/")} == {key}
        assert len({key, own_key("others"), own_key(["recipes", "others"]), own_key("recipes:review")}) == 4
        monkeypatch.chdir(cache)
        assert own_key("recipes") != key

    @posix
    def test_it_is_its_owners_alone(self, cache):
        """
        Nobody else can read it, nor what is derived from it; and nothing else is left there.
        """
        own_key("recipes")

        (file,) = (cache / "promptkit").iterdir()
        assert [path.stat().st_mode & 0o777 for path in (file, file.parent)] == [0o600, 0o700]
        assert own_key("recipes").hex() not in file.read_text()

    def test_servers_that_start_at_once(self, cache):
        """
        All have the key of the one that was first.
        """
        barrier = Barrier(8)

        def start(_number):
            barrier.wait()
            return own_key("recipes")

        with ThreadPoolExecutor(8) as threads:
            assert len(set(threads.map(start, range(8)))) == 1
        assert len(list((cache / "promptkit").iterdir())) == 1

    @pytest.mark.parametrize("kind", ["a file", "no home"])
    def test_a_cache_that_cannot_be_written(self, cache, kind, monkeypatch, capfd):
        """
        Each server has a key in memory then, of which nothing is said.
        """
        if kind == "a file":
            (cache / "promptkit").touch()
        else:
            monkeypatch.setattr("platformdirs.user_cache_path", _homeless)

        assert len({own_key("recipes"), own_key("recipes")}) == 2
        assert capfd.readouterr().err == ""

    @as_root
    @pytest.mark.parametrize("made", [True, False])
    def test_a_cache_of_somebody_else(self, cache, made):
        """
        It is not used, whether or not there is a key: neither to read nor to write.
        """
        if made:
            own_key("recipes")
            os.chown(cache / "promptkit", 1234, 1234)
        os.chown(cache, 1234, 1234)

        assert len({own_key("recipes"), own_key("recipes")}) == 2
        assert (cache / "promptkit").exists() is made

    @posix
    def test_a_key_that_others_can_read(self, cache, capfd):
        """
        It is not used, and that is said.
        """
        own_key("recipes")
        file = cache / "promptkit" / "state.key"
        file.chmod(0o644)

        assert len({own_key("recipes"), own_key("recipes")}) == 2
        said = (
            f"promptkit: {file}: every user can read it (mode 0644): make new keys, and chmod "
            f"g-w,o-rwx {file}"
        )
        assert capfd.readouterr().err == f"{said}; until then, sessions end when the server stops\n" * 2


def _homeless(*_, **__):
    msg = "could not determine the home directory"
    raise RuntimeError(msg)
