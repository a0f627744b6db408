"""People and groups through the API: rights, suspension in every process, and who may see and change whom."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import aiohttp
import pytest

from gateway.access.identity.people import People
from gateway.access.identity.tokens import hashed, new_secret
from tests.harness.caller import Api
from tests.harness.in_process import EVERY_SCOPE, FrontEnd, front_end
from tests.harness.waiting import eventually
from tests.web.belongings import STAFF, Belongings, belongings_of, token_of
from tests.web.test_personal_connectors import CONNECTORS
from tests.web.test_routes import organization_of

PEOPLE, GROUPS, WORKSPACES = "/api/v1/people", "/api/v1/groups", "/api/v1/workspaces"
ISSUER = "https://login.example"


async def added(api: Api, **members: object) -> dict:
    """A new person with these members."""
    return (await api.post(PEOPLE, {"scopes": ["read", "write"], "workspaces": None, **members})).document(201)


def url_of(person: dict) -> str:
    return f"{PEOPLE}/{person['id']}"


async def called(base_url: str, token: str, method: str = "GET", path: str = WORKSPACES) -> int:
    """The status of a request with the token."""
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.request(method, base_url + path, headers=headers) as response:
        return response.status


async def test_a_person_is_added_read_listed_and_changed(api: Api):
    await api.call("PUT", f"{GROUPS}/support", json={"workspaces": ["acme"], "scopes": ["read"]})
    members = {"email": "ada@example.com", "name": "Ada", "issuer": ISSUER, "subject": uuid4().hex}

    person = await added(api, **members, groups=["support"], scopes=["write"], workspaces=["other"])
    changed = (await api.call("PATCH", url_of(person), json={"name": None, "groups": []})).document()

    kept = {**members, "client_id": None, "status": "active", "last_seen_at": None}
    rights = {"groups": ["support"], "scopes": ["write"], "workspaces": ["other"]}
    assert person == {**kept, **rights, "id": person["id"], "created_at": person["created_at"]}
    assert changed == {**person, "name": None, "groups": []}
    assert (await api.get(url_of(person))).document() == changed
    assert (await api.get(PEOPLE)).document() == {"data": [changed], "next_cursor": None}


async def test_pages_and_filters_of_the_list(api: Api):
    await api.call("PUT", f"{GROUPS}/leads", json={"workspaces": [], "scopes": []})
    client_id = (await api.get("/api/v1/clients")).document()["data"][0]["id"]
    first = await added(api, client_id=client_id, subject="user-1")
    second = await added(api, issuer=ISSUER, subject=uuid4().hex, groups=["leads"])
    third = await added(api, name="Third")
    await api.call("PATCH", url_of(third), json={"status": "suspended"})

    async def ids(query: str) -> list[str]:
        return [each["id"] for each in (await api.get(f"{PEOPLE}?{query}")).document()["data"]]

    page = (await api.get(f"{PEOPLE}?limit=2")).document()
    assert [each["id"] for each in page["data"]] == [first["id"], second["id"]]
    assert await ids(f"limit=2&cursor={page['next_cursor']}") == [third["id"]]
    assert await ids("status=suspended") == [third["id"]]
    assert await ids("status=active") == [first["id"], second["id"]]
    assert await ids("group=leads") == [second["id"]]
    assert await ids(f"client_id={client_id}&subject=user-1") == [first["id"]]
    assert await ids(f"issuer={ISSUER}&subject={second['subject']}") == [second["id"]]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"subject": "s"}, "subject"),
        ({"issuer": ISSUER}, "subject"),
        ({"issuer": "http://login.example", "subject": "s"}, "issuer"),
        ({"issuer": ISSUER, "subject": "s" * 256}, "subject"),
        ({"issuer": ISSUER, "subject": ""}, "subject"),
        ({"issuer": ISSUER, "subject": "s", "client_id": "{client}"}, "client_id"),
        ({"client_id": "{client}"}, "subject"),
        ({"client_id": str(uuid4()), "subject": "s"}, "client_id"),
        ({"email": "nobody"}, "email"),
        ({"email": "a@b\n"}, "email"),
        ({"name": ""}, "name"),
        ({"name": "n" * 201}, "name"),
        ({"groups": ["no such group"]}, "groups"),
        ({"scopes": ["everything"]}, "scopes"),
        ({"workspaces": [""]}, "workspaces"),
        ({"login": "ada"}, "login"),
    ],
)
async def test_a_person_with_a_fault_is_refused(api: Api, body: dict, field: str):
    client_id = (await api.get("/api/v1/clients")).document()["data"][0]["id"]
    sent = {**body, "client_id": client_id} if body.get("client_id") == "{client}" else body

    problem = (await api.post(PEOPLE, sent)).document(422)

    assert {each["field"].split(".")[0] for each in problem["errors"]} == {field}
    assert (await api.get(PEOPLE)).document()["data"] == []


async def test_a_subject_names_one_person_of_its_issuer_and_one_of_each_client(front: FrontEnd):
    organization_id, subject = await front.organization(), uuid4().hex
    namespaces = [(await front.client(organization_id))[0] for _ in range(2)]
    async with front.api(organization_id) as api:
        for identity in ({"issuer": ISSUER}, *({"client_id": each} for each in namespaces)):
            await added(api, **identity, subject=subject)
            again = await api.post(PEOPLE, {**identity, "subject": subject})
            assert (again.status, again.json()["code"]) == (409, "conflict")


async def test_a_subject_that_another_organization_has_named_is_free_and_is_two_people(front: FrontEnd, api: Api):
    people, subject = People(front.services.database, front.services.identity), uuid4().hex
    login = f"{uuid4().hex}@example.com"
    by_operator = await people.add(login, [await front.organization()], ["read"])
    async with front.api() as rival:
        # The rival was first: it learns nothing of the others, and keeps nobody from a sign-in there.
        theirs = await added(rival, issuer=ISSUER, subject=subject)
        ours = await added(api, issuer=ISSUER, subject=subject)
        again = await api.post(PEOPLE, {"issuer": ISSUER, "subject": subject})

        clients = await people.signed_in(ISSUER, subject, login)
        await rival.call("PATCH", url_of(theirs), json={"status": "suspended"})
        rest = await people.signed_in(ISSUER, subject, login)

    assert again.status == 409
    assert {str(each.id) for each in clients} == {theirs["id"], ours["id"], str(by_operator.id)}
    assert {str(each.id) for each in rest} == {ours["id"], str(by_operator.id)}
    assert [len(each.organization_ids) for each in clients] == [1, 1, 1]


async def test_an_organization_names_the_subject_of_a_person_of_the_operator_once(front: FrontEnd, api: Api):
    people, subject = People(front.services.database, front.services.identity), uuid4().hex
    await people.add(f"{subject}@example.com", [await organization_of(front, api)], ["read"])
    await people.signed_in(ISSUER, subject, f"{subject}@example.com")

    assert (await api.post(PEOPLE, {"issuer": ISSUER, "subject": subject})).status == 409


async def test_the_email_address_identifies_nobody(front: FrontEnd, api: Api):
    people = People(front.services.database, front.services.identity)
    email = f"{uuid4().hex}@example.com"
    await added(api, email=email)
    await added(api, email=email)

    assert await people.signed_in(ISSUER, uuid4().hex, email) == []


async def test_a_person_signs_in_as_the_subject_of_the_issuer(front: FrontEnd, api: Api):
    people, subject = People(front.services.database, front.services.identity), uuid4().hex
    person = await added(api, name="Ada", issuer=ISSUER, subject=subject)

    [client] = await people.signed_in(ISSUER, subject, "whatever@example.com")

    assert (str(client.id), client.name, client.is_person) == (person["id"], "Ada", True)
    assert (await api.get(url_of(person))).document()["last_seen_at"] is not None
    assert await people.signed_in("https://other.example", subject, "whatever@example.com") == []


async def test_a_person_may_do_nothing_until_rights_are_given_and_groups_add_theirs_at_once(front: FrontEnd, api: Api):
    await api.connector(workspace_name="acme")
    await api.connector(workspace_name="other")
    await api.call("PUT", f"{GROUPS}/support", json={"workspaces": ["acme"], "scopes": []})
    person = (await api.post(PEOPLE, {"name": "Ada"})).document(201)
    token = await token_of(front, person)

    async def seen() -> list[str] | int:
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.request("GET", front.base_url + WORKSPACES, headers=headers) as response:
            document = await response.json()
        return [each["name"] for each in document["data"]] if response.status == 200 else response.status

    async def becomes(expected: list[str] | int) -> None:
        await eventually(lambda: _is(seen, expected), within=1)

    assert await seen() == 403
    await api.call("PATCH", url_of(person), json={"groups": ["support"]})
    assert await seen() == 403
    await api.call("PUT", f"{GROUPS}/support", json={"workspaces": ["acme"], "scopes": ["read"]})
    await becomes(["acme"])
    await api.call("PATCH", url_of(person), json={"workspaces": ["other"]})
    await becomes(["acme", "other"])
    await api.call("PUT", f"{GROUPS}/support", json={"workspaces": None, "scopes": ["read"]})
    await becomes(["acme", "other"])
    await api.call("PATCH", url_of(person), json={"groups": []})
    await becomes(403)
    await api.call("PATCH", url_of(person), json={"scopes": ["read"]})
    await becomes(["other"])
    await api.call("PATCH", url_of(person), json={"workspaces": None})
    await becomes(["acme", "other"])


async def _is(look, expected) -> bool:
    return await look() == expected


@pytest.fixture
async def second(tmp_path: Path, database_url: str, redis_url: str) -> AsyncIterator[FrontEnd]:
    """Another front end of the same gateway."""
    async with front_end(tmp_path, database_url, redis_url) as opened:
        yield opened


@pytest.fixture
async def leaver(front: FrontEnd, api: Api) -> Belongings:
    (await api.call("PUT", f"{GROUPS}/{STAFF}", json={"workspaces": None, "scopes": []})).document()
    person = await added(api, name="Leaver", scopes=list(EVERY_SCOPE), groups=[STAFF])
    return await belongings_of(front, await organization_of(front, api), api, person)


async def doors(front: FrontEnd, leaver: Belongings) -> dict[str, object]:
    """What the person's credentials are good for."""
    refresh = {"grant_type": "refresh_token", "client_id": "host", "refresh_token": leaver.grant.refresh_token}
    async with aiohttp.request("POST", f"{front.base_url}/oauth/token", data=refresh) as refreshed:
        refreshed_status = refreshed.status
    return {
        "token": await called(front.base_url, leaver.token),
        "grant": await called(front.base_url, leaver.grant.access_token, "POST", "/mcp"),
        "refresh": refreshed_status,
        "console": await front.access.console_sessions.caller(leaver.cookie) is not None,
        "session": await called(front.base_url, leaver.session["token"], path=CONNECTORS),
    }


