"""Searches of copies, which are created with the connector, synchronized, and updated after writes."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from tests.harness.caller import Api, ConnectorApi
from tests.harness.databases import created_database, url_of
from tests.harness.deployment import Deployment, deployed
from tests.harness.sandbox import fault
from tests.harness.waiting import PATIENCE, eventually

OAUTH = {"refresh_token": "refresh", "access_token": "token", "client_id": "app", "client_secret": "secret"}
SALES = "https://acme.my.salesforce.com"


@pytest.fixture(scope="module")
async def deployment(
    tmp_path_factory: pytest.TempPathFactory, database_url: str, redis_url: str
) -> AsyncIterator[Deployment]:
    """A front end, a worker and the sandbox."""
    async with deployed(tmp_path_factory.mktemp("copies"), database_url, redis_url) as running:
        yield running


@pytest.fixture
async def api(deployment: Deployment) -> AsyncIterator[Api]:
    async with deployment.api() as opened:
        yield opened


@pytest.fixture(scope="module")
async def desk(deployment: Deployment) -> AsyncIterator[ConnectorApi]:
    """A support desk whose copies are whole; the stories that it serves leave each other's records alone."""
    async with deployment.api() as api:
        connector = await api.connector()
        await loaded(connector)
        yield connector


@pytest.fixture
async def upstream(deployment: Deployment) -> AsyncIterator[aiohttp.ClientSession]:
    """The application itself, past the gateway."""
    headers = {"Authorization": "Bearer token", "Notion-Version": "2025-09-03"}
    async with aiohttp.ClientSession(deployment.upstream_url, headers=headers) as session:
        yield session


IDS = {
    "crm-records": "990",
    "crm-query": "001000009000001AAA",
    "incident-management": "01JZZZZZZZZZZZZZZZZZZZZZZZ",
}


