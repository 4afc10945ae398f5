"""Skills, as a strict host reads them."""

import hashlib
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.end_to_end.skill_host import TRANSPORTS, Host, MismatchError, digests

pytestmark = pytest.mark.slow

RECIPES = Path(__file__).parents[2] / "recipes"

#: The timeout until a saved file is served, in seconds.
TIMEOUT_S = 10

URI = "skill://notes/SKILL.md"
FRONT = "---\nname: notes\ndescription: Write notes {0}.\n---\n{0}\n"


@pytest.fixture(scope="module", params=TRANSPORTS)
def host(request):
    """A host of the recipes in this repository, which has listed their skills."""
    with TRANSPORTS[request.param](RECIPES) as ask:
        host = Host(ask)
        host.list_skills()
        yield host


def test_strict_host_reads_every_skill(host):
    """A host that implements all requirements verifies each file."""
    read = {uri: {path: host.read(uri, path) for path in host.paths(uri)} for uri in host.skills}

    assert [uri.split("/")[-2] for uri in host.skills] == [
        "promptkit-authoring",
        "review-changes",
        "write-changelog",
    ]
    for uri in host.skills:
        host.get(uri)
    assert {uri: list(files) for uri, files in read.items()} == {uri: host.paths(uri) for uri in host.skills}


def test_directory_listing(host):
    """A listing from the folder of a skill downwards contains each file once."""
    for uri in host.skills:
        folders, files = [uri.removesuffix("/SKILL.md")], []
        while folders:
            listing = host.request_result("resources/directory/read", {"uri": folders.pop()})
            for entry in listing["resources"]:
                (folders if entry.get("mimeType") == "inode/directory" else files).append(entry["uri"])

        assert sorted(files) == sorted(host.uri_of(uri, path) for path in host.paths(uri))


PATHS = ["SKILL.md", "rules.md", "deep/x.bin"]

SAVE = st.tuples(st.just("save"), st.sampled_from(PATHS), st.integers(0, 9))
BREAK = st.tuples(st.just("break"), st.integers(0, 1), st.none())
READ = st.tuples(st.just("read"), st.sampled_from(PATHS), st.none())
RESTART = st.tuples(st.just("restart"), st.none(), st.none())

#: Actions of an author and a host: save a valid or invalid file, read a file, or, more rarely because it
#: takes longest, restart the server.
ACTIONS = st.lists(st.one_of(SAVE, SAVE, BREAK, BREAK, READ, READ, RESTART), min_size=6, max_size=24)


def content(path, number):
    """Return version *number* of the content of a file."""
    return FRONT.format(f"number {number}").encode() if path == "SKILL.md" else bytes([0xFF, number])