async def status_of_own(api: Api, leaver: Belongings) -> str:
    """The status of the person's own connector, as an administrator sees it."""
    listed = (await api.get(CONNECTORS)).document()["data"]
    return next(each["status"] for each in listed if each["id"] == leaver.own["id"])


ENDED = """
    SELECT schedules.is_enabled, webhooks.status, jobs.cancel_requested, connect_sessions.expires_at <= now()
    FROM schedules, webhooks, jobs, connect_sessions
    WHERE schedules.id = $1 AND webhooks.id = $2 AND jobs.id = $3 AND connect_sessions.id = $4
"""


async def ended(sql, leaver: Belongings) -> list[tuple]:
    """Whether the schedule is enabled, the status of the webhook, whether the job ends, and whether the link has."""
    ids = (UUID(each["id"]) for each in (leaver.schedule, leaver.webhook, leaver.job, leaver.link))
    return [tuple(each) for each in await sql(ENDED, *ids)]


CLOSED = {"token": 401, "grant": 401, "refresh": 400, "console": False, "session": 401}


async def test_everything_that_acts_for_a_suspended_person_ends_in_every_process_and_nothing_comes_back(
    front: FrontEnd, second: FrontEnd, api: Api, leaver: Belongings, sql
):
    await api.call("PATCH", url_of(leaver.person), json={"name": "Not suspended yet"})
    assert [await called(each.base_url, leaver.token) for each in (front, second)] == [200, 200]

    suspended = await api.call("PATCH", url_of(leaver.person), json={"status": "suspended"})

    async def refused_elsewhere() -> bool:
        return await called(second.base_url, leaver.token) == 401

    assert suspended.document()["status"] == "suspended"
    await eventually(refused_elsewhere, within=1)
    assert await doors(front, leaver) == CLOSED
    assert await doors(second, leaver) == CLOSED
    for _ in range(2):
        assert await ended(sql, leaver) == [(False, "disabled", True, True)]
        assert await status_of_own(api, leaver) == "disabled"
        active = await api.call("PATCH", url_of(leaver.person), json={"status": "active"})
        assert active.document()["status"] == "active"
        assert await doors(front, leaver) == CLOSED
    assert await called(front.base_url, await token_of(front, leaver.person)) == 200


