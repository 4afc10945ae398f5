"""Checks: what a project wants found in its prompts, by ``promptkit check`` and by ``pytest --promptkit``."""

from collections.abc import Iterable

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.diagnostics import Diagnostic
from promptkit.language.messages import Workflow
from promptkit.lints.clients import lint_client, lint_workflow
from promptkit.lints.prompts import lint_first_message
from promptkit.lints.suppression import without_suppressed

__all__ = ["Checks"]


class Checks(Struct, frozen=True):
    """
    What is looked for, and what is passed over.

    Args:
        clients:
            The clients that the prompts are meant for, by the names that commands take.

        ignore:
            The codes of findings that are not reported.
    """

    clients: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def of_catalog(self, catalog: Catalog) -> tuple[Diagnostic, ...]:
        """
        Return all that is wrong with a catalog that was compiled with lints, and what clients lose of it.
        """
        if not self.clients:
            return catalog.diagnostics

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
        said = {(one.rule, one.message) for one in known}
        found = [*lint_first_message(prompt, workflow)]
        found += (one for client in self.clients for one in lint_workflow(client, prompt, workflow))
        return tuple(one for one in found if (one.rule, one.message) not in said)

    def kept(self, found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Return what is not ignored, by the configuration or on its line, each once."""
        return without_suppressed(one for one in dict.fromkeys(found) if one.rule.value not in self.ignore)
