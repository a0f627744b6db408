"""Twelve tasks through the six tools: what they do, in how many calls, and how much a model reads and writes."""

from collections.abc import AsyncIterator

import pytest

from tests.harness.caller import Api
from tests.harness.clients import new_client_in
from tests.harness.up import Running
from tests.journeys.agent_tasks import TASKS, Task, World, world_of


@pytest.fixture(scope="module")
async def connected(running: Running) -> AsyncIterator[World]:
    """The connectors of an organization of its own."""
    client = await new_client_in(running.database_url)
    async with Api.of(running.base_url, client.id, client.secret) as api, world_of(api) as world:
        yield world


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
async def test_a_task_is_done_in_few_calls_and_few_tokens(connected: World, task: Task) -> None:
    world = connected.with_another_model()

    await task.do(world)

    assert world.model.calls <= task.calls
    assert world.model.tokens <= task.tokens
