"""Print the commits since the last tag, grouped by kind, each with the files that it changed."""

import re
import subprocess
import sys
from typing import Iterator, List, NamedTuple, Optional  # noqa: UP035 (supports Python 3.9)

#: The heading for each kind of commit, keyed by the type in the subject of a conventional commit.
KINDS = {
    "feat": "New",
    "fix": "Fixed",
    "perf": "Faster",
    "docs": "Documentation",
    "": "Others: read their diffs",
}


class Commit(NamedTuple):
    """A commit, its kind, and the files that it changed."""

    abbreviated_hash: str
    kind: str
    subject: str
    files: List[str]  # noqa: UP006 (as above)


def run_git(*arguments: str) -> str:
    """Return the output of git. If git fails, exit with its error message."""
    process = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    if process.returncode:
        sys.exit(process.stderr.strip() or "git failed")
    return process.stdout


def find_last_tag() -> Optional[str]:  # noqa: UP045 (as above)
    """Return the last tag before HEAD, or None if the repository has no tags."""
    command = ["git", "describe", "--tags", "--abbrev=0"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None


def read_commits(since: Optional[str]) -> Iterator[Commit]:  # noqa: UP045 (as above)
    """Yield the commits after *since*, oldest first."""
    revisions = f"{since}..HEAD" if since else "HEAD"
    log = run_git("log", "--reverse", "--no-merges", "--name-only", "--format=%x00%h%x09%s", revisions)
    for entry in log.split("\0")[1:]:
        header, *files = (line for line in entry.splitlines() if line)
        abbreviated_hash, _, subject = header.partition("\t")
        match = re.match(r"(\w+)(\([^)]*\))?!?:", subject)
        kind = match[1] if match and match[1] in KINDS else ""
        yield Commit(abbreviated_hash, kind, subject, files)


def main() -> None:
    """Print the commits since the tag on the command line, or since the last tag."""
    since = sys.argv[1] if len(sys.argv) > 1 else find_last_tag()
    commits = list(read_commits(since))
    print(f"Since {since or 'the first commit'}:")
    for kind, heading in KINDS.items():
        commits_of_kind = [commit for commit in commits if commit.kind == kind]
        if commits_of_kind:
            print(f"\n{heading}")
        for commit in commits_of_kind:
            more = f" and {len(commit.files) - 5} more" if len(commit.files) > 5 else ""
            print(f"  {commit.abbreviated_hash} {commit.subject}")
            print(f"      {', '.join(commit.files[:5])}{more}")


main()
