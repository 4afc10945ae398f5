"""The fixtures, in runs of pytest as authors start it."""

import re
from textwrap import dedent

import pytest

from promptkit.errors.distribution import install_command

pytest_plugins = ["pytester"]

RECIPE = '''
    from pathlib import Path
    from promptkit import Audio, EmbeddedResource, ResourceLink, Text, assistant, prompt, user

    @prompt
    def talk(word: str = "first"):
        """Talk for a while."""
        yield user("# Start", Text("For the model.", audience="assistant", priority=0.5))
        yield assistant(f"The {word} answer.\\n\\n    indented.")
        yield user(Audio(Path(__file__).with_name("silence.wav").read_bytes()))
        yield EmbeddedResource("a:b", text="embedded", mime_type="text/x-a")
        yield ResourceLink("c:d", name="e")
'''

#: The recipe's snapshot.
SNAPSHOT = """\
[user]
# Start

[user] audience=('assistant',) priority=0.5
For the model.

[assistant]
The first answer.

    indented.

[user] Audio
<audio/wav 2 kB sha256:DIGEST>

[user] EmbeddedResource mime_type='text/x-a'
[a:b]
embedded

[user] ResourceLink
[e](c:d)
"""


@pytest.fixture
def write(pytester, wav):
    """A function that writes files into a project with one recipe."""

    def write(**files):
        for path, source in {"prompts/talk.py": RECIPE, **files}.items():
            file = pytester.path / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(dedent(source).lstrip("\n"))
        (pytester.path / "prompts" / "silence.wav").write_bytes(wav)

    return write


def test_catalog_and_client_of_the_target(write, run):
    """The catalog is compiled once; each test gets its own client, in synchronous and asynchronous tests."""
    write(
        **{
            "test_it.py": """
            import asyncio
            from promptkit.testing import Client

            seen = []

            def test_catalog(promptkit_catalog, promptkit_client):
                assert list(promptkit_catalog) == ["talk"]
                assert promptkit_catalog.diagnostics == ()
                assert "first" in promptkit_client.get_prompt("talk")
                seen.append((promptkit_catalog, promptkit_client))

            def test_client(promptkit_catalog, promptkit_client):
                assert type(promptkit_client) is Client
                assert seen[0][0] is promptkit_catalog
                assert seen[0][1] is not promptkit_client

                async def later():
                    return promptkit_client.get_prompt("talk", {"word": "second"})

                assert "second" in asyncio.run(later())
            """
        }
    )

    run().assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"pyproject.toml": "[tool.promptkit]\ntarget = 'nowhere'"}, "cannot load 'nowhere'"),
        (
            {"pyproject.toml": "[tool.promptkit]\nclient = []"},
            "has no setting 'client': did you mean 'clients'?",
        ),
        ({"prompts/bad.py": "import nothing_there"}, "PK101"),
    ],
)
def test_errors_of_the_target_are_reported(files, message, write, run):
    """
    If the target has errors, the test fails with a one-line message instead of using part of the target.
    """
    write(**files, **{"test_it.py": "def test(promptkit_client): pass"})

    result = run("--rootdir=.")

    result.assert_outcomes(errors=1)
    assert message in result.stdout.str()


class TestSnapshot:
    TEST = """
        from prompts.talk import talk

        def test_talk(promptkit_snapshot):
            assert talk.render() == promptkit_snapshot
    """

    def test_snapshot_is_a_readable_file(self, write, run, pytester):
        """
        A snapshot is one readable Markdown file per test, with media as type, size and digest. A changed word
        is shown with its line, as - and +.
        """
        write(**{"test_it.py": self.TEST, "pyproject.toml": ""})

        run().assert_outcomes(failed=1)
        run("--snapshot-update").assert_outcomes(passed=1)
        run().assert_outcomes(passed=1)
        (file,) = pytester.path.glob("__snapshots__/**/*.*")
        assert str(file.relative_to(pytester.path)) == "__snapshots__/test_it/test_talk.md"
        assert re.sub(r"sha256:[0-9a-f]{8}", "sha256:DIGEST", file.read_text()) == SNAPSHOT

        write(**{"prompts/talk.py": RECIPE.replace('"first"', '"other"')})
        result = run("--color=no")
        result.assert_outcomes(failed=1)
        error_lines = [line[1:].strip() for line in result.outlines if line.startswith("E")]
        assert [line for line in error_lines if line.startswith(("- ", "+ "))] == [
            "- The first answer.",
            "+ The other answer.",
        ]
        assert len(error_lines) <= 15

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (r"user('a\n\n[assistant]\nb')", "user('a') + assistant('b')"),
            (r"user('a\r\nb')", r"user('a\nb')"),
            (r"user('a\n')", "user('a')"),
            (r"user('a\x0cb\x85c\u2028d\re')", r"user('a\nb\nc\nd\ne')"),
            ("user(ResourceLink('a:b', name='c'))", "user(ResourceLink('a:b', name='c', title='c'))"),
        ],
    )
    def test_similar_workflows_have_different_snapshots(self, before, after, write, run):
        """A written snapshot matches its own workflow, but not a different one that looks the same."""

        def write_test(workflow):
            write(
                **{
                    "pyproject.toml": "",
                    "test_it.py": f"""
                    from promptkit import ResourceLink, assistant, user

                    def test_it(promptkit_snapshot):
                        assert {workflow} == promptkit_snapshot
                    """,
                }
            )

        write_test(before)
        run("--snapshot-update").assert_outcomes(passed=1)
        run().assert_outcomes(passed=1)
        write_test(after)
        run().assert_outcomes(failed=1)

    def test_accepted_types(self, write, run):
        """Messages, content and text can have snapshots; any other type is an error."""
        write(
            **{
                "pyproject.toml": "",
                "test_it.py": """
                from promptkit import Text, user

                def test_other(promptkit_snapshot):
                    assert {"a": 1} == promptkit_snapshot

                def test_it(promptkit_snapshot):
                    assert user("a")[0] == promptkit_snapshot
                    assert Text("b", priority=1) == promptkit_snapshot
                    assert "c" == promptkit_snapshot
                """,
            }
        )

        run("--snapshot-update").assert_outcomes(passed=1, failed=1)
        result = run()
        result.assert_outcomes(passed=1, failed=1)
        assert "TypeError: promptkit_snapshot accepts a rendering or text, not a dict" in (
            result.stdout.str()
        )

    def test_missing_syrupy(self, write, run_alone):
        """Without syrupy, the error of this fixture has the install command, and all other features work."""
        write(
            **{
                "pyproject.toml": "",
                "conftest.py": "import sys\nsys.modules['syrupy.extensions.single_file'] = None",
                "test_it.py": self.TEST + "\n        def test_else(promptkit_client): pass",
            }
        )

        result = run_alone("-p", "no:syrupy")

        result.assert_outcomes(errors=1, passed=1)
        assert f"promptkit_snapshot needs syrupy: {install_command('testing')}" in result.stdout.str()
