"""People and groups in the console: search, pages, rights, what acts for a person, and who may see whom."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest

from gateway.access.identity.tokens import hashed, new_secret
from tests.harness.caller import Answer, Api
from tests.harness.clients import EVERY_SCOPE
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd
from tests.web.belongings import token_of
from tests.web.test_me import browser_of
from tests.web.test_people import ISSUER, added, called
from tests.web.test_personal_connectors import CONNECTORS, connected, person_of

PEOPLE, GROUPS = "/console/people", "/console/groups"


async def sent(browser: ConsoleBrowser, path: str, **fields: str) -> Answer:
    return await browser.send(path, csrf=await browser.csrf(), **fields)


async def shown(browser: ConsoleBrowser, path: str) -> str:
    answer = await browser.get(path)
    assert answer.status == 200
    return answer.body.decode()


def listed(page: str) -> list[str]:
    """The ids of the people in the table."""
    return re.findall(r'<a href="/console/people/([0-9a-f-]{36})">', page)


async def test_people_are_listed_in_pages_of_25(browser: ConsoleBrowser, api: Api):
    people = [(await added(api, name=f"Person {number}"))["id"] for number in range(26)]

    first = await shown(browser, PEOPLE)
    [more] = re.findall(r'href="(\?cursor=[^"]+)"', first)
    second = await shown(browser, PEOPLE + more)

    assert listed(first) == people[:25]
    assert listed(second) == people[25:]
    assert "cursor=" not in second


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("query=love", ["ada"]),
        ("query=GRACE@example", ["grace"]),
        ("query=u-47", ["grace"]),
        ("query=%25", []),
        ("group=leads", ["grace"]),
        ("status=suspended", ["ada"]),
        ("status=active&query=a", ["grace"]),
        ("status=other", ["ada", "grace"]),
    ],
)
async def test_people_are_found_by_name_email_subject_group_and_status(
    browser: ConsoleBrowser, api: Api, query: str, found: list[str]
):
    await api.call("PUT", "/api/v1/groups/leads", json={"workspaces": [], "scopes": []})
    ada = await added(api, name="Ada Lovelace")
    subject = f"u-47{uuid4().hex}"
    grace = await added(api, email="grace@example.com", issuer=ISSUER, subject=subject, groups=["leads"])
    await api.call("PATCH", f"/api/v1/people/{ada['id']}", json={"status": "suspended"})

    page = await shown(browser, f"{PEOPLE}?{query}")

    ids = {"ada": ada["id"], "grace": grace["id"]}
    assert listed(page) == [ids[name] for name in found]
    assert ("No person matches." in page) is not found or not found


async def test_a_person_is_added_with_the_rights_of_the_form(browser: ConsoleBrowser, api: Api):
    await api.call("PUT", "/api/v1/groups/leads", json={"workspaces": [], "scopes": []})
    subject = uuid4().hex
    named = {"name": "Ada", "email": "ada@example.com", "issuer": ISSUER, "subject": subject, "client_id": ""}
    rights = {
        "groups": "leads\r\n",
        "workspaces": "acme\r\n north wind \r\n",
        "scope:read": "on",
        "scope:approve": "on",
    }

    answer = await sent(browser, PEOPLE, **named, **rights)

    person = (await api.get(f"/api/v1/people/{answer.headers['Location'].rpartition('/')[2]}")).document()
    assert answer.status == 303
    assert [person[name] for name in ("name", "email", "issuer", "subject")] == ["Ada", *list(named.values())[1:4]]
    assert (person["groups"], person["workspaces"]) == (["leads"], ["acme", "north wind"])
    assert sorted(person["scopes"]) == ["approve", "read"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"subject": "s"}, "subject: needs issuer or client_id"),
        ({"issuer": "http://login.example", "subject": "s"}, "issuer: must be an https URL"),
        ({"client_id": "no id", "subject": "s"}, "is no id of a client"),
        ({"client_id": str(uuid4()), "subject": "s"}, "there is no such client"),
        ({"groups": "nobody"}, "there is no group"),
    ],
)
async def test_a_refused_person_keeps_the_form(browser: ConsoleBrowser, fields: dict[str, str], words: str):
    answer = await sent(browser, PEOPLE, name="<b>Ada", all_workspaces="on", **fields)

    page = answer.body.decode()
    assert answer.status == 422
    assert words in page
    assert 'value="&lt;b&gt;Ada"' in page
    assert re.search(r'name="all_workspaces" checked', page)
    assert listed(page) == []


@dataclass(frozen=True)
class Office:
    """A person with everything that can act for a person, and another one with the same."""

    front: FrontEnd
    admin: Api
    browser: ConsoleBrowser
    person: dict
    token: str
    session: dict
    other_session: dict


@pytest.fixture
async def office(front: FrontEnd, organization_id: UUID, api: Api, browser: ConsoleBrowser) -> AsyncIterator[Office]:
    program_id, secret = await front.client(organization_id, ["read", "write", "delegate"])
    async with Api.of(front.base_url, program_id, secret) as program:
        sessions = []
        for subject, mail in (("user-7", "Ada's mail"), ("user-8", "Foreign mail")):
            named = {"subject": subject, "name": subject}
            session = (await program.post("/api/v1/sessions", {"person": named})).document(201)
            (await connected(api, session["person"]["id"], name=mail)).document(201)
            sessions.append(session)
        person = (await api.get(f"/api/v1/people/{sessions[0]['person']['id']}")).document()
        token = await token_of(front, person)
        yield Office(front, api, browser, person, token, *sessions)


async def test_the_page_of_a_person_has_what_acts_for_the_person_and_connections_by_name_only(office: Office):
    connector = (await office.admin.connector(name="Shared desk")).record
    timing = {"name": "Nightly", "connector_id": connector["id"], "entity": "tickets", "action": "list"}
    as_person = Api(office.admin.session, {"Authorization": f"Bearer {office.token}"})
    schedule = (await as_person.post("/api/v1/schedules", {**timing, "cron": "@daily"})).document(201)
    [own] = [each for each in (await as_person.get(CONNECTORS)).document()["data"] if each["owner"]]
    secret = (await as_person.post("/api/v1/schedules", {**timing, "connector_id": own["id"], "cron": "@daily",
                                                         "name": "Own nightly"})).document(201)  # fmt: skip

    page = await shown(office.browser, f"{PEOPLE}/{office.person['id']}")

    assert "<li>Ada&#39;s mail</li>" in page
    assert f"/console/sessions/{office.session['id']}/end" in page
    assert f"/console/schedules/{schedule['id']}" in page
    for absent in (own["id"], own["application"], secret["id"], "Foreign mail", office.other_session["id"]):
        assert absent not in page


async def test_rights_are_changed_and_hold_at_once(office: Office):
    await office.admin.call("PUT", "/api/v1/groups/leads", json={"workspaces": ["acme"], "scopes": ["read"]})
    path = f"{PEOPLE}/{office.person['id']}"

    answer = await sent(office.browser, path, name="Ada L.", email="", groups="leads", workspaces="north wind")

    person = (await office.admin.get(f"/api/v1/people/{office.person['id']}")).document()
    assert (answer.status, answer.headers["Location"]) == (303, path)
    assert (person["name"], person["email"], person["groups"]) == ("Ada L.", None, ["leads"])
    assert (person["scopes"], person["workspaces"]) == ([], ["north wind"])
    create = {"method": "POST", "path": "/api/v1/connect/sessions"}
    assert await called(office.front.base_url, office.token, **create) == 403


async def test_a_refused_change_keeps_what_was_entered(office: Office):
    answer = await sent(office.browser, f"{PEOPLE}/{office.person['id']}", name="New", groups="nobody")

    page = answer.body.decode()
    assert answer.status == 422
    assert 'value="New"' in page
    assert ">nobody</textarea>" in page
    assert (await office.admin.get(f"/api/v1/people/{office.person['id']}")).document() == office.person


async def test_a_suspension_ends_what_acts_for_the_person(office: Office):
    path = f"{PEOPLE}/{office.person['id']}"

    await sent(office.browser, f"{path}/status", status="suspended")
    suspended = [await called(office.front.base_url, each) for each in (office.token, office.session["token"])]
    page = await shown(office.browser, path)
    await sent(office.browser, f"{path}/status", status="active")

    assert suspended == [401, 401]
    assert "No client acts for the person." in page
    assert await called(office.front.base_url, office.session["token"]) == 401
    assert (await office.admin.get(f"/api/v1/people/{office.person['id']}")).document()["status"] == "active"


async def test_a_person_is_deleted_only_with_the_box(office: Office):
    path = f"{PEOPLE}/{office.person['id']}"

    refused = await sent(office.browser, f"{path}/delete")
    kept = await called(office.front.base_url, office.token)
    deleted = await sent(office.browser, f"{path}/delete", confirm="on")

    assert (refused.status, kept) == (422, 200)
    assert deleted.headers["Location"].startswith("/console/jobs/")
    assert (await office.browser.get(deleted.headers["Location"])).status == 200
    assert (await office.browser.get(path)).status == 404
    assert await called(office.front.base_url, office.token) == 401


async def test_administrators_cannot_suspend_or_delete_themselves(front: FrontEnd, organization_id: UUID, api: Api):
    person_id, _ = await person_of(front, api, ["read", "write", "admin"])
    async with browser_of(front, person_id, organization_id) as browser:
        page = await shown(browser, f"{PEOPLE}/{person_id}")
        suspended = await sent(browser, f"{PEOPLE}/{person_id}/status", status="suspended")
        deleted = await sent(browser, f"{PEOPLE}/{person_id}/delete", confirm="on")

    assert "/status" not in page
    assert f"{person_id}/delete" not in page
    assert (suspended.status, deleted.status) == (422, 422)
    assert b"another administrator can" in suspended.body


async def test_a_person_of_another_organization_is_not_found(stranger: ConsoleBrowser, office: Office):
    path = f"{PEOPLE}/{office.person['id']}"

    statuses = [
        (await stranger.get(path)).status,
        (await sent(stranger, path, name="taken")).status,
        (await sent(stranger, f"{path}/status", status="suspended")).status,
        (await sent(stranger, f"{path}/delete", confirm="on")).status,
        (await sent(stranger, f"/console/sessions/{office.session['id']}/end")).status,
    ]

    assert statuses == [404] * 5
    assert listed(await shown(stranger, f"{PEOPLE}?query=user")) == []
    assert await called(office.front.base_url, office.session["token"], path=CONNECTORS) == 200


@pytest.fixture
async def limited(front: FrontEnd, organization_id: UUID) -> AsyncIterator[ConsoleBrowser]:
    """A browser in which an administrator of the workspace `acme` alone is signed in."""
    secret = new_secret()
    client_id = await front.services.identity.create_client(
        "limited", [organization_id], hashed(secret), EVERY_SCOPE, workspaces=["acme"]
    )
    async with signed_in(front, str(client_id), secret) as opened:
        yield opened


async def test_an_administrator_of_a_workspace_sees_its_people_only(limited: ConsoleBrowser, api: Api):
    own, foreign = await added(api, workspaces=["acme"]), await added(api, workspaces=["acme", "north wind"])

    page = await shown(limited, PEOPLE)
    widened = await sent(limited, f"{PEOPLE}/{own['id']}", all_workspaces="on")

    assert listed(page) == [own["id"]]
    assert (await limited.get(f"{PEOPLE}/{foreign['id']}")).status == 404
    assert (widened.status, b"limited to the workspaces acme" in widened.body) == (422, True)
    assert (await api.get(f"/api/v1/people/{own['id']}")).document()["workspaces"] == ["acme"]


@pytest.mark.parametrize("page", [GROUPS, "/console/issuers", "/console/policies", "/console/budgets"])
async def test_an_administrator_of_a_workspace_does_not_see_what_is_of_all(limited: ConsoleBrowser, page: str):
    assert (await limited.get(page)).status == 403
    assert (
        await sent(limited, page, name="a", issuer=ISSUER, audience="a", cedar="", per="day", calls="1")
    ).status == 403


@pytest.mark.parametrize(
    "page",
    [PEOPLE, f"{PEOPLE}/615f99fd-3933-4366-8c4f-738cab9a2d07", GROUPS, "/console/sessions", "/console/issuers",
     "/console/policies", "/console/policies/a", "/console/budgets"],
)  # fmt: skip
async def test_only_administrators_see_these_pages(front: FrontEnd, organization_id: UUID, page: str):
    async with signed_in(front, *await front.client(organization_id, ["read", "write", "approve"])) as browser:
        answer = await browser.get(page)

    assert answer.status == 403
    assert answer.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("name", ["support", "süd/ost & <co>?", "a" * 200])
async def test_a_group_is_created_changed_and_lists_its_members(browser: ConsoleBrowser, api: Api, name: str):
    created = await sent(browser, GROUPS, name=name, workspaces="acme", **{"scope:read": "on"})
    person = await added(api, groups=[name])
    [members, change] = re.findall(
        r'<a href="(/console/(?:people\?group|groups\?change)=[^"]+)"', await shown(browser, GROUPS)
    )
    form = await shown(browser, change)
    await sent(browser, GROUPS, change=name, all_workspaces="on")

    assert created.status == 303
    assert listed(await shown(browser, members)) == [person["id"]]
    assert ">acme</textarea>" in form
    assert 'name="scope:read" checked' in form
    [group] = (await api.get("/api/v1/groups")).document()["data"]
    assert group == {"name": name, "workspaces": None, "scopes": [], "members": 1}


async def test_a_new_group_does_not_replace_another_one(browser: ConsoleBrowser, api: Api):
    rights = {"workspaces": ["acme"], "scopes": ["read"]}
    await api.call("PUT", "/api/v1/groups/support", json=rights)

    answer = await sent(browser, GROUPS, name="support", **{"scope:admin": "on"})

    assert answer.status == 422
    assert b"there is a group &#39;support&#39; already" in answer.body
    assert (await api.get("/api/v1/groups/support")).document() == {"name": "support", **rights}


async def test_groups_are_found_by_name_in_pages_of_25(browser: ConsoleBrowser, api: Api):
    for number in range(27):
        await api.call("PUT", f"/api/v1/groups/team-{number:02}", json={"workspaces": [], "scopes": []})

    def names(page: str) -> list[str]:
        return re.findall(r'<th scope="row">(team-\d\d)</th>', page)

    first = await shown(browser, GROUPS)
    [more] = re.findall(r'href="(\?cursor=[^"]+)"', first)

    assert names(first) == [f"team-{number:02}" for number in range(25)]
    assert names(await shown(browser, GROUPS + more)) == ["team-25", "team-26"]
    assert names(await shown(browser, f"{GROUPS}?query=M-1")) == [f"team-1{number}" for number in range(10)]
    assert "No group matches." in await shown(browser, f"{GROUPS}?query=other")


async def test_a_group_of_another_organization_is_not_found(stranger: ConsoleBrowser, api: Api):
    await api.call("PUT", "/api/v1/groups/support", json={"workspaces": [], "scopes": []})

    assert (await stranger.get(f"{GROUPS}?change=support")).status == 404
    assert "There are no groups yet." in await shown(stranger, GROUPS)


@pytest.mark.parametrize("cursor", ["nonsense", "WyJhIl0", "", "ImEAYiI"])
async def test_a_cursor_that_is_none_is_refused(browser: ConsoleBrowser, api: Api, cursor: str):
    assert (await browser.get(f"{GROUPS}?cursor={cursor}")).status == 422
    assert (await api.get(f"/api/v1/groups?cursor={cursor}")).document(422)["errors"][0]["field"] == "cursor"
