"""
The catalog: compiled prompts and resources, immutable and sorted, ready to render and read.

The compiler makes it, and the server serves it; it knows neither.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from promptkit.catalog.completion import Completion
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.uri_templates import MAX_URI_LENGTH
from promptkit.errors.diagnostics import Diagnostic, Severity
from promptkit.errors.exceptions import UnknownPromptError, UnknownResourceError
from promptkit.errors.suggestions import nearest
from promptkit.language.messages import Workflow

if TYPE_CHECKING:  # most recipes hold neither resources nor skills, and few requests complete a value
    from promptkit.catalog.resources import CompiledResource
    from promptkit.catalog.skills import CompiledSkill
    from promptkit.catalog.uri_templates import Value
    from promptkit.language.documents import EmbeddedResource


class Catalog(Mapping[str, CompiledPrompt]):
    """
    Everything that is served, prompts by name and resources by URI, and the faults of the rest.

    Args:
        prompts:
            The compiled prompts; sorted by name, as clients list them.

        diagnostics:
            The errors and warnings of the compiler.

        resources:
            The compiled resources; sorted by URI template, as clients list them.

        skills:
            The compiled skills; sorted by URI, as clients list them.
    """

    __slots__ = (
        *("_by_name", "_by_uri", "_diagnostics", "_prompts", "_resources"),
        *("_skill_by_uri", "_skill_with", "_skills"),
    )

    def __init__(
        self,
        prompts: Iterable[CompiledPrompt] = (),
        diagnostics: Iterable[Diagnostic] = (),
        resources: "Iterable[CompiledResource]" = (),
        skills: "Iterable[CompiledSkill]" = (),
    ) -> None:
        self._prompts = tuple(sorted(prompts, key=attrgetter("name")))
        self._diagnostics = tuple(diagnostics)
        self._resources = tuple(sorted(resources, key=attrgetter("uri_template")))
        self._by_name = {prompt.name: prompt for prompt in self._prompts}
        self._by_uri = {resource.uri_template: resource for resource in self._resources}
        self._skills = tuple(sorted(skills, key=attrgetter("uri_template")))
        self._skill_by_uri = {skill.uri_template: skill for skill in self._skills}
        self._skill_with: dict[str, CompiledSkill] | None = None

    @property
    def prompts(self) -> tuple[CompiledPrompt, ...]:
        """The compiled prompts."""
        return self._prompts

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The errors and warnings of the compiler."""
        return self._diagnostics

    @property
    def resources(self) -> "tuple[CompiledResource, ...]":
        """The compiled resources."""
        return self._resources

    @property
    def skills(self) -> "tuple[CompiledSkill, ...]":
        """The compiled skills."""
        return self._skills

    @property
    def declared(self) -> "tuple[CompiledPrompt | CompiledResource, ...]":
        """The prompts, and then the resources: what takes arguments."""
        return *self.prompts, *self.resources

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """What the compiler found that keeps something from being served."""
        return tuple(one for one in self.diagnostics if one.severity is Severity.ERROR)

    @property
    def faulty(self) -> int:
        """How many files have such a fault."""
        return len({one.location.file for one in self.errors})

    def __getitem__(self, name: str) -> CompiledPrompt:
        """Raises `UnknownPromptError` if no prompt has this name."""
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
        """Return a catalog of the same prompts, resources and skills, with other diagnostics."""
        return Catalog(self.prompts, diagnostics, self.resources, self.skills)

    def visible_to(self, scopes: frozenset[str]) -> "Catalog":
        """
        Return what is left for a caller with *scopes*: all that needs no others. It may be this catalog.
        """
        if all(needed <= scopes for needed in self.requirements):
            return self
        prompts = tuple(prompt for prompt in self.prompts if prompt.scopes <= scopes)
        resources = tuple(resource for resource in self.resources if resource.scopes <= scopes)
        skills = tuple(skill for skill in self.skills if skill.scopes <= scopes)
        return Catalog(prompts, self.diagnostics, resources, skills)

    @property
    def scoped(self) -> "list[CompiledPrompt | CompiledResource | CompiledSkill]":
        """The prompts, resources and skills that need scopes."""
        return [item for item in (*self.declared, *self.skills) if item.scopes]

    @property
    def requirements(self) -> frozenset[frozenset[str]]:
        """The scopes that anything needs, together as it needs them."""
        return frozenset(item.scopes for item in self.scoped)

    def render(self, name: str, arguments: Mapping[str, Any] | None = None) -> Workflow:
        """
        Render the prompt called *name* with the arguments of a client.

        Raises:
            UnknownPromptError: If no prompt has this name.

            Exception: As `CompiledPrompt.render` does.
        """
        return self[name].render(arguments)

    def complete(
        self, name: str, argument: str, typed: str, chosen: Mapping[str, str] | None = None
    ) -> "Completion":
        """
        Complete the value of an argument, or of a variable.

        Args:
            name:
                The prompt, or the URI template of a resource. A URI without variables has no suggestions.

            argument:
                The argument. Without a completer, it has no suggestions.

            typed:
                The text that was typed so far.

            chosen:
                The values of other arguments, as far as they are known.

        Raises:
            UnknownPromptError: If no prompt has this name.

            UnknownResourceError: If no resource has this template.

            ArgumentsError: If it has no such argument.

            RuntimeError: If the completer is asynchronous and an event loop runs already.

            Exception: Whatever the author's completer raises.
        """
        completer = None
        if ":" not in name:  # as in every URI
            completer = self[name].arguments.completer(argument)
        elif (resource := self.template(name)).is_template:
            completer = resource.arguments.completer(argument)
        if completer is not None:
            return completer.complete(typed, chosen)

        return Completion()

    def resource(self, uri: str) -> "tuple[CompiledResource, Mapping[str, Value]]":
        """
        Find the resource at *uri*, and the values of its variables as the URI spells them.

        A resource with exactly this URI comes first, then the first template that matches.

        Raises:
            UnknownResourceError: If there is none.
        """
        if (found := self.find_resource(uri)) is not None:
            return found

        if len(uri) > MAX_URI_LENGTH:
            raise UnknownResourceError(uri, reason=f"a URI has at most {MAX_URI_LENGTH:,} characters")
        raise UnknownResourceError(uri, nearest(uri, self._by_uri))

    def find_prompt(self, name: str) -> CompiledPrompt | None:
        """Find the prompt called *name*; None if there is none."""
        return self._by_name.get(name)

    def find_template(self, uri_template: str) -> "CompiledResource | None":
        """Find what `template` does; None if there is none."""
        return self._by_uri.get(uri_template)

    def find_resource(self, uri: str) -> "tuple[CompiledResource, Mapping[str, Value]] | None":
        """Find what `resource` does; None if there is none, or the URI is too long."""
        found = self.find_fixed(uri)
        if found is not None and not found.is_template:
            return found, {}
        for resource in self.resources:
            if resource.is_template and (variables := resource.match(uri)) is not None:
                return resource, variables
        return None

    @property
    def skill_folders(self) -> list[str]:
        """The folders of the skills that are folders."""
        files = (os.path.split(skill.location.file) for skill in self._skills)
        return [folder for folder, name in files if name == "SKILL.md"]

    def find_skill(self, uri: str) -> "CompiledSkill | None":
        """Find the skill whose ``SKILL.md`` has a URI; None if there is none."""
        return self._skill_by_uri.get(uri)

    def find_skill_with(self, uri: str) -> "CompiledSkill | None":
        """Find the innermost skill that has a file, or a folder, at a URI; None if there is none."""
        if self._skill_with is None:  # nobody may ever ask
            outermost_first = sorted(self._skills, key=lambda skill: len(skill.folder))
            self._skill_with = {
                place: skill for skill in outermost_first for place in (*skill.resources, *skill.children)
            }
        return self._skill_with.get(uri)

    def find_fixed(self, uri: str) -> "CompiledResource | None":
        """Find what was declared with a URI, or is a file of a skill; None if there is none."""
        if (found := self._by_uri.get(uri)) is not None:
            return found
        skill = self.find_skill_with(uri) if self._skills else None
        return None if skill is None else skill.resources.get(uri)

    def template(self, uri_template: str) -> "CompiledResource":
        """
        Find the resource that was declared with *uri_template*.

        Raises:
            UnknownResourceError: If there is none.
        """
        try:
            return self._by_uri[uri_template]
        except KeyError:
            raise UnknownResourceError(uri_template, nearest(uri_template, self._by_uri)) from None

    def read(self, uri: str) -> "EmbeddedResource":
        """
        Read the resource at *uri*.

        Raises:
            UnknownResourceError: If there is none.

            Exception: As `CompiledResource.read` does.
        """
        resource, variables = self.resource(uri)
        return resource.read(uri, variables)

    @property
    def healthy(self) -> bool:
        """Whether the compiler found no errors."""
        return not self.errors
