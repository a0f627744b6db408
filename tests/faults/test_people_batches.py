"""Batches of a person: after a kill they continue as that person, with that person's credentials."""

import json
from typing import Any

from gateway.agents.mcp.messages import TASKS
from tests.agents.mcp.conftest import Raw
from tests.faults.accounts import Accounts
from tests.faults.arena import Arena, arena, ticket
from tests.faults.people import CONNECTORS, Person, connector_of, shared
from tests.harness.caller import Api
from tests.harness.people import add_people
from tests.harness.waiting import eventually

#: the operations of each batch, and of the first batch those that are sent before the second one begins
OPERATIONS, SENT, SIDE_BY_SIDE = 250, 25, 5
_AS_WHOM = """
    SELECT actor, acting_client, session_id, count(DISTINCT call_id) AS calls FROM audit
    WHERE what = 'tickets.create' GROUP BY actor, acting_client, session_id
"""


async def people_of(gateway: Arena, program: Api) -> tuple[list[Person], str]:
    """Two people with a connector each beside a shared one, and the id of a session of the program for the first."""
    await program.call("PUT", "/api/v1/groups/staff", json={"workspaces": None, "scopes": []})
    await program.call("PATCH", f"/api/v1/clients/{gateway.api_client.id}", json={"delegate_for": ["staff"]})
    (await program.post(CONNECTORS, connector_of(0, shared(0)))).document(201)
    people = [Person(0), Person(1)]
    tokens = {each.id: each.token for each in people}
    await add_people(gateway.stores.postgres.url, gateway.api_client.organization_id, tokens, 600)
    for person in people:
        body = {**connector_of(0, person.account(0)), "owner": "me"}
        person.connectors.append((await as_of(program, person.token).post(CONNECTORS, body)).document(201)["id"])
    opened = (await program.post("/api/v1/sessions", {"person": {"id": str(people[0].id)}})).document(201)
    people[0].session = opened["token"]
    return people, opened["id"]


def as_of(api: Api, token: str) -> Api:
    """A caller with another token."""
    return Api(api.session, {"Authorization": f"Bearer {token}"})


async def results_of(api: Api, job_id: str) -> list[dict[str, Any]]:
    result = await api.get(f"/api/v1/jobs/{job_id}/result", headers={"Accept": "application/x-ndjson"})
    return [json.loads(line) for line in result.body.splitlines()]


async def test_batches_in_a_session_continue_as_its_person_after_their_worker_is_killed():
    accounts = Accounts()
    async with arena(upstream=accounts) as gateway, gateway.api() as program:
        people, session_id = await people_of(gateway, program)
        person, own = people[0], people[0].account(0)
        api = as_of(program, person.session)
        params = [ticket(f"{own}.{number}") for number in range(2 * OPERATIONS)]

        operations = [{"entity": "tickets", "action": "create", "params": each} for each in params[:OPERATIONS]]
        body = {"operations": operations, "concurrency": SIDE_BY_SIDE}
        named = (await api.post(f"{CONNECTORS}/{person.connectors[0]}/batch", body)).document(202)["job"]["id"]
        await eventually(lambda: len(accounts.written) >= SENT)
        accounts.gate.clear()
        raw = Raw(api.session, "/mcp")
        arguments = {"operation": "support-desk.tickets.create", "each": params[OPERATIONS:]}
        tool = {"name": "write", "arguments": arguments}
        reply = await raw("tools/call", tool, capabilities={"extensions": {TASKS: {}}}, headers=api.headers)
        chosen = reply.result["taskId"]

        await eventually(lambda: any(int(each.removeprefix(f"{own}.")) >= OPERATIONS for each in accounts.written))
        await gateway.workers.pop().kill()
        accounts.gate.set()
        await gateway.worker()
        ended = [await api.ended_job({"id": each}) for each in (named, chosen)]
        statuses = [each["status"] for job in ended for each in await results_of(api, job["id"])]
        acted = await gateway.stores.rows(_AS_WHOM)

    assert [job["status"] for job in ended] == ["succeeded"] * 2
    assert all(job["attempt"] > 1 and job["connector_id"] == person.connectors[0] for job in ended)
    assert statuses.count("succeeded") + statuses.count("unknown") == 2 * OPERATIONS
    assert 0 < statuses.count("unknown") < OPERATIONS
    assert set(accounts.requests_of) == {own}
    assert accounts.foreign == []
    assert set(accounts.written.values()) == {1}
    assert [tuple(map(str, row)) for row in acted] == [
        (str(person.id), gateway.api_client.id, session_id, str(2 * OPERATIONS))
    ]
