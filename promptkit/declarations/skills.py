"""`@skill`: instructions for models, composed in Python."""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, overload

import attrs

from promptkit.catalog.cases import SkillCase
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill, skill_uri
from promptkit.declarations.base import Decorated, locate_caller
from promptkit.declarations.options import check_scopes
from promptkit.declarations.signature import read_summary, require_plain_function
from promptkit.declarations.skill_files import compile_skill, paths_below, read_files
from promptkit.declarations.skill_frontmatter import SkillError, format_skill
from promptkit.errors.diagnostics import Diagnostic, Report
from promptkit.errors.rules import Rule
from promptkit.files.reading import HashedBytes
from promptkit.language.files import folder_of, record_read
from promptkit.language.messages import Message
from promptkit.language.results import convert_result
from promptkit.language.text import Text
from promptkit.language.validation import UnsendableError, check_optional_text, describe, optional_text
from promptkit.types.functions import FORWARD_REFERENCES

R = TypeVar("R")

#: The content of a skill's file, or its source.
Source: TypeAlias = str | bytes | Text | Path | Callable[[], str | bytes | Text]

_PREFIX: Final = re.compile(r"(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*(?:/(?!$)|$))*")


@attrs.frozen(slots=False, eq=False, repr=False)
class Skill(Decorated, Generic[R]):
    """
    Instructions for models, and the files that belong to them.

    Calling the skill calls the function.
    """

    kind: ClassVar[Literal["skill"]] = "skill"

    function: Callable[[], R]
    name: str = attrs.field(validator=optional_text)
    description: str | None = attrs.field(validator=optional_text)
    prefix: str
    license: str | None = attrs.field(validator=optional_text)
    compatibility: str | None = attrs.field(validator=optional_text)
    metadata: Mapping[str, str]
    allowed_tools: str | Sequence[str]
    files: Mapping[str, Source | HashedBytes]
    scopes: Collection[str]
    error: SkillError | None = None

    def __repr__(self) -> str:
        return f"<skill {self.name!r} at {self.location}>"

    def __call__(self) -> R:
        """Call the author's function."""
        return self.function()

    @property
    def cases(self) -> tuple[SkillCase, ...]:
        """The saved requests, in the order of definition."""
        return tuple(case for case in self.saved() if isinstance(case, SkillCase))

    def case(self, request: str, /, *, wanted: bool = True) -> SkillCase:
        """
        Save a request for which models should, or should not, choose the skill.

        ``promptkit check`` ranks the descriptions of all skills for the request.

        Args:
            request:
                The text that a user writes, as in ``"ship it"``.

            wanted:
                Whether the skill should be chosen.

        Returns:
            The case.

        Raises:
            TypeError: If the request is not text.
        """
        if not isinstance(request, str) or not request.strip():
            msg = f"case({request!r}): pass the text that a user writes, for example case('ship it')"
            raise TypeError(msg)
        location, module = locate_caller()
        case = SkillCase(request, location, lambda: request, module, wanted=wanted)
        self.saved.add(case)
        return case

    @property
    def uri_template(self) -> str:
        """The URI of the skill's ``SKILL.md``."""
        return skill_uri(self.prefix, self.name)

    def compile(self) -> tuple[CompiledSkill | None, tuple[Diagnostic, ...]]:
        """
        Return the skill as it is served (None if it has errors) and all diagnostics.

        This calls the author's function, and the functions that return the contents of files.
        """
        report = Report(f"skill {self.name!r}", self.location)
        check_scopes(self.scopes, report)
        if not _PREFIX.fullmatch(self.prefix):
            message = f"its prefix {self.prefix!r} cannot be part of a URI"
            hint = "use letters, digits and hyphens, with '/' between the parts"
            report.add(Rule.BAD_SKILL, message, hint)
        if report.diagnostics:
            return None, tuple(report.diagnostics)
        fields = self._fields()
        try:
            files = self._contents(fields)
        except SkillError as error:
            report.add(error.rule, str(error), error.hint)
            return None, tuple(report.diagnostics)
        scopes = frozenset(self.scopes)
        compiled = compile_skill(
            self.name, self.prefix, fields, files, report, scopes=scopes, saved=self.saved
        )
        return compiled, tuple(report.diagnostics)

    def _fields(self) -> dict[str, Any]:
        """Return the nonempty fields of the frontmatter, in the order in which to write them."""
        tools = self.allowed_tools
        fields = {
            "name": self.name,
            "description": self.description,
            "license": self.license,
            "compatibility": self.compatibility,
            "allowed-tools": tools if isinstance(tools, str) else " ".join(tools),
            "metadata": dict(self.metadata),
        }
        return {key: value for key, value in fields.items() if value}

    def _contents(self, fields: Mapping[str, Any]) -> dict[str, HashedBytes]:
        """Return the contents of all files by path. Raises SkillError."""
        if self.error is not None:
            raise self.error
        if SKILL_FILE in self.files:
            msg = f"{SKILL_FILE!r} is among its files, but the function returns the text of that file"
            raise SkillError(msg, "remove it from files=")
        files = {path: _content_of(path, source) for path, source in self.files.items()}
        files[SKILL_FILE] = HashedBytes(format_skill(fields, self._body()))
        return files

    def _body(self) -> str:
        """Return the Markdown. Raises SkillError if the function fails, or does not return text."""
        result = _call(SKILL_FILE, self.function)
        try:
            workflow = convert_result(result)
        except (UnsendableError, ValueError) as error:
            msg = f"its function did not return text: {error}"
            raise SkillError(msg, "return a string, or fragments", Rule.SKILL_FAILS) from None
        match workflow.messages:
            case [Message(role="user", content=Text(text=text))] if workflow.system is None:
                return text
        count = len(workflow.shown)
        description = f"{count} parts" if count > 1 else "no plain text" if count else "no text"
        msg = f"its function must return one text, but it returned {description}"
        raise SkillError(msg, "return one string, or join the parts with blocks(...)", Rule.SKILL_FAILS)


