import time

import pytest

from tests.wire import modern, request

#: What the end of a request and of the process may take, in seconds.
ANSWER = 0.050
EXIT = 1.5

SLEEPERS = ["sleeps", "spins", "naps"]


@pytest.mark.parametrize("sleeper", SLEEPERS)
def test_beside_a_sleeper(serve, whole, figures, sleeper):
    """
    Beside a prompt that takes 15 s, ping is answered within 50 ms at the 99th percentile; and when
    the input ends, the process does within 1.5 s, its sleeper answered.
    """
    serving, number = serve(), 5000 if whole else 500
    serving.send(modern("sleeper", "prompts/get", {"name": sleeper}))

    started = time.monotonic()
    took = sorted(serving.ask(request(turn, "ping"))[1] for turn in range(number))
    lasted = time.monotonic() - started
    exited, code = serving.end()

    lines = serving.drained()
    assert sum(b'"id":"sleeper"' in text for text in lines) == 1
    assert code == 0
    assert exited < EXIT
    assert took[int(number * 0.99)] < ANSWER
    assert lasted < 15
    figures(
        sleeper=sleeper,
        pings=number,
        median_ms=f"{took[number // 2] * 1000:.2f}",
        p99_ms=f"{took[int(number * 0.99)] * 1000:.2f}",
        slowest_ms=f"{took[-1] * 1000:.2f}",
        exit_s=f"{exited:.2f}",
    )
