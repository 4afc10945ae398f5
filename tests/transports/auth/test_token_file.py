"""A file of tokens: what is read, what is refused, and when it is read again."""

import asyncio
import os
import secrets
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.protocol.principals import Principal, VerifierUnavailableError
from promptkit.transports.auth.authorizer import Authorizer
from promptkit.transports.auth.bearer_header import BearerScheme
from promptkit.transports.auth.token_file import VALID_S, TokenFile, read_tokens
from promptkit.transports.secret_files import InvalidSecretsError
from tests.posting import head

ADA, BOB = "ada-" * 10, "bob-" * 10

NAMES = st.from_regex(r"[a-z@.]{1,9}", fullmatch=True)
TOKENS = st.from_regex(r"[A-Za-z0-9._~+/-]{32,60}={0,2}", fullmatch=True)

posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")


@pytest.fixture
def file(tmp_path):
    """A file with two tokens, which only its owner can read."""
    path = tmp_path / "tokens"
    path.write_text(f"ada {ADA} read write\nbob {BOB}\n")
    path.chmod(0o600)
    return path


def refusal(text):
    """Why a text is refused."""
    with pytest.raises(InvalidSecretsError) as refused:
        read_tokens(text)
    return str(refused.value)


class TestReading:
    @given(st.dictionaries(TOKENS, st.tuples(NAMES, st.lists(NAMES)), min_size=1), st.data())
    def test_every_token_is_read(self, tmp_path_factory, entries, data):
        """
        Each token in a file, and no other text, is its bearer's, whatever blanks and comments are between.
        """
        blank = data.draw(st.sampled_from([" ", "\t", "   "]))
        end = data.draw(st.sampled_from(["\n", "\r\n", "\n\n# bob's\n", " # new\n"]))
        path = tmp_path_factory.mktemp("tokens") / "tokens"
        text = "".join(blank.join([name, token, *scopes]) + end for token, (name, scopes) in entries.items())
        path.write_bytes(text.encode())
        path.chmod(0o600)
        tokens = TokenFile(str(path))

        for token, (name, scopes) in entries.items():
            assert tokens.verify(token) == Principal(name, scopes)
            for other in (token[:-1], token + "x", token.swapcase(), name):
                assert tokens.verify(other) is None or other in entries

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                f"\n{ADA}\n",
                "line 2: the line has one word: write a name, a token and any scopes, separated by blanks",
            ),
            ("ada secret", "line 1: the token has 6 characters and could be guessed: it needs 32"),
            (f"ada x{'=' * 31}", "line 1: the token has 1 characters and could be guessed: it needs 32"),
            (f"\udcff {ADA}", "line 1: the name is not UTF-8: save the file in that encoding"),
            (
                f"ada {ADA}!",
                "line 1: the second word is not a token: a token has only letters, digits and -._~+/=",
            ),
            (
                f"ada {ADA}\nbob {ADA}",
                "line 2: this token is on another line, too: every principal needs a different one",
            ),
        ],
    )
    def test_what_is_no_token(self, text, said):
        """
        The line is named, and no token is shown.
        """
        assert refusal(text) == said
        assert ADA not in said

    def test_a_name_may_have_several(self):
        """
        So a token can be replaced while both are in use.
        """
        assert [principal.subject for _, principal in read_tokens(f"ada {ADA}\nada {BOB}")] == ["ada", "ada"]

    def test_names_are_exact(self, file):
        """
        A name is taken as UTF-8 writes it, to the last character. Comments may be in any encoding.
        """
        names = ["张三", "李四", "é", "e\u0301", "ada\u200b"]
        tokens = [f"{number}" * 32 for number in range(len(names))]
        lines = [f"{name} {token}\n".encode() for name, token in zip(names, tokens, strict=True)]
        file.write_bytes(b"\xef\xbb\xbf" + b"".join(lines) + b"# Schl\xfcssel\n")
        held = TokenFile(str(file))

        assert [held.verify(token).subject for token in tokens] == names

    @pytest.mark.parametrize("text", ["", "# ada\n"])
    def test_no_token_at_the_start(self, file, text):
        """
        Nothing is served that nobody could use.
        """
        file.write_text(text)
        with pytest.raises(InvalidSecretsError) as refused:
            TokenFile(str(file))
        assert str(refused.value) == f"{file}: there is no token: write a name and a token on each line"

    @pytest.mark.skipif(sys.platform == "win32", reason="a mode says nothing there")
    @pytest.mark.parametrize(
        ("mode", "can"),
        [
            (0o644, "every user can read it"),
            (0o604, "every user can read it"),
            (0o620, "others can change it"),
        ],
    )
    def test_a_file_of_everybody(self, file, mode, can):
        """
        It is refused, as its tokens may be known by now.
        """
        file.chmod(mode)
        with pytest.raises(InvalidSecretsError) as refused:
            TokenFile(str(file))
        said = f"{file}: {can} (mode {mode:04o}): make new tokens, and chmod g-w,o-rwx {file}"
        assert str(refused.value) == said

    def test_the_error_names_the_file(self, file):
        """
        And the line, or the reason of the system.
        """
        file.write_text("ada secret")
        with pytest.raises(InvalidSecretsError, match=f"^{file}: line 1: the token has 6 characters"):
            TokenFile(str(file))
        file.write_text(f"bob {BOB}\nada secret")
        with pytest.raises(InvalidSecretsError, match=f"^{file}: line 2: the token has 6 characters"):
            TokenFile(str(file))
        with pytest.raises(InvalidSecretsError, match=f"^{file}x: cannot be read: No such file"):
            TokenFile(f"{file}x")


