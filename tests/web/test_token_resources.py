"""The `resource` of the client-credentials grant (RFC 8707)."""

from uuid import uuid4

import pytest

from tests.harness.caller import Answer, Api
from tests.harness.in_process import FrontEnd

API, TOOLS = f"/api/v1/jobs/{uuid4()}", "/mcp/support-desk"
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
MCP = {"MCP-Protocol-Version": "2025-11-25", "Accept": "application/json, text/event-stream"}


async def granted(front: FrontEnd, api: Api, resource: str) -> Answer:
    client_id, secret = await front.client()
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret, "resource": resource}
    return await api.call("POST", "/oauth/token", data=form)


@pytest.mark.parametrize(
    ("path", "by_api", "by_tools"),
    [
        ("", 404, 200),
        ("/", 404, 200),
        ("/api", 404, 401),
        ("/mcp", 401, 200),
        ("/mcp/support-desk", 401, 200),
        ("/mcp/team-chat", 401, 401),
    ],
)
async def test_a_token_is_accepted_by_its_resource_only(
    front: FrontEnd, api: Api, path: str, by_api: int, by_tools: int
) -> None:
    token = (await granted(front, api, front.access.authorization.issuer + path)).document()["access_token"]
    bearer = {"Authorization": f"Bearer {token}"}

    called = await api.get(API, headers=bearer)
    listed = await api.post(TOOLS, LIST_TOOLS, headers={**MCP, **bearer})

    assert (called.status, listed.status) == (by_api, by_tools)


async def test_an_empty_resource_is_none(front: FrontEnd, api: Api) -> None:
    token = (await granted(front, api, "")).document()["access_token"]

    assert (await api.get(API, headers={"Authorization": f"Bearer {token}"})).status == 404


@pytest.mark.parametrize("resource", ["https://other.example/mcp", "{issuer}/mcp/unknown", "{issuer}/mcp#part", "/mcp"])
async def test_a_resource_of_another_server_is_refused(front: FrontEnd, api: Api, resource: str) -> None:
    refused = await granted(front, api, resource.format(issuer=front.access.authorization.issuer))

    assert (refused.status, refused.json()["error"]) == (400, "invalid_target")
