import asyncio
import json
from contextlib import aclosing

from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load
from promptkit.preview.live import CatalogVersion, LiveCatalog
from promptkit.preview.routes import create_application
from tests.preview.conftest import HOST, TOKEN, get_cookie

IMPORT = "from promptkit import prompt\n\n"


def compile_recipes(recipes, **files):
    """Compile recipe files to a catalog."""
    return compile(load(recipes(**files)))


def next_version(before, after):
    """Return the catalog version that follows when one catalog replaces another."""
    return CatalogVersion(before).next_version(after)


class TestCatalogVersion:
    def test_changes_are_listed(self, recipes):
        """Changed, added and removed prompts and resources are listed, but not prompts that only moved."""
        before = compile_recipes(
            recipes, a=IMPORT + "@prompt\ndef x():\n    return 'a'\n@prompt\ndef y(): return 'b'\n"
        )
        after = compile_recipes(
            recipes,
            a=IMPORT + "# moved\n@prompt\ndef x():\n    return 'other'\n@prompt\ndef z(): return 'b'\n",
            b="from promptkit import prompt, resource\n@resource('a://b')\ndef r(): return 'c'\n"
            "@prompt\ndef same(): return (lambda: 'd')()\n",
        )
        moved = compile_recipes(
            recipes,
            b="\n\nfrom promptkit import prompt, resource\n@resource('a://b')\n"
            "def r(): return 'c'\n@prompt\ndef same(): return (lambda: 'd')()\n",
        )

        change = next_version(before, after)
        assert (change.changed, change.added, change.removed) == (("x",), ("same", "z", "a://b"), ("y",))
        assert str(change) == "Reloaded: changed x; added same, z and a://b; removed y."
        assert str(next_version(after, moved)) == "Reloaded."

    def test_changed_default_is_a_change(self, recipes):
        """A changed default of an argument counts as a change, even if the function's body is the same."""
        before = compile_recipes(recipes, a=IMPORT + "@prompt\ndef x(n: int = 1):\n    return 'a'\n")
        after = compile_recipes(recipes, a=IMPORT + "@prompt\ndef x(n: int = 2):\n    return 'a'\n")

        assert next_version(before, after).changed == ("x",)

    def test_broken_repr_does_not_stop_a_reload(self, recipes):
        """A default whose `repr` and comparison raise does not stop a reload."""
        odd = """
        from promptkit import prompt, register_type

        class Odd:
            __hash__ = None
            def __repr__(self): raise LookupError
            def __eq__(self, other): raise LookupError

        register_type(Odd, lambda text: Odd(), expected="anything odd", write=lambda odd: "odd")

        @prompt
        def x(odd: Odd = Odd()):
            return 'a'
        """
        before, after = compile_recipes(recipes, a=odd), compile_recipes(recipes, a=odd)

        assert list(before) == ["x"]
        assert next_version(before, after).added == ()

    def test_broken_files_are_named(self, recipes):
        """Broken files are named until they are fixed, and other files still reload."""
        invalid = IMPORT + "@prompt\ndef bare(text):\n    return text\n"
        other = IMPORT + "@prompt\ndef x(): return 'a'\n"
        empty = compile_recipes(recipes, mine=IMPORT, other=other)
        broken = compile_recipes(recipes, mine=invalid, other=other)
        again = compile_recipes(recipes, mine=invalid, other=other.replace("'a'", "'b'"))
        both = compile_recipes(recipes, mine=invalid, other="(")

        assert (str(next_version(empty, broken)), next_version(empty, broken).load_errors) == (
            "",
            "Not loaded: 1 error in mine.py.",
        )
        assert str(next_version(broken, again)) == "Reloaded: changed x."
        assert next_version(broken, both).load_errors == "Not loaded: 2 errors in mine.py and other.py."
        assert next_version(broken, empty).load_errors == ""

    def test_long_list_of_names_is_shortened(self, recipes):
        """A long list of names is shortened."""
        source = IMPORT + "".join(f"@prompt\ndef p{n}(): return 'a'\n" for n in range(9))
        change = next_version(compile_recipes(recipes, a=IMPORT), compile_recipes(recipes, a=source))

        assert str(change).startswith("Reloaded: added p0, p1, p2, p3 and 5 more")


class TestLive:
    def test_subscribers_receive_the_newest_change(self, recipes):
        """Subscribers receive the newest change, whether a thread publishes it before or while they wait."""
        empty = compile_recipes(recipes, a=IMPORT)
        filled = compile_recipes(recipes, a=IMPORT + "@prompt\ndef x(): return 'a'\n")

        async def scenario():
            live = LiveCatalog(empty)
            live.publish(filled)
            async with aclosing(live.versions(0)) as versions:
                received = [await anext(versions)]
                waiting = asyncio.create_task(anext(versions))
                await asyncio.to_thread(live.publish, empty)
                received.append(await waiting)
            return [(version.number, version.added, version.removed) for version in received]

        assert asyncio.run(scenario()) == [(1, ("x",), ()), (2, (), ("x",))]

    def test_close_ends_subscriptions(self, recipes):
        """Closing ends waiting subscriptions."""

        async def scenario():
            live = LiveCatalog(compile_recipes(recipes))
            waiting = asyncio.create_task(anext(live.versions(0), "ended"))
            await asyncio.sleep(0)
            live.close()
            return await waiting

        assert asyncio.run(scenario()) == "ended"

    def test_broken_catalog_is_reported_once(self, recipes):
        """Reporting a broken catalog publishes its errors once and keeps the last good prompts."""
        before = compile_recipes(recipes, a=IMPORT + "@prompt\ndef x(): return 'a'\n")
        broken = compile_recipes(recipes, a="(")
        live = LiveCatalog(before)
        live.report(broken)

        assert (list(live.newest.catalog), len(live.newest.catalog.diagnostics)) == (["x"], 1)
        assert live.newest.number == 1
        live.report(broken)
        assert live.newest.number == 1


def test_event_stream_sends_changes(recipes):
    """The event stream sends each unseen change as JSON and ends when the preview closes."""
    live = LiveCatalog(compile_recipes(recipes, a=IMPORT))
    app = create_application(live, "recipes", TOKEN, [HOST])
    headers = [(b"host", HOST.encode()), (b"cookie", get_cookie(app))]
    scope = {"type": "http", "method": "GET", "path": "/events", "headers": headers}
    scope |= {"query_string": b"version=0", "root_path": "", "http_version": "1.1", "scheme": "http"}

    async def scenario():
        sent = asyncio.Queue()

        async def receive():
            await asyncio.sleep(50)

        response = asyncio.create_task(app(scope, receive, sent.put))
        start = await sent.get()
        live.publish(compile_recipes(recipes, a=IMPORT + "@prompt\ndef x(): return 'a'\n"))
        body = b""
        while b"event: reload" not in body:
            body += (await sent.get())["body"]
        live.close()
        await response
        return start, body.decode()

    start, body = asyncio.run(scenario())

    assert (b"content-type", b"text/event-stream; charset=utf-8") in start["headers"]
    event = body[body.index("id:") :]
    assert event.startswith("id: 1\nevent: reload\ndata: ")
    assert json.loads(event.splitlines()[2].removeprefix("data: ")) == {
        "version": 1,
        "message": "Reloaded: added x.",
    }
