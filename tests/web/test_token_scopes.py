"""The `scope` of the client-credentials grant (RFC 6749 §3.3, §4.4.2)."""

import pytest

from tests.harness.caller import Answer, Api
from tests.harness.in_process import FrontEnd


async def granted(front: FrontEnd, api: Api, scope: str) -> Answer:
    client_id, secret = await front.client(scopes=["read", "write"])
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret, "scope": scope}
    return await api.call("POST", "/oauth/token", data=form)


@pytest.mark.parametrize(
    ("asked", "has"), [("read", "read"), ("write  read write", "read write"), ("", "read write"), (" ", "read write")]
)
async def test_a_token_has_the_requested_scopes(front: FrontEnd, api: Api, asked: str, has: str) -> None:
    assert (await granted(front, api, asked)).document()["scope"] == has


@pytest.mark.parametrize("scope", ["admin", "read admin", "bogus", "READ", '"'])
async def test_a_scope_that_the_client_does_not_have_is_refused(front: FrontEnd, api: Api, scope: str) -> None:
    refused = await granted(front, api, scope)

    assert (refused.status, refused.json()["error"]) == (400, "invalid_scope")


async def test_a_token_without_the_needed_scope_is_refused(front: FrontEnd, api: Api) -> None:
    token = (await granted(front, api, "read")).document()["access_token"]
    headers = {"Authorization": f"Bearer {token}"}

    read = await api.get("/api/v1/workspaces", headers=headers)
    written = await api.post("/api/v1/connect/sessions", {"workspace_name": "w"}, headers=headers)

    assert (read.status, written.status, written.json()["code"]) == (200, 403, "insufficient_scope")


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
async def test_a_form_of_more_than_64_kib_is_refused_before_the_client_is_known(api: Api, path: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    refused = await api.call("POST", path, data="a=" + "%" * (64 << 10), headers=headers)

    assert (refused.status, refused.json()["error"]) == (413, "invalid_request")
