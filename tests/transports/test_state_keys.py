"""Keys that protect the state of sessions: parsing, files, and the server's own key."""

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
from promptkit.transports.secret_files import InvalidSecretsError
from promptkit.transports.state_keys import NEW_KEY_COMMAND, own_key, parse_keys, read_key_file, state_keys

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes exist on POSIX only")
as_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can change owners")

FIRST, SECOND = bytes(range(32)), bytes(range(224, 256)) + b"?>"

ENCODINGS = {
    "hexadecimal": bytes.hex,
    "capitals": lambda key: key.hex().upper(),
    "base64": lambda key: base64.b64encode(key).decode(),
    "base64url": lambda key: base64.urlsafe_b64encode(key).decode(),
    "unpadded": lambda key: base64.urlsafe_b64encode(key).decode().rstrip("="),
}


def error_of(text):
    """Return the message of the error that *text* causes."""
    with pytest.raises(InvalidSecretsError) as error:
        parse_keys(text)
    return str(error.value)


class TestParsing:
    @given(
        st.lists(st.tuples(st.binary(min_size=32, max_size=80), st.sampled_from(sorted(ENCODINGS)))),
        st.data(),
    )
    def test_every_encoding_is_parsed(self, keys, data):
        """Keys in any encoding, separated by lines, commas, blanks or comments, are returned in order."""
        separators = st.sampled_from(["\n", ",", "\r\n", " , ", "\n\n# old, once\n", " # new\n", ",\n\t"])
        text = "".join(ENCODINGS[name](key) + data.draw(separators) for key, name in keys)

        if keys:
            assert parse_keys(text) == tuple(key for key, _ in keys)
        else:
            assert error_of(text).startswith("there are no keys")

    def test_suggested_command_prints_a_valid_key(self):
        """The command that error messages suggest prints a key of 32 bytes."""
        _, *arguments = shlex.split(NEW_KEY_COMMAND)
        completed = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)

        (key,) = parse_keys(completed.stdout)

        assert len(key) == 32
        assert KeyRing([key]).is_shared

    @pytest.mark.parametrize("size", range(32, 40))
    def test_keys_of_the_secrets_module_are_parsed(self, size):
        """Keys of any length from the standard library's `secrets` are accepted."""
        assert len(parse_keys(secrets.token_urlsafe(size))[0]) == size
        assert len(parse_keys(secrets.token_hex(size))[0]) == size


class TestInvalidKeys:
    def test_file_without_keys_is_rejected(self):
        """A file without keys is an error; no random key replaces it."""
        expected = f"there are no keys; to generate one, run: {NEW_KEY_COMMAND}"

        assert {error_of(text) for text in ("", "\n", " , ,", "# later\n")} == {expected}

    @pytest.mark.parametrize("word", ["hello world", "ä" * 43, "z" * 45, "a" * 65, "a=b", "\0"])
    def test_unknown_encoding_is_rejected(self, word):
        """The error names the line."""
        assert error_of(f"# keys\n{FIRST.hex()}\n{word}\n") == (
            "line 3: a key must be at least 32 bytes long, in base64 or hexadecimal; "
            f"to generate one, run: {NEW_KEY_COMMAND}"
        )

    @pytest.mark.parametrize(
        "word",
        ["c2VjcmV0", "z" * 42, secrets.token_hex(16), secrets.token_hex(31)],
        ids=["word", "base64", "half", "nearly"],
    )
    def test_short_key_is_rejected(self, word):
        """The error names the line. Hexadecimal digits are never decoded as base64."""
        assert error_of(f"{word}\n").startswith("line 1: a key must be at least 32 bytes long")

    def test_invalid_key_among_several_in_a_line_is_rejected(self):
        """The error names the line even if other keys in it are valid."""
        assert error_of(f"{FIRST.hex()},,oh no, {FIRST.hex()}").startswith("line 1: a key must be at least")

    @given(st.text(st.sampled_from("01aFzZ+/-_=!ä ,\n"), min_size=10) | st.text(min_size=10))
    @example("A" * 42)
    @example("p4ssw0rd!!!!!")
    def test_errors_do_not_contain_keys(self, text):
        """Neither the error nor its context contains the input."""
        errors = []
        try:
            parse_keys(text)
        except InvalidSecretsError as error:
            errors = [error, error.__context__]
        words = [word.strip() for line in text.split("\n") for word in line.split(",")]

        output = repr(errors).replace(NEW_KEY_COMMAND, "")
        assert not any(word in output for word in words if len(word) > 9)


