"""
The frontmatter of ``SKILL.md``: YAML between two lines of hyphens, before the Markdown.

See https://agentskills.io/specification.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from typing import Any, Final

import msgspec
from msgspec import Struct

from promptkit.catalog.skills import MAX_COMPATIBILITY, MAX_DESCRIPTION
from promptkit.errors.rules import Rule
from promptkit.language.validation import describe

#: The limit that hosts set for the frontmatter, in characters.
MAX_FRONT_MATTER: Final = 64 * 1024

_FRONTMATTER: Final = re.compile(r"---[ \t]*\r?\n((?:[^\n]*\n)*?)---[ \t]*(?:\r?\n|\Z)")

#: Possible start of an anchor, alias, tag, collection or merge, even within text.
_MAYBE_DISALLOWED: Final = re.compile(r"[&*!\[{]|<<")

#: Maximum depth of nested collections.
_MAX_DEPTH: Final = 20

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_NAME_CHARACTERS: Final = 64
_MAX_CHARACTERS: Final = {"description": MAX_DESCRIPTION, "compatibility": MAX_COMPATIBILITY}

#: These words and this pattern identify text that every version of YAML reads as the same plain scalar. All
#: other text is written as JSON, which is valid YAML, because the versions disagree about numbers, dates and
#: booleans.
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_PLAIN: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9 ,.()/'-]*[A-Za-z0-9.)])?")

#: Characters that JSON allows unescaped, but YAML forbids or reads as a line break.
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class SkillError(Exception):
    """
    An error that keeps a skill from being served.

    Args:
        problem:
            The error message.

        hint:
            How to fix the problem.

        rule:
            The rule that the diagnostic belongs to.
    """

    def __init__(self, problem: str, hint: str, rule: Rule = Rule.SKILL_FILES) -> None:
        super().__init__(problem)
        self.hint, self.rule = hint, rule


class FrontmatterError(SkillError):
    """
    A ``SKILL.md`` whose frontmatter cannot be read or written.

    Args:
        line:
            The line number, starting at 1.
    """

    def __init__(self, problem: str, hint: str, line: int = 1) -> None:
        super().__init__(problem, hint, Rule.BAD_SKILL)
        self.line = line


def format_skill(frontmatter: Mapping[str, Any], body: str) -> bytes:
    """
    Return the content of a ``SKILL.md``. Equal fields and bodies give equal bytes.

    Args:
        frontmatter:
            The fields. Each value is a string or a mapping of strings.

        body:
            The Markdown.

    Raises:
        FrontmatterError: If hosts could not read the file.
    """
    lines = ["---"]
    for key, value in frontmatter.items():
        if isinstance(value, str):
            lines.append(f"{encode_text(key)}: {encode_text(value)}")
        else:
            lines.append(f"{encode_text(key)}:")
            lines += (f"  {encode_text(inner)}: {encode_text(text)}" for inner, text in value.items())
    if (size := sum(map(len, lines))) > MAX_FRONT_MATTER:
        raise _too_long_error(size)
    try:
        return "\n".join([*lines, "---", "", body.strip("\n"), ""]).encode()
    except UnicodeEncodeError:
        msg = "its text contains an unpaired surrogate"
        raise FrontmatterError(msg, "remove it") from None


def encode_text(text: str) -> str:
    """
    Return *text* as a plain or quoted YAML scalar.

    Raises:
        FrontmatterError: If *text* contains an unpaired surrogate.
    """
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    try:
        encoded = msgspec.json.encode(text).decode()
    except UnicodeEncodeError:
        msg = "a field contains an unpaired surrogate"
        raise FrontmatterError(msg, "remove it") from None
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", encoded)


def read_skill(data: bytes) -> tuple[dict[str, Any], str, int]:
    """
    Parse a ``SKILL.md``. Return its fields, its Markdown, and the number of lines before the Markdown.

    Raises:
        FrontmatterError: If *data* is not UTF-8, or does not start with a frontmatter that is a mapping of
            plain YAML: without anchors, tags or values that JSON does not have.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        msg = f"SKILL.md is not UTF-8 at byte {error.start + 1:,}"
        raise FrontmatterError(msg, "save it as UTF-8") from None
    if text.startswith("\ufeff"):
        msg = "SKILL.md starts with a byte order mark, so hosts do not recognize its frontmatter"
        raise FrontmatterError(msg, "save it as UTF-8 without a byte order mark")
    if not text.startswith("---"):
        hint = "start it with a line '---', then 'name:' and 'description:', then another line '---'"
        msg = "SKILL.md has no frontmatter"
        raise FrontmatterError(msg, hint)
    if (match := _FRONTMATTER.match(text)) is None:
        msg = "the frontmatter of SKILL.md is not closed"
        raise FrontmatterError(msg, "add a line '---' after its last field")
    if len(match[1]) > MAX_FRONT_MATTER:
        raise _too_long_error(len(match[1]))
    return _parse_fields(match[1]), text[match.end() :], match[0].count("\n")


