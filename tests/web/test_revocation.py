"""`POST /oauth/revoke` (RFC 7009)."""

from collections.abc import AsyncIterator

import pytest

from tests.harness.caller import Answer, Api
from tests.harness.in_process import FrontEnd

PATH, LIST, SESSIONS = "/oauth/revoke", "/api/v1/workspaces", "/api/v1/sessions"
CONNECTORS = "/api/v1/integrations/connectors"


@pytest.fixture
async def client(front: FrontEnd) -> tuple[str, str]:
    return await front.client(await front.organization())


@pytest.fixture
async def caller(front: FrontEnd, client: tuple[str, str]) -> AsyncIterator[Api]:
    """The client with a token."""
    async with Api.of(front.base_url, *client) as api:
        yield api


def token_of(api: Api) -> str:
    return api.headers["Authorization"].removeprefix("Bearer ")


async def revoked(api: Api, **form: str) -> Answer:
    return await api.call("POST", PATH, data=form)


async def test_a_client_revokes_its_token(caller: Api, client: tuple[str, str]) -> None:
    before = await caller.get(LIST)

    ended = await revoked(caller, token=token_of(caller), client_id=client[0], client_secret=client[1])

    after = await caller.get(LIST)
    assert (before.status, ended.status, ended.body, after.status) == (200, 200, b"", 401)
    assert ended.headers["Cache-Control"] == "no-store"


async def test_the_revocation_of_an_unknown_token_succeeds(caller: Api, client: tuple[str, str]) -> None:
    ended = await revoked(
        caller, token="unknown", token_type_hint="refresh_token", client_id=client[0], client_secret=client[1]
    )

    assert ended.status == 200


async def test_another_client_cannot_revoke_the_token(api: Api, caller: Api, client: tuple[str, str]) -> None:
    await revoked(caller, token=token_of(api), client_id=client[0], client_secret=client[1])

    assert (await api.get(LIST)).status == 200


async def test_a_client_revokes_the_token_of_a_session_with_those_that_were_opened_in_it(front: FrontEnd) -> None:
    client = await front.client(await front.organization(), ["read", "write", "delegate"])
    async with Api.of(front.base_url, *client) as program:
        outer = (await program.post(SESSIONS, {"person": {"subject": "user-7"}})).document(201)
        acting = Api(program.session, {"Authorization": f"Bearer {outer['token']}"})
        inner = (await acting.post(SESSIONS, {"effects": ["read"]})).document(201)
        nested = Api(program.session, {"Authorization": f"Bearer {inner['token']}"})
        other = await front.client(await front.organization(), ["read"])

        await revoked(program, token=outer["token"], client_id=other[0], client_secret=other[1])
        before = [(await each.get(CONNECTORS)).status for each in (acting, nested)]
        ended = await revoked(program, token=outer["token"], client_id=client[0], client_secret=client[1])

        assert (before, ended.status) == ([200, 200], 200)
        assert [(await each.get(CONNECTORS)).status for each in (acting, nested)] == [401, 401]
        assert (await program.get(SESSIONS)).document()["data"] == []
        assert (await program.get(LIST)).status == 200


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({"token": "t", "client_id": "x", "client_secret": "y"}, 401, "invalid_client"),
        ({"token": "t"}, 401, "invalid_client"),
        ({"client_id": "x", "client_secret": "y"}, 400, "invalid_request"),
        ({}, 400, "invalid_request"),
    ],
)
async def test_a_refused_revocation_has_the_format_of_the_rfc(
    front: FrontEnd, api: Api, form: dict[str, str], status: int, error: str
) -> None:
    answer = await api.call("POST", PATH, data=form, headers={"Content-Type": "application/x-www-form-urlencoded"})

    assert (answer.status, answer.json()["error"]) == (status, error)
    assert ("WWW-Authenticate" in answer.headers) is (status == 401)
