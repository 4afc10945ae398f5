"""What cases say otherwise than at the last commit, for pages that ask again and again."""

from collections.abc import Sequence
from threading import Lock

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.cli.differences.renderings import compared_renderings
from promptkit.cli.differences.revisions import Repository
from promptkit.cli.differences.sides import key_of
from promptkit.cli.differences.word_diff import Line, TextChange, changed_words, text_changes
from promptkit.errors.exceptions import PromptkitError

__all__ = ["SinceCommit"]

_REVISION = "HEAD"


class SinceCommit:
    """
    Compares the recipes with those of the last commit. Any thread may use it.

    Both sides have processes of their own, which run once for each version of the recipes.

    Args:
        targets:
            What is compared.
    """

    def __init__(self, targets: Sequence[str]) -> None:
        self._targets = targets
        self._lock = Lock()
        self._known: tuple[int, str] | None = None
        self._found: Sequence[TextChange] | PromptkitError = ()

    def since_commit(self, prompt: CompiledPrompt, version: int) -> list[tuple[str, str | None, str | None]]:
        """
        Return the cases of a prompt that say something else: each name, what was said, and what is said.

        Raises:
            PromptkitError: If there is no commit, or it cannot be loaded.
        """
        key = key_of(prompt)
        return [(one.case, one.old, one.new) for one in self._of(version) if one.owner == key]

    def words(self, old: str, new: str) -> list[Line]:
        """Return the lines that differ. Raises OSError if there is no git."""
        return changed_words(old, new)

    def _of(self, version: int) -> Sequence[TextChange]:
        with self._lock:
            repository = Repository(whose="this comparison")
            commit = repository.commit(_REVISION)
            if self._known != (version, commit):
                self._known = version, commit
                try:
                    self._found = self._compared(repository, commit)
                except PromptkitError as error:  # asked again, it would take as long to fail
                    self._found = error.with_traceback(None)
            if isinstance(self._found, PromptkitError):
                raise self._found
            return self._found

    def _compared(self, repository: Repository, commit: str) -> list[TextChange]:
        old, new, _ = compared_renderings(repository, (commit, None), self._targets)
        return list(text_changes(old, new, ()))