def _too_long_error(size: int) -> FrontmatterError:
    msg = f"the frontmatter of SKILL.md has {size:,} characters: the limit is {MAX_FRONT_MATTER:,}"
    return FrontmatterError(msg, "move long text below the frontmatter")


def read_as_yaml_1_1(data: bytes) -> dict[str, Any]:
    """
    Return the fields of a valid ``SKILL.md`` as hosts that use YAML 1.1 read them.

    In YAML 1.1, ``on`` is a boolean, ``012`` is 10, ``1:30`` is 90, and dates are not text.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLWarning

    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 1)
    match = _FRONTMATTER.match(data.decode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", YAMLWarning)
        fields: dict[str, Any] = reader.load(match[1] if match else "{}")
    return fields


def _parse_fields(text: str) -> dict[str, Any]:
    from ruamel.yaml import YAML  # slow to import, and most servers do not serve skill folders

    reader = YAML(typ="safe", pure=True)
    reader.Constructor = _make_constructor_class()
    try:
        if _MAYBE_DISALLOWED.search(text):
            _reject_disallowed_yaml(reader.parse(StringIO(text)))
        fields = reader.load(text)
        encoded = msgspec.json.encode(fields)
    except FrontmatterError:
        raise
    except Exception as error:  # noqa: BLE001 (the parser raises many types, such as KeyError for '%YAML 9.9')
        reason, line = describe_yaml_error(error)
        msg = f"the frontmatter of SKILL.md is not YAML that JSON can represent: {reason}"
        hint = "write one field per line, and quote text that contains ': ' or ' #'"
        raise FrontmatterError(msg, hint, line) from None
    if not isinstance(fields, dict):
        msg = f"the frontmatter of SKILL.md must be a mapping, but it is {describe(fields)}"
        raise FrontmatterError(msg, "write one field per line, for example 'name: code-review'")
    decoded: dict[str, Any] = msgspec.json.decode(encoded)
    if decoded != fields:  # there is a key that is not text, or a number that JSON does not have
        msg = "the frontmatter of SKILL.md has a key or a number that JSON cannot represent"
        raise FrontmatterError(msg, "write it in quotes")
    return decoded


def describe_yaml_error(error: Exception) -> tuple[str, int]:
    """Return the problem in the front matter that a YAML parser reported, and its line in the file."""
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or str(error) or "it is nested too deeply"
    return reason, mark.line + 2 if mark else 1


def _make_constructor_class() -> Any:
    """Return a class of YAML constructors that create only JSON values, so that dates stay text."""
    from ruamel.yaml.constructor import SafeConstructor

    class Constructor(SafeConstructor):
        pass

    text = SafeConstructor.construct_yaml_str
    Constructor.add_constructor("tag:yaml.org,2002:timestamp", text)
    return Constructor


def _reject_disallowed_yaml(events: Iterable[Any]) -> None:
    for problem, line in find_disallowed_yaml(events):
        msg = f"the frontmatter of SKILL.md has {problem}, which hosts may read differently"
        raise FrontmatterError(msg, "write out its value", line)


def find_disallowed_yaml(events: Iterable[Any]) -> Iterator[tuple[str, int]]:
    """
    Yield a description of each disallowed YAML feature, with its line in the file.

    These features are anchors, aliases, tags, merges and overly deep nesting.

    Args:
        events:
            The events of a YAML parser. They are read lazily, while the caller iterates.
    """
    depth = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        features = {
            "an anchor": getattr(event, "anchor", None),
            "a tag": getattr(event, "tag", None),
            "a merge": "<<" if getattr(event, "value", None) == "<<" else None,
            "deep nesting": depth if depth > _MAX_DEPTH else None,
        }
        for kind, value in features.items():
            if value is not None:
                yield f"{kind}, {str(value)!r}", event.start_mark.line + 2


class FieldProblem(Struct, frozen=True):
    """
    A violation of the format in a skill's fields.

    Args:
        key:
            The field.

        message:
            The error message.

        hint:
            How to fix the problem.

        is_tolerated:
            Whether hosts tolerate the problem. A folder with such a problem is served with a warning, but for
            `@skill`, the problem is an error.
    """

    key: str
    message: str
    hint: str
    is_tolerated: bool = False


def check_fields(fields: Mapping[str, Any], folder: str) -> Iterator[FieldProblem]:
    """
    Yield each violation of the format in a skill's fields.

    ``allowed-tools`` can be a list, and ``metadata`` values need not be text. Both are served as written,
    because hosts compare the fields with the file.

    Args:
        fields:
            The frontmatter.

        folder:
            The name of the skill's folder, which the skill's name must equal.
    """
    name, description = fields.get("name"), fields.get("description")
    if not name:
        yield FieldProblem("name", "it has no name", f"call it {_suggest_name(folder)!r}, like its folder")
    elif not is_valid_name(name):
        message = (
            f"its name {name!r} is invalid: a name must have 1 to 64 characters: a-z, 0-9, and single "
            "hyphens between them"
        )
        yield FieldProblem("name", message, f"call it {_suggest_name(str(name or folder))!r}")
    elif name != folder:
        message, hint = (
            f"its name is {name!r}, but its folder is called {folder!r}",
            "give both the same name",
        )
        yield FieldProblem("name", message, hint, is_tolerated=True)
    if not isinstance(description, str) or not description.strip():
        message = "it has no description, which models need to choose it"
        yield FieldProblem("description", message, "describe what the skill does and when to use it")
    for key in ("license", "compatibility", "allowed-tools"):
        if key in fields and not _is_text(fields[key], or_list=key == "allowed-tools"):
            message = f"its {key} must be text, not {describe(fields[key])}"
            yield FieldProblem(key, message, f"write text, or omit {key}")
    for key, limit in _MAX_CHARACTERS.items():
        text = fields.get(key)
        if isinstance(text, str) and len(text) > limit:
            message = f"its {key} has {len(text):,} characters: the limit is {limit:,}"
            hint = (
                "shorten it, and move details into the Markdown: some hosts reject a whole list because of "
                "one long field"
            )
            yield FieldProblem(key, message, hint, is_tolerated=True)
    if not isinstance(fields.get("metadata", {}), Mapping):
        message = "its metadata must be a mapping of strings to strings"
        yield FieldProblem("metadata", message, "write one 'key: value' per line below it")


def _is_text(value: object, *, or_list: bool) -> bool:
    """Return whether a value is nonblank text or, with *or_list*, a list of nonblank strings."""
    if isinstance(value, list) and or_list:
        return all(_is_text(item, or_list=False) for item in value)
    return isinstance(value, str) and bool(value.strip())


def is_valid_name(name: object) -> bool:
    """Return whether the format allows a name."""
    return isinstance(name, str) and len(name) <= _MAX_NAME_CHARACTERS and bool(_NAME.fullmatch(name))


def _suggest_name(name: str) -> str:
    """Return a name that is similar and that the format allows."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_MAX_NAME_CHARACTERS].strip("-") or "skill"
