"""
The catalog: compiled prompts, resources and skills, immutable and sorted.

The compiler creates it and the server serves it; it depends on neither.
"""

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from promptkit.catalog.completion import Completion
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.resources import CompiledResource
from promptkit.catalog.skills import CompiledSkill
from promptkit.catalog.uri_templates import MAX_URI_LENGTH, Value, normalize_uri
from promptkit.errors.diagnostics import Diagnostic, Severity
from promptkit.errors.exceptions import UnknownPromptError, UnknownResourceError
from promptkit.errors.suggestions import nearest
from promptkit.language.documents import EmbeddedResource
from promptkit.language.messages import Workflow


class Catalog(Mapping[str, CompiledPrompt]):
    """
    A mapping of the served prompts by name, with the resources, the skills and the compiler's diagnostics.

    Args:
        prompts:
            The compiled prompts, in any order.

        diagnostics:
            The errors and warnings of the compiler.

        resources:
            The compiled resources, in any order.

        skills:
            The compiled skills, in any order.
    """

    __slots__ = (
        *("_by_name", "_by_uri", "_diagnostics", "_fixed", "_prompts", "_resources"),
        *("_skill_by_uri", "_skill_by_inner_uri", "_skills"),
    )

    def __init__(
        self,
        prompts: Iterable[CompiledPrompt] = (),
        diagnostics: Iterable[Diagnostic] = (),
        resources: Iterable[CompiledResource] = (),
        skills: Iterable[CompiledSkill] = (),
    ) -> None:
        self._prompts = tuple(sorted(prompts, key=attrgetter("name")))
        self._diagnostics = tuple(diagnostics)
        self._resources = tuple(sorted(resources, key=attrgetter("uri_template")))
        self._by_name = {prompt.name: prompt for prompt in self._prompts}
        self._by_uri = {resource.uri_template: resource for resource in self._resources}
        self._fixed = {
            normalize_uri(resource.uri_template): resource
            for resource in self._resources
            if not resource.is_template
        }
        self._skills = tuple(sorted(skills, key=attrgetter("uri_template")))
        self._skill_by_uri = {skill.uri_template: skill for skill in self._skills}
        self._skill_by_inner_uri: dict[str, CompiledSkill] | None = None

    @property
    def prompts(self) -> tuple[CompiledPrompt, ...]:
        """The compiled prompts, sorted by name."""
        return self._prompts

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The errors and warnings of the compiler."""
        return self._diagnostics

    @property
    def resources(self) -> tuple[CompiledResource, ...]:
        """The compiled resources, sorted by URI template."""
        return self._resources

    @property
    def skills(self) -> tuple[CompiledSkill, ...]:
        """The compiled skills, sorted by URI."""
        return self._skills

    @property
    def declared(self) -> tuple[CompiledPrompt | CompiledResource, ...]:
        """The prompts followed by the resources: everything that takes arguments."""
        return *self.prompts, *self.resources

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The compiler's errors, each of which keeps a declaration or a file from being served."""
        return tuple(diagnostic for diagnostic in self.diagnostics if diagnostic.severity is Severity.ERROR)

    @property
    def invalid_file_count(self) -> int:
        """The number of files with errors."""
        return len({error.location.file for error in self.errors})

    def __getitem__(self, name: str) -> CompiledPrompt:
        """Return the prompt called *name*. Raises `UnknownPromptError` if there is none."""
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownPromptError(name, nearest(name, self._by_name)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self.prompts)

    def __eq__(self, other: object) -> bool:
        return self._parts == other._parts if isinstance(other, Catalog) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        return f"Catalog{self._parts!r}"

    @property
    def _parts(self) -> tuple[object, ...]:
        return self.prompts, self.diagnostics, self.resources, self.skills

    def with_diagnostics(self, diagnostics: Iterable[Diagnostic]) -> "Catalog":
        """
        Return a catalog of the same prompts, resources and skills, with *diagnostics* instead of its own.
        """
        return Catalog(self.prompts, diagnostics, self.resources, self.skills)

    def visible_to(self, scopes: frozenset[str]) -> "Catalog":
        """Return the catalog that a caller with *scopes* sees: without items that require other scopes."""
        if all(needed <= scopes for needed in self.requirements):
            return self
        prompts = tuple(prompt for prompt in self.prompts if prompt.scopes <= scopes)
        resources = tuple(resource for resource in self.resources if resource.scopes <= scopes)
        skills = tuple(skill for skill in self.skills if skill.scopes <= scopes)
        return Catalog(prompts, self.diagnostics, resources, skills)

    @property
    def scoped(self) -> list[CompiledPrompt | CompiledResource | CompiledSkill]:
        """The prompts, resources and skills that require scopes."""
        return [item for item in (*self.declared, *self.skills) if item.scopes]

    @property
    def requirements(self) -> frozenset[frozenset[str]]:
        """The distinct sets of scopes that items require."""
        return frozenset(item.scopes for item in self.scoped)

    def render(self, name: str, arguments: Mapping[str, Any] | None = None) -> Workflow:
        """
        Render the prompt called *name* with the arguments that a client sent.

        Raises:
            UnknownPromptError: If no prompt has this name.

            Exception: Any exception that `CompiledPrompt.render` raises.
        """
        return self[name].render(arguments)

    def complete(
        self, name: str, argument: str, typed: str, chosen: Mapping[str, str] | None = None
    ) -> Completion:
        """
        Complete the value of a prompt's argument, or of a resource's variable.

        Args:
            name:
                The prompt, or the URI template of a resource. A URI without variables has no suggestions.

            argument:
                The argument or variable. If it has no completer, there are no suggestions.

            typed:
                The text typed so far.

            chosen:
                The values that are already chosen for other arguments.

        Raises:
            UnknownPromptError: If no prompt has this name.

            UnknownResourceError: If no resource has this template.

            ArgumentsError: If the prompt or resource has no such argument.

            RuntimeError: If the completer is asynchronous and an event loop is running.

            Exception: Any exception from the author's completer.
        """
        completer = None
        if ":" not in name:  # every URI contains a colon
            completer = self[name].arguments.completer(argument)
        elif (resource := self.template(name)).is_template:
            completer = resource.arguments.completer(argument)
        if completer is not None:
            return completer.complete(typed, chosen)

        return Completion()

    def resource(self, uri: str) -> tuple[CompiledResource, Mapping[str, Value]]:
        """
        Return the resource at *uri*, and the values of its variables as they appear in the URI.

        A resource with exactly this URI takes precedence over templates. If several templates match, the
        first one is used.

        Raises:
            UnknownResourceError: If no resource matches.
        """
        if (match := self.find_resource(uri)) is not None:
            return match

        if len(uri) > MAX_URI_LENGTH:
            raise UnknownResourceError(uri, reason=f"a URI can have at most {MAX_URI_LENGTH:,} characters")
        raise UnknownResourceError(uri, nearest(uri, self._by_uri))

    def find_prompt(self, name: str) -> CompiledPrompt | None:
        """Return the prompt called *name*, or None."""
        return self._by_name.get(name)

    def find_template(self, uri_template: str) -> CompiledResource | None:
        """Return the resource that was declared with *uri_template*, or None."""
        return self._by_uri.get(uri_template)

    def find_resource(self, uri: str) -> tuple[CompiledResource, Mapping[str, Value]] | None:
        """Like `resource`, but return None if no resource matches or the URI is too long."""
        if (fixed := self.find_fixed_resource(uri)) is not None:
            return fixed, {}
        for resource in self.resources:
            if resource.is_template and (variables := resource.match(uri)) is not None:
                return resource, variables
        return None

    def find_skill(self, uri: str) -> CompiledSkill | None:
        """Return the skill whose ``SKILL.md`` has this URI, or None."""
        return self._skill_by_uri.get(normalize_uri(uri))

    def find_skill_containing(self, uri: str) -> CompiledSkill | None:
        """Return the innermost skill that contains the file or folder at this normalized URI, or None."""
        if self._skill_by_inner_uri is None:  # built on first use
            outermost_first = sorted(self._skills, key=lambda skill: len(skill.folder))
            self._skill_by_inner_uri = {
                item: skill for skill in outermost_first for item in (*skill.resources, *skill.children)
            }
        return self._skill_by_inner_uri.get(uri)

    def find_fixed_resource(self, uri: str) -> CompiledResource | None:
        """
        Return the resource with this URI: a declared one, or a file of a skill; None if there is none.

        The URI can contain unescaped characters and lowercase escapes.
        """
        uri = normalize_uri(uri)
        if (resource := self._fixed.get(uri)) is not None:
            return resource
        skill = self.find_skill_containing(uri) if self._skills else None
        return None if skill is None else skill.resources.get(uri)

    def template(self, uri_template: str) -> CompiledResource:
        """
        Return the resource that was declared with *uri_template*.

        Raises:
            UnknownResourceError: If no resource was declared with this template.
        """
        try:
            return self._by_uri[uri_template]
        except KeyError:
            raise UnknownResourceError(uri_template, nearest(uri_template, self._by_uri)) from None

    def read(self, uri: str) -> EmbeddedResource:
        """
        Read the resource at *uri*.

        Raises:
            UnknownResourceError: If no resource matches.

            Exception: Any exception that `CompiledResource.read` raises.
        """
        resource, variables = self.resource(uri)
        return resource.read(uri, variables)

    @property
    def healthy(self) -> bool:
        """Whether the compiler reported no errors."""
        return not self.errors
