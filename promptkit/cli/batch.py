"""``promptkit batch``: render a prompt for every row of a table, for a vendor's batch API."""

import sqlite3
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from pickle import PicklingError
from typing import Any, Final

import msgspec

from promptkit import compiler
from promptkit.answers import parse_answer
from promptkit.batch.columns import MAX_LISTED, ColumnError, format_names
from promptkit.batch.joining import join_results, open_results
from promptkit.batch.renderer import Renderer
from promptkit.batch.shards import (
    CHECKPOINT,
    REJECTED,
    BatchFolderError,
    Checkpoint,
    find_batch_files,
    open_batch,
)
from promptkit.batch.tables import RowsError, Table, open_table
from promptkit.batch.vendor_formats import LINE_FORMATS
from promptkit.batch.workers import ChunkRenderer, start_workers
from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail, format_count, print_error
from promptkit.cli.key_values import ArgumentSyntaxError, read_arguments
from promptkit.cli.loading import explain_absence, load_recipes
from promptkit.cli.output import Output, make_console
from promptkit.declarations.prompts import Prompt
from promptkit.errors.exceptions import ArgumentsError
from promptkit.exports import UnsupportedAnswerError
from promptkit.files.folder import Folder
from promptkit.fragments.budget import CHARACTERS_PER_TOKEN
from promptkit.language.messages import make_workflow
from promptkit.standard_error import stderr_stream
from promptkit.types.unstructuring import json_of
from promptkit.version import VERSION

#: Maximum number of unused columns whose names are stored.
_MAX_UNUSED: Final = 1_000


