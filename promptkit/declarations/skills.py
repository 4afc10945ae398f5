"""`@skill`: instructions for models, composed in Python."""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, overload

import attrs

from promptkit.catalog.skills import SKILL_FILE, CompiledSkill, skill_uri
from promptkit.declarations.base import PickledByReference
from promptkit.declarations.frontmatter import FrontmatterError, write_skill
from promptkit.declarations.options import check_scopes
from promptkit.declarations.signature import copied_attributes, read_summary
from promptkit.declarations.skill_files import SkillError, compiled_skill, paths_below, read_files
from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.filled_text import explain_filling
from promptkit.errors.rules import Rule
from promptkit.files.scratch import SpooledBytes, keep
from promptkit.language.files import folder_of, note_read
from promptkit.language.messages import Message
from promptkit.language.results import workflow_from
from promptkit.language.text import Text
from promptkit.language.validation import UnsendableError, check_optional_text, describe
from promptkit.types.functions import FORWARD

R = TypeVar("R")

#: What a file of a skill may be given as.
Source: TypeAlias = str | bytes | Text | Path | Callable[[], str | bytes | Text]

#: The flags of functions whose result is no text.
_NOT_PLAIN: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

_PREFIX: Final = re.compile(r"(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*(?:/(?!$)|$))*")


@attrs.frozen(slots=False, eq=False, repr=False)
class Skill(PickledByReference, Generic[R]):
    """
    Instructions that models read, and the files that belong to them.

    Calling it calls the function.
    """

    kind: ClassVar[Literal["skill"]] = "skill"

    function: Callable[[], R]
    name: str
    description: str | None
    prefix: str
    license: str | None
    compatibility: str | None
    metadata: Mapping[str, str]
    allowed_tools: str | Sequence[str]
    files: Mapping[str, Source | SpooledBytes]
    scopes: Collection[str]
    fault: SkillError | None = None

    def __attrs_post_init__(self) -> None:
        vars(self).update(copied_attributes(self.function))

    def __repr__(self) -> str:
        return f"<skill {self.name!r} at {self.location}>"

    def __call__(self) -> R:
        """Call the author's function."""
        return self.function()

    @property
    def location(self) -> Location:
        """Where the author defined it."""
        code = inspect.unwrap(self.function).__code__
        return Location(code.co_filename, code.co_firstlineno)

    @property
    def uri_template(self) -> str:
        """The URI of its ``SKILL.md``."""
        return skill_uri(self.prefix, self.name)

    def compile(self) -> tuple[CompiledSkill | None, tuple[Diagnostic, ...]]:
        """
        Return the skill as it is served, or None if it cannot be, and all its diagnostics.

        The author's function is called, and those that files are given as.
        """
        report = Report(f"skill {self.name!r}", self.location)
        check_scopes(self.scopes, report)
        if not _PREFIX.fullmatch(self.prefix):
            fault = f"its prefix {self.prefix!r} cannot stand in a URI"
            hint = "write words of letters, digits and hyphens, with '/' between them"
            report.add(Rule.BAD_SKILL, fault, hint)
        if report.found:
            return None, tuple(report.found)
        fields = self._fields()
        try:
            files = self._contents(fields)
        except SkillError as fault:
            report.add(fault.rule, str(fault), fault.hint)
            return None, tuple(report.found)
        compiled = compiled_skill(
            self.name, self.prefix, fields, files, report, scopes=frozenset(self.scopes)
        )
        return compiled, tuple(report.found)

    def _fields(self) -> dict[str, Any]:
        """The frontmatter, in the order in which it is written."""
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

    def _contents(self, fields: Mapping[str, Any]) -> dict[str, SpooledBytes]:
        """What all files hold. Raises SkillError."""
        if self.fault is not None:
            raise self.fault
        if SKILL_FILE in self.files:
            msg = f"{SKILL_FILE!r} is among its files, and the function says what is in that"
            raise SkillError(msg, "leave it out")
        files = {path: _content(path, source) for path, source in self.files.items()}
        try:
            files[SKILL_FILE] = keep(write_skill(fields, self._body()))
        except FrontmatterError as fault:
            raise SkillError(str(fault), fault.hint, Rule.BAD_SKILL) from None
        return files

    def _body(self) -> str:
        """The Markdown. Raises SkillError if the function fails, or returns something else."""
        result = _called(SKILL_FILE, self.function)
        try:
            said = workflow_from(result)
        except (UnsendableError, ValueError) as error:
            msg = f"its function returned what is no text: {error}"
            raise SkillError(msg, "return a string, or fragments", Rule.SKILL_FAILS) from None
        match said.messages:
            case [Message(role="user", content=Text(text=text))] if said.system is None:
                return text
        what = (
            f"{len(said.shown)} parts"
            if len(said.shown) > 1
            else "no text"
            if not said.shown
            else "no plain text"
        )
        msg = f"its function returned {what}, and a skill is one text"
        raise SkillError(msg, "return one string, or join the parts with blocks(...)", Rule.SKILL_FAILS)


