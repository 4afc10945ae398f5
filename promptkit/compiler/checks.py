"""Checks: what a project wants found in its prompts, by ``promptkit check`` and by ``pytest --promptkit``."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.compiler.configuration import Configuration
from promptkit.errors.diagnostics import Diagnostic, Rule
from promptkit.language.messages import Workflow

__all__ = ["Checks", "configured_checks", "configured_ignore", "known_clients"]

# Lints are imported where they are used: most commands use none.


class Checks(Struct, frozen=True):
    """
    What is looked for, and what is passed over.

    Args:
        clients:
            The clients that the prompts are meant for, by the names that commands take.

        ignore:
            The rules of findings that are not reported.
    """

    clients: tuple[str, ...] = ()
    ignore: frozenset[Rule] = frozenset()

    def of_catalog(self, catalog: Catalog) -> tuple[Diagnostic, ...]:
        """
        Return all that is wrong with a catalog that was compiled with lints, and what clients lose of it.
        """
        if not self.clients:
            return catalog.diagnostics
        from promptkit.compiler.lints.clients import lint_client

        lost = (found for client in self.clients for found in lint_client(client, catalog))
        return (*catalog.diagnostics, *lost)

    def of_rendering(
        self, prompt: CompiledPrompt, workflow: Workflow, known: Iterable[Diagnostic] = ()
    ) -> tuple[Diagnostic, ...]:
        """
        Return all that is wrong with a rendering, and what clients lose of it.

        Args:
            prompt:
                The prompt.

            workflow:
                What it has rendered to.

            known:
                What was found in sources, which show a better place for the same.
        """
        from promptkit.compiler.lints.clients import lint_workflow
        from promptkit.compiler.lints.prompts import lint_first_message

        said = {(one.rule, one.message) for one in known}
        found = [*lint_first_message(prompt, workflow)]
        found += (one for client in self.clients for one in lint_workflow(client, prompt, workflow))
        return tuple(one for one in found if (one.rule, one.message) not in said)

    def kept(self, found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """
        Return what is not ignored, by the configuration or on its line, each once.
        """
        from promptkit.compiler.lints.suppressions import without_suppressed

        return without_suppressed(one for one in dict.fromkeys(found) if one.rule not in self.ignore)


def configured_checks(configuration: Configuration) -> Checks:
    """
    Return what a configuration wants checked.
    """
    return Checks(known_clients(configuration.clients), configured_ignore(configuration))


def configured_ignore(configuration: Configuration) -> frozenset[Rule]:
    """
    Return the rules that a configuration ignores.
    """
    if not configuration.ignore:
        return frozenset()
    from promptkit.compiler.lints.suppressions import rule_of

    return frozenset(map(rule_of, configuration.ignore))


def known_clients(names: Sequence[str]) -> tuple[str, ...]:
    """
    Return the names of clients, each once.

    Raises:
        UnknownClient: If there is no such client; it is a ValueError.
    """
    if not names:
        return ()
    from promptkit.compiler.lints.client_profiles import client_of

    for name in names:
        client_of(name)
    return tuple(dict.fromkeys(names))
