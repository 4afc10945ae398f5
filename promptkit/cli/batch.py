"""``promptkit batch``: render a prompt for every row of a table, for a vendor's batch interface."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec

from promptkit import compiler
from promptkit.batch.chunks import CHARACTERS_A_TOKEN, ChunkRenderer, RenderedChunk
from promptkit.batch.columns import ColumnError
from promptkit.batch.joining import joined
from promptkit.batch.lines import LINE_FORMATS
from promptkit.batch.renderer import Renderer
from promptkit.batch.rows import RowsError, Table, open_table
from promptkit.batch.shards import Checkpoint, Shards, Tally, UnfinishedBatch
from promptkit.batch.writing import Keys, rendered, write
from promptkit.cli import Exit
from promptkit.cli.absence import explain_absence
from promptkit.cli.arguments import ArgumentSyntaxError, current_folder, read_arguments
from promptkit.cli.diagnostics import console_on, counted, fail, print_error
from promptkit.cli.loading import load_recipes
from promptkit.cli.output import Output
from promptkit.compiler.prompts import Prompt
from promptkit.errors.exceptions import ArgumentErrors
from promptkit.errors.regular_files import file_stamp
from promptkit.exports import UnfitAnswer
from promptkit.language.messages import workflow_of
from promptkit.standard_error import stderr_stream
from promptkit.version import VERSION

__all__ = ["run"]

_RESUME: Final = "go on with --resume"


def run(options: Namespace, output: Output) -> int:
    """
    Write the requests, and what is wrong with the other rows; or join results with rows.

    Raises:
        LoadError: If there is nothing at the target.
    """
    try:
        if options.join:
            return _join(options, output)
        recipes = load_recipes(options.targets)
        prompt = next((one for one in recipes.prompts if one.options.name == options.name), None)
        if prompt is None or prompt.compile()[0] is None:
            return explain_absence(options, recipes, compiler.compile(recipes).diagnostics)
        with open_table(options.rows) as table:
            return _Batch(options, prompt, table).write(output)
    except (RowsError, ColumnError, UnfinishedBatch, ArgumentSyntaxError) as error:
        return fail(str(error), Exit.USAGE)
    except (ArgumentErrors, UnfitAnswer, BrokenProcessPool, OSError) as error:
        return fail(_reason(error), Exit.FAULTY)


def _reason(error: Exception) -> str:
    if isinstance(error, BrokenProcessPool):
        return f"a process of --workers has ended: {_RESUME}"
    if isinstance(error, OSError):
        place = f"{error.filename!r}: " if error.filename else ""
        return f"{place}{error.strerror or error}; what was written stays: {_RESUME}"
    return str(error)


class _Batch:
    """What is rendered, and where the requests go."""

    def __init__(self, options: Namespace, prompt: Prompt[..., Any], table: Table) -> None:
        self._options, self._table, self._form = options, table, LINE_FORMATS[options.vendor]
        self._check_model()
        values = read_arguments(prompt.compiled.arguments, options.set, current_folder())
        self._renderer = Renderer(
            prompt,
            options.vendor,
            model=options.model,
            columns=dict(options.map),
            values=values,
            fields={**({"lossy": True} if options.lossy else {}), **dict(options.field)},
            key=options.key,
        )
        matched = self._renderer.matched
        if table.columns is not None:
            matched.check(table.columns, options.key)
        self._renderer.body(workflow_of((), answer=prompt.options.answer))  # raises what no row could mend

    def _check_model(self) -> None:
        model, form = self._options.model, self._form
        if model is None and form.says_model:
            self._options.refuse("name the model with --model: each request says it")
        if model and not any(part in model for part in form.takes_model):
            self._options.refuse(f"{self._options.vendor} is for models of Anthropic, and {model!r} is none")

    def write(self, output: Output) -> int:
        """Write the files, or count what they would hold, and say so."""
        options, folder = self._options, Path(self._options.out)
        if options.dry_run:
            files: Tally = Tally(self._form, Checkpoint(""))
        else:
            files = Shards(folder, self._form, self._command(), resume=options.resume)
        before, characters = files.done.rows, 0

        def told(chunk: RenderedChunk) -> None:
            nonlocal characters
            characters += chunk.characters
            advance(chunk.end)

        with files, closing(Keys()) as keys, _progress(self._table.size) as advance, _told_how_to_go_on():
            if options.key is not None:
                keys.add_all(files.identifiers())
            chunks = (one for one in self._table.chunks() if one.first > before)
            made = rendered(chunks, ChunkRenderer(self._renderer, self._table.read), options.workers)
            write(made, files, None if options.key is None else keys, told)
            files.finish()
        output.print_lines(_summary(files.done, folder, characters if options.dry_run else None))
        return Exit.FAULTY if files.done.rejects else Exit.FINE

    def _command(self) -> str:
        """What the batch is of, so that another one does not go on with it."""
        chosen = vars(self._options)
        names = ("vendor", "model", "map", "set", "field", "key", "lossy", "rows")
        location = self._renderer.prompt.location
        what = (
            VERSION,
            self._options.name,
            [chosen[name] for name in names],
            None if self._options.rows == "-" else file_stamp(self._options.rows),
            Path(location.file).read_bytes() if Path(location.file).is_file() else location.file,
        )
        return blake2b(msgspec.json.encode(what), digest_size=16).hexdigest()


@contextmanager
def _told_how_to_go_on() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        print_error(f"interrupted: {_RESUME}")
        raise


@contextmanager
def _progress(size: int | None) -> Iterator[Callable[[int], object]]:
    """What shows on a terminal how much of the table is done."""
    stream = stderr_stream()
    if not stream.isatty():
        yield lambda _: None
        return
    from rich.progress import Progress

    with Progress(console=console_on(stream, None), transient=True) as shown:
        task = shown.add_task("rows", total=size)
        yield lambda end: shown.update(task, completed=end)


def _summary(done: Checkpoint, folder: Path, characters: int | None) -> Iterator[str]:
    verb = "wrote" if characters is None else "would write"
    files = counted(done.shard if done.requests else 0, "file")
    yield f"{verb} {counted(done.requests, 'request')} of {done.bytes:,} bytes to {files} in {str(folder)!r}"
    if characters is not None:
        yield f"their text has about {characters // CHARACTERS_A_TOKEN:,} tokens"
    if done.rejects:
        where = "" if characters is not None else f": {str(folder / 'rejected.jsonl')!r} says why"
        yield f"rejected {counted(done.rejects, 'row')}{where}"


def _join(options: Namespace, output: Output) -> int:
    """Print each row with its answer, as JSON lines."""
    lacking = 0
    with open_table(options.rows) as table:
        for one in joined(table, Path(options.join), options.key):
            lacking += one["error"] is not None
            output.write(msgspec.json.encode(one).decode() + "\n")
            output.send()
    if lacking:
        print_error(f"{counted(lacking, 'row')} without an answer: 'error' says why")
    return Exit.FAULTY if lacking else Exit.FINE
