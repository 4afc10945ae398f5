"""Configuration files that no parser accepts are rejected with one line."""

import pytest

from promptkit.clients import jsonc_edits, toml_edits, yaml_edits
from promptkit.files.edits import FileEditError


@pytest.mark.parametrize(
    ("module", "text", "reason"),
    [
        (jsonc_edits, '{"a": ' + "[" * 100_000, "it is nested too deeply"),
        (jsonc_edits, '{"a": ' + "1" * 5_000 + "}", "it is not valid JSON: "),
        (toml_edits, "a = " + "[" * 100_000, "it is nested too deeply"),
        (toml_edits, "a = " + "1" * 5_000, "it is not valid TOML: "),
        (toml_edits, "x = 1\n" + "a." * 100_000 + "a = 1", "a key has more than 100 parts"),
        (toml_edits, "[[" + '"a" . ' * 200 + "a]]", "a key has more than 100 parts"),
        (yaml_edits, "a: " + "[" * 10_000, "it is nested too deeply"),
        (yaml_edits, "- " * 10_000, "it is nested too deeply"),
        (yaml_edits, "a: !!bool x", "it is not valid YAML: "),
        (yaml_edits, "a: !!int ''", "it is not valid YAML: "),
        (yaml_edits, "a: " + "1" * 5_000, "it is not valid YAML: "),
        (yaml_edits, "%YAML 9.9\n--- {a: 1}", "it is not valid YAML: "),
    ],
)
def test_invalid_configuration(module, text, reason):
    """The reason is one line, whatever the parser raises."""
    with pytest.raises(FileEditError, match=reason) as error:
        module.read(text)

    assert "\n" not in str(error.value)


def test_dotted_text_in_a_string():
    """Only keys at the beginning of a line count towards the limit of key parts."""
    line = "see " + "a." * 200

    assert toml_edits.read(f"a = '''\n{line}\n'''") == {"a": f"{line}\n"}


def test_duplicate_anchor_causes_no_warning(recwarn):
    """The parser's warning is suppressed, because it would show the file's text."""
    assert yaml_edits.read("a: &x 1\nb: &x 2") == {"a": 1, "b": 2}
    assert list(recwarn) == []