class Author:
    """An author who saves the files of one skill, with a record of their states."""

    def __init__(self, folder):
        self.folder = folder / "skills" / "notes"
        self.files = {path: content(path, 0) for path in PATHS}
        for path in self.files:
            self.save(path, 0)
        self.states = {self._digests()}
        self.saves = 0

    def save(self, path, number):
        """Save a file."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content(path, number))
        self.files[path] = content(path, number)

    def change(self, path, number):
        """Save a file. If the skill is invalid, first make it valid."""
        if b"name: notes" not in self.files["SKILL.md"]:
            self.save("SKILL.md", 0)
            self.states.add(self._digests())
        self.save(path, number)
        self.states.add(self._digests())
        self.saves += 1

    def break_it(self, variant):
        """Save an invalid ``SKILL.md``; the server keeps the previous version."""
        self.files["SKILL.md"] = [b"", b"---\nname: other\ndescription: x\n---\n"][variant]
        (self.folder / "SKILL.md").write_bytes(self.files["SKILL.md"])
        self.saves += 1

    def _digests(self):
        return frozenset((path, hashlib.sha256(data).hexdigest()) for path, data in self.files.items())


@pytest.mark.parametrize("transport", TRANSPORTS)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(actions=ACTIONS)
def test_verified_files_match_their_digests(transport, actions, tmp_path_factory):
    """
    Whatever is saved while a host reads, each set of digests is one state of the files, and each verified
    file has that state. A mismatch means that a save was served in between, and one `skills/get` resolves it.
    """
    folder = tmp_path_factory.mktemp("recipes")
    author, mismatches = Author(folder), 0
    runs = [[]]
    for action in actions:
        if action[0] == "restart":
            if b"name: notes" in author.files["SKILL.md"]:
                runs.append([])
        else:
            runs[-1].append(action)

    for run in runs:
        if b"name: notes" not in author.files["SKILL.md"]:
            author.change("SKILL.md", 1)
        with TRANSPORTS[transport](folder) as ask:
            host = Host(ask)
            host.list_skills()
            for kind, target, number in run:
                if kind == "save":
                    author.change(target, number)
                elif kind == "break":
                    host.get(URI)  # a server that never loaded a valid version has none to keep
                    author.break_it(target)
                else:
                    mismatches += read_until_verified(host, target, author)
            mismatches += wait_until_served(host, author)
    assert mismatches <= author.saves


def read_until_verified(host, path, author):
    """Read a file until it is verified, and return the number of mismatches."""
    for failed in range(author.saves + 1):
        try:
            data = host.read(URI, path)
        except MismatchError:
            host.get(URI)
            continue
        listed = frozenset(
            (path, entry["digest"].removeprefix("sha256:"))
            for entry, path in zip(host.skills[URI]["resources"], host.paths(URI), strict=True)
        )
        assert listed in author.states
        assert (path, hashlib.sha256(data).hexdigest()) in listed
        return failed
    raise AssertionError("the mismatch persists")


def wait_until_served(host, author):
    """Wait until valid saved files are served, read all of them, and return the number of mismatches."""
    deadline = time.monotonic() + TIMEOUT_S
    while b"name: notes" in author.files["SKILL.md"]:
        host.get(URI)
        listed = {entry["digest"].removeprefix("sha256:") for entry in host.skills[URI]["resources"]}
        if listed == {hashlib.sha256(data).hexdigest() for data in author.files.values()}:
            break
        assert time.monotonic() < deadline, "the saved files are not served"
        time.sleep(0.02)
    return sum(read_until_verified(host, path, author) for path in author.files)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_any_changed_byte_revokes_the_approval(transport, tmp_path):
    """Any changed byte of a skill revokes its approval. A change of another skill does not."""
    author = Author(tmp_path)
    other = tmp_path / "skills" / "other" / "SKILL.md"
    other.parent.mkdir()
    other.write_text("---\nname: other\ndescription: x\n---\n")
    with TRANSPORTS[transport](tmp_path) as ask:
        host = Host(ask)
        host.list_skills()
        host.approve(URI)
        other.write_text("---\nname: other\ndescription: y\n---\n")
        wait_for(host, lambda: host.skills["skill://other/SKILL.md"]["frontmatter"]["description"] == "y")
        assert host.approved == {URI}

        author.change("deep/x.bin", 5)
        wait_for(host, lambda: host.approved == set())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_digests_after_a_restart(transport, tmp_path):
    """After a restart, no cached entry is served for a skill that has changed since."""
    author = Author(tmp_path)
    for number in (None, 1, None):  # without a cache, with a stale one, and with a current one
        if number is not None:
            author.change("rules.md", number)
        with TRANSPORTS[transport](tmp_path) as ask:
            host = Host(ask)
            host.list_skills()

            assert {digest.removeprefix("sha256:") for _, digest in digests(host.skills[URI])} == {
                hashlib.sha256(data).hexdigest() for data in author.files.values()
            }
            host.get(URI)  # waits until all is imported, and so cached for the next start


def wait_for(host, holds):
    """List skills until *holds* returns True."""
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
        host.list_skills()
