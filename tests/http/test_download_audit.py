"""A download has succeeded when its last byte is out: what breaks off, or is left, is on record as that."""

import aiohttp
import pytest

from tests.harness.sandbox import faults
from tests.http.test_routes import noted

FILE = "download/attachments?attachment_id=1"


@pytest.fixture
async def fault(front):
    """`await fault(…)`: what the application does wrong with every file from then on."""
    async with faults(front.sandbox_url, path_prefix="/attachments/") as arm:
        yield arm


async def test_a_file_that_came_whole_succeeded(api, support_desk):
    response = await api.get(f"{support_desk.path}/{FILE}")

    assert response.status == 200
    assert (await noted(api, "attachments.download"))["outcome"] == "succeeded"


async def test_a_file_that_broke_off_did_not(api, support_desk, fault):
    await fault(truncate_after_bytes=100)

    with pytest.raises(aiohttp.ClientError):
        await api.get(f"{support_desk.path}/{FILE}")

    assert (await noted(api, "attachments.download"))["outcome"] == "upstream_truncated"


async def test_a_file_that_its_caller_left_did_not_either(front, api, support_desk, fault):
    await fault(stall_after_bytes=100)

    async with aiohttp.ClientSession(front.base_url, headers=api.headers) as leaving:
        response = await leaving.get(f"{support_desk.path}/{FILE}")
        await response.content.readexactly(100)
        response.close()

    assert (await noted(api, "attachments.download"))["outcome"] == "interrupted"
