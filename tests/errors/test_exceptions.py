import copy
import inspect
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import errors
from promptkit.errors import (
    AnswerError,
    ArgumentsError,
    BudgetError,
    CompileError,
    ConfigurationError,
    EmptyPromptError,
    InvalidAnswerPart,
    InvalidArgument,
    LoadError,
    MediaError,
    MissingClientCapabilityError,
    PromptError,
    PromptkitError,
    ResultError,
    UnknownPromptError,
    UnknownResourceError,
    UnknownToolError,
    UnsendableMediaError,
)
from promptkit.errors.diagnostics import Diagnostic, Location, Owner, Report, Severity
from promptkit.errors.rules import WARNINGS, Rule
from promptkit.errors.suggestions import nearest
from promptkit.exports import ExportError, UnsupportedAnswerError
from promptkit.exports.vendor_messages import UnsupportedPart
from promptkit.language.validation import UnsendableError
from promptkit.types.errors import ConversionError

MISSING = Diagnostic(
    Rule.MISSING_ANNOTATION,
    "prompt 'review': parameter 'diff' has no annotation",
    "write its type, for example 'diff: str'",
    Location("/recipes/review.py", 12),
    Owner("prompt 'review'", Location("/recipes/review.py", 12)),
)

#: An instance of each exception, and its message.
EXAMPLES = {
    "PromptError": (PromptError("there are no logs yet"), "there are no logs yet"),
    "MediaError": (MediaError("the data is empty"), "the data is empty"),
    "UnsendableMediaError": (UnsendableMediaError("the data is empty"), "the data is empty"),
    "BudgetError": (
        BudgetError(8_000, 1_234),
        (
            "the text is 1,234 tokens longer than its budget of 8,000, even without its optional parts: "
            "shorten it"
        ),
    ),
    "EmptyPromptError": (
        EmptyPromptError("review"),
        "prompt 'review' rendered no messages for these arguments",
    ),
    "EmptyPromptError, with a system part": (
        EmptyPromptError("review", only_system=True),
        "prompt 'review' has a system part but no turn: add a user(...)",
    ),
    "MissingClientCapabilityError": (
        MissingClientCapabilityError("elicitation"),
        "the request requires the capability 'elicitation', which the client does not declare",
    ),
    "ResultError": (
        ResultError("prompt 'review' returned an int (5)"),
        "prompt 'review' returned an int (5)",
    ),
    "UnknownPromptError": (UnknownPromptError("riview"), "unknown prompt 'riview'"),
    "UnknownToolError": (
        UnknownToolError("riview", "review"),
        "unknown tool 'riview'; did you mean 'review'?",
    ),
    "UnknownResourceError": (
        UnknownResourceError("docs://a b", reason="it is not a URI"),
        "unknown resource 'docs://a b': it is not a URI",
    ),
    "ExportError": (
        ExportError("Gemini", (UnsupportedPart(2, "assistant", "image/png", "move it to a user turn"),)),
        (
            "Gemini cannot represent the rendering: message 2 (assistant) contains image/png: move it to a "
            "user turn (lossy=True replaces unsupported content with text)"
        ),
    ),
    "UnsupportedAnswerError": (
        UnsupportedAnswerError("Gemini takes no set: write a list"),
        "Gemini takes no set: write a list",
    ),
    "UnknownPromptError, similar": (
        UnknownPromptError("riview", "review"),
        "unknown prompt 'riview'; did you mean 'review'?",
    ),
    "ArgumentsError": (
        ArgumentsError(
            "review", (InvalidArgument("depth", "is 'many', not a whole number", "a whole number"),)
        ),
        "prompt 'review': 'depth' is 'many', not a whole number",
    ),
    "ArgumentsError, several": (
        ArgumentsError(
            "review",
            (
                InvalidArgument("langauge", "is not an argument of this prompt", nearest="language"),
                InvalidArgument("diff", "is missing"),
            ),
        ),
        (
            "prompt 'review': 'langauge' is not an argument of this prompt (did you mean 'language'?); "
            "'diff' is missing"
        ),
    ),
    "AnswerError": (
        AnswerError(
            "{}",
            (
                InvalidAnswerPart("findings[0].line", "is 'x', not a whole number", "a whole number"),
                InvalidAnswerPart("sumary", "is not a member of this object", nearest="summary"),
                InvalidAnswerPart("", "is cut off: its end is missing"),
            ),
        ),
        (
            "'findings[0].line' is 'x', not a whole number; 'sumary' is not a member of this object "
            "(did you mean 'summary'?); the answer is cut off: its end is missing"
        ),
    ),
    "CompileError": (
        CompileError((MISSING, MISSING)),
        "\n".join(
            [
                "/recipes/review.py:12: error PK301: prompt 'review': parameter 'diff' has no annotation",
                "    write its type, for example 'diff: str'",
            ]
            * 2
        ),
    ),
    "ConfigurationError": (
        ConfigurationError("pyproject.toml", "[tool.promptkit] target must be a folder"),
        "pyproject.toml: [tool.promptkit] target must be a folder",
    ),
    "LoadError": (
        LoadError("recipies", "there is no such folder"),
        "cannot load 'recipies': there is no such folder",
    ),
    "UnsendableError": (
        UnsendableError(5, (1,)),
        "an int (5): convert it to text with str(...) or an f-string",
    ),
    "ConversionError": (ConversionError(nearest="rust"), ""),
}