@pytest.fixture
def key_file(tmp_path):
    """A function that writes a file of keys, readable by its owner alone, and returns its path."""

    def write(data, mode=0o600):
        path = tmp_path / "state.keys"
        path.write_bytes(data)
        path.chmod(mode)
        return str(path)

    return write


class TestKeyFile:
    def test_keys_are_read(self, key_file):
        """A byte order mark and comments in any encoding are skipped."""
        data = b"\xef\xbb\xbf# Schl\xfcssel\r\n%b\r\n%b\r\n" % (
            FIRST.hex().encode(),
            base64.b64encode(SECOND),
        )

        assert read_key_file(key_file(data)) == (FIRST, SECOND)

    @posix
    @pytest.mark.parametrize("mode", [0o600, 0o400, 0o440, 0o640])
    def test_group_readable_file_is_accepted(self, key_file, mode):
        """
        A key file that its group can read is accepted, because containers mount secrets with such modes.
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
            (0o660, "other users can change it"),
            (0o602, "other users can change it"),
        ],
        ids=str,
    )
    def test_file_with_open_permissions_is_rejected(self, key_file, mode, can):
        """A key file that others can read or change is rejected, because its keys protect nothing."""
        path = key_file(FIRST.hex().encode(), mode)

        with pytest.raises(InvalidSecretsError) as error:
            read_key_file(path)

        assert (
            str(error.value)
            == f"{path}: {can} (mode {mode:04o}): generate new keys, and run: chmod g-w,o-rwx {path}"
        )

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"# none\n", "there are no keys"),
            (
                b"\nsecret!",
                "line 2: a key must be at least 32 bytes long, in base64 or hexadecimal",
            ),
            (
                bytes(range(128, 160)),
                "line 1: a key must be at least 32 bytes long, in base64 or hexadecimal",
            ),
            (b"\n" * 65537, "the file cannot be read: it is larger than 65,536 bytes"),
        ],
        ids=["none", "no key", "binary", "large"],
    )
    def test_invalid_content_is_rejected(self, key_file, data, reason):
        """The error names the file and the line."""
        path = key_file(data)

        with pytest.raises(InvalidSecretsError) as error:
            read_key_file(path)

        hint = f"; to generate one, run: {NEW_KEY_COMMAND}"
        assert str(error.value).removesuffix(hint) == f"{path}: {reason}"

    def test_unreadable_file_is_rejected(self, tmp_path):
        """The error contains the operating system's error."""
        missing = str(tmp_path / "none")

        with pytest.raises(InvalidSecretsError) as error:
            read_key_file(missing)
        with pytest.raises(
            InvalidSecretsError, match=r"cannot be read: Is a directory|cannot be read: Permission denied"
        ):
            read_key_file(str(tmp_path))

        assert str(error.value) == f"{missing}: the file cannot be read: No such file or directory"


class TestSources:
    def test_file_takes_precedence_over_the_environment(self, key_file):
        """An explicit key file overrides the environment variable."""
        environment = {"PROMPTKIT_STATE_KEYS": SECOND.hex()}

        assert state_keys(key_file(FIRST.hex().encode()), environment)() == (FIRST,)
        assert state_keys(None, environment) == (SECOND,)

    def test_environment_of_the_process_is_the_default(self, monkeypatch):
        """By default, keys come from the environment of the process, separated by commas or line breaks."""
        for separator in (",", "\n", " , "):
            monkeypatch.setenv("PROMPTKIT_STATE_KEYS", f"{FIRST.hex()}{separator}{SECOND.hex()}")

            assert state_keys(None) == (FIRST, SECOND)

    def test_no_keys_are_configured(self):
        """If no keys are configured, the key ring generates one."""
        assert state_keys(None, {}) == ()
        assert not KeyRing(state_keys(None, {})).is_shared

    @pytest.mark.parametrize("text", ["", "  ", "changeme"])
    def test_empty_variable_is_rejected(self, text):
        """A deployment with an empty secret fails instead of serving with a random key."""
        with pytest.raises(InvalidSecretsError, match=r"^PROMPTKIT_STATE_KEYS: (there are no keys|line 1: )"):
            state_keys(None, {"PROMPTKIT_STATE_KEYS": text})


