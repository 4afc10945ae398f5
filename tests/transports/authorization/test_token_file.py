"""A file of tokens: what is read, what is refused, and when it is read again."""

import secrets
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.protocol.principals import Principal
from promptkit.transports.authorization.token_file import InvalidTokens, TokenFile, read_tokens

ADA, BOB = "ada-" * 10, "bob-" * 10

NAMES = st.from_regex(r"[a-z@.]{1,9}", fullmatch=True)
TOKENS = st.from_regex(r"[A-Za-z0-9._~+/=-]{32,60}", fullmatch=True)


@pytest.fixture
def file(tmp_path):
    """A file with two tokens, which only its owner can read."""
    path = tmp_path / "tokens"
    path.write_text(f"ada {ADA} read write\nbob {BOB}\n")
    path.chmod(0o600)
    return path


def refusal(text):
    """Why a text is refused."""
    with pytest.raises(InvalidTokens) as refused:
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
            ("", "there is no token: write a name and a token on each line"),
            ("# ada\n", "there is no token: write a name and a token on each line"),
            (
                f"\n{ADA}\n",
                "line 2: there is one word: write a name, a token and any scopes, with blanks between them",
            ),
            ("ada secret", "line 1: the token has 6 characters and could be guessed: it needs 32"),
            (
                f"ada {ADA}!",
                "line 1: the second word is no token: one has letters, digits and -._~+/= alone",
            ),
            (
                f"ada {ADA}\nbob {ADA}",
                "line 2: this token stands on another line, too: everybody needs one of their own",
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

    @pytest.mark.skipif(sys.platform == "win32", reason="a mode says nothing there")
    @pytest.mark.parametrize(
        ("mode", "can"),
        [(0o644, "everybody can read it"), (0o604, "everybody can read it"), (0o620, "others can change it")],
    )
    def test_a_file_of_everybody(self, file, mode, can):
        """
        It is refused, as its tokens may be known by now.
        """
        file.chmod(mode)
        with pytest.raises(InvalidTokens) as refused:
            TokenFile(str(file))
        assert str(refused.value) == f"{file}: {can} (mode {mode:04o}): make new tokens, and chmod 600 {file}"

    def test_the_error_names_the_file(self, file):
        """
        And the line, or the reason of the system.
        """
        file.write_text("ada secret")
        with pytest.raises(InvalidTokens, match=f"^{file}: line 1: the token has 6 characters"):
            TokenFile(str(file))
        with pytest.raises(InvalidTokens, match=f"^{file}x: cannot be read: No such file"):
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

    @pytest.mark.parametrize("fault", ["half", "mode", "gone"])
    def test_a_file_that_is_broken(self, file, tokens, fault, capfd):
        """
        The tokens of before are valid until it is mended. That is said once.
        """
        if fault == "half":
            file.write_text("ada")
        elif fault == "mode":
            file.chmod(0o644)
        else:
            file.unlink()
        for _ in range(3):
            self.now += 1
            assert tokens.verify(ADA).subject == "ada"
        said = capfd.readouterr().err

        assert said.startswith(f"promptkit: {file}: ")
        assert said.endswith("; the tokens of before are valid until it is mended\n")
        assert said.count("\n") == 1
        file.write_text(f"bob {BOB}\n")
        file.chmod(0o600)
        self.now += 1
        assert (tokens.verify(ADA), tokens.verify(BOB)) == (None, Principal("bob"))
