"""The token file: parsing, rejected files and lines, and reloading."""

import asyncio
import os
import secrets
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit.protocol.principals import Principal, VerifierUnavailableError
from promptkit.transports.auth.authorizer import Authorizer, BearerScheme
from promptkit.transports.auth.token_file_verifier import TOKENS_VALID_S, TokenFile, parse_tokens
from promptkit.transports.secret_files import InvalidSecretsError
from tests.posting import head

ADA, BOB = "ada-" * 10, "bob-" * 10

NAMES = st.from_regex(r"[a-z@.]{1,9}", fullmatch=True)
TOKENS = st.from_regex(r"[A-Za-z0-9._~+/-]{32,60}={0,2}", fullmatch=True)

posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")


@pytest.fixture
def file(tmp_path):
    """A file with two tokens, readable only by its owner."""
    path = tmp_path / "tokens"
    path.write_text(f"ada {ADA} read write\nbob {BOB}\n")
    path.chmod(0o600)
    return path


def error_of(text):
    """Return the message of the error that *text* causes."""
    with pytest.raises(InvalidSecretsError) as error:
        parse_tokens(text)
    return str(error.value)


class TestParsing:
    @settings(max_examples=25)
    @given(st.dictionaries(TOKENS, st.tuples(NAMES, st.lists(NAMES)), min_size=1), st.data())
    def test_every_token_is_parsed(self, tmp_path_factory, entries, data):
        """Each token belongs to its principal, whatever blanks and comments separate the entries."""
        separator = data.draw(st.sampled_from([" ", "\t", "   "]))
        line_end = data.draw(st.sampled_from(["\n", "\r\n", "\n\n# bob's\n", " # new\n"]))
        path = tmp_path_factory.mktemp("tokens") / "tokens"
        text = "".join(
            separator.join([name, token, *scopes]) + line_end for token, (name, scopes) in entries.items()
        )
        path.write_bytes(text.encode())
        path.chmod(0o600)
        tokens = TokenFile(str(path))

        for token, (name, scopes) in entries.items():
            assert tokens.verify(token) == Principal(name, scopes)
            for unknown in (token[:-1], token + "x", token.swapcase(), name):
                assert tokens.verify(unknown) is None or unknown in entries

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (
                f"\n{ADA}\n",
                (
                    "line 2: the line has only one word: write a name, a token and any scopes, "
                    "separated by spaces"
                ),
            ),
            ("ada secret", "line 1: the token could be guessed: use at least 32 characters instead of 6"),
            (
                f"ada x{'=' * 31}",
                "line 1: the token could be guessed: use at least 32 characters instead of 1",
            ),
            (f"\udcff {ADA}", "line 1: the name is not UTF-8: save the file as UTF-8"),
            (
                f"ada {ADA}!",
                (
                    "line 1: the second word is not a token: a token can contain only letters, digits "
                    "and -._~+/="
                ),
            ),
            (
                f"ada {ADA}\nbob {ADA}",
                "line 2: this token is also on another line: use a different token for each principal",
            ),
        ],
    )
    def test_invalid_line_is_rejected(self, text, expected):
        """The error names the line and does not contain the token."""
        assert error_of(text) == expected
        assert ADA not in expected

    def test_principal_with_several_tokens(self):
        """A principal can have several tokens, so that a token can be rotated while the old one is in use."""
        assert [principal.subject for principal in parse_tokens(f"ada {ADA}\nada {BOB}").values()] == [
            "ada",
            "ada",
        ]

    def test_names_are_not_normalized(self, file):
        """A name is compared by its code points. Comments can have any encoding."""
        names = ["张三", "李四", "é", "e\u0301", "ada\u200b"]
        tokens = [f"{number}" * 32 for number in range(len(names))]
        lines = [f"{name} {token}\n".encode() for name, token in zip(names, tokens, strict=True)]
        file.write_bytes(b"\xef\xbb\xbf" + b"".join(lines) + b"# Schl\xfcssel\n")
        token_file = TokenFile(str(file))

        assert [token_file.verify(token).subject for token in tokens] == names

    @pytest.mark.parametrize("text", ["", "# ada\n"])
    def test_file_without_tokens_is_rejected_at_start(self, file, text):
        """A token file without tokens is rejected at the start, because no client could use the server."""
        file.write_text(text)
        with pytest.raises(InvalidSecretsError) as error:
            TokenFile(str(file))
        expected = "the file contains no tokens: write a name and a token on each line"
        assert str(error.value) == f"{file}: {expected}"

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows ignores the mode")
    @pytest.mark.parametrize(
        ("mode", "can"),
        [
            (0o644, "every user can read it"),
            (0o604, "every user can read it"),
            (0o620, "other users can change it"),
        ],
    )
    def test_file_with_open_permissions_is_rejected(self, file, mode, can):
        """Tokens that others could read or change are not trusted."""
        file.chmod(mode)
        with pytest.raises(InvalidSecretsError) as error:
            TokenFile(str(file))
        expected = f"{file}: {can} (mode {mode:04o}): generate new tokens, and run: chmod g-w,o-rwx {file}"
        assert str(error.value) == expected

    def test_error_names_the_file(self, file):
        """The error names the file, and the line or the operating system's error."""
        file.write_text("ada secret")
        with pytest.raises(InvalidSecretsError, match=f"^{file}: line 1: the token could be guessed"):
            TokenFile(str(file))
        file.write_text(f"bob {BOB}\nada secret")
        with pytest.raises(InvalidSecretsError, match=f"^{file}: line 2: the token could be guessed"):
            TokenFile(str(file))
        with pytest.raises(InvalidSecretsError, match=f"^{file}x: the file cannot be read: No such file"):
            TokenFile(f"{file}x")