class TestChanges:
    @pytest.fixture
    def tokens(self, file):
        """The file, and a clock that the test moves on."""
        self.now = 0.0
        return TokenFile(str(file), lambda: self.now)

    def test_the_file_is_read_again(self, file, tokens):
        """
        Who is taken out is refused a second later, and who is new is let in.
        """
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
    def test_a_file_that_is_emptied(self, file, tokens, text):
        """
        Nobody is let in, from the next second on.
        """
        file.write_text(text)
        self.now += 1

        assert (tokens.verify(ADA), tokens.verify(BOB)) == (None, None)
        file.write_text(f"bob {BOB}\n")
        self.now += 1
        assert (tokens.verify(ADA), tokens.verify(BOB)) == (None, Principal("bob"))

    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            ("half", "line 1: the line has one word: write a name, a token and any scopes, separated by"),
            ("mode", "every user can read it (mode 0644): make new tokens, and chmod g-w,o-rwx"),
            ("gone", "cannot be read: No such file or directory"),
            ("folder", "cannot be read: Is a directory"),
            pytest.param("pipe", "cannot be read: it is not a regular file", marks=posix),
        ],
    )
    def test_a_file_that_cannot_be_read(self, file, tokens, fault, said, capfd):
        """
        Its tokens are valid for some seconds, and then nobody's until it is mended. That is said once.
        """
        break_file(file, fault)
        for _ in range(int(VALID_S)):
            self.now += 1
            assert tokens.verify(ADA).subject == "ada"
        for _ in range(3):
            self.now += 1
            with pytest.raises(VerifierUnavailableError):
                tokens.verify(ADA)
        shown = capfd.readouterr().err

        assert shown.startswith(f"promptkit: {file}: {said}")
        assert shown.endswith("; 5 s after it was last read, all requests are refused until this is fixed\n")
        assert shown.count("\n") == 1
        mended = file.with_name("mended")
        mended.write_text(f"bob {BOB}\n")
        mended.chmod(0o600)
        if file.is_dir():
            file.rmdir()
        mended.replace(file)
        self.now += 1
        assert (tokens.verify(ADA), tokens.verify(BOB)) == (None, Principal("bob"))
        assert capfd.readouterr().err == f"promptkit: {file}: this is fixed: all tokens in it count\n"

    @pytest.mark.parametrize("slip", ["cleo", "cleo short", f"cleo {BOB}", f"; ada {ADA}", f"ada{ADA}"])
    def test_a_wrong_line(self, file, tokens, slip, capfd):
        """
        It lets nobody in, and keeps nobody else out, however long. Who was taken out with it is out at once.
        """
        file.write_text(f"bob {BOB} read\n{slip}\n")
        for _ in range(int(VALID_S) + 2):
            self.now += 1
            assert (tokens.verify(ADA), tokens.verify(BOB)) == (None, Principal("bob", "read"))
        said, rest = capfd.readouterr().err.split("\n")

        assert said.startswith(f"promptkit: {file}: line 2: ")
        assert said.endswith("; the other lines are used")
        assert rest == ""
        file.write_text(f"bob {BOB}\nada {ADA}\n")
        self.now += 1
        assert (tokens.verify(ADA), tokens.verify(BOB)) == (Principal("ada"), Principal("bob"))
        assert capfd.readouterr().err == f"promptkit: {file}: this is fixed: all tokens in it count\n"

    def test_a_file_that_goes_while_nobody_asks(self, file, tokens):
        """
        However late the first one comes, nobody has more than those seconds.
        """
        file.unlink()
        self.now += 3600

        with pytest.raises(VerifierUnavailableError):
            tokens.verify(ADA)

    def test_a_stream_ends_once_its_token_is_nobodys(self, file, tokens):
        """
        What was opened with a token of the file is not open for longer than the token is valid.
        """
        asked = Authorizer(BearerScheme(), tokens, lambda: self.now)
        sent = head(authorization=f"Bearer {ADA}")
        ada = asyncio.run(asked.check(sent, b""))
        file.unlink()

        self.now += VALID_S
        assert asyncio.run(asked.still_admits(sent, ada))
        self.now += 1
        assert not asyncio.run(asked.still_admits(sent, ada))


def break_file(file, fault):
    """Put something in the place of a file that cannot be read as tokens."""
    if fault == "half":
        file.write_text("ada")
    elif fault == "mode":
        file.chmod(0o644)
    else:
        file.unlink()
    if fault == "folder":
        file.mkdir()
    elif fault == "pipe":
        os.mkfifo(file)
