import pytest

from promptkit import prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from tests.wire import MODERN, Client

FORM = {"elicitation": {"form": {}}}
LISTS = ["prompts/list", "resources/list", "resources/templates/list"]
#: The cacheable results: methods and params.
CACHEABLE = [
    ("server/discover", {}),
    *[(name, {}) for name in LISTS],
    ("resources/read", {"uri": "notes://0"}),
]


@prompt(elicit=True)
def greet(name: str) -> str:
    return f"Hello, {name}."


def client_of(*prompts, count=3, **options):
    """Return a modern client of a server with *count* prompts, resources and templates."""
    numbered = tuple(prompt(name=f"p{i}")(lambda: "x") for i in range(count))
    notes = tuple(resource(f"notes://{i}", name=f"n{i}")(lambda: "private") for i in range(count))
    lines = tuple(resource(f"lines://{i}/{{at}}", name=f"l{i}")(lambda at: at) for i in range(count))
    recipes = Recipes(prompts=(*prompts, *numbered), resources=(*notes, *lines))
    return Client(compile(recipes), MODERN, capabilities=FORM, **options)


def text(reply):
    return reply["result"]["messages"][0]["content"]["text"]


def pages(client, method):
    """Return the pages of a list."""
    results = [client.ask(method)["result"]]
    while "nextCursor" in results[-1]:
        results.append(client.ask(method, {"cursor": results[-1]["nextCursor"]})["result"])
    return results


@pytest.mark.requirement("caching/hints", "caching/lifetime", "caching/shared")
@pytest.mark.parametrize("changes", [True, False])
@pytest.mark.parametrize(("method", "params"), CACHEABLE)
def test_cacheable_results_have_hints(method, params, changes):
    """Cacheable results have a lifetime and the private scope, whether the lists can change or not."""
    result = client_of(changes=changes).ask(method, params)["result"]

    assert (type(result["ttlMs"]), result["ttlMs"] >= 0, result["cacheScope"]) == (int, True, "private")


@pytest.mark.requirement("caching/with-notifications")
@pytest.mark.parametrize("method", LISTS)
def test_lists_with_change_notifications_have_a_lifetime(method):
    """Lists have a lifetime even if the client is notified of changes."""
    client = client_of(changes=True)

    declared = client.ask("server/discover")["result"]["capabilities"][method.partition("/")[0]]
    assert declared["listChanged"] is True
    assert "ttlMs" in client.ask(method)["result"]


@pytest.mark.requirement("caching/same-scope")
@pytest.mark.parametrize("method", LISTS)
def test_all_pages_have_the_same_scope(method):
    results = pages(client_of(count=7, page_size=2), method)

    assert [page["cacheScope"] for page in results] == ["private"] * 4


@pytest.mark.requirement("caching/not-when-asking")
def test_question_has_no_cache_hints():
    """A result that asks for input has no cache hints."""
    result = client_of(greet).get("greet")["result"]

    assert result["resultType"] == "input_required"
    assert {"ttlMs", "cacheScope"} & result.keys() == set()


class TestRetries:
    def test_different_answers_have_different_results(self):
        """Without an answer the request asks again, and each answer has a separate result."""
        client, _ = self.counting()

        assert self.retry(client, "Ada") == "Ada 1"
        assert client.get("counted")["result"]["resultType"] == "input_required"
        assert self.retry(client, "Bob") == "Bob 2"

    @pytest.mark.requirement("caching/retries")
    def test_result_of_a_retry_is_not_cached(self):
        """A cached prompt is rendered again for every retry, and the result serves no other request."""
        client, rendered = self.counting()

        texts = [self.retry(client, "Ada"), self.retry(client, "Ada"), self.get_with(client, "Ada")]

        assert texts == ["Ada 1", "Ada 2", "Ada 3"]
        assert [self.get_with(client, "Ada"), self.retry(client, "Ada")] == ["Ada 3", "Ada 4"]
        assert rendered == ["Ada"] * 4

    @pytest.mark.requirement("caching/retries")
    @pytest.mark.parametrize("member", [{"inputResponses": {}}, {"inputResponses": {"x": {}}}], ids=str)
    def test_unexpected_answers_bypass_the_cache(self, member):
        """A request with params other than its name and arguments is not answered from the cache."""
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
        """Return a client of a cached prompt, and the names that it was rendered for."""
        rendered = []

        @prompt(cache=60, elicit=True)
        def counted(name: str) -> str:
            rendered.append(name)
            return f"{name} {len(rendered)}"

        return client_of(counted), rendered

    def retry(self, client, name):
        """Return the text rendered after a person has entered *name*."""
        question = client.get("counted")["result"]
        (key,) = question["inputRequests"]
        answers = {key: {"action": "accept", "content": {"name": name}}}
        params = {"name": "counted", "arguments": {}, "inputResponses": answers}
        return text(client.ask("prompts/get", {**params, "requestState": question["requestState"]}))

    def get_with(self, client, name):
        """Return the text rendered for a request with *name* as an argument."""
        return text(client.get("counted", name=name))
