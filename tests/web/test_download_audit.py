"""The audit entry of a download: succeeded if its last byte was sent, else an error or `interrupted`."""

import aiohttp
import pytest

from tests.harness.sandbox import faults
from tests.web.test_routes import noted

FILE = "download/attachments?attachment_id=1"


@pytest.fixture
async def fault(front):
    """`await fault(…)`: sets the application's fault for every file from then on."""
    async with faults(front.sandbox_url, path_prefix="/attachments/") as arm:
        yield arm


async def test_a_complete_file_is_recorded_as_succeeded(api, support_desk):
    response = await api.get(f"{support_desk.path}/{FILE}")

    assert response.status == 200
    assert (await noted(api, "attachments.download"))["outcome"] == "succeeded"


async def test_a_truncated_file_is_recorded_with_its_error(api, support_desk, fault):
    await fault(truncate_after_bytes=100)

    with pytest.raises(aiohttp.ClientError):
        await api.get(f"{support_desk.path}/{FILE}")

    assert (await noted(api, "attachments.download"))["outcome"] == "upstream_truncated"


async def test_a_file_whose_caller_disconnected_is_recorded_as_interrupted(front, api, support_desk, fault):
    await fault(stall_after_bytes=100)

    async with aiohttp.ClientSession(front.base_url, headers=api.headers) as leaving:
        response = await leaving.get(f"{support_desk.path}/{FILE}")
        await response.content.readexactly(100)
        response.close()

    assert (await noted(api, "attachments.download"))["outcome"] == "interrupted"
