"""A connection that answers from a dictionary, without a server."""

from promptkit.foreign.listing import RequestError

UNKNOWN = RequestError(-32602, "unknown")
NO_METHOD = RequestError(-32601, "no such method")


class ScriptedConnection:
    """
    A connection with prescribed results.

    Args:
        **results:
            The result of each method, with `_` for `/` in its name. An exception is raised; a function is
            called with the parameters. If a result is a list, each request gets the next item, and
            the last item is repeated.
    """

    def __init__(self, **results):
        self.results = {name.replace("_", "/"): result for name, result in results.items()}
        self.requests = []

    def request(self, method, params=None):
        """Return the result of a method."""
        self.requests.append((method, dict(params or {})))
        result = self.results.get(method, NO_METHOD)
        if isinstance(result, list):
            result = result.pop(0) if result[1:] else result[0]
        if callable(result):
            result = result(params)
        if isinstance(result, Exception):
            raise result
        return result