def stamped(kind: str, members: dict[str, Any]) -> dict[str, Any]:
    """A change with its time, in the members that the application tells it by."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    stamps: dict[str, dict[str, Any]] = {
        "crm-records": {"properties": {**members.get("properties", {}), "lastmodifieddate": f"{now}.000Z"}},
        "crm-query": {"SystemModstamp": f"{now}.000+0000", "LastModifiedDate": f"{now}.000+0000"},
        "incident-management": {"updated_at": f"{now}Z"},
    }
    return members | stamps[kind]


async def freshness(connector: ConnectorApi) -> dict[str, Any]:
    return (await connector.api.get(f"{connector.path}/context-store")).json()["entities"]


async def loaded(connector: ConnectorApi) -> dict[str, Any]:
    """The copies, once all of them are there."""

    async def complete() -> dict[str, Any] | None:
        found = await freshness(connector)
        return found if all(entity["synchronized"] for entity in found.values()) else None

    return await eventually(complete)


async def synchronized(connector: ConnectorApi, *entities: str, full: bool = False) -> dict[str, Any]:
    """What a synchronization came to that was asked for, by entity."""
    body = {"full": full} | ({"entities": list(entities)} if entities else {})
    accepted = await connector.api.post(f"{connector.path}/context-store/sync", body)
    assert accepted.status == 202, accepted.body
    answer = await connector.api.get(f"/api/v1/jobs/{accepted.json()['job']['id']}/result?wait={PATIENCE}")
    assert answer.status == 200, answer.body
    return {report["entity"]: report for report in answer.json()["result"]["entities"]}


async def search(connector: ConnectorApi, entity: str, filter_: Any = None, **params: Any) -> dict[str, Any]:
    query = {} if filter_ is None else {"filter": filter_}
    return (await connector.execute(entity, "context_store_search", {"query": query, **params}))["result"]


async def ids(connector: ConnectorApi, entity: str, filter_: Any, key: str = "id") -> list[Any]:
    return [record[key] for record in (await search(connector, entity, filter_))["data"]]


async def test_a_new_connector_is_loaded_by_itself(api):
    connector = await api.connector()

    await loaded(connector)

    found = await search(connector, "tickets", limit=1)
    assert found["meta"]["total_synced"] == 500
    assert found["meta"]["synchronized"] is True
    assert found["meta"]["as_of"]
    assert isinstance(found["meta"]["took_ms"], int)


async def test_before_the_first_load_there_is_nothing_to_find_and_it_says_so(deployment, api):
    slow = {"kind": "support-desk", "path_prefix": "/api/v2/incremental/", "latency_ms": 3000}
    async with fault(deployment.upstream_url, **slow):
        connector = await api.connector()
        found = await search(connector, "tickets", {"eq": {"status": "open"}})

    assert found["data"] == []
    assert found["meta"] | {"took_ms": 0} == {
        "has_more": False,
        "cursor": None,
        "took_ms": 0,
        "as_of": None,
        "total_synced": 0,
        "synchronized": False,
        "complete": False,
    }


async def test_inspect_says_how_fresh_the_copies_are(desk):
    inspected = (await desk.api.get(f"{desk.path}/inspect")).json()

    assert inspected["context_store"]["tickets"]["status"] == "ready"
    assert inspected["context_store"]["tickets"]["records"] >= 500
    assert (
        inspected["context_store"]["tickets"]["next_sync_at"] > inspected["context_store"]["tickets"]["last_synced_at"]
    )


async def test_an_entity_that_cannot_be_read_keeps_no_other_from_being_fresh(deployment, api):
    connector = await api.connector("Incident-Management", {"api_key": "token"})
    await loaded(connector)
    async with fault(deployment.upstream_url, kind="incident-management", path_prefix="/v2/alerts", status=403):
        reports = await synchronized(connector)

    failed = {name for name, report in reports.items() if report["error"]}
    copies = await freshness(connector)
    assert failed == {"alerts"}
    assert (copies["alerts"]["status"], copies["alerts"]["error"]["code"]) == ("failed", "upstream_rejected")
    assert copies["incidents"]["status"] == "ready"
    assert (await search(connector, "alerts"))["meta"]["total_synced"] == 120


async def test_refused_credentials_are_reported_for_every_entity(deployment, api):
    connector = await api.connector("Incident-Management", {"api_key": "token"})
    await loaded(connector)
    async with fault(deployment.upstream_url, kind="incident-management", status=401):
        accepted = (await api.post(f"{connector.path}/context-store/sync", {})).json()["job"]
        answer = await api.get(f"/api/v1/jobs/{accepted['id']}/result?wait={PATIENCE}")

    assert (answer.status, answer.json()["code"]) == (424, "reauthorization_required")
    assert {copy["error"]["code"] for copy in (await freshness(connector)).values()} == {"reauthorization_required"}


async def test_pages_of_a_search_hold_every_record_once(desk):
    first = await search(desk, "ticket_comments", limit=900, fields=["id"])
    second = await search(desk, "ticket_comments", limit=900, fields=["id"], cursor=first["meta"]["cursor"])

    found = [record["id"] for page in (first, second) for record in page["data"]]

    assert (first["meta"]["has_more"], second["meta"]["has_more"]) == (True, False)
    assert len(found) == len(set(found)) == first["meta"]["total_synced"]


async def test_what_is_written_is_in_the_next_search(desk):
    ticket = {"subject": "Kettle sings", "comment": {"body": "a high note"}, "priority": "urgent"}

    created = (await desk.execute("tickets", "create", {"ticket": ticket}))["result"]["id"]
    after_create = await search(desk, "tickets", {"fuzzy": {"subject": "kettle sings"}}, fields=["id", "status"])
    first_comment = await ids(desk, "ticket_comments", {"eq": {"ticket_id": created}}, "body")
    update = {"ticket_id": created, "ticket": {"status": "solved", "comment": {"body": "descaled"}}}
    await desk.execute("tickets", "update", update)
    reply = {"ticket_id": created, "ticket": {"comment": {"body": "thank you"}}}
    await desk.execute("ticket_comments", "create", reply)

    assert [record["id"] for record in after_create["data"]] == [created]
    assert first_comment == ["a high note"]
    assert await ids(desk, "tickets", {"eq": {"id": created, "status": "solved"}}) == [created]
    comments = await ids(desk, "ticket_comments", {"eq": {"ticket_id": created}}, "body")
    assert set(comments) == {"a high note", "descaled", "thank you"}


async def test_a_write_under_a_key_and_as_a_job_is_in_the_next_search_too(desk):
    user = {"user": {"name": "Zora Keyed", "role": "agent"}}
    other = {"user": {"name": "Zora Queued", "role": "agent"}}

    await desk.send("users", "create", user, headers={"Idempotency-Key": "zora"})
    await desk.send("users", "create", other, headers={"Prefer": "wait=30"})

    assert set(await ids(desk, "users", {"startswith": {"name": "Zora"}}, "name")) == {"Zora Keyed", "Zora Queued"}


async def test_a_bulk_update_is_searchable_soon_after_it_is_done(desk):
    bulk = {"ids": "1,2,3", "ticket": {"status": "hold", "priority": "low"}}
    wanted = {"eq": {"status": "hold", "priority": "low"}, "in": {"id": [1, 2, 3]}}

    await desk.send("ticket_bulk_updates", "create", bulk, headers={"Prefer": "wait=60"})

    async def all_three() -> bool:
        return sorted(await ids(desk, "tickets", wanted)) == [1, 2, 3]

    assert await eventually(all_three)


@pytest.mark.parametrize(
    ("kind", "credentials", "write", "entity", "found_by"),
    [
        (
            *("team-chat", {"bot_key": "token"}),
            ("messages", "create", {"channel": "C00000001", "thread_ts": "1736150401.000100", "text": "numbat reply"}),
            *("threads", {"eq": {"channel_id": "C00000001", "text": "numbat reply"}}),
        ),
        (
            *("team-chat", {"bot_key": "token"}),
            ("reactions", "create", {"channel": "C00000001", "timestamp": "1736150401.000100", "name": "numbat"}),
            *("channel_messages", {"array_contains": {"reactions": {"name": "numbat"}}}),
        ),
        (
            *("team-chat", {"bot_key": "token"}),
            ("channel_topics", "create", {"channel": "C00000002", "topic": "numbats"}),
            *("channels", {"eq": {"topic.value": "numbats"}}),
        ),
        (
            *("work-management", {"token": "token"}),
            ("project_sections", "create", {"project_gid": "1203998745612345", "data": {"name": "Numbats"}}),
            *("sections", {"eq": {"name": "Numbats"}}),
        ),
        (
            *("work-management", {"token": "token"}),
            ("workspace_tags", "create", {"workspace_gid": "519500001", "data": {"name": "numbat"}}),
            *("tags", {"eq": {"name": "numbat"}}),
        ),
    ],
)
async def test_a_write_that_changes_another_entity_is_in_its_next_search(
    api, kind, credentials, write, entity, found_by
):
    connector = await api.connector(kind, credentials)
    await loaded(connector)

    await connector.execute(*write)

    assert len((await search(connector, entity, found_by))["data"]) == 1


async def test_what_stands_on_a_page_is_searchable_as_soon_as_it_is_written(api):
    connector = await api.connector("workspace-notes", {"token": "token"})
    await loaded(connector)
    text = [{"type": "text", "text": {"content": "numbat"}}]
    children = [{"type": "paragraph", "paragraph": {"rich_text": text}}]

    page = await connector.execute("pages", "create", {"parent": {"workspace": True}, "children": children})
    page_id = page["result"]["id"]
    await connector.execute("blocks", "create", {"block_id": page_id, "children": children})
    await connector.execute("comments", "create", {"parent": {"page_id": page_id}, "rich_text": text})

    on_page = {"eq": {"parent.page_id": page_id}}
    assert await ids(connector, "pages", {"eq": {"id": page_id}}) == [page_id]
    assert len(await ids(connector, "blocks", on_page | {"keyword": {"paragraph": "numbat"}})) == 2
    assert len(await ids(connector, "comments", on_page)) == 1


async def test_known_clients_may_name_fields_their_own_way(api):
    connector = await api.connector("Crm-Records", {"private_app_token": "token"})
    await loaded(connector)
    by_product = {"gt": {"properties.crm_object_id": "581100400"}}
    by_client = {"gt": {"properties_hs_object_id": "581100400"}}

    expected = await search(connector, "contacts", by_product, limit=2)
    found = await search(connector, "contacts", by_client, limit=2)
    query = {"filter": by_client, "sort": [{"created_at": "desc"}]}
    ordered = await connector.execute("contacts", "context_store_search", {"query": query})

    assert found["data"] == expected["data"]
    created = [record["createdAt"] for record in ordered["result"]["data"]]
    assert created == sorted(created, reverse=True)


@pytest.mark.parametrize(
    ("query", "more", "pointer", "words"),
    [
        ({"filter": {"eq": {"statsu": "open"}}}, {}, "/params/query/filter/eq/statsu", "did you mean status"),
        ({"filter": {"equals": {"status": "open"}}}, {}, "/params/query/filter/equals", "is not an operator"),
        ({"filter": {"any": {"tags": {"eq": "a"}}}}, {}, "/params/query/filter/any", "any is not offered"),
        ({"filter": {"gt": {"id": "many"}}}, {}, "/params/query/filter/gt/id", "id"),
        ({"sort": [{"tags": "asc"}]}, {}, "/params/query/sort/0/tags", "has no order"),
        ({}, {"cursor": "AAAA"}, "/params/cursor", "belongs to another search"),
    ],
)
async def test_a_search_that_cannot_be_answered_says_where_and_why(desk, query, more, pointer, words):
    answer = await desk.send("tickets", "context_store_search", {"query": query, **more})

    [fault] = answer.json()["errors"]
    assert (answer.status, answer.json()["code"]) == (422, "invalid_query")
    assert fault["pointer"] == pointer
    assert words in fault["message"]


async def test_a_dry_run_shows_the_search_and_judges_it(desk):
    query = {"filter": {"eq": {"status": "open"}}}

    shown = await desk.send("tickets", "context_store_search", {"query": query, "limit": 2.0}, dry_run=True)
    refused = await desk.send(
        "tickets", "context_store_search", {"query": {"filter": {"status": "open"}}}, dry_run=True
    )

    [search_] = shown.json()["result"]
    assert search_ == {
        "entity": "tickets",
        "action": "context_store_search",
        "params": {"query": query, "limit": 2},
    }
    assert 'write {"eq": {"status": "open"}}' in refused.json()["message"]


async def test_an_entity_without_a_copy_names_those_that_have_one(desk):
    answer = await desk.send("views", "context_store_search", {"query": {}})
    refused = await desk.api.post(f"{desk.path}/context-store/sync", {"entities": ["views"]})

    assert (answer.status, answer.json()["code"]) == (422, "unknown_action")
    assert "tickets" in answer.json()["message"]
    assert refused.status == 422
    assert "views is not synchronized" in refused.json()["message"]


async def test_a_search_never_crosses_to_another_tenant(deployment, desk):
    async with deployment.api() as stranger:
        own = await stranger.connector()
        await loaded(own)
        mine = {"ticket": {"subject": "Zymurgy", "comment": {"body": "b"}}}
        await desk.execute("tickets", "create", mine)
        theirs = await stranger.post(
            f"{desk.path}/execute",
            {"entity": "tickets", "action": "context_store_search", "params": {"query": {}}},
        )
        found = await search(own, "tickets", {"eq": {"subject": "Zymurgy"}})
        status = await stranger.get(f"{desk.path}/context-store")
        asked = await stranger.post(f"{desk.path}/context-store/sync", {})

    assert {theirs.status, status.status, asked.status} == {404}
    assert found["data"] == []


async def test_fields_may_be_left_out_of_what_is_found(desk):
    query = {"query": {"sort": [{"id": "asc"}]}, "limit": 1}

    selected = await desk.execute("tickets", "context_store_search", query, select_fields=["id", "via.channel"])
    excluded = await desk.execute("tickets", "context_store_search", query, exclude_fields=["subject"])

    assert selected["result"]["data"] == [{"id": 1, "via": {"channel": "web"}}]
    assert "subject" not in excluded["result"]["data"][0]
    assert "status" in excluded["result"]["data"][0]


async def test_deleting_a_connector_removes_its_copies(api, database):
    desk = await api.connector("Incident-Management", {"api_key": "token"})
    await loaded(desk)
    connector_id = desk.record["id"]

    deleted = await desk.api.call("DELETE", desk.path)
    await desk.api.get(f"/api/v1/jobs/{deleted.json()['job_id']}/result?wait={PATIENCE}")

    async with database.system() as connection:
        entities = await connection.fetchval(
            "SELECT count(*) FROM context_entities WHERE connector_id = $1", connector_id
        )
        orphans = await connection.fetchval(
            "SELECT count(*) FROM context_records WHERE entity_id NOT IN (SELECT id FROM context_entities)"
        )
    assert (entities, orphans) == (0, 0)


@pytest.mark.parametrize(
    ("kind", "credentials", "entity", "table", "key", "members", "found_by", "gone", "is_full"),
    [
        (
            *("crm-records", {"private_app_token": "token"}, "contacts", "contacts", "id"),
            {"properties": {"firstname": "Quokka", "hs_object_id": "990"}},
            {"eq": {"properties.firstname": "Quokka"}},
            *({"archived": True}, False),
        ),
        (
            *("crm-query", OAUTH, "accounts", "Account", "Id"),
            {"Name": "Quokka Ltd"},
            {"eq": {"Name": "Quokka Ltd"}},
            *({"IsDeleted": True}, False),
        ),
        (
            *("incident-management", {"api_key": "token"}, "incidents", "incidents", "id"),
            {"name": "Quokka at large"},
            {"eq": {"name": "Quokka at large"}},
            *(None, True),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "-" in value else "",
)
async def test_what_happens_in_an_application_that_is_only_read_shows_in_the_copies(
    api, upstream, kind, credentials, entity, table, key, members, found_by, gone, is_full
):
    environment = {"instance_url": SALES} if kind == "crm-query" else {}
    connector = await api.connector(kind, credentials, environment=environment)
    await loaded(connector)
    address = f"/_sandbox/records/{kind}/{table}/{IDS[kind]}"

    await (await upstream.put(address, json=stamped(kind, members))).release()
    report = (await synchronized(connector, entity))[entity]
    found = await ids(connector, entity, found_by, key)
    if gone is None:
        await (await upstream.delete(address)).release()
    else:
        await (await upstream.put(address, json=stamped(kind, gone))).release()
    await synchronized(connector, entity, full=is_full)

    assert (report["full"], found) == (False, [IDS[kind]])
    assert await ids(connector, entity, found_by, key) == []


@dataclass(frozen=True)
class Story:
    """What is told of one kind: created in the application, found, changed through the gateway, deleted, gone."""

    kind: str
    credentials: dict[str, str]
    #: the entity searched, with the member that identifies its records
    entity: str
    key: str
    #: how a record comes into being in the application: path, body, place of its id in the answer
    born: tuple[str, Any, tuple[str, ...]]
    #: a filter that finds it
    found_by: dict[str, Any]
    #: the write through the gateway, `{id}` filled in: entity, action, params; and the filter that finds it then
    written: tuple[str, str, dict[str, Any]]
    then_found_by: dict[str, Any]
    #: how it is deleted in the application: method and path
    deleted: tuple[str, str, Any]
    #: whether changes alone tell of the deletion, without a sweep
    is_told: bool = False
    environment: dict[str, str] = field(default_factory=dict)


STORIES = [
    Story(
        "workspace-notes",
        {"token": "token"},
        "pages",
        "id",
        (
            "/v1/pages",
            {"parent": {"workspace": True}, "properties": {"title": {"title": [{"text": {"content": "Quokka"}}]}}},
            ("id",),
        ),
        {"keyword": {"properties": "quokka"}},
        ("pages", "update", {"page_id": "{id}", "icon": {"type": "emoji", "emoji": "*"}}),
        {"eq": {"icon.emoji": "*"}, "keyword": {"properties": "quokka"}},
        ("PATCH", "/v1/pages/{id}", {"in_trash": True}),
        is_told=True,
    ),
    Story(
        "team-chat",
        {"bot_key": "token"},
        "channel_messages",
        "ts",
        ("/api/chat.postMessage", {"channel": "C00000001", "text": "quokka sighted"}, ("ts",)),
        {"eq": {"channel_id": "C00000001"}, "keyword": {"text": "quokka"}},
        ("messages", "update", {"channel": "C00000001", "ts": "{id}", "text": "quokka gone"}),
        {"fuzzy": {"text": "quokka gone"}},
        ("POST", "/api/chat.delete", {"channel": "C00000001", "ts": "{id}"}),
    ),
    Story(
        "work-management",
        {"token": "token"},
        "tasks",
        "gid",
        (
            "/api/1.0/tasks",
            {"data": {"name": "Quokka census", "projects": ["1203998745612345"], "workspace": "519500001"}},
            ("data", "gid"),
        ),
        {"fuzzy": {"name": "quokka census"}},
        ("tasks", "update", {"task_gid": "{id}", "data": {"completed": True}}),
        {"eq": {"completed": True}, "fuzzy": {"name": "quokka census"}},
        ("DELETE", "/api/1.0/tasks/{id}", None),
    ),
    Story(
        "support-desk",
        {"email": "agent@example.com", "api_token": "token"},
        "tickets",
        "id",
        ("/api/v2/tickets.json", {"ticket": {"subject": "Quokka loose", "comment": {"body": "b"}}}, ("ticket", "id")),
        {"fuzzy": {"subject": "quokka loose"}},
        ("tickets", "update", {"ticket_id": "{id}", "ticket": {"priority": "urgent"}}),
        {"eq": {"priority": "urgent"}, "fuzzy": {"subject": "quokka loose"}},
        ("DELETE", "/api/v2/tickets/{id}.json", None),
        is_told=True,
        environment={"subdomain": "acme"},
    ),
]


def filled(value: Any, id_: Any) -> Any:
    """The value with the id where `{id}` stands; alone it keeps its type."""
    if isinstance(value, dict):
        return {name: filled(member, id_) for name, member in value.items()}
    if value == "{id}":
        return id_
    return value.replace("{id}", str(id_)) if isinstance(value, str) else value


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.kind)
async def test_the_life_of_a_record_shows_in_the_copies(api, upstream, story):
    connector = await api.connector(story.kind, story.credentials, environment=story.environment)
    await loaded(connector)
    path, body, place = story.born
    async with upstream.post(path, json=body) as answer:
        id_ = await answer.json()
    for member in place:
        id_ = id_[member]

    reports = await synchronized(connector, story.entity)
    found = await ids(connector, story.entity, story.found_by, story.key)
    entity, action, params = story.written
    await connector.execute(entity, action, filled(params, id_))
    changed = await ids(connector, story.entity, story.then_found_by, story.key)
    method, address, body = story.deleted
    await (await upstream.request(method, filled(address, id_), json=filled(body, id_))).release()
    await synchronized(connector, story.entity, full=not story.is_told)

    assert reports[story.entity]["full"] is False
    assert found == [id_]
    assert changed == [id_]
    assert await ids(connector, story.entity, story.found_by, story.key) == []


async def test_changes_show_by_themselves_and_two_workers_read_them_once(
    tmp_path, postgres_url, migrated_database, redis_url
):
    every = {"GATEWAY_SYNC_EVERY": '{"incident-management.incidents": 1}'}
    async with (
        # A database of its own: the module's worker would read these copies too, from the module's sandbox.
        created_database(postgres_url, migrated_database) as name,
        deployed(tmp_path, url_of(postgres_url, name), redis_url, workers=2, **every) as deployment,
        deployment.api() as api,
        aiohttp.ClientSession(deployment.upstream_url) as upstream,
    ):
        connector = await api.connector("Incident-Management", {"api_key": "token"})
        await loaded(connector)
        changed = stamped("incident-management", {"name": "Numbat"})
        await (await upstream.put("/_sandbox/records/incident-management/incidents/numbat", json=changed)).release()
        found = await eventually(lambda: ids(connector, "incidents", {"eq": {"name": "Numbat"}}))
        jobs = (await api.get(f"/api/v1/jobs?connector_id={connector.record['id']}&limit=100")).json()["data"]
        requests = [request for request in await deployment.upstream_requests() if request["path"] == "/v2/incidents"]

    assert found == ["numbat"]
    assert len(requests) <= len(jobs) + 1


async def hooked(deployment: Deployment, connector: ConnectorApi, kind: str, secret: str | None = None) -> None:
    """Let the application send its notices to a hook of the connector."""
    body = {} if secret is None else {"secret": secret}
    hook = (await connector.api.post(f"{connector.path}/hook", body)).document()
    registration = {"url": f"{deployment.base_url}/hooks/{hook['id']}", **body}
    async with (
        aiohttp.ClientSession(deployment.upstream_url) as application,
        application.put(f"/_sandbox/hooks/{kind}", json=registration) as answer,
    ):
        assert answer.status == 204, await answer.text()


async def test_a_notice_brings_the_record_that_it_names_and_reads_no_list(deployment, api, upstream):
    connector = await api.connector()
    await loaded(connector)
    await hooked(deployment, connector, "support-desk", "signing secret")
    await (await upstream.delete("/_sandbox/requests")).release()
    after = {"after": str((await api.get("/api/v1/events")).json()["latest_id"]), "types": "record.*", "wait": "30"}

    await upstream.put("/_sandbox/records/support-desk/tickets/7", json={"subject": "Wombat at the door"})

    async def found() -> list[Any]:
        return await ids(connector, "tickets", {"eq": {"subject": "Wombat at the door"}})

    assert await eventually(found) == [7]
    paths = [request["path"] for request in await deployment.upstream_requests() if request["method"] == "GET"]
    assert [path for path in paths if "tickets" in path] == ["/api/v2/tickets/7.json"]
    [event] = (await api.get("/api/v1/events", params=after)).json()["data"]
    assert (event["type"], event["data"]) == ("record.updated", {"entity": "tickets", "record_id": "7"})


async def test_a_notice_of_a_record_that_is_gone_removes_it_from_the_copy(deployment, api, upstream):
    connector = await api.connector()
    await loaded(connector)
    await hooked(deployment, connector, "support-desk", "signing secret")

    await upstream.delete("/_sandbox/records/support-desk/users/400900007")

    async def gone() -> bool:
        return await ids(connector, "users", {"eq": {"id": 400900007}}) == []

    assert await eventually(gone)


@pytest.mark.parametrize(
    ("kind", "credentials", "table", "id_", "change", "found_by"),
    [
        ("work-management", {"token": "token"}, "tasks", "545500007", {"name": "Wombat"}, {"name": "Wombat"}),
        ("team-chat", {"bot_key": "token"}, "channels", "C00000003", {"name": "wombats"}, {"name": "wombats"}),
    ],
)
async def test_after_the_handshake_of_its_kind_a_hook_takes_notices(
    deployment, api, upstream, kind, credentials, table, id_, change, found_by
):
    connector = await api.connector(kind, credentials)
    await loaded(connector)
    await hooked(deployment, connector, kind, "signing secret" if kind == "team-chat" else None)

    await upstream.put(f"/_sandbox/records/{kind}/{table}/{id_}", json=change)

    async def found() -> list[Any]:
        return (await search(connector, table, {"eq": found_by}))["data"]

    assert len(await eventually(found)) == 1