@pytest.fixture(params=EXAMPLES)
def example(request):
    """One exception of each kind, and its message."""
    return EXAMPLES[request.param]


class TestTree:
    @pytest.mark.parametrize(
        ("error", "kinds"),
        [
            (PromptError, (PromptkitError,)),
            (MediaError, (PromptError, ValueError)),
            (UnsendableMediaError, (MediaError,)),
            (BudgetError, (PromptError, ValueError)),
            (EmptyPromptError, (PromptError,)),
            (UnknownPromptError, (PromptkitError, KeyError)),
            (ArgumentsError, (PromptkitError, ValueError)),
            (AnswerError, (PromptkitError, ValueError)),
            (CompileError, (PromptkitError,)),
            (LoadError, (PromptkitError,)),
        ],
        ids=lambda value: getattr(value, "__name__", ""),
    )
    def test_each_exception_has_its_base_classes(self, error, kinds):
        """Each exception is a PromptkitError, and some are also built-in exceptions."""
        assert issubclass(error, kinds[0])
        assert all(issubclass(error, kind) for kind in kinds)
        assert issubclass(error, PromptkitError)

    def test_the_module_docstring_lists_every_exception(self):
        """The module's docstring lists each exception."""
        defined = [name for name, _ in inspect.getmembers(errors, inspect.isclass) if name.endswith("Error")]
        defined += ["UnknownPromptError", "ArgumentsError"]

        assert [name for name in defined if name not in errors.__doc__] == []


def test_every_exception_has_an_example():
    """Each public exception has an example."""
    entries = {InvalidAnswerPart, InvalidArgument}
    public = {getattr(errors, name) for name in errors.__all__} - entries - {PromptkitError}

    assert public - {type(error) for error, _ in EXAMPLES.values()} == set()


class TestEveryError:
    def test_str_is_the_message(self, example):
        """str() is a readable message."""
        error, message = example

        assert str(error) == message

    def test_an_error_can_be_pickled(self, example):
        """Pickling keeps the type, message and fields."""
        error, message = example

        unpickled = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own pickle)

        assert type(unpickled) is type(error)
        assert str(unpickled) == message
        assert {name: getattr(unpickled, name) for name in _fields(error)} == {
            name: getattr(error, name) for name in _fields(error)
        }

    def test_an_error_can_be_copied(self, example):
        """A copy has the same message."""
        error, message = example

        assert str(copy.copy(error)) == message

    def test_an_error_can_have_a_cause_and_notes(self, example):
        """Python can add a traceback, a cause and notes."""
        error = copy.copy(example[0])

        with pytest.raises(type(error)) as caught:
            raise error from OSError("disk")
        caught.value.add_note("while testing")

        assert caught.value.__traceback__ is not None
        assert str(caught.value.__cause__) == "disk"
        assert caught.value.__notes__ == ["while testing"]


def _fields(error):
    return sorted(vars(error))


def test_the_message_is_the_authors_text():
    """`PromptError.message` is the author's text."""
    assert PromptError("run the service first").message == "run the service first"


class TestInvalidArgument:
    @pytest.mark.parametrize(
        ("argument", "text"),
        [
            (InvalidArgument("diff", "is missing"), "'diff' is missing"),
            (
                InvalidArgument(
                    "language", "is 'pyton', not one of python, rust", "one of python, rust", "python"
                ),
                "'language' is 'pyton', not one of python, rust (did you mean 'python'?)",
            ),
            (InvalidArgument("o'clock", "is missing"), '"o\'clock" is missing'),
        ],
        ids=["plain", "similar", "quoted"],
    )
    def test_the_text_of_an_invalid_argument_is_a_sentence(self, argument, text):
        """An invalid argument's text has its name, the problem and the most similar choice."""
        assert str(argument) == text


