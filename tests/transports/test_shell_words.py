"""What the shell completes: what the start-up cache keeps of a catalog."""

from typing import Annotated, Literal

import pytest
from msgspec import MsgspecError

from promptkit import Arg, prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.compiler.recipes import Recipes
from promptkit.transports.startup_cache.shell_words import ShellWords, decoded_words, encoded_words


@prompt
def review(
    *,
    code: str,
    language: Literal["python", "rust"],
    team: Annotated[str, Arg(complete=["core", "a\tb", "a\nb", "a\ud800b", "日本"])],
    branch: Annotated[str, Arg(complete=lambda: ["main"])],
    key: Annotated[str, Arg(secret=True)],
    many: Annotated[str, Arg(complete=map(str, range(10_001)))],
    most: Annotated[str, Arg(complete=map(str, range(10_000)))],
) -> str:
    return code


@resource("docs://guide")
def guide() -> str:
    return "x"


@resource("docs://{page}")
def page(page: Literal["intro", "end"]) -> str:
    return page


def test_what_is_kept():
    """
    Names, URIs, and the values that are the same whatever was typed, as far as a shell can show them.
    """
    words = decoded_words(encoded_words(compile(Recipes([review], [guide, page]))))

    assert words.prompts["review"].pop("most") == tuple(map(str, range(10_000)))
    assert words == ShellWords(
        {
            "review": {
                "code": (),
                "language": ("python", "rust"),
                "team": ("core", "日本"),
                "branch": (),
                "key": (),
                "many": (),
            }
        },
        {"docs://guide": {}, "docs://{page}": {"page": ("intro", "end")}},
    )


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x92\x01\x02"])
def test_what_is_no_such_file(data):
    """
    It is refused by one kind of error, so that TAB stays silent.
    """
    with pytest.raises(MsgspecError):
        decoded_words(data)
