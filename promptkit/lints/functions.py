"""Lints of any function: text that nothing fills in, objects and blocks in f-strings."""

import ast
import builtins
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import PurePath
from types import ModuleType
from typing import Any, Final

from promptkit.declarations.prompts import Prompt
from promptkit.errors.diagnostics import Report
from promptkit.errors.rules import Rule
from promptkit.errors.sources import Function, nodes_of, plain_pieces
from promptkit.errors.suggestions import is_misspelt
from promptkit.fragments.markdown import BLOCKS
from promptkit.lints.control_flow import choices_of, items_of
from promptkit.lints.conversations import role_of
from promptkit.lints.name_resolution import TEXT_METHODS, CallResult, Scope, Unawaited
from promptkit.lints.texts import lint_filled_text, lint_holes, lint_shifted_lines, shown_container

#: Words behind which a program reads no options; git knows both.
_ENDS: Final = ("--", "--end-of-options")


def lint_command(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report parameters that stand in a command before the word behind which there are no options."""
    if not isinstance(node, ast.Call) or not _runs(node.func, scope):
        return
    words = [word.value if isinstance(word, ast.Constant) else None for word in node.args]
    end = next((word for word in words if word in _ENDS), None)
    for word in node.args[: words.index(end)] if end is not None else ():
        for name in _begins_with(word, scope):
            fault = f"{name!r} stands before {end!r} in a command, which may read its value as an option"
            hint = (
                "write '--end-of-options' before it, if the command knows that, as git does; "
                "or refuse such values: Annotated[str, msgspec.Meta(pattern='^[^-]')]"
            )
            report.add(Rule.READ_AS_OPTION, fault, hint, word)


def _runs(called: ast.expr, scope: Scope) -> bool:
    """Whether what is called is a function that runs a command. It is not imported for that."""
    value = scope.value(called)
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    return module == "promptkit.workspace.commands" and name in ("run", "run_async")


def _begins_with(word: ast.expr, scope: Scope) -> Iterator[str]:
    """The parameters whose text a word may begin with."""
    match word:
        case ast.Name(name) if name in scope.arguments and not scope.stored[name]:
            if _is_any_text(scope.arguments[name], scope):
                yield name
        case ast.JoinedStr([ast.FormattedValue(inner), *_]) | ast.Starred(inner):
            yield from _begins_with(inner, scope)
    for choice in choices_of(word):
        yield from _begins_with(choice, scope)


def _is_any_text(annotation: ast.expr | None, scope: Scope) -> bool:
    """Whether a parameter takes text or paths, and no pattern says how they begin."""
    if annotation is None or any(note.arg == "pattern" for note in nodes_of(annotation, ast.keyword)):
        return False
    kinds = [scope.value(name) for name in nodes_of(annotation, ast.Name)]
    return any(kind is str or (isinstance(kind, type) and issubclass(kind, PurePath)) for kind in kinds)


#: Decorators that do not change what a function returns.
_HARMLESS: Final = (
    *("prompt", "resource", "staticmethod", "classmethod"),
    *("cache", "lru_cache", "contextmanager"),
)

_FIELD: Final = re.compile(r"(?<![{$%])\{([^{}\n]+)\}(?!\})")
#: Commands of LaTeX, and escapes of patterns, take braces.
_COMMAND: Final = re.compile(r"\\[A-Za-z]+\*?(?:\{[^{}]*\}|\[[^]]*\])*$")
#: A format specification of Python; what follows a colon in CSS or JSON is not one.
_SPEC: Final = re.compile(r"(?:.?[<>=^])?[-+ ]?z?#?0?\d*[_,]?(?:\.\d+)?[bcdeEfFgGnosxX%]?|.*%[A-Za-z].*")
_JINJA: Final = re.compile(
    r"\{\{-?\s*([A-Za-z_]\w*)[^{}]*\}\}"
    r"|\{%-?\s*(?:if|for|set|with|include|macro|block|extends|filter|elif)\b([^%]*)%\}"
)
#: What every placeholder has in it.
_BEGINS: Final = re.compile(r"[{$%]")
_OTHER: Final = re.compile(r"\$\{(\w+)\}|%\((\w+)\)[sdr]|<%=?\s*(\w+)\s*%>")

#: Stands for what fills a hole of an f-string.
_HOLE: Final = "\0"

#: A character of a word; one that follows on the same line.
_WORD: Final = re.compile(r"\S")
_WORD_AHEAD: Final = re.compile(r"[^\S\n]*\S")

_JOIN: Final = "join them: ', '.join(...)"


def _lint_text(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report text that is sent with a placeholder: an f is missing, or it is written as a template."""
    if not _is_plain(scope.syntax):
        return
    sent = getattr(node, "value", None)  # of a return or a yield
    if isinstance(node, ast.Call) and scope.makes_text(node.func):
        sent = node
    for holder, text in () if sent is None else _texts(sent, scope, report.location.file):
        if _BEGINS.search(text):
            _check_text(holder, text, scope, report)


def _is_plain(syntax: ast.AST) -> bool:
    """Whether no decorator may fill in what a function says."""
    decorators = (getattr(one, "func", one) for one in getattr(syntax, "decorator_list", ()))
    return all(getattr(one, "attr", getattr(one, "id", "")) in _HARMLESS for one in decorators)


def _texts(sent: ast.expr, scope: Scope, file: str) -> Iterator[tuple[ast.expr, str]]:
    """The strings in an expression, each with the expression that holds it, but for those with an f."""
    ahead, followed = [sent], set[ast.expr]()
    while ahead:
        if (node := ahead.pop()) in followed:  # a name may be led to in many ways
            continue
        followed.add(node)
        match node:
            case ast.Constant(str(text)):
                yield node, text
            case ast.JoinedStr(parts):
                # To tell its strings apart takes long.
                if any(isinstance(part, ast.Constant) and _BEGINS.search(str(part.value)) for part in parts):
                    yield from ((node, piece) for piece in plain_pieces(file, node))
            case ast.Name() if isinstance(text := scope.value(node), str):
                yield node, text
        ahead += reversed(_parts_of_text(node, scope))


def _parts_of_text(node: ast.expr, scope: Scope) -> list[ast.expr]:
    """The expressions whose text goes into that of another one."""
    match node:
        case ast.Name(name) if name in scope.variables and name not in scope.untracked:
            return scope.values(node)
        case ast.BinOp(left, ast.Mult(), right):
            return [left, right]
        case ast.Starred(value):
            return [value]
        case ast.Call(ast.Attribute(value, attribute), args) if attribute in TEXT_METHODS:
            return [value, *args]
        case ast.Call(function, args) if scope.makes_text(function):
            return args
    return [*choices_of(node), *items_of(node)]


def _check_text(node: ast.expr, text: str, scope: Scope, report: Report) -> None:
    """Report a placeholder that is named like a variable of the function, or nearly so like a parameter."""
    fields = dict[str, str | None]()
    for found in _FIELD.finditer(text):
        meant = _misspelt(found[1], scope)
        if (meant or _is_of(found[1], scope.variables)) and not _COMMAND.search(text, 0, found.start()):
            fields[found[0]] = meant
    if fields:
        sent = f"{' and '.join(map(repr, fields))} {'is' if len(fields) == 1 else 'are'} sent literally"
        instead = " and ".join(f"{{{meant}}}" for meant in fields.values() if meant)
        named = f"and {instead} in it, " if instead else ""
        hint = f"write f in front of the string, {named}and double the braces that are to be sent: {{{{ }}}}"
        report.add(Rule.FORGOTTEN_F, f"{sent}: its string has no f in front", hint, node)
        return
    for found in (*_JINJA.finditer(text), *_OTHER.finditer(text)):
        words = re.findall(r"\w+", " ".join(filter(None, found.groups())))
        if any(word in scope.variables or _misspelt(word, scope) for word in words):
            fault = f"{found[0]!r} is sent literally: text is never read as a template"
            hint = "write an f-string, or put the values into the text with promptkit.fragments.fill(...)"
            report.add(Rule.TEMPLATE_SYNTAX, fault, hint, node)
            return


def _is_of(field: str, local: set[str]) -> bool:
    """Whether the content of a pair of braces is an expression of *local* names."""
    expression, _, spec = re.sub(r"!(?!=)[rsa]", "", field).partition(":")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    if isinstance(tree.body, ast.Tuple) or not _SPEC.fullmatch(spec):
        return False
    named = {node.id for node in nodes_of(tree, ast.Name)}
    return bool(named & local) and all(name in local or hasattr(builtins, name) for name in named)


def _misspelt(field: str, scope: Scope) -> str | None:
    """The parameter that a placeholder probably means: its name is similar, and nothing reads it."""
    if not field.isidentifier() or field.isupper() or field in scope.variables:
        return None
    alike = (name for name in scope.arguments if name[0] == field[0].lower())
    meant = next((name for name in alike if is_misspelt(field, name)), None)
    is_read = any(
        node.id == meant and isinstance(node.ctx, ast.Load) for node in nodes_of(scope.syntax, ast.Name)
    )
    return None if is_read else meant


def _lint_docstring(function: ast.AST, _scope: Scope, report: Report) -> None:
    """Report a docstring that is written as a template."""
    if not isinstance(function, Function) or not function.decorator_list or not _is_plain(function):
        return
    if found := _JINJA.search(ast.get_docstring(function, clean=False) or ""):
        fault = f"the docstring has {found[0]!r}, and is sent as the description, never read as a template"
        hint = "return the text from the function, as an f-string"
        report.add(Rule.TEMPLATE_SYNTAX, fault, hint, function.body[0])


def _lint_blocks(string: ast.AST, scope: Scope, report: Report) -> None:
    """Report blocks of Markdown that share a line of an f-string with text, or with one another."""
    parts: list[Any] = getattr(string, "values", [])
    blocks = [_block(part, scope) for part in parts]
    texts = [
        str(part.value) if isinstance(part, ast.Constant) else block or _HOLE
        for part, block in zip(parts, blocks, strict=True)
    ]
    whole, line, end = "".join(texts), 0, 0
    for part, block, text in zip(parts, blocks, texts, strict=True):
        begin, end = end, end + len(text)
        # What fills a hole right beside the block may end, or begin, with the end of a line.
        if block is not None and (
            (_WORD.search(whole, line, begin) and whole[begin - 1] != _HOLE)
            or (_WORD_AHEAD.match(whole, end) and whole[end] != _HOLE)
        ):
            fault = f"{block}(...) shares a line with other text, so that Markdown does not see it"
            hint = f"write a blank line between them, or user('...', {block}(...)), which does"
            report.add(Rule.BLOCK_IN_LINE, fault, hint, part.value)
        if "\n" in text:
            line = begin + text.rindex("\n") + 1


def _block(part: Any, scope: Scope) -> str | None:
    """The name of the fragment that fills a hole, if it is a block."""
    value = None if isinstance(part, ast.Constant) else scope.behind(part.value)
    made = scope.value(value.func) if isinstance(value, ast.Call) else None
    return next((block.__name__ for block in BLOCKS if block is made), None)


def _lint_object(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report an object in an f-string whose text is only a repr, such as ``<function f at 0x7f...>``."""
    if not isinstance(node, ast.FormattedValue) or node.conversion != -1:
        return
    found = [*_shown(node.value, scope)]
    if node.format_spec is None and isinstance(node.value, ast.Name) and not found:
        found = [*shown_container(node.value.id, scope)]
    for what, hint in found:
        message = f"'{{{ast.unparse(node.value)}}}' in an f-string shows {what}"
        report.add(Rule.OBJECT_IN_TEXT, message, hint, node.value)


def _shown(node: ast.expr, scope: Scope) -> Iterator[tuple[str, str]]:
    """What an f-string would show, and what to write instead, unless its text is of use."""
    value = scope.stand_in(node)
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in scope.arguments:
            kind = scope.value(scope.arguments[name])
            if isinstance(kind, type) and inspect.isroutine(getattr(kind, attribute, None)):
                yield "a method, not what it returns", f"call it: {name}.{attribute}()"
        case ast.Name(id=name) if name in scope.arguments:
            yield from _shown_member(name, scope)
        case ast.Lambda():
            yield "a function, not what it returns", "call it"
        case _ if isinstance(value, CallResult):
            yield from _shown_result(value.called)
        case _ if isinstance(value, Unawaited):
            yield "a coroutine, not what it returns", "await it, in an `async def` prompt"
        case _ if isinstance(value, Iterator):
            yield "a generator, not its items", _JOIN
        case _ if callable(value) or isinstance(value, ModuleType):
            kind = "a class" if isinstance(value, type) else "a function"
            yield f"{kind}, not what it returns", f"call it: {ast.unparse(node)}(...)"


def _shown_result(called: Any) -> Iterator[tuple[str, str]]:
    function = inspect.unwrap(called) if callable(called) else None
    own = ("__new__", "__str__", "__repr__", "__format__")
    if role_of(function) is not None:
        yield "a turn, whose role would be lost", "join turns with +, or write the text alone"
    elif inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        yield "a generator, not its items", _JOIN
    elif isinstance(called, type) and issubclass(called, Iterator):
        yield f"the {called.__name__} object, not its items", _JOIN
    elif type(called) is type and all(getattr(called, name) is getattr(object, name) for name in own):
        hint = "write its attributes, or give it a __str__"
        yield f"the {called.__name__} object, not what it holds", hint


def _shown_member(name: str, scope: Scope) -> Iterator[tuple[str, str]]:
    """Of a parameter that takes an Enum: whether its members are formatted as ``Class.NAME``."""
    annotation = scope.arguments[name]
    # Not `nodes_of`: it would forget the nodes of the file for those of each annotation.
    for node in ast.walk(annotation) if annotation is not None else ():
        kind = scope.value(node) if isinstance(node, ast.Name) else None
        if isinstance(kind, type) and issubclass(kind, Enum) and len(kind):
            member = next(iter(kind))
            if f"{member}" == f"{kind.__name__}.{member.name}":
                yield f"{str(member)!r}, not its value", f"write {{{name}.value}}"


def _lint_deprecated(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report a call of a prompt that its author has deprecated."""
    match node:
        case ast.Call(ast.Attribute(called, ("render" | "render_async"))) | ast.Call(called):
            made = scope.value(called)
            if isinstance(made, Prompt) and made.options.deprecated is not None:
                fault = f"it calls {ast.unparse(called)}(...), which is deprecated"
                report.add(Rule.CALLS_DEPRECATED, fault, made.options.deprecated, node)


#: By kind of syntax, what is looked for there.
LINTS: Final[Mapping[str, tuple[Callable[[ast.AST, Scope, Report], None], ...]]] = {
    "FunctionDef": (_lint_docstring,),
    "AsyncFunctionDef": (_lint_docstring,),
    "Return": (_lint_text,),
    "Yield": (_lint_text,),
    "BinOp": (lint_filled_text,),
    "Call": (
        *(_lint_text, _lint_deprecated, lint_holes, lint_shifted_lines),
        *(lint_filled_text, lint_command),
    ),
    "JoinedStr": (_lint_blocks,),
    "TemplateStr": (_lint_blocks,),
    "FormattedValue": (_lint_object,),
}
