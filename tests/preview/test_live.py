import asyncio
import json
from contextlib import aclosing

from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load
from promptkit.preview.live import CatalogVersion, Live
from promptkit.preview.routes import application
from tests.preview.conftest import HOST, TOKEN, cookie_of

ONE = "from promptkit import prompt\n\n"


def catalog(recipes, **files):
    """Compile recipe files to a catalog."""
    return compile(load(recipes(**files)))


def changed(before, after):
    """Return the catalog version that follows when one catalog replaces another."""
    return CatalogVersion(before).next(after)


class TestCatalogVersion:
    def test_what_is_said(self, recipes):
        """Changed, added and removed prompts and resources are listed; a prompt that only moved is not."""
        before = catalog(recipes, a=ONE + "@prompt\ndef x():\n    return 'a'\n@prompt\ndef y(): return 'b'\n")
        after = catalog(
            recipes,
            a=ONE + "# moved\n@prompt\ndef x():\n    return 'other'\n@prompt\ndef z(): return 'b'\n",
            b="from promptkit import prompt, resource\n@resource('a://b')\ndef r(): return 'c'\n"
            "@prompt\ndef same(): return (lambda: 'd')()\n",
        )
        moved = catalog(
            recipes,
            b="\n\nfrom promptkit import prompt, resource\n@resource('a://b')\n"
            "def r(): return 'c'\n@prompt\ndef same(): return (lambda: 'd')()\n",
        )

        change = changed(before, after)
        assert (change.changed, change.added, change.removed) == (("x",), ("same", "z", "a://b"), ("y",))
        assert str(change) == "Reloaded: changed x; added same, z and a://b; removed y."
        assert str(changed(after, moved)) == "Reloaded."

    def test_an_argument_is_a_change(self, recipes):
        """A changed default of an argument counts as a change, even if the function's body is the same."""
        before = catalog(recipes, a=ONE + "@prompt\ndef x(n: int = 1):\n    return 'a'\n")
        after = catalog(recipes, a=ONE + "@prompt\ndef x(n: int = 2):\n    return 'a'\n")

        assert changed(before, after).changed == ("x",)

    def test_values_that_cannot_be_shown(self, recipes):
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
        before, after = catalog(recipes, a=odd), catalog(recipes, a=odd)

        assert list(before) == ["x"]
        assert changed(before, after).added == ()

    def test_a_broken_file_is_not_reloaded(self, recipes):
        """Broken files are named until they are fixed, and other files still reload."""
        fault = ONE + "@prompt\ndef bare(text):\n    return text\n"
        other = ONE + "@prompt\ndef x(): return 'a'\n"
        empty = catalog(recipes, mine=ONE, other=other)
        broken = catalog(recipes, mine=fault, other=other)
        again = catalog(recipes, mine=fault, other=other.replace("'a'", "'b'"))
        both = catalog(recipes, mine=fault, other="(")

        assert (str(changed(empty, broken)), changed(empty, broken).broken) == (
            "",
            "Not loaded: 1 fault in mine.py.",
        )
        assert str(changed(broken, again)) == "Reloaded: changed x."
        assert changed(broken, both).broken == "Not loaded: 2 faults in mine.py and other.py."
        assert changed(broken, empty).broken == ""

    def test_many_names(self, recipes):
        """A long list of names is shortened."""
        source = ONE + "".join(f"@prompt\ndef p{n}(): return 'a'\n" for n in range(9))
        change = changed(catalog(recipes, a=ONE), catalog(recipes, a=source))

        assert str(change).startswith("Reloaded: added p0, p1, p2, p3 and 5 more")


class TestLive:
    def test_pages_are_told_the_newest_change(self, recipes):
        """Subscribers receive the newest change, published before or while they wait, from any thread."""
        empty, one = catalog(recipes, a=ONE), catalog(recipes, a=ONE + "@prompt\ndef x(): return 'a'\n")

        async def scenario():
            live = Live(empty)
            live.publish(one)
            async with aclosing(live.versions(0)) as versions:
                said = [await anext(versions)]
                waiting = asyncio.create_task(anext(versions))
                await asyncio.to_thread(live.publish, empty)
                said.append(await waiting)
            return [(one.number, one.added, one.removed) for one in said]

        assert asyncio.run(scenario()) == [(1, ("x",), ()), (2, (), ("x",))]

    def test_the_end(self, recipes):
        """Closing ends waiting subscriptions."""

        async def scenario():
            live = Live(catalog(recipes))
            told = asyncio.create_task(anext(live.versions(0), "ended"))
            await asyncio.sleep(0)
            live.close()
            return await told

        assert asyncio.run(scenario()) == "ended"

    def test_faults_alone(self, recipes):
        """Reporting a broken catalog publishes its errors once and keeps the last good prompts."""
        before = catalog(recipes, a=ONE + "@prompt\ndef x(): return 'a'\n")
        broken = catalog(recipes, a="(")
        live = Live(before)
        live.report(broken)

        assert (list(live.newest.catalog), len(live.newest.catalog.diagnostics)) == (["x"], 1)
        assert live.newest.number == 1
        live.report(broken)
        assert live.newest.number == 1


def test_events_are_sent_to_pages(recipes):
    """The event stream sends each unseen change as JSON and ends when the preview closes."""
    live = Live(catalog(recipes, a=ONE))
    pages = application(live, "recipes", TOKEN, [HOST])
    headers = [(b"host", HOST.encode()), (b"cookie", cookie_of(pages))]
    scope = {"type": "http", "method": "GET", "path": "/events", "headers": headers}
    scope |= {"query_string": b"version=0", "root_path": "", "http_version": "1.1", "scheme": "http"}

    async def scenario():
        sent = asyncio.Queue()

        async def receive():
            await asyncio.sleep(50)

        answering = asyncio.create_task(pages(scope, receive, sent.put))
        begun = await sent.get()
        live.publish(catalog(recipes, a=ONE + "@prompt\ndef x(): return 'a'\n"))
        body = b""
        while b"event: reload" not in body:
            body += (await sent.get())["body"]
        live.close()
        await answering
        return begun, body.decode()

    begun, body = asyncio.run(scenario())

    assert (b"content-type", b"text/event-stream; charset=utf-8") in begun["headers"]
    event = body[body.index("id:") :]
    assert event.startswith("id: 1\nevent: reload\ndata: ")
    assert json.loads(event.splitlines()[2].removeprefix("data: ")) == {
        "version": 1,
        "said": "Reloaded: added x.",
    }