def _called(path: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:  # an author's function may raise anything
        msg = f"the function of {path!r} raised {type(error).__name__}: {error}"
        hint = explain_filling(error) or "correct it: it is called once, without arguments"
        raise SkillError(msg, hint, Rule.SKILL_FAILS) from error


def _encoded(path: str, content: object) -> bytes:
    """The bytes of a file. Raises SkillError if *content* is neither text nor bytes."""
    if isinstance(content, bytes):
        return content
    if isinstance(content, str | Text):
        try:
            return str(content).encode()
        except UnicodeEncodeError:
            msg = f"{path!r} holds half of a surrogate pair"
            raise SkillError(msg, "remove it", Rule.SKILL_FAILS) from None
    msg = f"{path!r} is {describe(content)}"
    hint = "give it as text, bytes, a Path, or a function that returns text or bytes"
    raise SkillError(msg, hint, Rule.SKILL_FAILS)


def _content(path: str, source: "Source | SpooledBytes") -> SpooledBytes:
    if isinstance(source, SpooledBytes):
        return source
    return keep(_encoded(path, _called(path, source) if callable(source) else source))


def _read_paths(files: Mapping[str, Source], folder: Path) -> dict[str, "Source | SpooledBytes"]:
    """Read the files, and folders, that are given as paths below *folder*. Raises SkillError."""
    found = dict[str, Source | SpooledBytes]()
    for path, source in files.items():
        if not isinstance(source, Path):
            found[path] = source
            continue
        place = folder / source
        if not place.resolve().is_relative_to(folder):
            msg = f"{path!r} leads out of the folder of the recipe: {str(source)!r}"
            raise SkillError(msg, "keep what belongs to a skill beside its recipe")
        note_read(place.resolve())
        if place.is_dir():
            inner, entered = paths_below(str(place))
            within = {f"{path.rstrip('/')}/{name}".removeprefix("/"): one for name, one in inner.items()}
        else:
            within, entered = {path: str(place)}, []
        for read in (*within.values(), *entered):
            note_read(Path(read))
        found |= read_files(within, folder)
    return found


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
    license: str | None = None,  # noqa: A002 (the format calls it so)
    compatibility: str | None = None,
    metadata: Mapping[str, str] = MappingProxyType({}),
    allowed_tools: str | Sequence[str] = (),
    files: Mapping[str, Source] = MappingProxyType({}),
    scopes: Collection[str] = (),
) -> Skill[Any] | Callable[[Callable[[], Any]], Skill[Any]]:
    """
    Declare instructions that models read when they need them: ``@skill``, or ``@skill(license="MIT")``.

    What is decorated is a plain function without parameters that returns text, which becomes the Markdown of
    ``SKILL.md``. It is called once for all clients.

    Args:
        function:
            The function, where nothing else is said.

        name:
            What it is called: 1 to 64 of ``a-z``, digits and single hyphens; the function's name with hyphens
            if left out.

        description:
            What it does, and when to use it, in at most 1,024 characters; the docstring's first paragraph if
            left out.

        prefix:
            What precedes its name in URIs, such as ``"acme/billing"``.

        license:
            Under which license others may use it.

        compatibility:
            What it needs of its surroundings, in at most 500 characters.

        metadata:
            Other texts, by their keys.

        allowed_tools:
            What agents may use for it without asking: ``["Read", "Bash(git:*)"]``.

        files:
            Other files, by their paths in the skill: text, bytes, a function without parameters that returns
            these, or the path of a file or a folder beside the recipe.

        scopes:
            What a caller has to have, all of it. For others there is no such skill.

    Returns:
        The skill, or a decorator that makes it.

    Raises:
        TypeError: If what is decorated is no plain function without parameters, or an option is of another
            type.

    See Also:
        https://agentskills.io/specification
    """
    for option, value in (
        ("name", name),
        ("description", description),
        ("prefix", prefix),
        ("license", license),
        ("compatibility", compatibility),
    ):
        check_optional_text(option, value)
    pairs = metadata.items() if isinstance(metadata, Mapping) else ((None, None),)
    _check_texts("metadata", [text for pair in pairs for text in pair])
    _check_texts("allowed_tools", (allowed_tools,) if isinstance(allowed_tools, str) else allowed_tools)
    _check_texts("files", files if isinstance(files, Mapping) else None)

    def decorate(function: Callable[[], Any]) -> Skill[Any]:
        plain = inspect.unwrap(function)
        if not inspect.isfunction(plain) or plain.__code__.co_flags & _NOT_PLAIN:
            msg = f"@skill takes a plain function that returns text, not {describe(function)}"
            raise TypeError(msg)
        if parameters := list(inspect.signature(plain, **FORWARD).parameters):
            named = ", ".join(map(repr, parameters))
            msg = f"@skill takes no parameters, and this has {named}: only prompts are asked for values"
            raise TypeError(msg)
        fault = None
        try:
            read = _read_paths(files, folder_of(plain.__code__.co_filename))
        except SkillError as error:
            fault, read = error, {}
        return Skill(
            function,
            name or plain.__name__.replace("_", "-").strip("-"),
            description or read_summary(function.__doc__),
            prefix.strip("/"),
            license,
            compatibility,
            metadata,
            allowed_tools,
            read,
            scopes,
            fault,
        )

    return decorate if function is None else decorate(function)


def _check_texts(option: str, texts: object) -> None:
    if not isinstance(texts, Iterable) or not all(isinstance(text, str) for text in texts):
        takes = {"metadata": "a dict of texts", "allowed_tools": "a list of texts"}
        msg = f"{option} takes {takes.get(option, 'a dict, by the paths of the files')}"
        raise TypeError(msg)
