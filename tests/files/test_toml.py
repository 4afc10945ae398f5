import tomllib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.files.toml import parse_toml


@given(st.text(alphabet="ab.=\"'[]{} \n#\\1", max_size=60))
def test_short_documents_are_parsed_as_by_python(text):
    """Short documents are parsed as tomllib does."""
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(ValueError, match=r"."):
            parse_toml(text.encode())
    else:
        assert parse_toml(text.encode()) == expected


def test_byte_order_mark():
    """A byte order mark, which some editors write, is ignored."""
    assert parse_toml(b"\xef\xbb\xbf[a]\nb = 1\n") == {"a": {"b": 1}}


@pytest.mark.parametrize("part", ["a", '"a"', '"a\\"b"', "'a'", "a ", '"."'])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "[[{}]]", "a = {{ {} = 1 }}"])
def test_keys_of_very_many_parts_are_rejected(part, form):
    """Keys with more than 100 parts are rejected in any notation."""
    with pytest.raises(ValueError, match="more than 100 parts"):
        parse_toml(form.format(".".join([part] * 200)).encode())
    assert parse_toml(form.format(".".join([part] * 90)).encode())


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "unit",
    [
        ".a",
        '."a"',
        '."',
        ".'",
        '."\\"',
        ".",
        ". ",
        "a",
        '"a".',
        ".a" * 99 + " \n",
        '."\n',
        "[",
        "{a=",
        "[a.b]\n",
    ],
)
def test_time_grows_with_the_length_alone(unit):
    """Any document of 512 KiB is parsed before the timeout; in quadratic time it would take minutes."""
    with suppress(ValueError):
        parse_toml((unit * (1 << 19))[: 1 << 19].encode())
