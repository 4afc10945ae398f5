"""``promptkit new``: create a prompt or a skill, with its test or case and the configuration of a project."""

import shutil
import sys
import sysconfig
from argparse import Namespace
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail
from promptkit.cli.output import Output
from promptkit.clients.configuration_files import ConfigurationFile
from promptkit.clients.profiles import CLIENTS, INSTALLABLE
from promptkit.errors.distribution import DISTRIBUTION, pip_command
from promptkit.files.folder import Folder
from promptkit.files.reading import MAX_SOURCE_BYTES, read_regular_file
from promptkit.fragments.shell_words import quoted, quoted_path
from promptkit.version import VERSION

_CONFIGURATION: Final = """\
[tool.promptkit]
target = "prompts"

[tool.ruff.lint]
extend-select = ["ASYNC", "B006", "B008"]
"""

_PROMPT: Final = '''\
from typing import Annotated, Literal

from promptkit import Arg, prompt, user
from promptkit.fragments import code_block


@prompt
def review(
    code: Annotated[str, Arg("The code to review", examples=["x = 1"])],
    language: Literal["python", "rust", "go"] = "python",
):
    """Ask for a review of a piece of code."""
    return user(f"Review this {language} code.", code_block(code, language))
'''

_TEST: Final = """\
from prompts.review import review

from promptkit import user
from promptkit.fragments import code_block


def test_language_is_in_the_text():
    assert review("fn main() {}", language="rust") == user(
        "Review this rust code.", code_block("fn main() {}", "rust")
    )


def test_language_is_case_insensitive():
    assert "Review this go code." in review.render_wire({"code": "x", "language": "GO"})
"""

_SKILL: Final = '''\
from promptkit import skill
from promptkit.fragments import blocks, bullets, section


@skill(allowed_tools=["Read", "Bash(git diff:*)"])
def review_changes():
    """Review a change as our team does it. Use it when the user asks for a review, or before a commit."""
    rules = ["Report a problem only with an input that fails.", "If you find nothing, say so."]
    return blocks("Read `git diff HEAD`, and the callers of changed code.", section("Rules", bullets(rules)))
'''

_SKILL_TEST: Final = """\
from prompts.review_changes import review_changes

from promptkit.testing import Client


def test_skill_reads_the_diff():
    assert "git diff" in review_changes().text


def test_host_can_read_the_skill():
    skill = Client(review_changes).read_skill("review-changes")

    assert skill.listed.frontmatter["description"].startswith("Review a change")
"""

_MARKDOWN: Final = """\
---
description: Ask for a review of a piece of code
arguments:
  code: The code to review
  language:
    description: The language of the code
    choices: [python, rust, go]
    default: python
cases:
  a function in Go:
    code: func half(n int) int { return n / 2 }
    language: go
---
Review this {{language}} code.

{{code}}
"""

#: Keep this in sync with this repository's own Dockerfile. `serve` finds the recipes in the configuration.
_DOCKERFILE: Final = """\
# The prompts of this project, served to many clients over HTTP.
#
#   docker build --tag prompts .
#   docker run --read-only --cap-drop ALL --publish 127.0.0.1:8000:8000 prompts
#
# Nothing is written at run time. Platforms set another port in the variable PORT.
FROM python:3.13-slim AS build
# The first process of the image: it collects orphaned processes and passes signals on.
RUN apt-get update && apt-get install --yes --no-install-recommends tini
RUN python -m venv /opt/prompts
WORKDIR /src
COPY requirements.txt *.whl ./
RUN /opt/prompts/bin/pip install --no-cache-dir --requirement requirements.txt

# The last step of the build: errors in the recipes end it.
WORKDIR /srv
COPY . .
RUN /opt/prompts/bin/promptkit check

FROM python:3.13-slim
COPY --from=build /usr/bin/tini /usr/bin/
COPY --from=build /opt/prompts /opt/prompts
COPY --from=build /srv /srv
ENV LANG=C.UTF-8
ENV PATH=/opt/prompts/bin:$PATH
WORKDIR /srv
# Not root, and a number, so that Kubernetes can check it.
USER 65534:65534
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --start-interval=1s \\
    CMD ["python", "-c", "from http.client import HTTPConnection as C; from os import environ; c = C('127.0.0.1', environ.get('PORT', 8000), timeout=2); c.request('GET', '/readyz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["tini", "--", "promptkit"]
# Everyone who can reach the port can use the prompts. To require tokens, replace --no-auth with --token-file.
CMD ["serve", "--http", "0.0.0.0", "--no-auth", "--no-watch", "--metrics"]
"""  # noqa: E501 (Docker would keep the line breaks of Python code)

#: The initial requirements.txt, to which users add the requirements of their recipes.
_REQUIREMENTS: Final = f"""\
# The packages in the image. Until promptkit is on your package index, put its wheel next to this file,
# and write ./mcp_promptkit-{VERSION}-py3-none-any.whl[http,metrics] instead of the next line.
{DISTRIBUTION}[http,metrics]~={VERSION}
"""

#: Hidden files are excluded because they can be secrets. Tests are included, but they are not served.
_DOCKERIGNORE: Final = """\
.*
**/.*
**/__pycache__
batch
dist
Dockerfile
"""

_DOCKER_FILES: Final[Mapping[str, str]] = {
    "Dockerfile": _DOCKERFILE,
    ".dockerignore": _DOCKERIGNORE,
    "requirements.txt": _REQUIREMENTS,
}

