"""Nothing stalls: whatever one prompt does, other clients are answered at once, and limits hold."""

import asyncio
import time

import pytest

from tests.posting import post
from tests.transports.http import recipes
from tests.transports.http.test_disconnects import get, serving, wait_for_start, wait_until_idle
from tests.wire import modern

#: How long others may wait. It is far less than the prompts take, and far more than a busy machine needs.
SOON_S = 5.0
STUCK = ["blocks", "spins", "works", "waits", "blocks_its_loop"]


async def all_answered(app, count=20):
    """Check that others are answered soon, whatever they ask for."""
    messages = [get("greet", number) for number in range(count)] + [modern("l", "prompts/list")]
    for answer in [await post(app, message).result(SOON_S) for message in messages]:
        assert answer.status == 200


class TestOthers:
    @pytest.mark.parametrize("name", STUCK)
    def test_while_one_is_stuck(self, name):
        """
        A blocking function and a hot loop delay nobody, even at first. A coroutine that blocks its loop
        delays other coroutines alone.
        """

        async def run():
            async with serving() as app:
                caller = post(app, get(name))
                await wait_for_start(name)
                await all_answered(app)
                if name != "blocks_its_loop":
                    waits = await post(app, get("waits", seconds=0.01)).result(SOON_S)
                    assert waits.json["result"]["messages"][0]["content"]["text"] == "Waited."
                caller.gone.set()
                recipes.RELEASED.set()
                await caller.result()

        asyncio.run(run())

    def test_while_several_are_stuck(self):
        """So do all of them together, and the same ones again."""

        async def run():
            async with serving() as app:
                callers = []
                for number, name in enumerate(STUCK * 2):
                    callers.append(post(app, get(name, number)))
                    await wait_for_start(name)  # what blocks its loop would let no other coroutine begin
                await all_answered(app, 5)
                for caller in callers:
                    caller.gone.set()
                recipes.RELEASED.set()
                for caller in callers:
                    await caller.result()

        asyncio.run(run())


class TestLimits:
    @pytest.mark.parametrize("name", [*STUCK, "hurries"])
    def test_they_hold(self, name):
        """What takes longer than its limit is answered with an error then, whatever it does."""

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
