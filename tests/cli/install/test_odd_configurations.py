"""Configuration files that no parser takes: each is refused with one line."""

import pytest

from promptkit.cli.clients import jsonc, toml, yaml
from promptkit.files.edits import FileRefused


@pytest.mark.parametrize(
    ("module", "text", "reason"),
    [
        (jsonc, '{"a": ' + "[" * 100_000, "it is nested too deeply"),
        (jsonc, '{"a": ' + "1" * 5_000 + "}", "it has a number with too many digits"),
        (toml, "a = " + "[" * 100_000, "it is nested too deeply"),
        (toml, "a = " + "1" * 5_000, "this is not TOML: "),
        (toml, "x = 1\n" + "a." * 100_000 + "a = 1", "a key has more than 100 parts"),
        (toml, "[[" + '"a" . ' * 200 + "a]]", "a key has more than 100 parts"),
        (yaml, "a: " + "[" * 10_000, "it is nested too deeply"),
        (yaml, "- " * 10_000, "it is nested too deeply"),
        (yaml, "a: !!bool x", "this is not YAML: "),
        (yaml, "a: !!int ''", "this is not YAML: "),
        (yaml, "a: " + "1" * 5_000, "this is not YAML: "),
        (yaml, "%YAML 9.9\n--- {a: 1}", "this is not YAML: "),
    ],
)
def test_it_is_refused(module, text, reason):
    """
    The reason is one line, whatever the parser raises.
    """
    with pytest.raises(FileRefused, match=reason) as caught:
        module.read(text)

    assert "\n" not in str(caught.value)


def test_a_key_of_many_parts_in_a_text_is_text():
    """
    Only keys are counted, at the beginning of a line.
    """
    line = "see " + "a." * 200

    assert toml.read(f"a = '''\n{line}\n'''") == {"a": f"{line}\n"}


def test_an_anchor_twice_is_no_warning(recwarn):
    """
    The warning of the parser would show the text as it is.
    """
    assert yaml.read("a: &x 1\nb: &x 2") == {"a": 1, "b": 2}
    assert list(recwarn) == []