#: The two folders at the root are the default output folders of `batch` and `package`.
_IGNORED: Final = """\
__pycache__/
.hypothesis/
.venv/
/batch/
/dist/
"""

_PYPROJECT: Final = "pyproject.toml"

_RENDERED: Final = 'review code="x = 1"'


class _Sample(NamedTuple):
    """
    A kind of project.

    Args:
        files:
            The content of each file, keyed by its path in the folder.

        rendered:
            The arguments of `render` in the printed command.

        test:
            The promptkit command that tests the prompt; empty if pytest is used instead.

        install:
            Further options of `install` in the printed command.
    """

    files: Mapping[str, str]
    rendered: str = _RENDERED
    test: str = ""
    install: str = ""


_PYTHON_SAMPLE: Final = _Sample({"prompts/review.py": _PROMPT, "prompts/test_review.py": _TEST})
_MARKDOWN_SAMPLE: Final = _Sample({"prompts/review.prompt.md": _MARKDOWN}, test="check --render")
_SKILL_SAMPLE: Final = _Sample(
    {"prompts/review_changes.py": _SKILL, "prompts/test_review_changes.py": _SKILL_TEST},
    rendered="review-changes",
    install=" --skills",
)

#: The files that every project has. Existing files are kept.
_PROJECT_FILES: Final[Mapping[str, str]] = {
    _PYPROJECT: _CONFIGURATION,
    ".gitignore": _IGNORED,
    "AGENTS.md": read_regular_file(Path(__file__).with_name("agents.md"), MAX_SOURCE_BYTES).decode(),
}

#: The client in the printed commands if none is found.
_DEFAULT_CLIENT: Final = "claude-code"


def run(options: Namespace, output: Output) -> int:
    """Write the files and print the next commands. If the prompt or test already exists, write nothing."""
    folder = Folder.named(options.folder)
    sample = _SKILL_SAMPLE if options.skill else _MARKDOWN_SAMPLE if options.markdown else _PYTHON_SAMPLE
    required, optional = sample.files, {**_PROJECT_FILES, **(_DOCKER_FILES if options.docker else {})}
    try:
        is_existing_project = options.docker and folder.lstat(_PYPROJECT) is not None
        if is_existing_project:
            required, optional = {}, {**_DOCKER_FILES}
        kept = [path for path in optional if folder.lstat(path) is not None]
        files = {**required, **{path: text for path, text in optional.items() if path not in kept}}
        folder.write_new({path: text.encode() for path, text in files.items()})
    except (FileExistsError, NotADirectoryError) as error:  # a file is at the path of a new file or folder
        hint = "move it, or choose another folder"
        return fail(f"nothing was written: {error.filename} is in the way: {hint}", Exit.FAILED)
    except OSError as error:
        return fail(f"nothing was written: {error.filename or folder}: {error.strerror}", Exit.FAILED)
    written = [folder.display_path(path) for path in files]
    commands = ["docker build --tag prompts ."]
    if not is_existing_project:
        commands = _next_commands(Path(options.folder), "prompts" if _PYPROJECT in kept else "", sample)
    if options.json:
        output.print_json({"files": written, "next": commands})
        return Exit.OK
    lines = [
        *(f"wrote {path}" for path in written),
        *(f"kept {folder.display_path(path)}" for path in kept),
        *("", "next:", *(f"    {command}" for command in commands)),
    ]
    output.print_lines(lines, one_line=True)
    return Exit.OK


def _next_commands(folder: Path, target: str, sample: _Sample) -> list[str]:
    """
    Return commands that render, test and install the new prompt or skill, to run one after the other.

    *target* names the folder of the recipes; it is empty if the commands find that folder themselves, because
    the written configuration names it.
    """
    enter = "" if folder.resolve() == Path.cwd() else f"cd {quoted_path(str(folder))} && "
    promptkit = _format_program("promptkit", shutil.which("promptkit", path=sysconfig.get_path("scripts")))
    python = _format_program("python", sys.executable)
    install = "" if find_spec("pytest") else f"{pip_command(python=python)} pytest && "
    named = f" {target}" if target else ""
    client = _choose_client(is_skill=sample is _SKILL_SAMPLE)
    return [
        f"{enter}{promptkit} render{named} {sample.rendered}",
        f"{promptkit} {sample.test}{named}" if sample.test else f"{install}{python} -m pytest{named}",
        f"{promptkit} install {client}{named}{sample.install}",
    ]


def _format_program(name: str, program: str | None) -> str:
    """
    Return the words that start a program of this environment in a shell.

    If *program* is None, the words start the module *name* with Python.
    """
    if program is None:
        return f"{_format_program('python', sys.executable)} -m {name}"
    in_shell = shutil.which(name)
    is_same = in_shell is not None and Path(in_shell).parent == Path(sysconfig.get_path("scripts"))
    return name if is_same else quoted(program)


def _choose_client(*, is_skill: bool) -> str:
    """Return the first client on this machine that supports prompts or, with *is_skill*, skills."""
    candidates = (name for name in INSTALLABLE if is_skill or CLIENTS[name].has_prompts)
    installed = (name for name in candidates if ConfigurationFile(name).is_client_found)
    return next((name for name in installed if not is_skill or INSTALLABLE[name].skills), _DEFAULT_CLIENT)
