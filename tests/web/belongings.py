"""A person with one of everything that acts for a person, or that belongs to one."""

from dataclasses import dataclass
from uuid import UUID

from gateway.access.identity.model import Caller
from gateway.access.identity.tokens import hashed, new_secret
from gateway.contract.oauth import GrantedTokenView, NewGrant
from tests.harness.caller import ASYNC, Api
from tests.harness.in_process import FrontEnd
from tests.web.test_personal_connectors import CONNECTORS, LIST, connected

#: the group of the person, for whose members a program acts
STAFF = "staff"


@dataclass(frozen=True, kw_only=True)
class Belongings:
    """What acts for the person, each of them made by the person, and the session that a program opened."""

    person: dict
    token: str
    api: Api
    grant: GrantedTokenView
    cookie: str
    own: dict
    schedule: dict
    webhook: dict
    job: dict
    link: dict
    session: dict
    program: Api


async def token_of(front: FrontEnd, person: dict) -> str:
    """A token with which the person calls."""
    token = new_secret()
    await front.services.identity.save_token(hashed(token), UUID(person["id"]), 900)
    return token


async def caller_of(front: FrontEnd, person: dict) -> Caller:
    """The person as a caller."""
    client = await front.services.identity.enabled_client(UUID(person["id"]))
    assert client is not None
    return client.caller(None)


async def acting_for(front: FrontEnd, organization_id: UUID, administrator: Api, groups: list[str]) -> Api:
    """A program that may open sessions for the members of these groups."""
    client_id, secret = await front.client(organization_id, ["read", "write", "delegate"])
    (await administrator.call("PATCH", f"/api/v1/clients/{client_id}", json={"delegate_for": groups})).document()
    form = {"client_id": client_id, "client_secret": secret}
    token = (await administrator.post("/api/v1/account/applications/token", form)).document()["access_token"]
    return Api(administrator.session, {"Authorization": f"Bearer {token}"})


async def session_of(program: Api, person: dict, **members: object) -> dict:
    """A session that the program opens for the person."""
    return (await program.post("/api/v1/sessions", {"person": {"id": person["id"]}, **members})).document(201)


async def belongings_of(
    front: FrontEnd, organization_id: UUID, administrator: Api, person: dict, mark: str = "mine"
) -> Belongings:
    """One of everything for this person of the group STAFF; what the person has written has the mark in it."""
    token, caller = await token_of(front, person), await caller_of(front, person)
    api = Api(administrator.session, {"Authorization": f"Bearer {token}"})
    program = await acting_for(front, organization_id, administrator, [STAFF])
    own = (await connected(api, "me")).document(201)
    call = {**LIST, "params": {**LIST["params"], "external_id": mark}}
    execute = await api.post(f"{CONNECTORS}/{own['id']}/execute", call, headers=ASYNC)
    timing = {"name": mark, "connector_id": own["id"], **call, "cron": "@daily"}
    subscription = {"url": f"https://r.example/{mark}", "types": ["job.*"]}
    return Belongings(
        person=person,
        token=token,
        api=api,
        grant=await front.granted(caller, NewGrant(("read",))),
        cookie=await front.access.console_sessions.begin(caller),
        own=own,
        schedule=(await api.post("/api/v1/schedules", timing)).document(201),
        webhook=(await api.post("/api/v1/webhooks", subscription)).document(201),
        job=execute.document(202)["job"],
        link=(await api.post("/api/v1/connect/sessions", {"workspace_name": "acme", "owner": "me"})).document(201),
        session=await session_of(program, person),
        program=program,
    )