class TestOwnKey:
    @pytest.fixture
    def cache(self, tmp_path, monkeypatch):
        """An empty cache folder of the user."""
        cache = tmp_path / "cache"
        cache.mkdir()
        monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: cache / "promptkit")
        return cache

    def test_own_key_depends_on_the_target(self, cache, tmp_path, monkeypatch):
        """
        Servers of the same target share a key, however its path is written; other targets have other keys.
        """
        monkeypatch.chdir(tmp_path)
        key = own_key("recipes")

        assert len(key) == 32
        assert {own_key("recipes"), own_key(tmp_path / "recipes"), own_key("./recipes/")} == {key}
        assert own_key("a=recipes") == own_key(f"a={tmp_path}/recipes") != key
        assert len({key, own_key("others"), own_key(["recipes", "others"]), own_key("recipes:review")}) == 4
        monkeypatch.chdir(cache)
        assert own_key("recipes") != key

    @posix
    def test_own_key_is_private(self, cache):
        """Only the owner can read the key file, which does not contain the derived key itself."""
        own_key("recipes")

        (file,) = (cache / "promptkit").iterdir()
        assert [path.stat().st_mode & 0o777 for path in (file, file.parent)] == [0o600, 0o700]
        assert own_key("recipes").hex() not in file.read_text()

    def test_concurrent_servers_share_the_first_key(self, cache):
        """All servers that start at the same time get the same key."""
        barrier = Barrier(8)

        def start(_number):
            barrier.wait()
            return own_key("recipes")

        with ThreadPoolExecutor(8) as threads:
            assert len(set(threads.map(start, range(8)))) == 1
        assert len(list((cache / "promptkit").iterdir())) == 1

    @pytest.mark.parametrize("kind", ["a file", "no home"])
    def test_unwritable_cache(self, cache, kind, monkeypatch, capfd):
        """If the cache folder is not writable, each server silently uses a key in memory."""
        if kind == "a file":
            (cache / "promptkit").touch()
        else:
            monkeypatch.setattr("platformdirs.user_cache_path", _raise_no_home)

        assert len({own_key("recipes"), own_key("recipes")}) == 2
        assert capfd.readouterr().err == ""

    @as_root
    @pytest.mark.parametrize("has_key", [True, False])
    def test_cache_of_another_user_is_not_used(self, cache, has_key):
        """A cache of another user is neither read nor written."""
        if has_key:
            own_key("recipes")
            os.chown(cache / "promptkit", 1234, 1234)
        os.chown(cache, 1234, 1234)

        assert len({own_key("recipes"), own_key("recipes")}) == 2
        assert (cache / "promptkit").exists() is has_key

    @posix
    def test_readable_own_key_is_not_used(self, cache, capfd):
        """If others can read the key, the server reports that and uses a key in memory."""
        own_key("recipes")
        file = cache / "promptkit" / "state.key"
        file.chmod(0o644)

        assert len({own_key("recipes"), own_key("recipes")}) == 2
        expected = (
            f"promptkit: {file}: every user can read it (mode 0644): generate new keys, and run: chmod "
            f"g-w,o-rwx {file}"
        )
        line = f"{expected}; until this is fixed, sessions end when the server stops\n"
        assert capfd.readouterr().err == line * 2


def _raise_no_home(*_, **__):
    msg = "could not determine the home directory"
    raise RuntimeError(msg)
