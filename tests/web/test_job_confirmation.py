"""The retry of a write with an unknown outcome, through MCP: the model or a person confirms it."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import aiohttp
import pytest

from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Api, ConnectorApi
from tests.harness.in_process import FrontEnd

FORM = {"elicitation": {"form": {}}}
LOST = """
    UPDATE jobs SET status = 'unknown', finished_at = now(),
        error = '{"code": "outcome_unknown", "title": "Outcome unknown", "detail": "lost", "known": {"sent": 1}}'
    WHERE id = $1
"""


@pytest.fixture
async def mcp(front: FrontEnd, api: Api) -> AsyncIterator[Raw]:
    async with aiohttp.ClientSession(headers=api.headers) as session:
        yield Raw(session, f"{front.base_url}/mcp")


@pytest.fixture
async def job_id(front: FrontEnd, support_desk: ConnectorApi) -> str:
    """A job whose write was sent and whose response was lost."""
    params = {"ticket": {"subject": "s", "comment": {"body": "b"}}}
    job_id: str = (await support_desk.submit("tickets", "create", params))["id"]
    async with front.services.database.system() as connection:
        await connection.execute(LOST, UUID(job_id))
    return job_id


async def retried(mcp: Raw, job_id: str, *, capabilities: Any = None, **more: Any) -> dict[str, Any]:
    arguments = {"job_id": job_id, "do": "retry", **more.pop("arguments", {})}
    params = {"name": "job", "arguments": arguments, **more}
    result: dict[str, Any] = (await mcp("tools/call", params, capabilities=capabilities)).result
    return result


def answered(question: dict[str, Any], action: str, **content: Any) -> dict[str, Any]:
    """Repeat the call with the person's answer."""
    response = {"action": action, **({"content": content} if content else {})}
    return {"requestState": question["requestState"], "inputResponses": {"confirm": response}}


async def test_an_unconfirmed_retry_is_refused_and_says_how_to_confirm(mcp: Raw, job_id: str):
    refused = await retried(mcp, job_id)

    assert refused["isError"]
    assert refused["structuredContent"]["error"] == "outcome_unknown"
    assert refused["structuredContent"]["known"] == {"sent": 1}
    assert "confirm: true" in refused["structuredContent"]["advice"]


async def test_a_retry_that_the_model_confirms_runs_again(mcp: Raw, job_id: str):
    done = await retried(mcp, job_id, arguments={"confirm": True})

    assert done["structuredContent"]["status"] == "queued"
    assert done["structuredContent"]["job_id"] != job_id


async def test_a_person_is_asked_if_the_client_supports_elicitation(mcp: Raw, job_id: str):
    question = await retried(mcp, job_id, capabilities=FORM)

    assert question["resultType"] == "input_required"
    asked = question["inputRequests"]["confirm"]["params"]
    assert "support-desk.tickets.create was sent" in asked["message"]
    assert asked["requestedSchema"]["properties"]["confirm"]["type"] == "boolean"

    done = await retried(mcp, job_id, capabilities=FORM, **answered(question, "accept", confirm=True))

    assert done["structuredContent"]["status"] == "queued"


@pytest.mark.parametrize(("action", "content"), [("accept", {"confirm": False}), ("decline", {}), ("cancel", {})])
async def test_a_person_who_says_no_is_not_asked_again_and_nothing_is_sent(
    mcp: Raw, job_id: str, action: str, content: dict[str, Any]
):
    question = await retried(mcp, job_id, capabilities=FORM)

    refused = await retried(mcp, job_id, capabilities=FORM, **answered(question, action, **content))

    assert refused["structuredContent"]["error"] == "outcome_unknown"


async def test_an_answer_without_a_question_confirms_nothing(mcp: Raw, job_id: str):
    made_up = {"inputResponses": {"confirm": {"action": "accept", "content": {"confirm": True}}}}

    refused = await retried(mcp, job_id, capabilities=FORM, **made_up)

    assert refused["structuredContent"]["error"] == "outcome_unknown"


async def test_the_tool_has_the_destructive_hint(mcp: Raw):
    tools = {tool["name"]: tool for tool in (await mcp("tools/list")).result["tools"]}

    assert tools["job"]["annotations"]["destructiveHint"]
    assert tools["job"]["inputSchema"]["properties"]["confirm"]["type"] == "boolean"
