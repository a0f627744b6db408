"""SCIM 2.0: requests as Okta and Entra send them, what they change, and hostile ones."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest

from gateway.access.identity.people import People
from gateway.access.identity.tokens import hashed, new_secret
from gateway.client import Gateway
from gateway.contract.people import PersonChange
from tests.harness.caller import Answer, Api
from tests.harness.command_line import Ended, invoked
from tests.harness.databases import waits_for_lock
from tests.harness.in_process import EVERY_SCOPE, FrontEnd, front_end
from tests.harness.waiting import eventually
from tests.web.belongings import STAFF, Belongings, belongings_of, token_of
from tests.web.test_people import CLOSED, doors, ended
from tests.web.test_personal_connectors import CONNECTORS
from tests.web.test_policies import put

PEOPLE, TOKENS, USERS, GROUPS = "/api/v1/people", "/api/v1/scim/tokens", "/scim/v2/Users", "/scim/v2/Groups"
USER_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:User"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
GROUP_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
ERROR_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error"
MEDIA = {"Content-Type": "application/scim+json", "Accept": "application/scim+json"}
RIGHTS = {"workspaces": None, "scopes": ["read", "write"]}


@dataclass(frozen=True)
class Provider:
    """An identity provider with its token, and an administrator of the organization."""

    front: FrontEnd
    organization_id: UUID
    admin: Api
    api: Api
    token: dict

    async def send(self, method: str, path: str, document: Any = None, **options: Any) -> Answer:
        """A request with the media type of SCIM, whose body the harness does not compare: providers send more."""
        data = None if document is None else json.dumps(document)
        return await self.api.call(method, path, data=data, headers=MEDIA, **options)

    async def user(self, **members: Any) -> dict:
        """A new user, as Okta sends one."""
        name = members.pop("userName", f"{uuid4().hex}@example.com")
        document = {"schemas": [USER_SCHEMA], "userName": name, "externalId": uuid4().hex, "active": True, **members}
        return (await self.send("POST", USERS, document)).document(201)

    async def group(self, *members: dict, **others: Any) -> dict:
        """A new group with these users."""
        document = {
            "schemas": [GROUP_SCHEMA],
            "displayName": others.pop("displayName", uuid4().hex),
            "members": [{"value": each["id"], "display": "x"} for each in members],
            **others,
        }
        return (await self.send("POST", GROUPS, document)).document(201)

    async def patch(self, path: str, *operations: dict) -> Answer:
        return await self.send("PATCH", path, {"schemas": [PATCH_SCHEMA], "Operations": list(operations)})

    async def found(self, path: str, filter_: str, **query: Any) -> list[str]:
        """The ids of what the filter finds."""
        more = "".join(f"&{name}={value}" for name, value in query.items())
        listed = (await self.send("GET", f"{path}?filter={quote(filter_)}{more}")).document()
        assert listed["totalResults"] == len(listed["Resources"])
        return [each["id"] for each in listed["Resources"]]

    async def members(self, group: dict) -> set[str]:
        read = (await self.send("GET", f"{GROUPS}/{group['id']}")).document()
        return {each["value"] for each in read["members"]}

    async def person(self, user: dict) -> dict:
        return (await self.admin.get(f"{PEOPLE}/{user['id']}")).document()


@pytest.fixture
async def okta(front: FrontEnd) -> AsyncIterator[Provider]:
    organization_id, issuer = await front.organization(), f"https://{uuid4().hex}.okta.com"
    async with front.api(organization_id) as admin:
        token = (await admin.post(TOKENS, {"name": "Okta", "issuer": issuer})).document(201)
        api = Api(admin.session, {"Authorization": f"Bearer {token['token']}"})
        yield Provider(front, organization_id, admin, api, token)


def refusal(answer: Answer, status: int = 400) -> str | None:
    """The `scimType` of an error in the format of SCIM."""
    document = answer.document(status)
    assert answer.headers["Content-Type"].partition(";")[0] == "application/scim+json"
    assert (document["schemas"], document["status"]) == ([ERROR_SCHEMA], str(status))
    assert document["detail"]
    return document.get("scimType")


# Tokens of providers


async def test_the_token_of_a_provider_is_good_for_scim_alone_and_ends_when_it_is_revoked(
    okta: Provider, tmp_path: Path
):
    settings = okta.front.services.settings
    listed = (await okta.admin.get(TOKENS)).document()["data"]

    assert okta.token["url"] == f"{settings.base_url}/scim/v2"
    assert listed == [{name: value for name, value in okta.token.items() if name not in ("token", "url")}]
    for path in (PEOPLE, TOKENS, CONNECTORS, "/api/v1/workspaces", "/api/v1/audit"):
        assert (await okta.api.get(path)).status == 401
    async with (
        front_end(tmp_path, str(settings.database_url), str(settings.redis_url)) as other,
        other.api() as elsewhere,
    ):
        there = Api(elsewhere.session, okta.api.headers)
        assert [(await each.get(USERS)).status for each in (okta.api, there)] == [200, 200]
        assert (await okta.admin.call("DELETE", f"{TOKENS}/{okta.token['id']}")).status == 204

        async def is_refused() -> bool:
            return (await there.get(USERS)).status == 401

        await eventually(is_refused, within=1)
    assert refusal(await okta.api.get(USERS), 401) is None
    assert (await okta.admin.get(TOKENS)).document()["data"] == []
    assert (await okta.admin.call("DELETE", f"{TOKENS}/{okta.token['id']}")).status == 404


async def test_tokens_are_stored_as_hashes(okta: Provider, sql):
    rows = await sql("SELECT hash FROM tokens WHERE client_id = $1", UUID(okta.token["id"]))

    assert [each["hash"] for each in rows] == [hashed(okta.token["token"])]


async def test_tokens_are_for_administrators_of_the_whole_organization(okta: Provider):
    secret = new_secret()
    client_id = await okta.front.services.identity.create_client(
        "confined", [okta.organization_id], hashed(secret), EVERY_SCOPE, workspaces=["own"]
    )
    async with Api.of(okta.front.base_url, str(client_id), secret) as confined:
        for method, path, body in (
            ("GET", TOKENS, None),
            ("POST", TOKENS, {"name": "x"}),
            ("DELETE", f"{TOKENS}/{okta.token['id']}", None),
        ):
            assert (await confined.call(method, path, json=body)).status == 403
        for path in (USERS, GROUPS):
            assert refusal(await confined.get(path), 403) is None


async def test_tokens_of_another_organization_do_not_exist(okta: Provider, front: FrontEnd):
    async with front.api() as stranger:
        assert (await stranger.get(TOKENS)).document()["data"] == []
        assert (await stranger.call("DELETE", f"{TOKENS}/{okta.token['id']}")).status == 404
    assert (await okta.api.get(USERS)).status == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x", "issuer": "http://login.example"}, "issuer"),
        ({"name": "x", "subject": "email"}, "subject"),
        ({"name": "x", "scopes": ["admin"]}, "scopes"),
    ],
)
async def test_a_faulty_token_is_refused(okta: Provider, body: dict, field: str):
    problem = (await okta.admin.post(TOKENS, body)).document(422)

    assert [each["field"] for each in problem["errors"]] == [field]


async def test_a_token_needs_no_name(okta: Provider):
    created = [(await okta.admin.call("POST", TOKENS)).document(201), (await okta.admin.post(TOKENS, {})).document(201)]

    assert [each["name"] for each in created] == ["SCIM", "SCIM"]
    assert all(each["token"] for each in created)


async def test_an_organization_has_a_bounded_number_of_tokens(okta: Provider):
    answers = [(await okta.admin.post(TOKENS, {"name": f"t {n}"})).status for n in range(20)]

    assert answers == [201] * 19 + [409]


# Discovery


async def test_the_documents_of_discovery(okta: Provider):
    config = (await okta.api.get("/scim/v2/ServiceProviderConfig")).document()
    schemas = (await okta.api.get("/scim/v2/Schemas")).document()["Resources"]
    types = (await okta.api.get("/scim/v2/ResourceTypes")).document()["Resources"]

    assert (config["patch"], config["filter"]) == ({"supported": True}, {"supported": True, "maxResults": 100})
    assert [config[name]["supported"] for name in ("bulk", "sort", "etag", "changePassword")] == [False] * 4
    assert [each["id"] for each in schemas] == [USER_SCHEMA, GROUP_SCHEMA]
    assert [(each["id"], each["endpoint"], each["schema"]) for each in types] == [
        ("User", "/Users", USER_SCHEMA),
        ("Group", "/Groups", GROUP_SCHEMA),
    ]
    for each in (*schemas, *types):
        location = each["meta"]["location"].removeprefix(okta.front.services.settings.base_url)
        assert (await okta.api.get(location)).document() == each
    assert refusal(await okta.api.get("/scim/v2/Schemas/urn:x"), 404) is None
    assert refusal(await okta.api.get("/scim/v2/ResourceTypes/Device"), 404) is None


# Users, as Okta sends them

OKTA_USER = {
    "schemas": [USER_SCHEMA],
    "userName": "ada@example.com",
    "name": {"givenName": "Ada", "familyName": "Lovelace"},
    "emails": [{"primary": True, "value": "ada@example.com", "type": "work"}],
    "displayName": "Ada Lovelace",
    "locale": "en-US",
    "externalId": "00u1a2b3",
    "groups": [],
    "password": "1mz050nq",
    "active": True,
}


async def test_okta_finds_nobody_adds_a_user_and_finds_it(okta: Provider):
    named = quote('userName eq "ada@example.com"')
    path = f"{USERS}?filter={named}&startIndex=1&count=100"
    nobody = (await okta.send("GET", path)).document()
    answer = await okta.send("POST", USERS, OKTA_USER)
    user = answer.document(201)
    found = (await okta.send("GET", path)).document()

    assert nobody == {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
        "totalResults": 0,
        "startIndex": 1,
        "itemsPerPage": 0,
        "Resources": [],
    }
    assert answer.headers["Location"] == user["meta"]["location"]
    kept = {name: OKTA_USER[name] for name in ("schemas", "userName", "name", "emails", "displayName", "externalId")}
    times = {name: user["meta"][name] for name in ("created", "lastModified")}
    location = f"{okta.front.services.settings.base_url}{USERS}/{user['id']}"
    meta = {"resourceType": "User", "location": location, **times}
    assert user == {**kept, "id": user["id"], "active": True, "meta": meta}
    assert found["Resources"] == [user]
    person = await okta.person(user)
    assert (person["email"], person["name"], person["status"]) == ("ada@example.com", "Ada Lovelace", "active")
    assert (person["issuer"], person["subject"]) == (okta.token["issuer"], "00u1a2b3")
    assert (person["scopes"], person["workspaces"], person["groups"]) == ([], [], [])


async def test_okta_replaces_a_user(okta: Provider):
    user = (await okta.send("POST", USERS, OKTA_USER)).document(201)
    changed = {**OKTA_USER, "id": user["id"], "userName": "ada.byron@example.com", "displayName": "Ada Byron"}
    emails = [{"primary": True, "value": "ada.byron@example.com", "type": "work"}]

    answer = await okta.send("PUT", f"{USERS}/{user['id']}", {**changed, "emails": emails, "meta": {"x": 1}})

    assert answer.document()["emails"] == emails
    person = await okta.person(user)
    assert (person["email"], person["name"]) == ("ada.byron@example.com", "Ada Byron")
    assert await okta.found(USERS, 'userName eq "ADA.Byron@example.com"') == [user["id"]]
    assert await okta.found(USERS, 'userName eq "ada@example.com"') == []


async def test_a_name_without_a_display_name_is_made_of_its_parts(okta: Provider):
    user = await okta.user(name={"givenName": "Ada", "familyName": "Lovelace"})
    await okta.patch(f"{USERS}/{user['id']}", {"op": "replace", "path": "name.familyName", "value": "Byron"})

    assert user["displayName"] == "Ada Lovelace"
    assert (await okta.person(user))["name"] == "Ada Byron"


#: the operations of Okta and Entra that suspend, in every form
SUSPENSIONS = [
    {"op": "replace", "value": {"active": False}},
    {"op": "Replace", "path": "active", "value": "False"},
    {"op": "Replace", "path": "active", "value": False},
    {"op": "Replace", "path": "active", "value": [{"$ref": None, "value": "False"}]},
    {"op": "Add", "path": "Active", "value": "false"},
    {"op": "REPLACE", "path": f"{USER_SCHEMA}:active", "value": False},
    {"op": "replace", "value": {f"{USER_SCHEMA}:active": "False", "nickName": "x"}},
]


@pytest.mark.parametrize("operation", SUSPENSIONS, ids=str)
async def test_a_user_is_suspended_and_activated_again(okta: Provider, operation: dict):
    user = await okta.user()

    suspended = await okta.patch(f"{USERS}/{user['id']}", operation)

    assert suspended.document()["active"] is False
    assert (await okta.person(user))["status"] == "suspended"
    assert await okta.found(USERS, "active eq false") == [user["id"]]
    active = await okta.patch(f"{USERS}/{user['id']}", {"op": "Replace", "path": "active", "value": "True"})
    assert active.document()["active"] is True
    assert (await okta.person(user))["status"] == "active"


async def test_a_user_may_be_added_suspended_and_stays_so_without_active(okta: Provider):
    user = await okta.user(active=False)

    replaced = await okta.send("PUT", f"{USERS}/{user['id']}", {"schemas": [USER_SCHEMA], "userName": "still@away"})

    assert user["active"] is False
    assert replaced.document()["active"] is False


# Users, as Entra sends them

ENTRA_USER = {
    "schemas": [USER_SCHEMA, ENTERPRISE],
    "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
    "userName": "Grace@contoso.com",
    "active": True,
    "emails": [{"primary": True, "type": "work", "value": "grace@contoso.com"}],
    "meta": {"resourceType": "User"},
    "name": {"formatted": "Grace Hopper", "familyName": "Hopper", "givenName": "Grace"},
    "roles": [],
    "addresses": [{"type": "work", "country": "US", "primary": True}],
    "phoneNumbers": [{"type": "mobile", "value": "+1 555 0100"}],
    ENTERPRISE: {"department": "R&D", "manager": {"value": "1"}},
}

#: operation → members of the user afterwards
ENTRA_PATCHES = [
    ({"op": "Add", "path": "displayName", "value": "Amazing Grace"}, {"displayName": "Amazing Grace"}),
    ({"op": "Replace", "path": "displayName", "value": [{"$ref": None, "value": "G."}]}, {"displayName": "G."}),
    ({"op": "Replace", "path": "userName", "value": "hopper@contoso.com"}, {"userName": "hopper@contoso.com"}),
    ({"op": "Replace", "path": "userName", "value": "grace@contoso.com"}, {"userName": "grace@contoso.com"}),
    (
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "g@contoso.com"},
        {"emails": [{"primary": True, "type": "work", "value": "g@contoso.com"}]},
    ),
    (
        {"op": "Add", "path": 'emails[type eq "home"].value', "value": "g@home.example"},
        {"emails": [*ENTRA_USER["emails"], {"type": "home", "value": "g@home.example"}]},
    ),
    ({"op": "Remove", "path": 'emails[type eq "work"]'}, {"emails": None}),
    ({"op": "Remove", "path": "externalId"}, {"externalId": None}),
    ({"op": "Add", "path": "name.givenName", "value": "G"}, {"name": {**ENTRA_USER["name"], "givenName": "G"}}),
    ({"op": "Add", "path": f"{ENTERPRISE}:department", "value": "Navy"}, {}),
    ({"op": "Replace", "path": 'addresses[type eq "work"].country', "value": "DE"}, {}),
    ({"op": "Remove", "path": 'phoneNumbers[type eq "mobile"].value'}, {}),
    (
        {"op": "replace", "value": {"name.familyName": "H", "title": "x", f"{ENTERPRISE}:department": "Navy"}},
        {"name": {**ENTRA_USER["name"], "familyName": "H"}},
    ),
    (
        {"op": "Add", "value": {"displayName": "G.", 'emails[type eq "work"].value': "g@contoso.com", "title": "x"}},
        {"displayName": "G.", "emails": [{"primary": True, "type": "work", "value": "g@contoso.com"}]},
    ),
    (
        {
            "op": "replace",
            "value": {'addresses[type eq "work"].country': "DE", 'emails[type eq "home"].value': "g@h.de"},
        },
        {"emails": [*ENTRA_USER["emails"], {"type": "home", "value": "g@h.de"}]},
    ),
]


@pytest.mark.parametrize(("operation", "changed"), ENTRA_PATCHES, ids=str)
async def test_entra_changes_a_user(okta: Provider, operation: dict, changed: dict):
    user = (await okta.send("POST", USERS, ENTRA_USER)).document(201)

    after = (await okta.patch(f"{USERS}/{user['id']}", operation)).document()

    expected = {name: value for name, value in {**user, **changed}.items() if value is not None}
    if "name" in changed:
        expected["displayName"] = after["displayName"]
    assert {**after, "meta": None} == {**expected, "meta": None}
    assert (await okta.send("GET", f"{USERS}/{user['id']}")).document() == after


#: filter → whether it finds the user of Entra
FILTERS = [
    ('userName eq "grace@CONTOSO.com"', True),
    ('USERNAME Eq "grace@contoso.com"', True),
    ('externalId eq "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef"', True),
    ('externalId eq "0A21F0F2-8d2a-4f8e-bf98-7363c4aed4ef"', False),
    ('emails.value eq "Grace@contoso.com"', True),
    ('emails[type eq "work"].value eq "grace@contoso.com"', True),
    ('emails[type eq "home"].value eq "grace@contoso.com"', False),
    ('emails[type eq "work" and value co "contoso"]', True),
    ("emails[primary eq true]", True),
    ('displayName eq "grace hopper"', True),
    ('name.familyName eq "hopper" and active eq true', True),
    ('name.familyName eq "hopper" and active eq false', False),
    ('(userName eq "nobody" or externalId sw "0a21") and not (displayName ew "x")', True),
    (f'{USER_SCHEMA}:userName eq "grace@contoso.com"', True),
    ("externalId pr", True),
    ('active eq "True" and emails.primary eq true', True),
    ("not (externalId pr)", False),
    ('id eq "{id}"', True),
    ('id ne "{id}"', False),
    ('id eq "not an id"', False),
    ('groups.value eq "{id}"', False),
    ('userName eq "O\'Hara\\"; DROP TABLE people; --"', False),
]


@pytest.mark.parametrize(("filter_", "is_found"), FILTERS)
async def test_filters_of_users(okta: Provider, filter_: str, is_found: bool):
    user = (await okta.send("POST", USERS, ENTRA_USER)).document(201)

    assert await okta.found(USERS, filter_.replace("{id}", user["id"])) == ([user["id"]] if is_found else [])


async def test_pages_and_attributes_of_users(okta: Provider):
    users = [await okta.user(userName=f"user-{n}") for n in range(3)]

    page = (await okta.send("GET", f"{USERS}?startIndex=2&count=1")).document()
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (3, 2, 1)
    assert [each["id"] for each in page["Resources"]] == [users[1]["id"]]
    for query, shown in (("startIndex=-5&count=2", 2), ("count=0", 0), ("count=-1", 0), ("startIndex=99", 0)):
        assert len((await okta.send("GET", f"{USERS}?{query}")).document()["Resources"]) == shown
    path = f"{USERS}/{users[0]['id']}"
    only = (await okta.send("GET", f"{path}?attributes=userName,{USER_SCHEMA}:externalId,nickName")).document()
    without = (await okta.send("GET", f"{path}?excludedAttributes=meta,EMAILS,groups")).document()
    assert set(only) == {"schemas", "id", "userName", "externalId"}
    assert set(without) == {"schemas", "id", "userName", "externalId", "active"}


async def test_the_name_of_a_user_is_unique_in_any_case(okta: Provider):
    first, second = await okta.user(userName="Ada@example.com"), await okta.user()
    again = {"schemas": [USER_SCHEMA], "userName": "ADA@EXAMPLE.COM"}

    assert refusal(await okta.send("POST", USERS, again), 409) == "uniqueness"
    assert refusal(await okta.send("PUT", f"{USERS}/{second['id']}", again), 409) == "uniqueness"
    renamed = {"op": "replace", "path": "userName", "value": "aDa@example.com"}
    assert refusal(await okta.patch(f"{USERS}/{second['id']}", renamed), 409) == "uniqueness"
    assert (await okta.patch(f"{USERS}/{first['id']}", renamed)).document()["userName"] == "aDa@example.com"


async def test_a_subject_is_one_persons(okta: Provider):
    await okta.user(externalId="00u7")
    other = await okta.user()
    body = {"schemas": [USER_SCHEMA], "userName": "x", "externalId": "00u7"}

    assert refusal(await okta.send("POST", USERS, body), 409) == "uniqueness"
    assert refusal(await okta.send("PUT", f"{USERS}/{other['id']}", body), 409) == "uniqueness"


async def test_a_provider_takes_over_a_person_whom_its_issuer_names_already(okta: Provider):
    body = {
        "issuer": okta.token["issuer"],
        "subject": "00u9",
        "name": "Known",
        "scopes": ["read"],
        "workspaces": ["acme"],
    }
    known = (await okta.admin.post(PEOPLE, body)).document(201)

    user = await okta.user(externalId="00u9", userName="known@example.com", displayName="Renamed")

    assert user["id"] == known["id"]
    person = await okta.person(user)
    assert (person["name"], person["scopes"], person["workspaces"]) == ("Renamed", ["read"], ["acme"])


async def test_people_whom_administrators_added_are_users_by_their_address(okta: Provider):
    added = (await okta.admin.post(PEOPLE, {"email": "ada@example.com", "name": "Ada"})).document(201)

    assert await okta.found(USERS, 'userName eq "ADA@example.com"') == [added["id"]]
    taken = {"schemas": [USER_SCHEMA], "userName": "Ada@example.com"}
    assert refusal(await okta.send("POST", USERS, taken), 409) == "uniqueness"
    await okta.patch(f"{USERS}/{added['id']}", {"op": "replace", "value": {"active": False, "externalId": "e1"}})
    assert (await okta.person(added))["status"] == "suspended"
    assert await okta.found(USERS, 'externalId eq "e1"') == [added["id"]]


async def test_what_an_administrator_changes_the_provider_reads(okta: Provider):
    user = (await okta.send("POST", USERS, OKTA_USER)).document(201)
    await okta.admin.call("PATCH", f"{PEOPLE}/{user['id']}", json={"email": "new@example.com", "name": "New"})

    read = (await okta.send("GET", f"{USERS}/{user['id']}")).document()

    assert read["displayName"] == "New"
    assert read["emails"] == [{"value": "new@example.com", "type": "work", "primary": True}]
    assert await okta.found(USERS, 'emails.value eq "new@example.com"') == [user["id"]]
    patched = await okta.patch(f"{USERS}/{user['id']}", {"op": "replace", "path": "externalId", "value": "e"})
    assert (patched.document()["displayName"], (await okta.person(user))["name"]) == ("New", "New")


async def test_a_patch_keeps_what_an_administrator_changes_at_the_same_moment(okta: Provider):
    user = (await okta.send("POST", USERS, OKTA_USER)).document(201)
    database = okta.front.services.database
    people = People(database, okta.front.services.identity)
    async with database.system() as connection, connection.transaction():
        change = PersonChange(name="New")
        await people.change_within(connection, okta.organization_id, UUID(user["id"]), change, lambda client: None)
        patching = asyncio.create_task(
            okta.patch(f"{USERS}/{user['id']}", {"op": "replace", "path": "externalId", "value": "e"})
        )
        await eventually(lambda: waits_for_lock(database))
    patched = (await patching).document()

    assert (patched["displayName"], patched["externalId"]) == ("New", "e")
    assert (await okta.person(user))["name"] == "New"


async def test_users_of_clients_products_and_people_of_several_organizations_are_no_users(okta: Provider):
    client_id = (await okta.admin.get("/api/v1/clients")).document()["data"][0]["id"]
    body = {"client_id": client_id, "subject": "user-7", "email": "user7@example.com"}
    product = (await okta.admin.post(PEOPLE, body)).document(201)
    people = People(okta.front.services.database, okta.front.services.identity)
    several = await people.add(uuid4().hex, [okta.organization_id, await okta.front.organization()], ["read"])
    group = await okta.group()

    assert (await okta.send("GET", USERS)).document()["totalResults"] == 0
    for person_id in (product["id"], str(several.id)):
        for method, body in (("GET", None), ("PUT", OKTA_USER), ("DELETE", None)):
            assert refusal(await okta.send(method, f"{USERS}/{person_id}", body), 404) is None
        joining = {"op": "add", "path": "members", "value": [{"value": person_id}]}
        assert refusal(await okta.patch(f"{GROUPS}/{group['id']}", joining)) == "invalidValue"


async def test_the_token_says_who_its_people_are_when_they_sign_in(okta: Provider):
    async def subject(**token: object) -> tuple:
        created = (await okta.admin.post(TOKENS, {"name": "x", **token})).document(201)
        api = Api(okta.admin.session, {"Authorization": f"Bearer {created['token']}"})
        provider = Provider(okta.front, okta.organization_id, okta.admin, api, created)
        user = await provider.user(userName=uuid4().hex, externalId=uuid4().hex)
        person = await okta.person(user)
        sent = {user["userName"]: "userName", user["externalId"]: "externalId", None: None}
        return person["issuer"], sent[person["subject"]]

    assert await subject(issuer="https://login.example") == ("https://login.example", "externalId")
    assert await subject(issuer="https://login.example", subject="userName") == ("https://login.example", "userName")
    assert await subject(issuer=None) == (None, None)
    assert await subject() == (None, None)  # the front end of the tests has no sign-in provider


# Groups


async def test_a_group_gives_its_rights_to_its_members_in_every_process(okta: Provider, tmp_path: Path):
    user = await okta.user()
    token = await token_of(okta.front, user)
    settings = okta.front.services.settings
    async with front_end(tmp_path, str(settings.database_url), str(settings.redis_url)) as other, other.api() as there:
        callers = [Api(each.session, {"Authorization": f"Bearer {token}"}) for each in (okta.admin, there)]

        async def statuses() -> list[int]:
            return [(await each.get("/api/v1/workspaces")).status for each in callers]

        async def become(status: int) -> None:
            async def are() -> bool:
                return await statuses() == [status, status]

            await eventually(are, within=1)

        group = await okta.group(user, displayName="support")
        assert await statuses() == [403, 403]
        assert (await okta.admin.get("/api/v1/groups/support")).document() == {
            "name": "support",
            "workspaces": [],
            "scopes": [],
        }
        await okta.admin.call("PUT", "/api/v1/groups/support", json=RIGHTS)
        await become(200)
        await okta.patch(f"{GROUPS}/{group['id']}", {"op": "remove", "path": f'members[value eq "{user["id"]}"]'})
        await become(403)
        await okta.patch(f"{GROUPS}/{group['id']}", {"op": "add", "path": "members", "value": [{"value": user["id"]}]})
        await become(200)
        assert (await okta.send("DELETE", f"{GROUPS}/{group['id']}")).status == 204
        await become(403)
    assert (await okta.send("GET", f"{GROUPS}/{group['id']}")).status == 404


async def test_a_group_that_an_administrator_created_is_found_and_filled(okta: Provider):
    await okta.admin.call("PUT", "/api/v1/groups/Support", json=RIGHTS)
    user = await okta.user()

    [group_id] = await okta.found(GROUPS, 'displayName eq "support"', excludedAttributes="members")
    joined = await okta.patch(
        f"{GROUPS}/{group_id}", {"op": "Add", "path": "members", "value": [{"value": user["id"]}]}
    )

    assert [each["value"] for each in joined.document()["members"]] == [user["id"]]
    assert (await okta.person(user))["groups"] == ["Support"]
    assert (await okta.admin.get("/api/v1/groups/Support")).document() == {"name": "Support", **RIGHTS}
    taken = {"schemas": [GROUP_SCHEMA], "displayName": "SUPPORT"}
    assert refusal(await okta.send("POST", GROUPS, taken), 409) == "uniqueness"


#: operations of Okta and Entra on the members `a` and `b` of a group; → its members afterwards
MEMBERS = [
    ([{"op": "add", "path": "members", "value": [{"value": "c", "display": "c@example.com"}]}], "abc"),
    ([{"op": "Add", "path": "members", "value": [{"value": "a"}, {"value": "c"}]}], "abc"),
    ([{"op": "add", "value": {"members": [{"value": "c"}]}}], "abc"),
    ([{"op": "remove", "path": 'members[value eq "a"]'}], "b"),
    ([{"op": "Remove", "path": 'Members[Value Eq "a"]'}], "b"),
    ([{"op": "remove", "path": 'members[value eq "a" or value eq "b"]'}], ""),
    ([{"op": "Remove", "path": "members", "value": [{"value": "a"}]}], "b"),
    ([{"op": "Remove", "path": "members", "value": [{"$ref": None, "value": "a"}, {"value": "c"}]}], "b"),
    ([{"op": "remove", "path": "members"}], ""),
    ([{"op": "remove", "path": 'members[value eq "not an id"]'}], "ab"),
    ([{"op": "replace", "path": "members", "value": [{"value": "c"}]}], "c"),
    ([{"op": "replace", "path": "members", "value": []}], ""),
    ([{"op": "replace", "value": {"members": [{"value": "b"}, {"value": "c"}]}}], "bc"),
    ([{"op": "replace", "value": {"id": "x", "displayName": "team"}}], "ab"),
    (
        [
            {"op": "remove", "path": 'members[value eq "a"]'},
            {"op": "add", "path": "members", "value": [{"value": "a"}, {"value": "c"}]},
            {"op": "remove", "path": f'{GROUP_SCHEMA}:members[value eq "b"]'},
        ],
        "ac",
    ),
]


@pytest.mark.parametrize(("operations", "expected"), MEMBERS, ids=str)
async def test_members_of_a_group_are_changed(okta: Provider, operations: list[dict], expected: str):
    users = {name: await okta.user() for name in "abc"}
    group = await okta.group(users["a"], users["b"], displayName="team")
    text = json.dumps(operations)
    for name, user in users.items():
        text = text.replace(f'"value": "{name}"', f'"value": "{user["id"]}"')
        text = text.replace(f'\\"{name}\\"', f'\\"{user["id"]}\\"')

    answer = await okta.patch(f"{GROUPS}/{group['id']}", *json.loads(text))

    assert {each["value"] for each in answer.document()["members"]} == {users[name]["id"] for name in expected}
    assert await okta.members(group) == {users[name]["id"] for name in expected}


async def test_a_group_is_replaced_listed_and_filtered(okta: Provider):
    first, second = await okta.user(displayName="First"), await okta.user()
    group = await okta.group(first, displayName="team", externalId="g1")
    await okta.group(displayName="others")

    body = {"schemas": [GROUP_SCHEMA], "displayName": "Team", "members": [{"value": second["id"]}]}
    replaced = (await okta.send("PUT", f"{GROUPS}/{group['id']}", body)).document()
    listed = (await okta.send("GET", GROUPS)).document()
    bare = (await okta.send("GET", f"{GROUPS}?excludedAttributes=members&count=1")).document()

    assert (replaced["displayName"], replaced["id"], "externalId" in replaced) == ("Team", group["id"], False)
    assert await okta.members(group) == {second["id"]}
    assert [(each["displayName"], len(each["members"])) for each in listed["Resources"]] == [("Team", 1), ("others", 0)]
    assert [("members" in each, bare["totalResults"]) for each in bare["Resources"]] == [(False, 2)]
    for filter_, is_found in (
        ('displayName eq "TEAM"', True),
        (f'members.value eq "{second["id"]}"', True),
        (f'members.value eq "{first["id"]}"', False),
        (f'members[value eq "{second["id"]}"]', True),
        (f'id eq "{group["id"]}" and members eq "{second["id"]}"', True),
        ('externalId eq "g1"', False),
        ('displayName sw "te"', True),
    ):
        assert await okta.found(GROUPS, filter_) == ([group["id"]] if is_found else [])
    read = (await okta.send("GET", f"{USERS}/{second['id']}")).document()
    assert [(each["display"], each["value"]) for each in read["groups"]] == [("Team", group["id"])]
    assert await okta.found(USERS, f'groups.value eq "{group["id"]}"') == [second["id"]]


async def test_a_renamed_group_keeps_its_rights_and_those_who_act_for_its_members(okta: Provider):
    user = await okta.user()
    group = await okta.group(user, displayName="leads")
    await okta.admin.call("PUT", "/api/v1/groups/leads", json=RIGHTS)
    client_id, _ = await okta.front.client(okta.organization_id, ["read", "delegate"])
    await okta.admin.call("PATCH", f"/api/v1/clients/{client_id}", json={"delegate_for": ["leads"]})

    await okta.patch(f"{GROUPS}/{group['id']}", {"op": "Replace", "path": "displayName", "value": "team leads"})

    assert (await okta.admin.get("/api/v1/groups/team%20leads")).document()["scopes"] == ["read", "write"]
    assert (await okta.admin.get("/api/v1/groups/leads")).status == 404
    assert (await okta.person(user))["groups"] == ["team leads"]
    client = await okta.front.services.identity.client(UUID(client_id))
    assert client is not None
    assert client.client.delegate_for == ("team leads",)
    await okta.send("DELETE", f"{GROUPS}/{group['id']}")
    client = await okta.front.services.identity.client(UUID(client_id))
    assert client is not None
    assert client.client.delegate_for == ()


async def test_a_group_that_policies_name_keeps_its_name(okta: Provider):
    group = await okta.group(displayName="interns")
    cedar = 'permit(principal, action, resource); forbid(principal in Group::"interns", action, resource);'
    assert (await put(okta.admin, cedar)).status == 200

    for body in (
        ("PATCH", {"Operations": [{"op": "replace", "path": "displayName", "value": "juniors"}]}),
        ("PUT", {"schemas": [GROUP_SCHEMA], "displayName": "juniors"}),
    ):
        assert refusal(await okta.send(body[0], f"{GROUPS}/{group['id']}", body[1]), 409) is None
    assert (await okta.send("GET", f"{GROUPS}/{group['id']}")).document()["displayName"] == "interns"


async def test_a_user_is_in_a_bounded_number_of_groups(okta: Provider, sql):
    user = await okta.user()
    for n in range(100):
        await sql(
            "INSERT INTO groups (organization_id, name, scopes) VALUES ($1, $2, '{}')", okta.organization_id, str(n)
        )
        await sql(
            "INSERT INTO group_members (organization_id, group_name, client_id) VALUES ($1, $2, $3)",
            okta.organization_id,
            str(n),
            UUID(user["id"]),
        )
    body = {"schemas": [GROUP_SCHEMA], "displayName": "more", "members": [{"value": user["id"]}]}

    assert refusal(await okta.send("POST", GROUPS, body)) == "invalidValue"
    assert await okta.found(GROUPS, 'displayName eq "more"') == []


async def test_a_page_has_fewer_groups_if_they_have_many_members(okta: Provider, sql):
    await sql(MANY_PEOPLE, okta.organization_id)
    for name in ("one", "two", "three"):
        await sql(THEIR_GROUP, okta.organization_id, name)

    page = (await okta.send("GET", f"{GROUPS}?count=50")).document()
    bare = (await okta.send("GET", f"{GROUPS}?count=50&excludedAttributes=members")).document()

    assert (page["totalResults"], page["itemsPerPage"], len(page["Resources"])) == (3, 2, 2)
    assert [len(each["members"]) for each in page["Resources"]] == [9000, 9000]
    assert (bare["totalResults"], bare["itemsPerPage"]) == (3, 3)


MANY_PEOPLE = """
    WITH new AS (
        INSERT INTO clients (id, name, secret_hashes)
        SELECT gen_random_uuid(), 'person ' || n, '{}' FROM generate_series(1, 9000) AS n RETURNING id
    ), acting AS (
        INSERT INTO client_organizations (client_id, organization_id) SELECT id, $1 FROM new RETURNING client_id
    )
    INSERT INTO people (client_id) SELECT client_id FROM acting
