import pytest

from tests.wire import modern, request

#: What a request, and the end of the process, may take, in seconds.
ANSWER = 0.050
EXIT = 1.5

SLEEPERS = ["sleeps", "spins", "naps"]


@pytest.mark.parametrize("sleeper", SLEEPERS)
def test_beside_a_sleeper(serve, whole, figures, sleeper):
    """
    Beside a prompt that goes on, ping is answered within 50 ms at the 99th percentile; and when the input
    ends, the process does within 1.5 s, and says nothing of its sleeper: nobody reads on.
    """
    serving, number = serve("--timeout", "900"), 5000 if whole else 500
    serving.send(modern("sleeper", "prompts/get", {"name": sleeper, "arguments": {"seconds": "900"}}))

    took = sorted(serving.ask(request(turn, "ping"))[1] for turn in range(number))
    exited, code = serving.end()

    lines = serving.drained()
    assert not any(b'"id":"sleeper"' in text for text in lines)
    assert code == 0
    assert exited < EXIT
    assert took[int(number * 0.99)] < ANSWER
    figures(
        sleeper=sleeper,
        pings=number,
        median_ms=f"{took[number // 2] * 1000:.2f}",
        p99_ms=f"{took[int(number * 0.99)] * 1000:.2f}",
        slowest_ms=f"{took[-1] * 1000:.2f}",
        exit_s=f"{exited:.2f}",
    )
