"""Renewals across processes, and through the death of one."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from gateway.connectors.model import ConnectorRecord
from gateway.errors import ReauthorizationRequired
from tests.connectors.consent.conftest import World

KIND = "work-management"
ROOT = Path(__file__).parents[3]


async def _process(world: World, record: ConnectorRecord, calls: int) -> Process:
    """A process at the start line."""
    arguments = (world.database.url, str(world.origin), str(world.organization_id), str(record.id), str(calls))
    module = ("-m", "tests.connectors.consent.renewing_process")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *module, *arguments, stdin=PIPE, stdout=PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


async def test_fifty_callers_in_two_processes_make_one_request(world: World) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=0)
    processes = [await _process(world, record, 25) for _ in range(2)]

    outputs = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))

    headers = [header for output, _ in outputs for header in json.loads(output)]
    assert headers == ["Bearer access-2"] * 50
    assert len(world.server.token_requests) == 1


async def test_a_process_killed_while_it_renews_leaves_a_connector_that_says_so(world: World) -> None:
    record = await world.connector(KIND, world.server.pair(), ends_in=0)
    await _killed_while_asking(world, record)

    with pytest.raises(ReauthorizationRequired) as refused:
        await world.oauth.authorizers.authorizer_of(record).headers()

    after = await world.again(record.id)
    assert (after.status, after.status_reason) == ("needs_reauth", refused.value.detail)
    assert "was interrupted before its response was stored" in refused.value.detail


async def test_a_killed_renewal_costs_nothing_where_refresh_tokens_stay(world: World) -> None:
    world.server.rotates = False
    record = await world.connector(KIND, world.server.pair(), ends_in=0)
    await _killed_while_asking(world, record)

    headers = await world.oauth.authorizers.authorizer_of(record).headers()

    assert headers["Authorization"].removeprefix("Bearer ") in world.server.good
    assert (await world.again(record.id)).status == "active"


async def _killed_while_asking(world: World, record: ConnectorRecord) -> None:
    """A process dies by SIGKILL between its token request and the answer, which the application gives all the same."""
    world.server.open.clear()
    process = await _process(world, record, 1)
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    await world.server.arrived.wait()
    process.kill()
    await process.communicate()
    world.server.open.set()
    await _lapsed(world, record)


async def _lapsed(world: World, record: ConnectorRecord) -> None:
    """The lease of the dead process runs out."""
    await world.sql("UPDATE connector_secrets SET refreshing_until = now() WHERE connector_id = $1", record.id)
