"""Print the commits since the last tag, by kind, each with the files that it changed."""

import re
import subprocess
import sys
from typing import Iterator, List, NamedTuple, Optional  # noqa: UP035 (it runs on old Pythons, too)

KINDS = {
    "feat": "New",
    "fix": "Fixed",
    "perf": "Faster",
    "docs": "Documentation",
    "": "Others: read what they change",
}


class Commit(NamedTuple):
    """A commit, its kind by the convention of its subject, and its files."""

    name: str
    kind: str
    subject: str
    files: List[str]  # noqa: UP006 (as above)


def git(*arguments: str) -> str:
    """Return what git prints; end with what it says if it fails."""
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip() or "git failed")
    return done.stdout


def last_tag() -> Optional[str]:  # noqa: UP045 (as above)
    """Return the last tag before HEAD; None if there is none."""
    command = ["git", "describe", "--tags", "--abbrev=0"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None


def commits(since: Optional[str]) -> Iterator[Commit]:  # noqa: UP045 (as above)
    """Return the commits, oldest first."""
    places = [f"{since}..HEAD"] if since else ["HEAD"]
    log = git("log", "--reverse", "--no-merges", "--name-only", "--format=%x00%h%x09%s", *places)
    for commit in log.split("\0")[1:]:
        head, *files = (line for line in commit.splitlines() if line)
        name, _, subject = head.partition("\t")
        found = re.match(r"(\w+)(\([^)]*\))?!?:", subject)
        yield Commit(name, found[1] if found and found[1] in KINDS else "", subject, files)


def main() -> None:
    """Print them."""
    since = sys.argv[1] if len(sys.argv) > 1 else last_tag()
    found = list(commits(since))
    print(f"Since {since or 'the first commit'}:")
    for kind, title in KINDS.items():
        of_kind = [commit for commit in found if commit.kind == kind]
        if of_kind:
            print(f"\n{title}")
        for commit in of_kind:
            more = f" and {len(commit.files) - 5} more" if len(commit.files) > 5 else ""
            print(f"  {commit.name} {commit.subject}\n      {', '.join(commit.files[:5])}{more}")


main()