def _call(path: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:  # an author's function may raise anything
        msg = f"the function of {path!r} raised {type(error).__name__}: {error}"
        hint = "fix the function; it is called once, without arguments"
        raise SkillError(msg, hint, Rule.SKILL_FAILS) from error


def _encode(path: str, content: object) -> bytes:
    """Return the bytes of a file. Raises SkillError if *content* is neither text nor bytes."""
    if isinstance(content, bytes):
        return content
    if isinstance(content, str | Text):
        try:
            return str(content).encode()
        except UnicodeEncodeError:
            msg = f"{path!r} contains an unpaired surrogate"
            raise SkillError(msg, "remove it", Rule.SKILL_FAILS) from None
    msg = f"the content of {path!r} is {describe(content)}"
    hint = "pass text, bytes, a Path, or a function that returns text or bytes"
    raise SkillError(msg, hint, Rule.SKILL_FAILS)


def _content_of(path: str, source: Source | HashedBytes) -> HashedBytes:
    if isinstance(source, HashedBytes):
        return source
    return HashedBytes(_encode(path, _call(path, source) if callable(source) else source))


def _read_paths(files: Mapping[str, Source], folder: Path) -> dict[str, Source | HashedBytes]:
    """
    Return *files* with each `Path` (relative to *folder*) replaced by the contents of the files at that path.

    Raises SkillError.
    """
    contents = dict[str, Source | HashedBytes]()
    for path, source in files.items():
        if not isinstance(source, Path):
            contents[path] = source
            continue
        location = folder / source
        if not location.resolve().is_relative_to(folder):
            msg = f"the source of {path!r} is outside the recipe's folder: {str(source)!r}"
            raise SkillError(msg, "keep the files of a skill next to its recipe")
        record_read(location.resolve())
        if location.is_dir():
            files_below, folders = paths_below(str(location))
            paths = {
                f"{path.rstrip('/')}/{name}".removeprefix("/"): file for name, file in files_below.items()
            }
        else:
            paths, folders = {path: str(location)}, []
        for path_read in (*paths.values(), *folders):
            record_read(Path(path_read))
        contents |= read_files(paths, folder)
    return contents


@overload
def skill(function: Callable[[], R], /) -> Skill[R]: ...


@overload
def skill(
    *,
    name: str | None = None,
    description: str | None = None,
    prefix: str = "",
    license: str | None = None,
    compatibility: str | None = None,
    metadata: Mapping[str, str] = ...,
    allowed_tools: str | Sequence[str] = (),
    files: Mapping[str, Source] = ...,
    scopes: Collection[str] = (),
) -> Callable[[Callable[[], R]], Skill[R]]: ...


def skill(  # noqa: PLR0913 (each is an option for authors)
    function: Callable[[], Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    prefix: str = "",
    license: str | None = None,  # noqa: A002 (the field's name in the format)
    compatibility: str | None = None,
    metadata: Mapping[str, str] = MappingProxyType({}),
    allowed_tools: str | Sequence[str] = (),
    files: Mapping[str, Source] = MappingProxyType({}),
    scopes: Collection[str] = (),
) -> Skill[Any] | Callable[[Callable[[], Any]], Skill[Any]]:
    """
    Declare instructions that models read on demand, with ``@skill`` or ``@skill(license="MIT")``.

    The decorated function has no parameters and returns text, which becomes the Markdown of ``SKILL.md``. It
    is called once for all clients.

    Args:
        function:
            The function, if the decorator is used without options.

        name:
            The skill's name: 1 to 64 letters ``a-z``, digits and single hyphens. Defaults to the function's
            name with hyphens.

        description:
            The skill's purpose and when to use it, in at most 1,024 characters. Defaults to the first
            paragraph of the docstring.

        prefix:
            The part of the skill's URI before the name, such as ``"acme/billing"``.

        license:
            The skill's license.

        compatibility:
            Requirements for the environment, in at most 500 characters.

        metadata:
            Additional strings, keyed by name.

        allowed_tools:
            Tools that agents can use for the skill without asking: ``["Read", "Bash(git:*)"]``.

        files:
            Additional files, keyed by path in the skill. A value is text, bytes, a function without
            parameters that returns either, or a `Path` to a file or folder in the recipe's folder.

        scopes:
            Scopes that a caller needs; all are required. For other callers, the skill does not exist.

    Returns:
        The skill, or a decorator that creates a skill.

    Raises:
        TypeError: If the decorated object is not a plain function without parameters, or an option has the
            wrong type.

    See Also:
        https://agentskills.io/specification
    """
    for option, text in (("name", name), ("description", description), ("prefix", prefix)):
        check_optional_text(option, text)
    pairs = metadata.items() if isinstance(metadata, Mapping) else ((None, None),)
    _check_texts("metadata", [text for pair in pairs for text in pair])
    _check_texts("allowed_tools", (allowed_tools,) if isinstance(allowed_tools, str) else allowed_tools)
    _check_texts("files", files if isinstance(files, Mapping) else None)

    def decorate(function: Callable[[], Any]) -> Skill[Any]:
        plain = require_plain_function(function, "@skill", "text")
        if parameters := list(inspect.signature(plain, **FORWARD_REFERENCES).parameters):
            named = ", ".join(map(repr, parameters))
            msg = (
                f"a skill's function cannot have parameters, but this one has {named}: remove them, or use "
                "@prompt"
            )
            raise TypeError(msg)
        file_error = None
        try:
            contents = _read_paths(files, folder_of(plain.__code__.co_filename))
        except SkillError as error:
            file_error, contents = error, {}
        return Skill(
            function,
            name or plain.__name__.replace("_", "-").strip("-"),
            description or read_summary(function.__doc__),
            prefix.strip("/"),
            license,
            compatibility,
            metadata,
            allowed_tools,
            contents,
            scopes,
            file_error,
        )

    return decorate if function is None else decorate(function)


def _check_texts(option: str, texts: object) -> None:
    if not isinstance(texts, Iterable) or not all(isinstance(text, str) for text in texts):
        expected = {"metadata": "a dict of strings", "allowed_tools": "a list of strings"}
        msg = f"{option} must be {expected.get(option, 'a dict of contents by path')}"
        raise TypeError(msg)