async def test_the_refusal_of_a_suspended_persons_token_is_that_of_an_unknown_one(front: FrontEnd, api: Api):
    person = await added(api)
    known, bodies = await token_of(front, person), []
    await api.call("PATCH", url_of(person), json={"status": "suspended"})

    for token in (known, new_secret()):
        answer = await Api(api.session, {"Authorization": f"Bearer {token}"}).get(WORKSPACES)
        bodies.append({name: value for name, value in answer.json().items() if name != "request_id"})

    assert bodies[0] == bodies[1]


async def test_what_other_clients_created_goes_on_when_a_person_is_suspended(
    front: FrontEnd, api: Api, leaver: Belongings
):
    desk = await api.connector()
    timing = {"name": "s", "connector_id": desk.record["id"], "entity": "tickets", "action": "list", "cron": "@daily"}
    schedule = (await api.post("/api/v1/schedules", timing)).document(201)
    job = await desk.submit("tickets", "list")

    await api.call("PATCH", url_of(leaver.person), json={"status": "suspended"})

    assert (await api.get(desk.path)).document()["status"] == "active"

    assert (await api.get(f"/api/v1/schedules/{schedule['id']}")).document()["enabled"] is True
    assert (await api.get(f"/api/v1/jobs/{job['id']}")).document()["cancel_requested"] is False
    assert (await api.get(WORKSPACES)).status == 200


