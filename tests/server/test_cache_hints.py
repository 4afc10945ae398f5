import pytest

from promptkit import prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from tests.wire import MODERN, Client

FORM = {"elicitation": {"form": {}}}
LISTS = ["prompts/list", "resources/list", "resources/templates/list"]
#: What clients may keep, and how each is asked for.
KEPT = [("server/discover", {}), *[(name, {}) for name in LISTS], ("resources/read", {"uri": "notes://0"})]


@prompt(elicit=True)
def greet(name: str) -> str:
    return f"Hello, {name}."


def client_of(*prompts, count=3, **options):
    """A client of the modern era, and a server with that many of everything."""
    many = tuple(prompt(name=f"p{i}")(lambda: "x") for i in range(count))
    notes = tuple(resource(f"notes://{i}", name=f"n{i}")(lambda: "private") for i in range(count))
    lines = tuple(resource(f"lines://{i}/{{at}}", name=f"l{i}")(lambda at: at) for i in range(count))
    recipes = Recipes(prompts=(*prompts, *many), resources=(*notes, *lines))
    return Client(compile(recipes), MODERN, capabilities=FORM, **options)


def text(reply):
    return reply["result"]["messages"][0]["content"]["text"]


def pages(client, method):
    """The results that hold a list, page by page."""
    found = [client.ask(method)["result"]]
    while "nextCursor" in found[-1]:
        found.append(client.ask(method, {"cursor": found[-1]["nextCursor"]})["result"])
    return found


@pytest.mark.requirement("caching/hints", "caching/lifetime", "caching/shared")
@pytest.mark.parametrize("changes", [True, False])
@pytest.mark.parametrize(("method", "params"), KEPT)
def test_what_may_be_kept_says_so(method, params, changes):
    """
    It says for how many milliseconds, and that it is for this client alone: whether or not it
    may change, what recipes make is their owner's.
    """
    result = client_of(changes=changes).ask(method, params)["result"]

    assert (type(result["ttlMs"]), result["ttlMs"] >= 0, result["cacheScope"]) == (int, True, "private")


@pytest.mark.requirement("caching/with-notifications")
@pytest.mark.parametrize("method", LISTS)
def test_lists_whose_changes_are_told_have_a_lifetime(method):
    """
    A client that is notified of changes still learns how long a list may be kept.
    """
    client = client_of(changes=True)

    declared = client.ask("server/discover")["result"]["capabilities"][method.partition("/")[0]]
    assert declared["listChanged"] is True
    assert "ttlMs" in client.ask(method)["result"]


@pytest.mark.requirement("caching/same-scope")
@pytest.mark.parametrize("method", LISTS)
def test_all_pages_have_one_scope(method):
    """
    Every page of a list is for the same clients.
    """
    found = pages(client_of(count=7, page_size=2), method)

    assert [page["cacheScope"] for page in found] == ["private"] * 4


@pytest.mark.requirement("caching/not-when-asking")
def test_a_question_is_not_kept():
    """
    A result that asks for something says nothing of being kept.
    """
    result = client_of(greet).get("greet")["result"]

    assert result["resultType"] == "input_required"
    assert {"ttlMs", "cacheScope"} & result.keys() == set()


class TestRetries:
    def test_answers_are_told_apart(self):
        """
        Without an answer the request asks again, and each answer has a result of its own.
        """
        client, _ = self.counting()

        assert self.retry(client, "Ada") == "Ada 1"
        assert client.get("counted")["result"]["resultType"] == "input_required"
        assert self.retry(client, "Bob") == "Bob 2"

    @pytest.mark.requirement("caching/retries")
    def test_what_a_retry_brought_about_is_kept_nowhere(self):
        """
        A prompt whose replies are kept is rendered anew for a retry, and the result of the
        retry serves no other request.
        """
        client, rendered = self.counting()

        texts = [self.retry(client, "Ada"), self.retry(client, "Ada"), self.given(client, "Ada")]

        assert texts == ["Ada 1", "Ada 2", "Ada 3"]
        assert [self.given(client, "Ada"), self.retry(client, "Ada")] == ["Ada 3", "Ada 4"]
        assert rendered == ["Ada"] * 4

    @pytest.mark.requirement("caching/retries")
    @pytest.mark.parametrize("member", [{"inputResponses": {}}, {"inputResponses": {"x": {}}}], ids=str)
    def test_answers_that_nobody_asked_for(self, member):
        """
        Whatever a request brings next to its arguments keeps its result from being kept.
        """
        rendered = []

        @prompt(cache=60)
        def quiet() -> str:
            rendered.append(1)
            return "x"

        client = client_of(quiet)
        for _ in range(2):
            client.ask("prompts/get", {"name": "quiet", **member})

        assert len(rendered) == 2

    def counting(self):
        """A client of a prompt whose replies are kept, and for whom it was rendered."""
        rendered = []

        @prompt(cache=60, elicit=True)
        def counted(name: str) -> str:
            rendered.append(name)
            return f"{name} {len(rendered)}"

        return client_of(counted), rendered

    def retry(self, client, name):
        """The reply after a person has entered *name*."""
        asked = client.get("counted")["result"]
        (key,) = asked["inputRequests"]
        answers = {key: {"action": "accept", "content": {"name": name}}}
        params = {"name": "counted", "arguments": {}, "inputResponses": answers}
        return text(client.ask("prompts/get", {**params, "requestState": asked["requestState"]}))

    def given(self, client, name):
        """The reply if *name* is given at once."""
        return text(client.get("counted", name=name))