"""
THEIR_GROUP = """
    WITH groups AS (INSERT INTO groups (organization_id, name, scopes) VALUES ($1, $2, '{}') RETURNING name)
    INSERT INTO group_members (organization_id, group_name, client_id)
    SELECT $1, groups.name, people.client_id
    FROM groups, people JOIN client_organizations USING (client_id) WHERE organization_id = $1
"""


# Leavers


@pytest.fixture
async def leaver(okta: Provider) -> Belongings:
    await okta.admin.call("PUT", f"/api/v1/groups/{STAFF}", json={"workspaces": None, "scopes": list(EVERY_SCOPE)})
    user = await okta.user()
    [group_id] = await okta.found(GROUPS, f'displayName eq "{STAFF}"')
    await okta.patch(f"{GROUPS}/{group_id}", {"op": "add", "path": "members", "value": [{"value": user["id"]}]})
    return await belongings_of(okta.front, okta.organization_id, okta.admin, user)


ENDS = {
    "active": ("PATCH", {"Operations": [{"op": "Replace", "path": "active", "value": "False"}]}),
    "put": ("PUT", {"schemas": [USER_SCHEMA], "userName": "left@example.com", "active": False}),
    "delete": ("DELETE", None),
}


@pytest.mark.parametrize("end", ENDS)
async def test_everything_that_acts_for_a_leaver_ends_in_every_process(
    okta: Provider, leaver: Belongings, tmp_path: Path, sql, end: str
):
    method, body = ENDS[end]
    settings = okta.front.services.settings
    async with front_end(tmp_path, str(settings.database_url), str(settings.redis_url)) as other:
        before = [await doors(each, leaver) for each in (okta.front, other)]
        answer = await okta.send(method, f"{USERS}/{leaver.person['id']}", body)

        async def are_closed() -> bool:
            return [await doors(each, leaver) for each in (okta.front, other)] == [CLOSED, CLOSED]

        assert {each["token"] for each in before} == {each["session"] for each in before} == {200}
        assert answer.status == (204 if end == "delete" else 200)
        await eventually(are_closed, within=1)
    connectors = await sql(
        "SELECT status, deleted_at IS NOT NULL AS deleted FROM connectors WHERE id = $1", UUID(leaver.own["id"])
    )
    assert await ended(sql, leaver) == [(False, "disabled", True, True)]
    assert [tuple(each) for each in connectors] == [("disabled", end == "delete")]
    if end == "delete":
        assert (await okta.admin.get(f"{PEOPLE}/{leaver.person['id']}")).status == 404
        assert refusal(await okta.send("DELETE", f"{USERS}/{leaver.person['id']}"), 404) is None


async def test_changes_are_in_the_audit_log_under_the_name_of_the_token(okta: Provider):
    user = await okta.user()
    group = await okta.group(user, displayName="team")
    await okta.patch(f"{USERS}/{user['id']}", {"op": "replace", "value": {"active": False}})
    await okta.patch(f"{GROUPS}/{group['id']}", {"op": "remove", "path": "members"})
    await okta.send("DELETE", f"{USERS}/{user['id']}")
    await okta.send("DELETE", f"{GROUPS}/{group['id']}")

    async def entries() -> dict[str, tuple]:
        found = (await okta.admin.get("/api/v1/audit")).document()["data"]
        return {
            each["what"]: (each["target"], each["changed"], each["outcome"])
            for each in found
            if each["actor"]["name"] == "Okta"
        }

    expected = {
        "person.create": (user["id"], ["active", "external_id", "user_name"], "succeeded"),
        "group.create": ("team", ["members"], "succeeded"),
        "person.update": (user["id"], ["active"], "succeeded"),
        "group.update": ("team", ["members"], "succeeded"),
        "person.delete": (user["id"], [], "accepted"),
        "group.delete": ("team", [], "succeeded"),
    }

    async def are_there() -> bool:
        return set(await entries()) == set(expected)

    await eventually(are_there, within=10)
    assert await entries() == expected


# The command line


async def test_people_groups_and_tokens_by_the_command_line(okta: Provider, tmp_path: Path):
    client_id, secret = await okta.front.client(okta.organization_id)
    environment = {
        "GATEWAY_URL": okta.front.base_url,
        "GATEWAY_CLIENT_ID": client_id,
        "GATEWAY_CLIENT_SECRET": secret,
        "HOME": str(tmp_path),
    }

    async def gateway(*words: str) -> Ended:
        ended = await invoked("people", *words, environment=environment, directory=tmp_path)
        assert ended.code == 0, ended.err
        return ended

    group = (await gateway("group", "support", "--scope", "read", "--in-workspace", "acme", "-o", "json")).json()
    added = (await gateway("add", "--name", "Ada", "--group", "support", "--everywhere", "-o", "json")).json()
    listed = (await gateway("list", "--status", "active", "--group", "support", "-o", "json")).json()
    shown = (await gateway("show", added["id"], "-o", "json")).json()
    suspended = (await gateway("suspend", added["id"], "-o", "json")).json()
    active = (await gateway("activate", added["id"], "-o", "json")).json()
    token = (await gateway("create-token", "Entra", "--issuer", "https://login.example", "-o", "json")).json()
    tokens = (await gateway("tokens", "-o", "json")).json()

    assert group == {"name": "support", "scopes": ["read"], "workspaces": ["acme"]}
    assert (await gateway("groups", "-o", "json")).json() == [{**group, "members": 1}]
    assert (shown["id"], shown["groups"], shown["workspaces"]) == (added["id"], ["support"], None)
    assert [each["id"] for each in listed] == [added["id"]]
    assert (suspended["status"], active["status"]) == ("suspended", "active")
    assert [each["name"] for each in tokens] == ["Okta", "Entra"]
    by_token = Api(okta.admin.session, {"Authorization": f"Bearer {token['token']}"})
    assert (await by_token.get(f"{USERS}/{added['id']}")).document()["displayName"] == "Ada"
    await gateway("revoke-token", token["id"])

    async def is_refused() -> bool:
        return (await by_token.get(USERS)).status == 401

    await eventually(is_refused, within=1)


async def test_the_python_client_removes_a_person(okta: Provider):
    client_id, secret = await okta.front.client(okta.organization_id)
    async with Gateway(okta.front.base_url, client_id, secret) as gateway:
        added = await gateway.people.add(email="ada@example.com")
        changed = await gateway.people.change(added.id, name="Ada")
        await gateway.people.put_group("team/leads", scopes=[], workspaces=None)
        group = await gateway.people.group("team/leads")
        await gateway.people.remove(added.id)
        left = await gateway.people.list()

    assert (changed.name, group.name, left) == ("Ada", "team/leads", [])


# Hostile requests

DEEP: Any = "x"
for _ in range(900):
    DEEP = [DEEP]
PATCHED = {"schemas": [PATCH_SCHEMA]}


def patching(*operations: Any) -> dict:
    return {**PATCHED, "Operations": list(operations)}


#: method, path, body → status, `scimType`; `{user}` and `{group}` exist, `{stranger}` is another organization's
HOSTILE: list[tuple[str, str, Any, int, str | None]] = [
    ("GET", f"{USERS}?filter=" + quote("userName eq " * 80 + '"x"'), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote(" or ".join(['userName eq "x"'] * 200)), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote("(" * 400 + 'userName eq "x"' + ")" * 400), None, 200, None),
    ("GET", f"{USERS}?filter=" + quote("not (" * 60 + 'userName eq "x"' + ")" * 60), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote('userName eq "\\u0000"'), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote('userName eq "\\ud800"'), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote("userName eq 5"), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote("userName eq true"), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote("active gt false"), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote("active co false"), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote("id co 5"), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote('password eq "x"'), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote('meta.created gt "2026-01-01T00:00:00Z"'), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote('userName gt "a"'), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote('userName[value eq "a"]'), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote('emails[value.value eq "a"]'), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote('emails[id eq "a"]'), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote('emails.primary eq "yes"'), None, 400, "invalidFilter"),
    ("GET", f"{GROUPS}?filter=" + quote('members.display eq "a"'), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote('urn:x:y:userName eq "a"'), None, 400, "invalidFilter"),
    ("GET", f"{USERS}?filter=" + quote("displayName eq null or externalId ne null"), None, 200, None),
    ("GET", f"{USERS}?filter=" + quote('displayName co "%_\\\\"'), None, 200, None),
    ("GET", f"{USERS}?startIndex=two", None, 400, "invalidValue"),
    ("GET", f"{USERS}?startIndex=" + "9" * 400, None, 200, None),
    ("GET", f"{USERS}?count=999999999", None, 200, None),
    ("GET", f"{USERS}?attributes=userName&excludedAttributes=emails", None, 400, "invalidValue"),
    ("GET", f"{USERS}?attributes=" + quote("a b,[,"), None, 400, "invalidPath"),
    ("GET", f"{USERS}?attributes=" + ",".join(["userName"] * 110), None, 400, "invalidValue"),
    ("GET", f"{USERS}?attributes=" + "a" * 2000, None, 400, "invalidValue"),
    ("GET", f"{USERS}?attributes=password,nothing,{ENTERPRISE}:manager", None, 200, None),
    ("GET", f"{USERS}/{{stranger}}", None, 404, None),
    ("PUT", f"{USERS}/{{stranger}}", OKTA_USER, 404, None),
    ("PATCH", f"{USERS}/{{stranger}}", patching({"op": "replace", "value": {"active": False}}), 404, None),
    ("DELETE", f"{USERS}/{{stranger}}", None, 404, None),
    ("GET", f"{GROUPS}/{{strangers group}}", None, 404, None),
    ("PUT", f"{GROUPS}/{{strangers group}}", {"schemas": [GROUP_SCHEMA], "displayName": "x"}, 404, None),
    ("PATCH", f"{GROUPS}/{{strangers group}}", patching({"op": "remove", "path": "members"}), 404, None),
    ("DELETE", f"{GROUPS}/{{strangers group}}", None, 404, None),
    ("GET", f"{USERS}/not-an-id", None, 404, None),
    ("GET", f"{USERS}/%00", None, 404, None),
    ("POST", USERS, "not JSON", 400, "invalidSyntax"),
    ("POST", USERS, [], 400, "invalidSyntax"),
    ("POST", USERS, {}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": ["urn:x"], "userName": "x"}, 400, "invalidSyntax"),
    ("POST", USERS, {"schemas": "urn:x", "userName": "x"}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": ""}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": "  "}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": ["x"]}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": "a\x00b"}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": "x" * 1001}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": "x", "displayName": "x" * 201}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": "x", "externalId": "x" * 256}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": "x", "active": "perhaps"}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": "x", "emails": [{"value": "no"}]}, 400, "invalidValue"),
    (
        "POST",
        USERS,
        {"schemas": [USER_SCHEMA], "userName": "x", "emails": [{"value": "a@b"}] * 21},
        400,
        "invalidValue",
    ),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": "x", "emails": DEEP}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": "x", "nothing": DEEP}, 201, None),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": "x", "title": "x" * 70_000}, 413, None),
    ("PATCH", f"{USERS}/{{user}}", {}, 400, "invalidSyntax"),
    ("PATCH", f"{USERS}/{{user}}", PATCHED, 400, "invalidSyntax"),
    ("PATCH", f"{USERS}/{{user}}", patching(), 400, "invalidSyntax"),
    ("PATCH", f"{USERS}/{{user}}", {**PATCHED, "Operations": "all"}, 400, "invalidSyntax"),
    ("PATCH", f"{USERS}/{{user}}", patching("replace"), 400, "invalidSyntax"),
    ("PATCH", f"{USERS}/{{user}}", patching({"op": "move", "path": "active"}), 400, "invalidValue"),
    ("PATCH", f"{USERS}/{{user}}", patching({"path": "active", "value": False}), 400, "invalidValue"),
    ("PATCH", f"{USERS}/{{user}}", patching({"op": "remove"}), 400, "noTarget"),
    ("PATCH", f"{USERS}/{{user}}", patching({"op": "remove", "path": "userName"}), 400, "mutability"),
    ("PATCH", f"{USERS}/{{user}}", patching({"op": "replace", "path": "id", "value": "x"}), 400, "mutability"),
    (
        "PATCH",
        f"{USERS}/{{user}}",
        patching({"op": "replace", "path": "meta.created", "value": "x"}),
        400,
        "mutability",
    ),
    ("PATCH", f"{USERS}/{{user}}", patching({"op": "add", "path": "groups", "value": []}), 400, "mutability"),
    ("PATCH", f"{USERS}/{{user}}", patching({"op": "replace", "path": "a b", "value": 1}), 400, "invalidPath"),
    ("PATCH", f"{USERS}/{{user}}", patching({"op": "replace", "path": "[" * 500, "value": 1}), 400, "invalidPath"),
    ("PATCH", f"{USERS}/{{user}}", patching({"op": "replace", "path": 5, "value": 1}), 400, "invalidValue"),
    ("PATCH", f"{USERS}/{{user}}", patching({"op": "add", "path": "emails", "value": DEEP}), 400, "invalidValue"),
    ("PATCH", f"{USERS}/{{user}}", patching(*[{"op": "add", "path": "active", "value": True}] * 101), 400, "tooMany"),
    (
        *("PATCH", f"{USERS}/{{user}}"),
        patching(*[{"op": "add", "path": "emails", "value": [{"value": "a@example.com"}] * 3}] * 67),
        *(400, "tooMany"),
    ),
    (
        *("PATCH", f"{USERS}/{{user}}"),
        patching({"op": "add", "value": {"emails": [{"value": "a@example.com"}] * 201}}),
        *(400, "tooMany"),
    ),
    ("PATCH", f"{GROUPS}/{{group}}", patching(*[{"op": "add", "path": "a", "value": 1}] * 501), 400, "tooMany"),
    ("PATCH", f"{USERS}/{{user}}", patching({"op": "add", "value": {"userName": "x\u202e"}}), 400, "invalidValue"),
    ("POST", GROUPS, {"schemas": [GROUP_SCHEMA]}, 400, "invalidValue"),
    ("POST", GROUPS, {"schemas": [GROUP_SCHEMA], "displayName": "a\nb"}, 400, "invalidValue"),
    ("POST", GROUPS, {"schemas": [1] * 20_000, "displayName": "x"}, 400, "invalidValue"),
    ("POST", GROUPS, {"Schemas": [GROUP_SCHEMA] * 21, "displayName": "x"}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": "x", "EMAILS": [1] * 20_000}, 400, "invalidValue"),
    ("POST", USERS, {"schemas": [USER_SCHEMA], "userName": "x", "groups": [1] * 20_000}, 201, None),
    ("POST", USERS, {"userName": "x", **{f"k{place}": 1 for place in range(1_001)}}, 400, "invalidValue"),
    ("POST", GROUPS, {"schemas": [GROUP_SCHEMA], "displayName": "x" * 201}, 400, "invalidValue"),
    ("POST", GROUPS, {"schemas": [GROUP_SCHEMA], "displayName": "x", "members": {"a": 1}}, 400, "invalidValue"),
    ("POST", GROUPS, {"schemas": [GROUP_SCHEMA], "displayName": "x", "members": [{"value": 5}]}, 400, "invalidValue"),
    (
        *("POST", GROUPS),
        {"schemas": [GROUP_SCHEMA], "displayName": "x", "members": [{"value": str(uuid4())}]},
        *(400, "invalidValue"),
    ),
    (
        *("POST", GROUPS),
        {"schemas": [GROUP_SCHEMA], "displayName": "x", "members": [{"value": "{stranger}"}]},
        *(400, "invalidValue"),
    ),
    (
        *("PATCH", f"{GROUPS}/{{group}}"),
        patching({"op": "add", "path": "members", "value": [{"value": "x"}] * 10_001}),
        *(400, "tooMany"),
    ),
    (
        *("PATCH", f"{GROUPS}/{{group}}"),
        patching({"op": "add", "path": "members", "value": [{"value": "{stranger}"}]}),
        *(400, "invalidValue"),
    ),
    (
        *("PATCH", f"{GROUPS}/{{group}}"),
        patching({"op": "add", "path": "members", "value": [{"value": "{group}"}]}),
        *(400, "invalidValue"),
    ),
    (
        "PATCH",
        f"{GROUPS}/{{group}}",
        patching({"op": "remove", "path": 'members[display eq "x"]'}),
        400,
        "invalidFilter",
    ),
    ("PATCH", f"{GROUPS}/{{group}}", patching({"op": "add", "path": 'members[value eq "x"]'}), 400, "invalidPath"),
    ("PATCH", f"{GROUPS}/{{group}}", patching({"op": "remove", "path": "members[" * 99}), 400, "invalidFilter"),
    ("PATCH", f"{GROUPS}/{{group}}", patching({"op": "remove", "path": "displayName"}), 400, "mutability"),
    (
        "PATCH",
        f"{GROUPS}/{{group}}",
        patching({"op": "replace", "path": "displayName", "value": ""}),
        400,
        "mutability",
    ),
    ("PATCH", f"{GROUPS}/{{group}}", patching({"op": "replace", "value": "x"}), 400, "invalidValue"),
    ("PATCH", f"{GROUPS}/{{group}}", patching({"op": "replace", "path": "members", "value": "x"}), 400, "invalidValue"),
    ("PATCH", f"{GROUPS}/{{group}}", patching({"op": 1}), 400, "invalidValue"),
    ("PATCH", f"{GROUPS}/{{group}}", patching(), 400, "invalidSyntax"),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "scim_type"), HOSTILE, ids=lambda value: str(value)[:60] if value else ""
)
async def test_a_hostile_request_is_answered_in_the_format_of_scim_and_changes_nothing(
    okta: Provider, stranger: dict, method: str, path: str, body: Any, status: int, scim_type: str | None
):
    user = await okta.user()
    group = await okta.group(user)
    ids = {"user": user["id"], "group": group["id"], **stranger}
    text = body if isinstance(body, str) else json.dumps(body)
    for name, id_ in ids.items():
        path, text = path.replace(f"{{{name}}}", id_), text.replace(f"{{{name}}}", id_)

    data = None if body is None else text
    answer = await okta.api.call(method, path, data=data, headers=MEDIA)

    if status < 400:
        assert answer.status == status, answer.body
        return
    assert refusal(answer, status) == scim_type, answer.body
    assert (await okta.send("GET", f"{USERS}/{user['id']}")).document()["meta"] == user["meta"]
    assert (await okta.send("GET", f"{GROUPS}/{group['id']}")).document() == group
    assert (await okta.send("GET", USERS)).document()["totalResults"] == 1


@pytest.fixture(scope="module")
async def stranger(front: FrontEnd) -> AsyncIterator[dict[str, str]]:
    """A user and a group of another organization."""
    async with front.api() as admin:
        person = (await admin.post(PEOPLE, {"email": "stranger@example.com"})).document(201)
        await admin.call("PUT", "/api/v1/groups/strangers", json=RIGHTS)
        listed = (await admin.get(GROUPS)).document()["Resources"]
        yield {"stranger": person["id"], "strangers group": listed[0]["id"]}
        assert (await admin.get(f"{PEOPLE}/{person['id']}")).document() == person


async def test_users_and_groups_of_another_organization_are_in_no_list(okta: Provider, stranger: dict[str, str]):
    assert (await okta.send("GET", USERS)).document()["Resources"] == []
    assert (await okta.send("GET", GROUPS)).document()["Resources"] == []
    for path, filter_ in (
        (USERS, 'userName eq "stranger@example.com"'),
        (USERS, f'id eq "{stranger["stranger"]}"'),
        (USERS, f'groups.value eq "{stranger["strangers group"]}"'),
        (GROUPS, 'displayName eq "strangers"'),
        (GROUPS, f'members.value eq "{stranger["stranger"]}"'),
    ):
        assert await okta.found(path, filter_) == []
    assert await okta.user(userName="stranger@example.com")


@pytest.mark.parametrize("path", ["/scim/v2", "/scim/v2/Bulk", "/scim/v2/Me", "/scim/v2/.search", "/scim/v2/Users/a/b"])
async def test_other_paths_of_scim_do_not_exist(okta: Provider, path: str):
    answer = await okta.send("GET", path)

    assert answer.status in (401, 404)
    if path != "/scim/v2":
        refusal(answer, answer.status)
    assert (await Api(okta.admin.session, {}).get(path)).status == 401


async def test_a_method_that_a_path_of_scim_does_not_support_is_refused_in_the_format_of_scim(okta: Provider):
    async with okta.api.session.post(f"{USERS}/.search", json={}, headers={**okta.api.headers, **MEDIA}) as response:
        answer = Answer(response.status, response.headers, await response.read())

    assert refusal(answer, 405) is None
    assert "GET" in answer.headers["Allow"]


async def test_two_requests_with_one_name_at_the_same_time_add_one_user(okta: Provider):
    body = {"schemas": [USER_SCHEMA], "userName": "once@example.com"}

    answers = await asyncio.gather(*(okta.send("POST", USERS, body) for _ in range(5)))

    assert sorted(each.status for each in answers) == [201, 409, 409, 409, 409]


async def test_an_administrator_cannot_suspend_the_own_person_by_scim(okta: Provider):
    body = {"name": "Admin", "email": "admin@example.com", "scopes": list(EVERY_SCOPE), "workspaces": None}
    person = (await okta.admin.post(PEOPLE, body)).document(201)
    own = Api(okta.admin.session, {"Authorization": f"Bearer {await token_of(okta.front, person)}"})
    suspension = patching({"op": "replace", "value": {"active": False}})

    assert refusal(await own.call("PATCH", f"{USERS}/{person['id']}", json=suspension), 409) is None
    assert refusal(await own.call("DELETE", f"{USERS}/{person['id']}"), 409) is None
    assert (await own.get(USERS)).status == 200


async def test_the_schemas_say_of_what_members_and_groups_are_references(okta: Provider):
    listed = {each["name"]: each for each in (await okta.send("GET", "/scim/v2/Schemas")).document()["Resources"]}

    def types_in(schema: str, attribute: str) -> tuple[str, list[str]]:
        [found] = [each for each in listed[schema]["attributes"] if each["name"] == attribute]
        [reference] = [each for each in found["subAttributes"] if each["name"] == "$ref"]
        return reference["type"], reference["referenceTypes"]

    assert types_in("Group", "members") == ("reference", ["User"])
    assert types_in("User", "groups") == ("reference", ["Group"])