def run(options: Namespace, output: Output) -> int:
    """
    Write a request for each valid row, and reject the others; with ``--join``, join results with their rows.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    folder = Path.cwd()  # before a recipe can change it
    try:
        with open_table(options.rows, options.delimiter) as table:
            out = Folder.named(options.out)  # before a recipe can change the current folder
            if options.name is None:  # only possible with --join
                return _join(options, table, out, output)
            recipes = load_recipes(options.targets)
            prompts = [prompt for name, prompt in recipes.named_prompts if name == options.name]
            if len(prompts) != 1 or prompts[0].compile()[0] is None:
                return explain_absence(options, recipes, compiler.compile(recipes).diagnostics)
            prompt = prompts[0]
            return (
                _join(options, table, out, output, _make_parser(options, prompt))
                if options.join
                else _Batch(options, prompt, table, folder, out).write(output)
            )
    except (RowsError, ColumnError, BatchFolderError, ArgumentSyntaxError) as error:
        return fail(str(error), Exit.USAGE)
    except (ArgumentsError, UnsupportedAnswerError, PicklingError) as error:
        return fail(str(error), Exit.FAILED)
    except sqlite3.Error as error:
        return fail(f"the keys of the rows cannot be stored: {error}", Exit.FAILED)


class _Batch:
    """A run of `batch` that renders a prompt for each row of a table."""

    def __init__(
        self, options: Namespace, prompt: Prompt[..., Any], table: Table, folder: Path, out: Folder
    ) -> None:
        self._options, self._table, self._line_format = options, table, LINE_FORMATS[options.vendor]
        self._folder = out
        self._check_options()
        self._values = read_arguments(prompt.compiled.arguments, options.set, folder)
        self._fields = {**({"lossy": True} if options.lossy else {}), **dict(options.field)}
        self._renderer = Renderer(
            prompt,
            options.vendor,
            model=options.model,
            columns=dict(options.map),
            values=self._values,
            fields=self._fields,
            key=options.key,
        )
        matched = self._renderer.matched
        self._unused = dict[str, None]()
        if table.columns is not None:
            matched.check(table.columns)
            self._add_unused_columns(matched.find_unused_columns(table.columns))
        self._check_body(prompt.options.answer)

    def _check_options(self) -> None:
        options, line_format = self._options, self._line_format
        if options.model is None and line_format.has_model:
            options.error("specify the model with --model, because every request must name it")
        if options.rows == "-" and any(word.endswith("=@-") for word in options.set):
            options.error("standard input already contains the rows: pass a file to --set")
        for option, pairs in (("--map", options.map), ("--field", options.field)):
            if len(dict(pairs)) < len(pairs):
                options.error(f"{option} was given twice for the same name")
        try:
            line_format.check_fields(dict(options.field))
        except ValueError as error:
            options.error(f"--field: {error}")

    def _check_body(self, answer: Any) -> None:
        """
        Reject an unsupported answer type or an invalid ``--field`` before anything is written.

        Otherwise, every row would be rejected for the same reason.
        """
        try:
            self._line_format.build_body(make_workflow((), answer=answer), self._options.model, self._fields)
        except UnsupportedAnswerError:
            raise
        except TypeError as error:
            self._options.error(f"--field: {error}")

    def write(self, output: Output) -> int:
        """Write the files, or only measure their content with ``--dry-run``, and print a summary."""
        options = self._options
        # The previous run may have been killed after its last row.
        if options.resume and (files := find_batch_files(self._folder)) and CHECKPOINT not in files:
            output.print_lines([f"{options.out!r} already contains a finished batch: nothing is left to do"])
            return Exit.FAILED if REJECTED in files else Exit.OK
        hint = "" if options.dry_run else ": continue with --resume"
        try:
            done, characters = self._render()
        except KeyboardInterrupt:
            print_error(f"interrupted{hint}")
            raise
        except (EOFError, ConnectionError):
            return fail(f"a worker process exited unexpectedly{hint}", Exit.FAILED)
        except OSError as error:
            where = f"{error.filename!r}: " if isinstance(error.filename, str) else ""
            reason = f"{where}{error.strerror or error}{hint}"
            return fail(f"cannot write to {self._folder.path.name!r}: {reason}", Exit.FAILED)
        output.print_lines(_format_summary(done, options.out, characters if options.dry_run else None))
        if self._unused:
            output.print_lines([f"columns not used: {format_names([*self._unused])}"])
        return Exit.FAILED if done.rejected else Exit.OK

    def _render(self) -> tuple[Checkpoint, int]:
        """Write the files, and return the last checkpoint and the total number of characters in prompts."""
        options, table, characters = self._options, self._table, 0
        folder = None if options.dry_run else self._folder
        renderer = ChunkRenderer(self._renderer, table.parse)
        with (
            start_workers(renderer, options.workers) as render,
            open_batch(
                folder, self._line_format, self._fingerprint(), resume=options.resume, force=options.force
            ) as writer,
            _show_progress(table.size) as advance,
        ):
            if options.key is not None:
                writer.require_unique_keys()
            rows_done = writer.progress.rows
            for chunk in render(chunk for chunk in table.chunks if chunk.last >= rows_done):
                writer.write(chunk)
                characters += chunk.characters
                self._add_unused_columns(chunk.unused)
                advance(chunk.end)
            writer.finish()
        return writer.progress, characters

    def _add_unused_columns(self, columns: Iterable[str]) -> None:
        """Store the names of unused columns for the summary. In JSON, each row can have different columns."""
        if len(self._unused) < _MAX_UNUSED:
            self._unused |= dict.fromkeys(filter(None, columns))

    def _fingerprint(self) -> str:
        """Return a digest of the input, so that a different batch cannot resume this one."""
        values = vars(self._options)
        options = [values[name] for name in ("name", "vendor", "model", "map", "key", "delimiter")]
        identity = repr((VERSION, options, self._values, self._fields))
        return blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@contextmanager
def _show_progress(size: int | None) -> Iterator[Callable[[int], object]]:
    """Yield a function that shows on a terminal how much of the table has been processed."""
    stream = stderr_stream()
    if not stream.isatty():
        yield lambda _: None
        return
    from rich.progress import Progress

    with Progress(console=make_console(stream, None), transient=True) as progress:
        task = progress.add_task("rows", total=size)
        yield lambda end: progress.update(task, completed=end)


def _format_summary(done: Checkpoint, folder: str, characters: int | None) -> Iterator[str]:
    verb = "wrote" if characters is None else "would write"
    files = format_count(done.shard if done.requests else 0, "file")
    yield f"{verb} {format_count(done.requests, 'request')} ({done.bytes:,} bytes) to {files} in {folder!r}"
    if characters is not None:
        yield f"the requests contain about {characters // CHARACTERS_PER_TOKEN:,} tokens of text"
    if done.rejected:
        where = "" if characters is not None else f": see {str(Path(folder, REJECTED))!r}"
        yield f"rejected {format_count(done.rejected, 'row')}{where}"


def _make_parser(options: Namespace, prompt: Prompt[..., Any]) -> Callable[[str], Any]:
    """Return the function that parses answers to a prompt."""
    answer = prompt.options.answer
    if answer is None:
        options.error(
            f"prompt {options.name!r} does not declare answer=: declare it, or omit the prompt's name"
        )
    return partial(parse_answer, answer=answer)


def _join(
    options: Namespace,
    table: Table,
    batch: Folder,
    output: Output,
    parse: Callable[[str], Any] | None = None,
) -> int:
    """Print each row with its answer as a JSON line, and return the exit code."""
    unanswered = 0
    with open_results(Path(options.join), batch, by_number=options.key is None) as results:
        for row in join_results(table, results, options.key, parse):
            line, has_answer = _encode_row(row)
            unanswered += not has_answer
            output.write(f"{line}\n")
            output.send()
        unused, keys = results.find_unused_results(MAX_LISTED)
    if unanswered:
        what = "an answer" if parse is None else "a valid answer"
        print_error(f"{format_count(unanswered, 'row')} without {what}: see their 'error' field")
    if unused:
        print_error(f"{format_count(unused, 'result')} without a row: {format_names(keys, unused)}")
    return Exit.FAILED if unanswered or unused else Exit.OK


def _encode_row(joined_row: dict[str, Any]) -> tuple[str, bool]:
    """Return a row as JSON, and whether it has an answer. A row that JSON cannot represent gets an error."""
    parsed = {name: joined_row[name] for name in ("parsed",) if name in joined_row}
    try:
        line = msgspec.json.encode(joined_row | json_of(parsed), enc_hook=str).decode()
    except Exception as error:  # noqa: BLE001 (values of a table can have any type)
        reason = f"the row cannot be written as JSON: {type(error).__name__}: {error}"
        fallback = {**dict.fromkeys(joined_row), "line": joined_row["line"], "error": reason}
        return msgspec.json.encode(fallback).decode(), False
    return line, joined_row["error"] is None
