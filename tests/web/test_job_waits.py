"""Callers that wait for a job or its result."""

import asyncio

import pytest

from tests.harness.caller import ConnectorApi
from tests.harness.waiting import eventually

PATIENCE = 20.0


@pytest.fixture
async def path(support_desk: ConnectorApi) -> str:
    """The path of a job that no worker claims."""
    return f"/api/v1/jobs/{(await support_desk.submit('tickets', 'list', {}))['id']}"


async def test_a_request_that_waits_for_a_job_is_no_work_when_load_is_shed(front, api, path):
    waits = [asyncio.create_task(api.get(f"{path}?wait=60")) for _ in range(3)]

    await eventually(lambda: front.services.jobs.waiters.waits.total == 3, within=20)

    assert front.limits.at_work == front.limits.in_progress - 3
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


@pytest.mark.parametrize("tags", ['"another"', 'W/"0"', '"0", "another"'])
async def test_a_wait_for_a_change_ends_at_once_if_the_caller_knows_other_versions(api, path, tags):
    answer = await asyncio.wait_for(api.get(f"{path}?wait=300", headers={"If-None-Match": tags}), PATIENCE)

    assert (answer.status, answer.headers["ETag"]) == (200, '"1"')


async def test_a_wait_for_a_change_ends_if_the_newest_known_version_is_old(api, path):
    waiting = asyncio.create_task(api.get(f"{path}?wait=300", headers={"If-None-Match": '"0", "1"'}))
    await api.post(f"{path}/cancel")

    assert (await asyncio.wait_for(waiting, PATIENCE)).document()["status"] == "canceled"


@pytest.mark.parametrize("of", ["", "/result"])
@pytest.mark.parametrize(
    ("query", "preferred", "applied"),
    [("", "wait=0", "wait=0"), ("?wait=0", "wait=60", None), ("?wait=0", "respond-async", None)],
)
async def test_preference_applied_names_the_wait_that_the_header_decided(api, path, of, query, preferred, applied):
    answer = await api.get(f"{path}{of}{query}", headers={"Prefer": preferred})

    assert answer.status == (202 if of else 200)
    assert answer.headers.get("Preference-Applied") == applied


async def test_a_deletion_that_has_not_ended_cannot_be_canceled(support_desk: ConnectorApi):
    deletion = (await support_desk.api.call("DELETE", support_desk.path)).document(202)["job_id"]

    refused = await support_desk.api.post(f"/api/v1/jobs/{deletion}/cancel")

    assert (refused.status, refused.json()["code"]) == (409, "job_not_cancelable")
    assert refused.json()["detail"] == "a delete_connector job cannot be canceled"
