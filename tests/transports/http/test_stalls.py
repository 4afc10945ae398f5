"""Blocking prompts delay no other client, and their time limits are enforced."""

import asyncio
import time

import pytest

from tests.posting import post
from tests.transports.http import recipes
from tests.transports.http.test_disconnects import get, serving, wait_for_start, wait_until_idle
from tests.wire import modern

#: The limit for other replies: far shorter than the prompts, and long enough for a busy machine.
REPLY_LIMIT_S = 5.0
STUCK = ["blocks", "spins", "works", "waits", "blocks_its_loop"]


async def check_others_are_answered(app, count=20):
    """Check that other requests are answered soon."""
    messages = [get("greet", number) for number in range(count)] + [modern("l", "prompts/list")]
    for answer in [await post(app, message).result(REPLY_LIMIT_S) for message in messages]:
        assert answer.status == 200


class TestOtherClients:
    @pytest.mark.parametrize("name", STUCK)
    def test_other_clients_while_a_prompt_blocks(self, name):
        """
        A blocking function or a busy loop delays no other request. A coroutine that blocks its event loop
        delays only other coroutines.
        """

        async def run():
            async with serving() as app:
                caller = post(app, get(name))
                await wait_for_start(name)
                await check_others_are_answered(app)
                if name != "blocks_its_loop":
                    waiting_reply = await post(app, get("waits", seconds=0.01)).result(REPLY_LIMIT_S)
                    assert waiting_reply.json["result"]["messages"][0]["content"]["text"] == "Waited."
                caller.gone.set()
                recipes.RELEASED.set()
                await caller.result()

        asyncio.run(run())

    def test_other_clients_while_several_prompts_block(self):
        """All kinds of blocking prompts together, twice, delay no other request."""

        async def run():
            async with serving() as app:
                callers = []
                for number, name in enumerate(STUCK * 2):
                    callers.append(post(app, get(name, number)))
                    await wait_for_start(name)  # a blocked loop starts no other coroutine
                await check_others_are_answered(app, 5)
                for caller in callers:
                    caller.gone.set()
                recipes.RELEASED.set()
                for caller in callers:
                    await caller.result()

        asyncio.run(run())


class TestLimits:
    @pytest.mark.parametrize("name", [*STUCK, "hurries"])
    def test_time_limits_are_enforced(self, name):
        """A prompt that exceeds its time limit is answered with an error, however it blocks."""

        async def run():
            async with serving(timeout=0.3) as app:
                began = time.monotonic()
                answer = await post(app, get(name)).result()
                assert (answer.status, answer.code) == (200, -32603)
                assert "longer than its limit" in answer.json["error"]["message"]
                assert 0.1 < time.monotonic() - began < 10
                recipes.RELEASED.set()
                await wait_until_idle(app)

        asyncio.run(run())