async def test_a_deleted_person_is_gone_at_once_and_the_audit_log_keeps_the_name(
    front: FrontEnd, api: Api, leaver: Belongings
):
    deleted = await api.call("DELETE", url_of(leaver.person))

    assert deleted.status == 202
    assert deleted.headers["Location"] == f"/api/v1/jobs/{deleted.json()['job_id']}"
    assert await doors(front, leaver) == CLOSED
    assert (await api.get(url_of(leaver.person))).status == 404
    assert (await api.get(PEOPLE)).document()["data"] == []
    assert (await api.call("DELETE", url_of(leaver.person))).status == 404

    async def actors() -> set[str]:
        entries = (await api.get("/api/v1/audit?operation=connector.create")).document()["data"]
        return {each["actor"]["name"] for each in entries}

    await eventually(lambda: _is(actors, {"Leaver"}))


async def test_nobody_suspends_or_deletes_the_own_person(front: FrontEnd, api: Api):
    person = await added(api, scopes=list(EVERY_SCOPE))
    own = Api(api.session, {"Authorization": f"Bearer {await token_of(front, person)}"})

    assert (await own.call("PATCH", url_of(person), json={"status": "suspended"})).status == 409
    assert (await own.call("DELETE", url_of(person))).status == 409
    assert (await own.get(WORKSPACES)).status == 200


