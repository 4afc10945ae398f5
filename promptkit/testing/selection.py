"""Which recipes a run of ``pytest --promptkit`` tests: those that ``promptkit check`` looks at."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from promptkit.compiler.checks import Checks, configured_checks
from promptkit.compiler.configuration import Configuration, find_configuration, find_target
from promptkit.compiler.loading.recipe_files import holds_recipes, is_recipe, mentions_prompts
from promptkit.compiler.loading.targets import split_target
from promptkit.errors.exceptions import LoadError, PromptkitError

__all__ = ["add_targets", "checks_of", "target_of", "target_with"]


def target_of(config: pytest.Config) -> str:
    """
    Return the target of this run of pytest: that of the configuration, or a folder of recipes.

    It is looked for where pytest was started, and then at pytest's own root.

    Raises:
        PromptkitError: If there is none, or the configuration cannot be understood.
    """
    try:
        return find_target(config.invocation_params.dir)
    except LoadError:
        return find_target(config.rootpath)


def checks_of(config: pytest.Config) -> Checks:
    """
    Return what the configuration wants checked, which is looked for as in `target_of`.

    Raises:
        ConfigurationError: If it cannot be understood.
    """
    return configured_checks(_configuration(config))


def add_targets(config: pytest.Config) -> None:
    """
    Note the targets of this run, and have pytest look through that of the configuration.

    If the command line names files or folders, these are the targets, and what is the target below them.

    Raises:
        UsageError: If there is no target, it is a module, or the configuration cannot be understood.
    """
    try:
        checks_of(config)
        targets = list(_named(config)) if _is_named(config) else [_target_in_files(config)]
    except PromptkitError as error:
        raise pytest.UsageError(str(error)) from None
    config.option.promptkit_targets = targets
    if not _is_named(config):
        place = _place(targets[0])
        looked_at = [(config.invocation_params.dir / argument).resolve() for argument in config.args]
        if not any(place.is_relative_to(path) for path in looked_at):
            config.args.append(str(place))


def target_with(path: Path, config: pytest.Config) -> str | None:
    """
    Return the target of this run that *path* belongs to: as the file that it is, or in or below its folder.
    """
    path = path.resolve()
    targets: list[str] = config.option.promptkit_targets
    return next((target for target in targets if path.is_relative_to(_place(target))), None)


def _configuration(config: pytest.Config) -> Configuration:
    found = find_configuration(config.invocation_params.dir)
    return found if found.file else find_configuration(config.rootpath)


def _is_named(config: pytest.Config) -> bool:
    return config.args_source is pytest.Config.ArgsSource.ARGS


def _target_in_files(config: pytest.Config) -> str:
    target = target_of(config)
    if not _place(target).exists():
        msg = f"--promptkit takes files: {target!r} is a module; name the folder that it is in"
        raise pytest.UsageError(msg)
    return str(Path(target).resolve())


def _named(config: pytest.Config) -> Iterator[str]:
    """Yield the targets that the command line names, and those of the projects in its folders."""
    for argument in config.args:
        path = (config.invocation_params.dir / argument.partition("::")[0]).resolve()
        if path.is_dir():
            found = path.parent
            with suppress(LoadError):  # there is none
                found = Path(find_target(path)).resolve()
                yield str(found)
            if not found.is_relative_to(path) and holds_recipes(str(path)):
                yield str(path)
        elif is_recipe(path.name) and mentions_prompts(str(path)):
            yield str(path)


def _place(target: str) -> Path:
    """Return the file or the folder of a target, without the object in it."""
    return Path(split_target(target)[0]).resolve()
