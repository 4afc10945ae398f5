"""The skills of a server: their files, verified as hosts do."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from urllib.parse import unquote

from promptkit.catalog.skills import SKILL_FILE, CompiledSkill
from promptkit.declarations.skill_files import MAX_BYTES, MAX_FILES, compile_skill
from promptkit.declarations.skill_markdown import FrontmatterError, read_skill
from promptkit.errors.diagnostics import Diagnostic, Report
from promptkit.errors.exceptions import PromptError, ResultError
from promptkit.errors.rules import Rule
from promptkit.files.reading import HashedBytes
from promptkit.foreign.listing import SERVER, ListedFile, ListedSkill


def load_skill(
    skill: ListedSkill, read: Callable[[str], str | bytes], max_bytes: int
) -> tuple[CompiledSkill | None, Sequence[Diagnostic]]:
    """
    Read the files of a skill.

    Args:
        skill:
            The skill as the server lists it.

        read:
            Returns the content of a resource. Raises PromptError or ResultError.

        max_bytes:
            The limit for its files together.

    Returns:
        The skill, or None if it violates the format; and its diagnostics.
    """
    path = unquote(skill.uri.removeprefix("skill://")).removesuffix(f"/{SKILL_FILE}")
    prefix, _, name = path.rpartition("/")
    report = Report(f"skill {name!r}", SERVER)
    if not skill.uri.startswith("skill://") or not skill.uri.endswith(f"/{SKILL_FILE}"):
        message = f"its URI is {skill.uri!r}"
        report.add(Rule.BAD_SKILL, message, f"write it as skill://NAME/{SKILL_FILE}")
        return None, report.found
    folder, files = skill.uri.removesuffix(SKILL_FILE), dict[str, HashedBytes]()
    listed = skill.resources if isinstance(skill.resources, list) else []
    uris: dict[str, ListedFile | None] = {file.uri: file for file in listed} or {skill.uri: None}
    if len(uris) > MAX_FILES or sum(file.size for file in listed) > min(MAX_BYTES, max_bytes):
        message = f"it has {len(uris)} files, or too many bytes"
        report.add(
            Rule.SKILL_FILES, message, f"hosts read at most {MAX_FILES} files and {MAX_BYTES >> 20} MiB"
        )
        return None, report.found
    for uri, file in uris.items():
        path = unquote(uri.removeprefix(folder))
        if not uri.startswith(folder):
            report.add(Rule.SKILL_FILES, f"{uri!r} is not in its folder", "list only files of the skill")
            continue
        try:
            content = read(uri)
        except (PromptError, ResultError) as error:
            report.add(
                Rule.SKILL_FILES, f"{path!r} cannot be read: {error}", "serve each file that is listed"
            )
            continue
        data = content.encode() if isinstance(content, str) else content
        if file is not None and (file.digest, file.size) != (f"sha256:{sha256(data).hexdigest()}", len(data)):
            message = f"{path!r} has another digest or size than it is listed with, so hosts reject it"
            report.add(Rule.SKILL_FILES, message, "hash the bytes that are served")
        files[path] = HashedBytes(data)
    if SKILL_FILE not in files:
        report.add(Rule.SKILL_FILES, f"it has no {SKILL_FILE}", "serve and list it")
        return None, report.found
    try:
        fields, _, _ = read_skill(files[SKILL_FILE].data)
    except FrontmatterError as error:
        report.add(Rule.BAD_SKILL, str(error), error.hint)
        return None, report.found
    if fields != skill.frontmatter:
        message = f"its listed frontmatter differs from that of its {SKILL_FILE}, so hosts reject it"
        report.add(Rule.BAD_SKILL, message, "list every field as it is in the file")
    return compile_skill(name, prefix, fields, files, report), report.found
