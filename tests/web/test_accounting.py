"""Calls and files are counted once, and a refusal of credentials names the sunset of the method in both."""

import aiohttp
import pytest

from gateway.foundation.telemetry.metrics import EXECUTES
from tests.harness.sandbox import faults
from tests.harness.waiting import eventually

FILE = "download/attachments?attachment_id=1"
DOWNLOAD = {"attachment_id": 1}
ENDS = "API token ends on 2027-04-30; use OAuth (oauth) instead"


def downloads(outcome: str) -> float:
    return EXECUTES.value("support-desk", "attachments", "download", outcome)


@pytest.fixture
async def fault(front):
    """`await fault(…)`: sets the application's fault from then on."""
    async with faults(front.sandbox_url) as arm:
        yield arm


async def test_a_streamed_file_is_counted_when_its_last_byte_is_sent(api, support_desk):
    before = downloads("succeeded")

    await api.get(f"{support_desk.path}/{FILE}")

    assert await eventually(lambda: downloads("succeeded") == before + 1)


async def test_a_truncated_file_is_counted_with_its_error(api, support_desk, fault):
    before = downloads("upstream_truncated")
    await fault(path_prefix="/attachments/", truncate_after_bytes=100)

    with pytest.raises(aiohttp.ClientError):
        await api.get(f"{support_desk.path}/{FILE}")

    assert await eventually(lambda: downloads("upstream_truncated") == before + 1, within=20)


async def test_a_file_whose_caller_disconnects_is_counted_as_interrupted(front, api, support_desk, fault):
    before = downloads("interrupted")
    await fault(path_prefix="/attachments/", stall_after_bytes=100)

    async with aiohttp.ClientSession(front.base_url, headers=api.headers) as leaving:
        response = await leaving.get(f"{support_desk.path}/{FILE}")
        await response.content.readexactly(100)
        response.close()

    assert await eventually(lambda: downloads("interrupted") == before + 1)


async def test_a_call_with_an_idempotency_key_is_counted_once(support_desk):
    before = EXECUTES.value("support-desk", "tickets", "list", "succeeded")

    await support_desk.send("tickets", "list", {"per_page": 1}, headers={"Idempotency-Key": "counted"})

    assert EXECUTES.value("support-desk", "tickets", "list", "succeeded") == before + 1


async def test_every_way_to_call_adds_the_sunset_to_a_refusal_of_credentials(api, fault):
    listed, keyed, executed, streamed = [await api.connector() for _ in range(4)]
    await fault(path_prefix="/api/v2/", status=401)

    answers = [
        await listed.send("tickets", "list"),
        await keyed.send("tickets", "list", headers={"Idempotency-Key": "refused"}),
        await executed.send("attachments", "download", DOWNLOAD),
        await api.get(f"{streamed.path}/{FILE}"),
    ]

    assert [answer.status for answer in answers] == [424] * 4
    assert [answer.json()["detail"].count(ENDS) for answer in answers] == [1] * 4
