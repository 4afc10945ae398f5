"""
The frontmatter of ``SKILL.md``: YAML between two lines of hyphens, before the Markdown.

See https://agentskills.io/specification.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from typing import Any, Final

import msgspec

from promptkit.language.validation import describe

#: What hosts take of it, in characters.
_MOST: Final = 64 * 1024

_FRONTMATTER: Final = re.compile(r"---[ \t]*\r?\n((?:[^\n]*\n)*?)---[ \t]*(?:\r?\n|\Z)")

#: What begins an anchor, an alias, a tag, a collection or a merge, wherever else it may stand.
_SPECIAL: Final = re.compile(r"[&*!\[{]|<<")

#: How deep collections may be nested.
_DEPTH: Final = 20

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NAME_CHARACTERS: Final = 64
_MOST_CHARACTERS: Final = {"description": 1024, "compatibility": 500}

#: A key, or a text, that is the same text in every version of YAML. All others are written as JSON, which is
#: YAML, too: its versions differ in what is a number, a date or true.
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_PLAIN: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9 ,.()/'-]*[A-Za-z0-9.)])?")

#: What JSON may hold as it is, and YAML may not, or reads as the end of a line.
_UNSAFE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class FrontmatterError(Exception):
    """
    The beginning of a ``SKILL.md`` cannot be read.

    Args:
        fault:
            What is wrong.

        hint:
            What to do about it.

        line:
            Where, counted from 1.
    """

    def __init__(self, fault: str, hint: str, line: int = 1) -> None:
        super().__init__(fault)
        self.hint = hint
        self.line = line


def write_skill(frontmatter: Mapping[str, Any], body: str) -> bytes:
    """
    Return a ``SKILL.md``: the same bytes for the same fields and body.

    Args:
        frontmatter:
            Texts by their keys, and mappings of texts to texts.

        body:
            The Markdown.

    Raises:
        FrontmatterError: If hosts could not read it.
    """
    lines = ["---"]
    for key, value in frontmatter.items():
        if isinstance(value, str):
            lines.append(f"{_written(key)}: {_written(value)}")
        else:
            lines.append(f"{_written(key)}:")
            lines += (f"  {_written(inner)}: {_written(text)}" for inner, text in value.items())
    if (size := sum(map(len, lines))) > _MOST:
        raise _too_long(size)
    try:
        return "\n".join([*lines, "---", "", body.strip("\n"), ""]).encode()
    except UnicodeEncodeError:
        msg = "its text holds half of a surrogate pair"
        raise FrontmatterError(msg, "remove it") from None


def _written(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    try:
        encoded = msgspec.json.encode(text).decode()
    except UnicodeEncodeError:
        msg = "a field holds half of a surrogate pair"
        raise FrontmatterError(msg, "remove it") from None
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded)


def read_skill(data: bytes) -> tuple[dict[str, Any], str, int]:
    """
    Return the fields of a ``SKILL.md``, its Markdown, and the line before that.

    Raises:
        FrontmatterError: If it is no UTF-8, does not begin with frontmatter, or that is no mapping of plain
            YAML, without anchors, tags and what JSON has not.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        msg = f"SKILL.md is no UTF-8 at byte {error.start + 1:,}"
        raise FrontmatterError(msg, "save it as UTF-8") from None
    if text.startswith("\ufeff"):
        msg = "SKILL.md begins with a byte order mark, behind which hosts find no frontmatter"
        raise FrontmatterError(msg, "save it as UTF-8 without a byte order mark")
    if not text.startswith("---"):
        hint = "begin it with a line '---', then 'name:' and 'description:', then another line '---'"
        msg = "SKILL.md begins with no frontmatter"
        raise FrontmatterError(msg, hint)
    if (found := _FRONTMATTER.match(text)) is None:
        msg = "the frontmatter of SKILL.md has no end"
        raise FrontmatterError(msg, "write a line '---' below its last field")
    if len(found[1]) > _MOST:
        raise _too_long(len(found[1]))
    return _fields(found[1]), text[found.end() :], found[0].count("\n")


def _too_long(size: int) -> FrontmatterError:
    msg = f"the frontmatter of SKILL.md has {size:,} characters: at most {_MOST:,} are read"
    return FrontmatterError(msg, "move what is long below the frontmatter")