class TestReloading:
    @pytest.fixture
    def tokens(self, file):
        """The token file, with a clock that the test advances."""
        self.now = 0.0
        return TokenFile(str(file), lambda: self.now)

    def test_changed_file_is_reloaded(self, file, tokens):
        """Removed tokens are rejected a second later, and new ones accepted."""
        new = secrets.token_urlsafe(32)
        replacement = file.with_name("new")
        replacement.write_text(f"bob {BOB}\ncleo {new} read\n")
        replacement.chmod(0o600)
        replacement.replace(file)

        assert tokens.verify(ADA) == Principal("ada", "read write")
        self.now += 1
        assert tokens.verify(ADA) is None
        assert (tokens.verify(BOB), tokens.verify(new)) == (Principal("bob"), Principal("cleo", "read"))

    @pytest.mark.parametrize("text", ["", "# ada is gone\n"])
    def test_emptied_file_revokes_all_tokens(self, file, tokens, text):
        """A second after the file is emptied, all tokens are rejected."""
        file.write_text(text)
        self.now += 1

        assert (tokens.verify(ADA), tokens.verify(BOB)) == (None, None)
        file.write_text(f"bob {BOB}\n")
        self.now += 1
        assert (tokens.verify(ADA), tokens.verify(BOB)) == (None, Principal("bob"))

    @pytest.mark.parametrize(
        ("damage", "expected"),
        [
            ("half", "line 1: the line has only one word: write a name, a token and any scopes, separated"),
            ("mode", "every user can read it (mode 0644): generate new tokens, and run: chmod g-w,o-rwx"),
            ("gone", "the file cannot be read: No such file or directory"),
            ("folder", "the file cannot be read: Is a directory"),
            pytest.param("pipe", "the file cannot be read: it is not a regular file", marks=posix),
        ],
    )
    def test_unreadable_file(self, file, tokens, damage, expected, capfd):
        """
        The tokens of an unreadable file stay valid for some seconds; then all requests fail until the file is
        fixed. The error and the fix are each reported once.
        """
        break_file(file, damage)
        for _ in range(int(TOKENS_VALID_S)):
            self.now += 1
            assert tokens.verify(ADA).subject == "ada"
        for _ in range(3):
            self.now += 1
            with pytest.raises(VerifierUnavailableError):
                tokens.verify(ADA)
        stderr = capfd.readouterr().err

        assert stderr.startswith(f"promptkit: {file}: {expected}")
        assert stderr.endswith(
            "; until this is fixed, all requests are rejected, starting 5 s after the last successful read\n"
        )
        assert stderr.count("\n") == 1
        replacement = file.with_name("mended")
        replacement.write_text(f"bob {BOB}\n")
        replacement.chmod(0o600)
        if file.is_dir():
            file.rmdir()
        replacement.replace(file)
        self.now += 1
        assert (tokens.verify(ADA), tokens.verify(BOB)) == (None, Principal("bob"))
        assert capfd.readouterr().err == f"promptkit: {file}: fixed: all tokens in it are in use\n"

    @pytest.mark.parametrize("line", ["cleo", "cleo short", f"cleo {BOB}", f"; ada {ADA}", f"ada{ADA}"])
    def test_invalid_line_is_skipped(self, file, tokens, line, capfd):
        """An invalid line admits no principal; the other lines stay valid, and removed ones are revoked."""
        file.write_text(f"bob {BOB} read\n{line}\n")
        for _ in range(int(TOKENS_VALID_S) + 2):
            self.now += 1
            assert (tokens.verify(ADA), tokens.verify(BOB)) == (None, Principal("bob", "read"))
        reported, remainder = capfd.readouterr().err.split("\n")

        assert reported.startswith(f"promptkit: {file}: line 2: ")
        assert reported.endswith("; the other lines are in use")
        assert remainder == ""
        file.write_text(f"bob {BOB}\nada {ADA}\n")
        self.now += 1
        assert (tokens.verify(ADA), tokens.verify(BOB)) == (Principal("ada"), Principal("bob"))
        assert capfd.readouterr().err == f"promptkit: {file}: fixed: all tokens in it are in use\n"

    def test_file_that_was_removed_while_idle(self, file, tokens):
        """The grace period starts with the last successful read, not with the next request."""
        file.unlink()
        self.now += 3600

        with pytest.raises(VerifierUnavailableError):
            tokens.verify(ADA)

    def test_stream_ends_when_its_token_expires(self, file, tokens):
        """A stream does not outlive its token."""
        authorizer = Authorizer(BearerScheme(), tokens, lambda: self.now)
        request = head(authorization=f"Bearer {ADA}")
        ada = asyncio.run(authorizer.check(request, b""))
        file.unlink()

        self.now += TOKENS_VALID_S
        assert asyncio.run(authorizer.still_admits(request, ada))
        self.now += 1
        assert not asyncio.run(authorizer.still_admits(request, ada))


def break_file(file, damage):
    """Make *file* unreadable as a token file."""
    if damage == "half":
        file.write_text("ada")
    elif damage == "mode":
        file.chmod(0o644)
    else:
        file.unlink()
    if damage == "folder":
        file.mkdir()
    elif damage == "pipe":
        os.mkfifo(file)