class TestNearest:
    @pytest.mark.parametrize(
        ("name", "names", "expected"),
        [
            ("langauge", ["code", "language"], "language"),
            ("LANGUAGE", ["code", "language"], "language"),
            ("strasse", ["Straße"], "Straße"),
            ("x", ["code", "language"], None),
            ("code", [], None),
            ("", ["code"], None),
            ("sev9", ["sev1", "sev2", "sev3", "sev4"], None),
            ("sev33", ["sev1", "sev2", "sev3", "sev4"], "sev3"),
            ("lang", ["code", "language"], "language"),
            ("review", ["code-review", "plan"], "code-review"),
            ("claude", ["claude-code", "claude-desktop", "zed"], None),
            ("system", ["SystemExit", "print"], None),
            ("nmae", ["name", "names"], "name"),
            ("zde", ["zed", "zen"], "zed"),
            ("in", ["include"], None),
        ],
        ids=[
            *("typo", "case", "folded", "nothing similar", "no names", "empty"),
            *("as near to several", "nearest to one", "a beginning", "a word", "the beginning of several"),
            *(
                "the beginning of another word",
                "shares more",
                "has the same letters",
                "too short to begin one",
            ),
        ],
    )
    def test_a_misspelt_name_finds_the_similar_one(self, name, names, expected):
        """A misspelt name finds the similar one; an unrelated name finds none."""
        assert nearest(name, names) == expected

    @given(st.text("abc", max_size=6), st.lists(st.text("abc", max_size=6), unique=True, max_size=6))
    def test_the_order_of_names_does_not_matter(self, name, names):
        """The order of the names does not affect the result."""
        assert nearest(name, names) == nearest(name, sorted(names, reverse=True))

    @given(st.text(), st.lists(st.text(), max_size=5))
    def test_only_existing_names_are_suggested(self, name, names):
        """The result is one of the names or None."""
        assert nearest(name, names) in {None, *names}

    @given(st.text(min_size=1), st.lists(st.text(), max_size=5))
    def test_a_name_is_nearest_to_itself(self, name, names):
        """The most similar name is the name itself, ignoring case."""
        suggestion = nearest(name, [*names, name])

        assert suggestion is not None
        assert suggestion.casefold() == name.casefold()


class TestDiagnostic:
    def test_codes_are_unique(self):
        """Codes are unique, and are PK with three digits."""
        codes = [rule.value for rule in Rule]

        assert len(set(codes)) == len(codes)
        assert all(len(code) == 5 and code.startswith("PK") and code[2:].isdecimal() for code in codes)

    def test_str_has_the_location_and_the_hint(self, tmp_path, monkeypatch):
        """str() has the location, severity, code, message and hint."""
        monkeypatch.chdir(tmp_path)
        diagnostic = Diagnostic(
            Rule.BAD_NAME, "the name is bad", "change it", Location(str(tmp_path / "a" / "b.py"), 3)
        )

        assert str(diagnostic) == "a/b.py:3: error PK201: the name is bad\n    change it"

    @pytest.mark.parametrize(
        ("file", "line", "text"),
        [
            ("{here}/recipes/review.py", 12, "recipes/review.py:12"),
            ("{here}/recipes/review.py", 0, "recipes/review.py"),
            ("/elsewhere/review.py", 12, "/elsewhere/review.py:12"),
            ("<string>", 1, "<string>:1"),
        ],
        ids=["below", "whole file", "elsewhere", "no file"],
    )
    def test_a_location_is_shown_relative_to_the_current_folder(
        self, file, line, text, tmp_path, monkeypatch
    ):
        """A path below the current folder is relative; any other is unchanged."""
        monkeypatch.chdir(tmp_path)

        assert str(Location(file.format(here=tmp_path), line)) == text

    @pytest.mark.parametrize("rule", Rule)
    def test_the_severity_depends_on_the_rule(self, rule):
        """The severity depends only on the rule."""
        diagnostic = Diagnostic(rule, "", "", Location(""))

        assert (diagnostic.severity is Severity.WARNING) == (rule in WARNINGS)

    def test_as_data_returns_plain_values(self):
        """`as_data` returns all fields under stable names."""
        assert MISSING.as_data() == {
            "code": "PK301",
            "rule": "missing-annotation",
            "severity": "error",
            "message": "prompt 'review': parameter 'diff' has no annotation",
            "hint": "write its type, for example 'diff: str'",
            "file": "/recipes/review.py",
            "line": 12,
            "column": 0,
            "end_column": 0,
        }

    def test_a_report_names_its_subject(self):
        """Each diagnostic of a report has its subject and, by default, its location."""
        report = Report("prompt 'review'", MISSING.location)

        report.add(MISSING.rule, "parameter 'diff' has no annotation", MISSING.hint)

        assert report.diagnostics == [MISSING]

    def test_locations_sort_by_file_and_line(self):
        """Locations are sorted by file, then numerically by line."""
        locations = [Location("a.py", 2), Location("a.py", 10), Location("b.py", 1)]

        assert sorted([locations[2], locations[1], locations[0]]) == locations
