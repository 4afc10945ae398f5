"""Latency alongside a prompt that sleeps or works."""

import pytest

from tests.wire import modern, request

#: The limits for a reply and for the exit, in seconds. The grace period is 1 s, and the prompt takes 900 s.
REPLY_S = 0.050
EXIT_S = 10.0

SLEEPERS = ["sleeps", "spins", "naps"]


@pytest.mark.parametrize("sleeper", SLEEPERS)
def test_latency_during_a_long_prompt(serve, full_length, figures, sleeper):
    """
    While a prompt runs, the 99th percentile of a ping is below 50 ms; when the input ends, the process exits
    without waiting for the prompt, and without a reply for it.
    """
    serving, number = serve("--timeout", "900"), 5000 if full_length else 500
    serving.send(modern("sleeper", "prompts/get", {"name": sleeper, "arguments": {"seconds": "900"}}))

    durations = sorted(serving.ask(request(turn, "ping"))[1] for turn in range(number))
    exit_time, code = serving.end()

    lines = serving.all_output()
    assert not any(b'"id":"sleeper"' in text for text in lines)
    assert code == 0
    assert exit_time < EXIT_S
    assert durations[int(number * 0.99)] < REPLY_S
    figures(
        sleeper=sleeper,
        pings=number,
        median_ms=f"{durations[number // 2] * 1000:.2f}",
        p99_ms=f"{durations[int(number * 0.99)] * 1000:.2f}",
        slowest_ms=f"{durations[-1] * 1000:.2f}",
        exit_s=f"{exit_time:.2f}",
    )