BODY = {"name": "Changed"}
ROUTES = [
    ("GET", PEOPLE, None),
    ("POST", PEOPLE, BODY),
    ("GET", f"{PEOPLE}/{{person}}", None),
    ("PATCH", f"{PEOPLE}/{{person}}", BODY),
    ("DELETE", f"{PEOPLE}/{{person}}", None),
    ("GET", f"{GROUPS}/support", None),
    ("PUT", f"{GROUPS}/support", {"workspaces": None, "scopes": ["admin"]}),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_people_are_for_administrators(front: FrontEnd, api: Api, method: str, path: str, body: dict | None):
    person = await added(api)
    own = Api(api.session, {"Authorization": f"Bearer {await token_of(front, person)}"})

    refused = await own.call(method, path.format(person=person["id"]), json=body)
    anonymous = await Api(api.session, {}).call(method, path.format(person=person["id"]), json=body)

    assert (refused.status, refused.json()["code"]) == (403, "insufficient_scope")
    assert anonymous.status == 401
    assert (await api.get(url_of(person))).document() == person


@pytest.mark.parametrize(("method", "path", "body"), [each for each in ROUTES if "{person}" in each[1]])
async def test_people_of_another_organization_do_not_exist(
    front: FrontEnd, api: Api, method: str, path: str, body: dict | None
):
    async with front.api() as stranger:
        person = await added(stranger)
        answers = [await api.call(method, path.format(person=each), json=body) for each in (person["id"], str(uuid4()))]

        assert [answer.status for answer in answers] == [404, 404]
        assert answers[0].json()["detail"] == answers[1].json()["detail"]
        assert (await stranger.get(url_of(person))).document() == person


async def test_groups_of_another_organization_do_not_exist(front: FrontEnd, api: Api):
    async with front.api() as stranger:
        await stranger.call("PUT", f"{GROUPS}/support", json={"workspaces": None, "scopes": ["admin"]})

        assert (await api.get(f"{GROUPS}/support")).status == 404
        assert (await api.post(PEOPLE, {"groups": ["support"]})).status == 422
        await api.call("PUT", f"{GROUPS}/support", json={"workspaces": [], "scopes": []})
        assert (await stranger.get(f"{GROUPS}/support")).document() == {
            "name": "support",
            "workspaces": None,
            "scopes": ["admin"],
        }


async def test_a_client_of_the_organization_is_no_person(front: FrontEnd):
    organization_id = await front.organization()
    client_id, _ = await front.client(organization_id)
    async with front.api(organization_id) as api:
        for method in ("GET", "PATCH", "DELETE"):
            assert (await api.call(method, f"{PEOPLE}/{client_id}", json={})).status == 404


async def test_an_administrator_of_some_workspaces_has_people_of_these_alone(front: FrontEnd):
    organization_id, secret = await front.organization(), new_secret()
    client_id = await front.services.identity.create_client(
        "confined", [organization_id], hashed(secret), EVERY_SCOPE, workspaces=["own"]
    )
    async with (
        front.api(organization_id) as whole,
        Api.of(front.base_url, str(client_id), secret) as confined,
    ):
        await whole.call("PUT", f"{GROUPS}/others", json={"workspaces": ["other"], "scopes": []})
        wider = [await added(whole), await added(whole, workspaces=["own"], groups=["others"])]
        narrow = await added(whole, workspaces=["own"])

        assert [each["id"] for each in (await confined.get(PEOPLE)).document()["data"]] == [narrow["id"]]
        assert (await confined.get(url_of(narrow))).status == 200
        for person in wider:
            for method in ("GET", "PATCH", "DELETE"):
                assert (await confined.call(method, url_of(person), json={})).status == 404
        for rights in ({"workspaces": None}, {"workspaces": ["other"]}, {"groups": ["others"]}):
            for answer in (
                await confined.post(PEOPLE, rights),
                await confined.call("PATCH", url_of(narrow), json=rights),
            ):
                assert (answer.status, answer.json()["code"]) == (403, "insufficient_scope")
        assert (await whole.get(url_of(narrow))).document() == narrow
        assert len((await whole.get(PEOPLE)).document()["data"]) == 3
        for method, body in (("GET", None), ("PUT", {"workspaces": ["own"], "scopes": []})):
            assert (await confined.call(method, f"{GROUPS}/others", json=body)).status == 403


async def test_people_do_not_use_up_the_number_of_clients(front: FrontEnd, sql):
    organization_id = await front.organization()
    async with front.api(organization_id) as api:
        await sql(MANY_PEOPLE, organization_id)
        caller = (await front.services.identity.clients_of(organization_id))[0].caller(None)

        client_id, _ = await front.access.clients.create(caller, "another", ["read"])

        assert len((await api.get(f"{PEOPLE}?limit=1000")).document()["data"]) == 1000
        assert (await front.services.identity.client(client_id)) is not None


MANY_PEOPLE = """
    WITH new AS (
        INSERT INTO clients (id, name, secret_hashes)
        SELECT gen_random_uuid(), 'person ' || n, '{}' FROM generate_series(1, 1000) AS n RETURNING id
    ), acting AS (
        INSERT INTO client_organizations (client_id, organization_id) SELECT id, $1 FROM new RETURNING client_id
    )
    INSERT INTO people (client_id) SELECT client_id FROM acting
"""


async def test_changes_of_people_and_groups_are_in_the_audit_log(api: Api):
    await api.call("PUT", f"{GROUPS}/support", json={"workspaces": None, "scopes": []})
    person = await added(api, email="ada@example.com")
    await api.call("PATCH", url_of(person), json={"status": "suspended"})
    await api.call("DELETE", url_of(person))

    async def entries() -> dict[str, tuple]:
        found = (await api.get("/api/v1/audit")).document()["data"]
        return {each["what"]: (each["target"], each["changed"], each["outcome"]) for each in found}

    expected = {
        "group.update": ("support", ["scopes", "workspaces"], "succeeded"),
        "person.create": (person["id"], ["email", "scopes"], "succeeded"),
        "person.update": (person["id"], ["status"], "succeeded"),
        "person.delete": (person["id"], [], "accepted"),
    }
    await eventually(lambda: _is(entries, expected))