def _fields(text: str) -> dict[str, Any]:
    from ruamel.yaml import YAML  # slow to import, and most servers have no folders of skills

    reader = YAML(typ="safe", pure=True)
    reader.Constructor = _constructor()
    try:
        if _SPECIAL.search(text):
            _refuse_special(reader.parse(StringIO(text)))
        fields = reader.load(text)
        encoded = msgspec.json.encode(fields)
    except FrontmatterError:
        raise
    except Exception as error:  # noqa: BLE001 (the parser raises errors of many types, as KeyError for '%YAML 9.9')
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error) or "it is nested too deeply"
        msg = f"the frontmatter of SKILL.md is not YAML that JSON can say: {reason}"
        line = mark.line + 2 if mark else 1
        hint = "write a field a line, and put a text that holds ': ' or ' #' in quotes"
        raise FrontmatterError(msg, hint, line) from None
    if not isinstance(fields, dict):
        msg = f"the frontmatter of SKILL.md is no mapping, but {describe(fields)}"
        raise FrontmatterError(msg, "write a field a line, as in 'name: code-review'")
    decoded: dict[str, Any] = msgspec.json.decode(encoded)
    if decoded != fields:  # a key that is no text, or a number that is none of JSON's
        msg = "the frontmatter of SKILL.md holds a key or a number that JSON has not"
        raise FrontmatterError(msg, "write it in quotes")
    return decoded


def _constructor() -> Any:
    """What makes values as JSON has them: a date is text."""
    from ruamel.yaml.constructor import SafeConstructor

    class Constructor(SafeConstructor):
        pass

    text = SafeConstructor.construct_yaml_str
    Constructor.add_constructor("tag:yaml.org,2002:timestamp", text)
    return Constructor


def _refuse_special(events: Iterable[Any]) -> None:
    """Raise FrontmatterError for what stands for something else, may be anything, or is nested too deeply."""
    depth = 0
    for event in events:  # one after the other, so that nothing is read behind the first fault
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        special = {
            "an anchor": getattr(event, "anchor", None),
            "a tag": getattr(event, "tag", None),
            "a merge": "<<" if getattr(event, "value", None) == "<<" else None,
            "something nested too deeply": depth if depth > _DEPTH else None,
        }
        for kind, found in special.items():
            if found is not None:
                what = f"{kind}, {str(found)!r}, which hosts may read differently"
                msg = f"the frontmatter of SKILL.md has {what}"
                raise FrontmatterError(msg, "write out what it stands for", event.start_mark.line + 2)


def faults_of(fields: Mapping[str, Any], folder: str) -> Iterator[tuple[str, str, str]]:
    """
    Yield what the format does not allow in a skill's fields: the field, what is wrong, and what to do.

    Args:
        fields:
            The frontmatter.

        folder:
            The name of its folder, which the skill has to have.
    """
    name, description = fields.get("name"), fields.get("description")
    if not name:
        yield "name", "it has no name", f"call it {_proposed(folder)!r}, as its folder"
    elif not isinstance(name, str) or len(name) > _NAME_CHARACTERS or not _NAME.fullmatch(name):
        fault = f"its name is {name!r}: a name has 1 to 64 of a-z, 0-9 and single hyphens between them"
        yield "name", fault, f"call it {_proposed(str(name or folder))!r}"
    elif name != folder:
        yield "name", f"its name is {name!r}, and its folder is {folder!r}", "give both the same name"
    if not isinstance(description, str) or not description.strip():
        fault = "it has no description, by which models choose it"
        yield "description", fault, "say what it does, and when to use it"
    for key in ("license", "compatibility", "allowed-tools"):
        if key in fields and not (isinstance(fields[key], str) and fields[key].strip()):
            yield key, f"its {key} is {describe(fields[key])}, and no text", f"write text, or leave {key} out"
    for key, most in _MOST_CHARACTERS.items():
        text = fields.get(key)
        if isinstance(text, str) and len(text) > most:
            fault = f"its {key} has {len(text):,} characters: at most {most:,} are taken"
            yield key, fault, "shorten it: what models need later goes into the text"
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, Mapping) or not all(isinstance(value, str) for value in metadata.values()):
        yield "metadata", "its metadata is no mapping of texts to texts", "write each value in quotes"


def _proposed(name: str) -> str:
    """A name that the format allows."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_NAME_CHARACTERS].strip("-") or "skill"
