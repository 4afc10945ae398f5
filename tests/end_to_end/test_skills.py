import hashlib
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.end_to_end.skill_host import WAYS, Host, Mismatch, digests

pytestmark = pytest.mark.slow

RECIPES = Path(__file__).parents[2] / "recipes"

#: How long a saved file may take until it is served, in seconds.
PATIENCE = 10

URI = "skill://notes/SKILL.md"
FRONT = "---\nname: notes\ndescription: Write notes {0}.\n---\n{0}\n"


@pytest.mark.parametrize("way", WAYS)
def test_every_skill_of_the_recipes(way):
    """A host that does all that it must do reads each file, and finds nothing wrong."""
    with WAYS[way](RECIPES) as ask:
        host = Host(ask)

        skills = host.list_skills()
        read = {uri: {path: host.read(uri, path) for path in host.paths(uri)} for uri in skills}

        assert [uri.split("/")[-2] for uri in skills] == ["review-changes", "write-changelog"]
        for uri in skills:
            host.get(uri)
        assert {uri: list(files) for uri, files in read.items()} == {uri: host.paths(uri) for uri in skills}


@pytest.mark.parametrize("way", WAYS)
def test_folders_lead_to_every_file(way):
    """From the skill's own folder down, each file is found once."""
    with WAYS[way](RECIPES) as ask:
        host = Host(ask)
        for uri in host.list_skills():
            waiting, found = [uri.removesuffix("/SKILL.md")], []
            while waiting:
                for one in host.asked("resources/directory/read", {"uri": waiting.pop()})["resources"]:
                    (waiting if one.get("mimeType") == "inode/directory" else found).append(one["uri"])

            assert sorted(found) == sorted(host.uri_of(uri, path) for path in host.paths(uri))


PATHS = ["SKILL.md", "rules.md", "deep/x.bin"]

#: What an author and a host do: a file is saved, well or broken; one is read; the server is started again.
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("save"), st.sampled_from(PATHS), st.integers(0, 9)),
        st.tuples(st.just("break"), st.integers(0, 1), st.none()),
        st.tuples(st.just("read"), st.sampled_from(PATHS), st.none()),
        st.tuples(st.just("restart"), st.none(), st.none()),
    ),
    min_size=3,
    max_size=12,
)


def content(path, number):
    """What a file is saved with."""
    return FRONT.format(f"number {number}").encode() if path == "SKILL.md" else bytes([0xFF, number])


class Author:
    """Saves the files of one skill, and knows in which states they have been."""

    def __init__(self, folder):
        self.folder = folder / "skills" / "notes"
        self.files = {path: content(path, 0) for path in PATHS}
        for path in self.files:
            self.save(path, 0)
        self.states = {self._digests()}
        self.saves = 0

    def save(self, path, number):
        """Save a file."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content(path, number))
        self.files[path] = content(path, number)

    def change(self, path, number):
        """Save a file, whose skill is well then."""
        if b"name: notes" not in self.files["SKILL.md"]:
            self.save("SKILL.md", 0)
            self.states.add(self._digests())
        self.save(path, number)
        self.states.add(self._digests())
        self.saves += 1

    def break_it(self, how):
        """Save a ``SKILL.md`` that no host could read; what was served stays."""
        self.files["SKILL.md"] = [b"", b"---\nname: other\ndescription: x\n---\n"][how]
        (self.folder / "SKILL.md").write_bytes(self.files["SKILL.md"])
        self.saves += 1

    def _digests(self):
        return frozenset((path, hashlib.sha256(data).hexdigest()) for path, data in self.files.items())


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(actions=ACTIONS)
def test_what_was_verified_is_never_wrong(way, actions, tmp_path_factory):
    """
    Whatever is saved while a host reads: each set of digests is one state of the files, and each file that
    was verified is of that state. A mismatch means that a save was served since; one `skills/get` ends it.
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
        with WAYS[way](folder) as ask:
            host = Host(ask)
            host.list_skills()
            for kind, what, number in run:
                if kind == "save":
                    author.change(what, number)
                elif kind == "break":
                    host.get(URI)  # a server that has never loaded it well has nothing to keep
                    author.break_it(what)
                else:
                    mismatches += read_healed(host, what, author)
            mismatches += settled(host, author)
    assert mismatches <= author.saves


def read_healed(host, path, author):
    """Read a file until what is read is verified; return how often it was not."""
    for failed in range(author.saves + 1):
        try:
            data = host.read(URI, path)
        except Mismatch:
            host.get(URI)
            continue
        said = frozenset(
            (path, one["digest"].removeprefix("sha256:"))
            for one, path in zip(host.known[URI]["resources"], host.paths(URI), strict=True)
        )
        assert said in author.states
        assert (path, hashlib.sha256(data).hexdigest()) in said
        return failed
    raise AssertionError("a mismatch was not healed")


def settled(host, author):
    """Wait until what is saved is served, if it is well, and read all of it."""
    deadline = time.monotonic() + PATIENCE
    while b"name: notes" in author.files["SKILL.md"]:
        host.get(URI)
        said = {one["digest"].removeprefix("sha256:") for one in host.known[URI]["resources"]}
        if said == {hashlib.sha256(data).hexdigest() for data in author.files.values()}:
            break
        assert time.monotonic() < deadline, "what was saved is not served"
        time.sleep(0.02)
    return sum(read_healed(host, path, author) for path in author.files)


@pytest.mark.parametrize("way", WAYS)
def test_an_approval_ends_with_any_changed_byte(way, tmp_path):
    """And with nothing else: a skill next to it may change."""
    author = Author(tmp_path)
    other = tmp_path / "skills" / "other" / "SKILL.md"
    other.parent.mkdir()
    other.write_text("---\nname: other\ndescription: x\n---\n")
    with WAYS[way](tmp_path) as ask:
        host = Host(ask)
        host.list_skills()
        host.approve(URI)
        other.write_text("---\nname: other\ndescription: y\n---\n")
        wait_for(host, lambda: host.known["skill://other/SKILL.md"]["frontmatter"]["description"] == "y")
        assert host.approved == {URI}

        author.change("deep/x.bin", 5)
        wait_for(host, lambda: host.approved == set())


@pytest.mark.parametrize("way", WAYS)
def test_a_start_after_an_edit_tells_the_new_digests(way, tmp_path):
    """What was kept of the last start is not told of a skill that has changed since."""
    author = Author(tmp_path)
    for number in range(3):
        author.change("rules.md", number)
        for _ in range(2):
            with WAYS[way](tmp_path) as ask:
                host = Host(ask)
                host.list_skills()

                assert {digest.removeprefix("sha256:") for _, digest in digests(host.known[URI])} == {
                    hashlib.sha256(data).hexdigest() for data in author.files.values()
                }
                host.get(URI)  # which waits until all is imported, and so kept for the next start


def wait_for(host, holds):
    """List until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
        host.list_skills()
