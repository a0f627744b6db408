"""Runs against an application that is changed between them: what is found, what is gone, where they go on."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.connectors.model import ConnectorRecord
from gateway.connectors.resolver import ResolvedConnector
from gateway.context_store import records
from gateway.context_store.entities import StoredEntity, find, restart
from gateway.context_store.sync import schedule, sources
from gateway.context_store.sync.job import SynchronizationRun
from gateway.context_store.sync.record_read import record_read
from gateway.context_store.sync.run import Report, SyncRun
from gateway.context_store.sync.single import RecordsRun
from gateway.contract.connectors import ConnectorStatus, CopyStatus
from gateway.errors import JobCanceled, UpstreamInvalidResponse
from gateway.jobs.model import StoredJob
from gateway.upstream.auth import StaticAuthorizer
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.requests import checked_environment
from gateway.upstream.run_context import InMemoryRunContext
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.catalog import shipped_catalog

CATALOG = shipped_catalog()
ENVIRONMENTS = {name: {"subdomain": "acme"} for name in ("support-desk", "freshdesk", "jira", "confluence")} | {
    "shopify": {"shop": "acme"}
}
STORED = """
    SELECT r.id, r.document::text FROM context_records AS r JOIN context_entities AS e ON e.id = r.entity_id
    WHERE e.connector_id = $1 AND e.entity = $2 AND r.deleted_at IS NULL ORDER BY r.id
"""

LONG_AGO = """
    UPDATE context_records SET observed_at = now() - interval '1 day' WHERE organization_id = $1 AND id = $2
"""


@dataclass
class Application:
    """A stand-in that answers as it is told: path → what answers its query."""

    answers: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append((request.path, dict(request.query)))
        answer = self.answers[request.path](
            {**request.query, **(await request.json() if request.can_read_body else {})}
        )
        if isawaitable(answer):
            answer = await answer
        status, document, *headers = answer if isinstance(answer, tuple) else (200, answer)
        return web.json_response(document, status=status, headers=headers[0] if headers else None)

    def queries(self, path: str) -> list[dict[str, str]]:
        return [query for asked, query in self.asked if asked == path]


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
async def connect(application):
    """A connector of a kind at the application: `connect("support-desk")`."""
    server = web.Application()
    server.router.add_route("*", "/{path:.*}", application.handle)
    async with TestServer(server) as upstream:
        origin = upstream.make_url("/").origin()
        async with Transport(EgressPolicy.of([origin])) as transport:

            def connect(kind_name: str) -> UpstreamConnector:
                kind = CATALOG.kind(kind_name)
                environment = checked_environment(kind.spec, ENVIRONMENTS.get(kind_name, {}))
                upstreams, scope = (
                    Upstreams(transport, {kind_name: origin}),
                    RateScope(id=f"{kind_name}:c-1", kind=kind_name),
                )
                return upstreams.connector(kind, environment, StaticAuthorizer({}), scope)

            yield connect


@pytest.fixture
def run(connect, database, tenant):
    """Synchronize an entity once, with a connector of its kind: `await run("support-desk", "groups")`."""

    async def run(kind_name: str, name: str, *, full: bool = False) -> Report:
        kind, parent = CATALOG.kind(kind_name), None
        source = sources.source_of(kind, name)
        async with database.tenant(tenant.organization_id) as connection:
            names = sources.with_parents(kind, [name])
            await schedule.register_all(connection, tenant.connector_id, tenant.organization_id, kind, names)
            entity = await find(connection, tenant.connector_id, name)
            if full:
                await restart(connection, entity)
                entity = await find(connection, tenant.connector_id, name)
            if source.sync.parent is not None:
                parent = await find(connection, tenant.connector_id, source.sync.parent.entity)

        async def progress(_: int) -> None: ...

        search, get = kind.entity(name).search, record_read(kind, name)
        run = SyncRun(
            database=database,
            connector=connect(kind_name),
            source=source,
            search=search,
            entity=entity,
            parent=parent,
            get=get,
            progress=progress,
        )
        return await run.run(900)

    return run


@pytest.fixture
def stored(database, tenant):
    """The live records of an entity by their stored ids."""

    async def stored(name: str) -> dict[str, Any]:
        async with database.tenant(tenant.organization_id) as connection:
            rows = await connection.fetch(STORED, tenant.connector_id, name)
        return {row["id"]: msgspec.json.decode(row["document"]) for row in rows}

    return stored


@pytest.fixture
def entity(database, tenant):
    """The state of an entity's copy: `await entity("groups")`."""

    async def entity(name: str) -> StoredEntity:
        async with database.tenant(tenant.organization_id) as connection:
            found = await find(connection, tenant.connector_id, name)
        assert found is not None
        return found

    return entity


def paged(*ids: int, size: int = 2) -> Callable[[Any], Any]:
    """Groups, a page at a time by cursor."""

    def answer(query: Any) -> Any:
        start = int(query.get("page[after]", 0))
        meta = {"has_more": start + size < len(ids), "after_cursor": str(start + size)}
        return {"groups": [{"id": id_, "name": f"g{id_}"} for id_ in ids[start : start + size]], "meta": meta}

    return answer


GROUPS = "/api/v2/groups.json"
REFUSED = (403, {"error": "Forbidden"})


async def test_what_is_no_longer_listed_is_gone_after_the_next_sweep(application, run, stored):
    application.answers[GROUPS] = paged(1, 2, 3)
    first = await run("support-desk", "groups")
    application.answers[GROUPS] = paged(1, 3, 4)

    second = await run("support-desk", "groups")

    assert (first.read, first.added, first.deleted) == (3, 3, 0)
    assert (second.read, second.added, second.deleted) == (3, 1, 1)
    assert list(await stored("groups")) == ["1", "3", "4"]


async def test_words_that_are_gone_from_all_records_leave_the_dictionary_with_the_sweep(
    application, run, database, tenant
):
    application.answers["/api/v2/groups.json"] = lambda _: {
        "groups": [{"id": 1, "name": "Red"}, {"id": 2, "name": "Blue"}]
    }
    await run("support-desk", "groups")

    application.answers["/api/v2/groups.json"] = lambda _: {"groups": [{"id": 1, "name": "Red"}]}
    await run("support-desk", "groups", full=True)

    async with database.tenant(tenant.organization_id) as connection:
        rows = await connection.fetch("SELECT split_part(term, '/', 3) AS word FROM context_terms")
    assert [row["word"] for row in rows] == ["red"]


async def test_an_interrupted_sweep_deletes_nothing_and_continues_from_its_last_page(application, run, stored):
    application.answers[GROUPS] = paged(1, 2, 3, 4, 5)
    await run("support-desk", "groups")
    changed = paged(1, 3, 4, 5, 6)
    application.answers[GROUPS] = lambda query: {} if query.get("page[after]") == "2" else changed(query)
    with pytest.raises(UpstreamInvalidResponse):
        await run("support-desk", "groups")
    kept = await stored("groups")
    application.answers[GROUPS] = changed
    application.asked.clear()

    report = await run("support-desk", "groups")

    assert list(kept) == ["1", "2", "3", "4", "5"]
    assert [query.get("page[after]") for query in application.queries(GROUPS)] == ["2", "4"]
    assert (report.added, report.deleted) == (1, 1)
    assert list(await stored("groups")) == ["1", "3", "4", "5", "6"]


async def test_a_list_whose_cursor_has_expired_is_read_from_its_beginning(application, run, stored):
    whole = paged(1, 2, 3)
    broken = {"is_broken": True}
    application.answers[GROUPS] = lambda query: {} if "page[after]" in query else whole(query)
    with pytest.raises(UpstreamInvalidResponse):
        await run("support-desk", "groups")

    def once(query: Any) -> Any:
        if "page[after]" in query and broken.pop("is_broken", False):
            return 400, {"error": "InvalidCursor"}
        return whole(query)

    application.answers[GROUPS] = once
    report = await run("support-desk", "groups")

    assert report.read == 3
    assert list(await stored("groups")) == ["1", "2", "3"]


@pytest.mark.parametrize("status", [400, 404, 410, 422])
async def test_a_cursor_that_is_gone_makes_the_list_begin_again(application, run, stored, status):
    whole, gone = paged(1, 2, 3), [status]
    application.answers[GROUPS] = lambda query: (
        (gone.pop(), {"error": "Gone"}) if "page[after]" in query and gone else whole(query)
    )

    report = await run("support-desk", "groups")

    assert report.missing is None
    assert [query.get("page[after]") for query in application.queries(GROUPS)] == [None, "2", None, "2"]
    assert list(await stored("groups")) == ["1", "2", "3"]


async def test_a_list_that_the_application_does_not_continue_is_kept_and_is_not_tried_twice_again(
    application, run, stored, entity
):
    whole = paged(1, 2, 3, 4)
    application.answers[GROUPS] = lambda query: (400, {"error": "TooDeep"}) if "page[after]" in query else whole(query)
    first = await run("support-desk", "groups")
    after_first = await entity("groups")
    application.asked.clear()

    second = await run("support-desk", "groups")
    asked = application.queries(GROUPS)
    application.answers[GROUPS] = paged(1, 2, 3)
    await run("support-desk", "groups")

    assert (first.read, second.read, second.deleted) == (4, 2, 0)
    assert after_first.status is CopyStatus.READY
    assert after_first.incomplete.startswith("the application does not continue the list")
    assert [query.get("page[after]") for query in asked] == [None, "2"]
    assert (await entity("groups")).incomplete is None


@dataclass(frozen=True)
class Connectors:
    """Resolves one connector."""

    resolved: ResolvedConnector

    async def get(self, organization_id: UUID, connector_id: UUID) -> ResolvedConnector:
        return self.resolved


class StoppedAttempt(InMemoryRunContext):
    """The context of a job whose first attempt stops after its first page."""

    is_stopped = False

    async def progress(self, done: int, total: int | None, message: str) -> None:
        if not self.is_stopped:
            self.is_stopped = True
            raise JobCanceled("the worker shuts down")


def job_of(tenant, connector: UpstreamConnector, params: dict[str, Any]) -> tuple[Connectors, StoredJob]:
    """A job of these params, and the resolver of its connector."""
    own = {"organization_id": tenant.organization_id}
    of_connector = {**own, "id": tenant.connector_id, "kind": "support-desk", "status": ConnectorStatus.ACTIVE}
    record = ConnectorRecord(**{each.name: of_connector.get(each.name) for each in fields(ConnectorRecord)})
    of_job = {**own, "id": uuid4(), "connector_id": tenant.connector_id, "progress": 0, "params": params}
    job = StoredJob(**{name: of_job.get(name) for name in StoredJob.__struct_fields__})
    return Connectors(ResolvedConnector(record, connector)), job


async def test_records_of_notices_are_read_at_the_same_time_and_those_that_came_are_stored(
    connect, application, run, stored, database, tenant
):
    application.answers[GROUPS] = paged()
    await run("support-desk", "groups")
    all_asked = asyncio.Barrier(8)

    async def answer(id_: int) -> Any:
        async with asyncio.timeout(20):
            await all_asked.wait()
        return REFUSED if id_ == 3 else {"group": {"id": id_, "name": f"g{id_}"}}

    ids = range(1, 9)
    application.answers |= {f"/api/v2/groups/{id_}.json": lambda _, id_=id_: answer(id_) for id_ in ids}
    resolver, job = job_of(tenant, connect("support-desk"), {"records": {"groups": [str(id_) for id_ in ids]}})

    await RecordsRun(database, resolver, job, InMemoryRunContext()).run()

    assert list(await stored("groups")) == ["1", "2", "4", "5", "6", "7", "8"]


async def test_a_full_synchronization_begins_at_the_beginning_and_its_next_attempt_continues(
    application, connect, run, database, tenant
):
    whole = paged(1, 2, 3, 4, 5)
    application.answers[GROUPS] = lambda query: {} if query.get("page[after]") == "4" else whole(query)
    with pytest.raises(UpstreamInvalidResponse):
        await run("support-desk", "groups")
    application.answers[GROUPS] = whole
    application.asked.clear()
    resolver, job = job_of(tenant, connect("support-desk"), {"entities": ["groups"], "full": True})
    context = StoppedAttempt()

    with pytest.raises(JobCanceled):
        await SynchronizationRun(database, resolver, schedule.Intervals(), job, context).run()
    await SynchronizationRun(database, resolver, schedule.Intervals(), job, context).run()

    assert [query.get("page[after]") for query in application.queries(GROUPS)] == [None, "2", "4"]


async def test_a_large_deletion_waits_until_the_next_run_confirms_it(application, run, stored, entity):
    application.answers[GROUPS] = paged(*range(1, 61), size=100)
    await run("support-desk", "groups")
    application.answers[GROUPS] = paged(1, 2, size=100)
    held = await run("support-desk", "groups")
    kept, waiting = len(await stored("groups")), (await entity("groups")).held_deletions
    application.answers[GROUPS] = paged(1, 2, 3, size=100)

    confirmed = await run("support-desk", "groups")

    assert (held.deleted, held.held, kept, waiting) == (0, 58, 60, 58)
    assert (confirmed.deleted, (await entity("groups")).held_deletions) == (57, 0)
    assert list(await stored("groups")) == ["1", "2", "3"]


async def test_after_a_large_deletion_the_next_run_reads_everything(application, run, entity):
    application.answers[CONTACTS] = lambda query: {
        "results": [] if query.get("archived") else [contact(str(number), "a@x") for number in range(50)]
    }
    application.answers[SEARCH] = lambda _: {"results": []}
    await run("crm-records", "contacts")
    application.answers[CONTACTS] = lambda _: {"results": []}
    held = await run("crm-records", "contacts", full=True)

    next_ = await run("crm-records", "contacts")

    assert (held.deleted, held.held, next_.is_full, next_.deleted) == (0, 50, True, 50)


TICKETS = "/api/v2/tickets"


class Tickets:
    """Tickets as Freshdesk lists them: sorted by the time of their change, at most three pages of them."""

    def __init__(self, times: dict[int, datetime]) -> None:
        self.times = times
        #: called after each page
        self.after_page: Callable[[], None] = lambda: None

    def __call__(self, query: Any) -> Any:
        if query.get("filter") == "deleted":
            return []
        since, page, size = datetime.fromisoformat(query["updated_since"]), int(query.get("page", 1)), 100
        if page > 3:
            return 400, {"description": "Validation failed", "errors": [{"field": "page", "code": "invalid_value"}]}
        found = sorted((time, id_) for id_, time in self.times.items() if time >= since)
        records = [{"id": id_, "updated_at": f"{time:%Y-%m-%dT%H:%M:%SZ}"} for time, id_ in found]
        self.after_page()
        if len(records) <= page * size:
            return records[(page - 1) * size :]
        link = f'<https://acme.freshdesk.com/api/v2/tickets?page={page + 1}>; rel="next"'
        return 200, records[(page - 1) * size : page * size], {"Link": link}


DAY = datetime(2026, 1, 1, tzinfo=UTC)


async def test_tickets_beyond_the_last_page_that_the_application_serves_are_copied(application, run, stored, entity):
    tickets = Tickets({id_: DAY + timedelta(seconds=id_ // 3) for id_ in range(1_000)})
    application.answers[TICKETS] = tickets

    first = await run("freshdesk", "tickets")
    second = await run("freshdesk", "tickets")

    assert (first.is_full, first.missing, first.added) == (True, None, 1_000)
    assert len(await stored("tickets")) == 1_000
    assert (second.missing, (await entity("tickets")).incomplete) == (None, None)
    assert len(application.asked) < 1.1 * 10 + 3


async def test_more_tickets_of_one_moment_than_the_application_serves_are_said_to_be_missing(
    application, run, stored, entity
):
    application.answers[TICKETS] = Tickets(dict.fromkeys(range(400), DAY))

    report = await run("freshdesk", "tickets")

    assert len(await stored("tickets")) == 300
    assert report.missing.startswith("the application does not continue the list")
    assert (await entity("tickets")).incomplete == report.missing


async def test_a_ticket_that_changes_between_two_pages_moves_no_other_out_of_the_copy(application, run, stored):
    tickets = Tickets({id_: DAY + timedelta(minutes=id_) for id_ in range(150)})
    tickets.after_page = lambda: tickets.times.update({0: DAY + timedelta(days=1)})
    application.answers[TICKETS] = tickets

    await run("freshdesk", "tickets")

    assert len(await stored("tickets")) == 150


THREADS, THREAD, HISTORY_LOG = (
    "/gmail/v1/users/me/threads",
    "/gmail/v1/users/me/threads/t1",
    "/gmail/v1/users/me/history",
)


@dataclass
class Mailbox:
    """A mailbox with one message."""

    labels: list[str] = field(default_factory=lambda: ["INBOX", "UNREAD"])
    history_id: int = 100
    log: list[dict[str, Any]] = field(default_factory=list)
    #: positions before this one are forgotten
    oldest: int = 0

    def archive(self) -> None:
        """The owner reads and archives the message."""
        self.labels.clear()
        self.history_id += 1
        change = {"message": {"id": "m1", "threadId": "t1"}, "labelIds": ["INBOX", "UNREAD"]}
        messages = [{"id": "m1", "threadId": "t1"}]
        self.log.append({"id": str(self.history_id), "messages": messages, "labelsRemoved": [change]})

    def answers(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "/gmail/v1/users/me/profile": lambda _: {"emailAddress": "a@x.org", "historyId": str(self.history_id)},
            THREADS: lambda _: {"threads": [{"id": "t1", "snippet": "Hi", "historyId": "99"}]},
            THREAD: lambda _: {"id": "t1", "messages": [{"id": "m1", "threadId": "t1", "labelIds": self.labels}]},
            HISTORY_LOG: self.history,
        }

    def history(self, query: Any) -> Any:
        start = int(query["startHistoryId"])
        if start < self.oldest:
            return 404, {"error": {"code": 404, "message": "Requested entity was not found."}}
        found = [each for each in self.log if int(each["id"]) > start]
        return {"historyId": str(self.history_id), **({"history": found} if found else {})}


async def test_a_message_that_is_read_and_archived_follows_in_the_next_run(application, run, stored):
    mailbox = Mailbox()
    application.answers = mailbox.answers()
    for name in ("threads", "messages"):
        await run("gmail", name)
    mailbox.archive()
    application.asked.clear()

    for name in ("threads", "messages", "threads"):
        await run("gmail", name)

    assert (await stored("messages"))["m1"]["labelIds"] == []
    assert (await stored("threads"))["t1"] == {"id": "t1", "snippet": "Hi", "historyId": "101"}
    assert [path for path, _ in application.asked] == [HISTORY_LOG, THREAD, HISTORY_LOG]
    assert [query["startHistoryId"] for query in application.queries(HISTORY_LOG)] == ["100", "101"]


async def test_a_position_that_the_log_no_longer_has_makes_everything_be_read(application, run, stored):
    mailbox = Mailbox()
    application.answers = mailbox.answers()
    await run("gmail", "threads")
    mailbox.archive()
    mailbox.oldest = 101

    report = await run("gmail", "threads")
    later = await run("gmail", "threads")

    assert (report.is_full, report.missing, later.is_full) == (True, None, False)
    assert [query["startHistoryId"] for query in application.queries(HISTORY_LOG)] == ["100", "101"]


def pages_of(ids: range, at: str, size: int) -> Callable[[Any], list[int]]:
    """The ids of a page: at most `size`, whatever the request says."""
    return lambda query: list(ids)[int(query.get(at, 0)) :][:size]


async def test_pages_that_are_smaller_than_requested_are_read_to_the_end(application, run, stored):
    users = pages_of(range(450), "startAt", 200)
    groups = pages_of(range(8), "start", 3)

    def listed(query: Any) -> Any:
        found = groups(query)
        following = (
            {"next": f"/rest/api/group?limit=3&start={int(query.get('start', 0)) + 3}"} if len(found) == 3 else {}
        )
        return {"results": [{"id": str(id_)} for id_ in found], "limit": 3, "size": len(found), "_links": following}

    application.answers = {
        "/rest/api/3/users": lambda query: [{"accountId": str(id_)} for id_ in users(query)],
        "/wiki/rest/api/group": listed,
    }
    reports = [await run(*name) for name in (("jira", "users"), ("jira", "users"), ("confluence", "groups"))]

    assert [(report.missing, report.deleted) for report in reports] == [(None, 0)] * 3
    assert (len(await stored("users")), len(await stored("groups"))) == (450, 8)


async def test_null_items_and_errors_beside_data_are_named_and_the_others_copied(application, run, stored, entity):
    def repositories(*nodes: Any, **errors: Any) -> Callable[[Any], Any]:
        info = {"hasNextPage": False, "endCursor": None}
        return lambda _: {"data": {"viewer": {"repositories": {"pageInfo": info, "nodes": list(nodes)}}}, **errors}

    forbidden = {"type": "FORBIDDEN", "path": ["viewer", "repositories", "nodes", 0], "message": "SAML enforcement"}
    application.answers["/graphql"] = repositories({"id": "R1", "updatedAt": "2026-01-01T00:00:00Z"}, {"id": "R2"})
    await run("github", "viewer_repositories")
    application.answers["/graphql"] = repositories(None, {"id": "R2"}, errors=[forbidden])

    report = await run("github", "viewer_repositories", full=True)

    assert (list(await stored("viewer_repositories")), report.deleted) == (["R1", "R2"], 0)
    assert "null for 1 of 2 records" in (await entity("viewer_repositories")).incomplete


GRAPHQL = "/admin/api/2026-07/graphql.json"


def shop(products: int, variants: int) -> Callable[[Any], Any]:
    """A shop as Shopify's GraphQL API lists it: the variants of all products are in one list."""

    def answer(body: Any) -> Any:
        variables, name = body["variables"], "productVariants" if "productVariants(" in body["query"] else "products"
        owned = {"product": {"id": "1", "title": "Shirt"}} if name == "productVariants" else {}
        start, count = int(variables.get("page_info", 0)), variants if name == "productVariants" else products
        end = min(start + variables["limit"], count)
        nodes = [{"id": str(id_), "updated_at": "2026-01-01T00:00:00Z", **owned} for id_ in range(start + 1, end + 1)]
        return {"data": {name: {"nodes": nodes, "pageInfo": {"hasNextPage": end < count, "endCursor": str(end)}}}}

    return answer


async def test_every_variant_of_a_product_with_more_than_a_hundred_is_copied(application, run, stored):
    application.answers[GRAPHQL] = shop(products=1, variants=600)

    reports = [await run("shopify", name) for name in ("products", "product_variants")]

    found = await stored("product_variants")
    assert [report.missing for report in reports] == [None, None]
    assert (list(await stored("products")), len(found)) == (["1"], 600)
    assert found["600"]["product_id"] == 1


async def test_files_of_shared_drives_are_copied(application, run, stored):
    shared = {"id": "f2", "name": "plan", "driveId": "d1"}

    def files(query: Any) -> Any:
        is_everywhere = query.get("corpora") == "allDrives" and query.get("includeItemsFromAllDrives") == "true"
        return {"files": [{"id": "f1", "name": "own"}, *([shared] if is_everywhere else [])], "incompleteSearch": False}

    application.answers["/drive/v3/files"] = files
    report = await run("google-drive", "files")
    application.answers["/drive/v3/files"] = lambda _: {"files": [], "incompleteSearch": True}
    incomplete = await run("google-drive", "files", full=True)

    assert (report.missing, list(await stored("files"))) == (None, ["f1", "f2"])
    assert (incomplete.deleted, incomplete.missing is None) == (0, False)


SCROLL = "/companies/scroll"


class Companies:
    """Companies as Intercom scrolls them: every page names the same scroll, and an empty page is the last."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.position = 0
        #: pages after which the scroll expires once
        self.expires_after: int | None = None

    def __call__(self, query: Any) -> Any:
        if "scroll_param" not in query:
            self.position = 0
        elif self.expires_after is not None and self.position >= 100 * self.expires_after:
            self.expires_after = None
            return 404, {
                "type": "error.list",
                "errors": [{"code": "not_found", "message": "scroll parameter not found"}],
            }
        found = range(self.position, min(self.position + 100, self.count))
        self.position += len(found)
        return {"type": "list", "data": [{"id": str(id_)} for id_ in found], "scroll_param": "one"}


async def test_more_companies_than_the_numbered_list_has_are_copied_by_scroll(application, run, stored):
    application.answers[SCROLL] = Companies(12_000)

    first = await run("intercom", "companies")
    second = await run("intercom", "companies")

    assert (first.added, first.missing, second.added, second.deleted, second.missing) == (12_000, None, 0, 0, None)
    assert len(application.queries(SCROLL)) == 2 * 121


async def test_a_scroll_that_expires_begins_again(application, run, stored):
    companies = Companies(1_000)
    companies.expires_after = 5
    application.answers[SCROLL] = companies

    report = await run("intercom", "companies")

    assert (report.missing, len(await stored("companies"))) == (None, 1_000)


@pytest.mark.parametrize(
    ("page_after", "reason"),
    [
        (lambda place: [{"id": place}], "the application names a page as the next that it returned before"),
        (lambda place: [{"id": 1}], "the application returned the same page 4 times"),
        (lambda place: [], "the application returned 200 pages without records in a row"),
    ],
)
async def test_a_list_without_end_ends_and_the_copy_lacks_the_rest(application, run, stored, page_after, reason):
    def endless(query: Any) -> Any:
        place = int(query.get("page[after]", 0))
        following = place % 5 + 1 if "names" in reason else place + 1
        return {"groups": page_after(place), "meta": {"has_more": True, "after_cursor": str(following)}}

    application.answers[GROUPS] = endless
    report = await run("support-desk", "groups")

    assert report.missing == reason
    assert len(application.queries(GROUPS)) <= 200


async def test_an_application_that_ignores_the_offset_leaves_the_copy_incomplete(application, run, stored):
    projects = [{"id": "1", "key": "A"}, {"id": "2", "key": "B"}]
    application.answers["/rest/api/3/project/search"] = lambda _: {"values": projects, "total": 4}

    report = await run("jira", "projects")

    assert list(await stored("projects")) == ["1", "2"]
    assert report.missing == "the application returned the same page again in place of the next one"


async def test_an_unchanged_record_is_not_written_again(application, run):
    application.answers[GROUPS] = paged(1, 2, 3)
    await run("support-desk", "groups")

    report = await run("support-desk", "groups")

    assert (report.read, report.added, report.changed, report.deleted) == (3, 0, 0, 0)


AUDITS = "/api/v2/ticket_audits.json"


def audits(old: int, new: int = 0) -> Callable[[Any], Any]:
    """Audits of last week and of right now, the newest first; the cursor before a page leads to older ones."""
    begin = datetime.now(UTC) - timedelta(days=7)

    def audit(id_: int) -> dict[str, Any]:
        passed = timedelta(seconds=id_) if id_ <= old else timedelta(days=8)
        return {"id": id_, "created_at": f"{begin + passed:%Y-%m-%dT%H:%M:%SZ}"}

    def answer(query: Any) -> Any:
        last = int(query.get("cursor", old + new))
        ids = range(last, max(0, last - int(query["limit"])), -1)
        before = str(ids[-1] - 1) if ids[-1] > 1 else None
        return {"audits": [audit(id_) for id_ in ids], "after_cursor": "newer", "before_cursor": before}

    return answer


async def test_all_audits_are_copied_and_none_is_lost_when_pages_of_them_came_between_two_runs(
    application, run, stored
):
    application.answers[AUDITS] = audits(2500)
    first = await run("support-desk", "ticket_audits")
    application.answers[AUDITS] = audits(2500, 2700)
    application.asked.clear()

    second = await run("support-desk", "ticket_audits")

    assert (first.added, second.is_full, second.added) == (2500, False, 2700)
    assert len(await stored("ticket_audits")) == 5200
    assert [query.get("cursor") for query in application.queries(AUDITS)] == [None, "4200", "3200"]


EXPORT = "/api/v2/incremental/tickets/cursor.json"


async def test_an_export_continues_from_its_cursor_and_reports_deletions(application, run, stored):
    pages = {
        None: ([{"id": 1, "status": "open"}, {"id": 2, "status": "open"}], "c1", True),
        "c1": ([{"id": 2, "status": "deleted"}, {"id": 3, "status": "new"}], "c2", True),
    }

    def export(query: Any) -> Any:
        tickets, cursor, is_end = pages[query.get("cursor")]
        return {"tickets": tickets, "after_cursor": cursor, "end_of_stream": is_end}

    application.answers[EXPORT] = export
    first = await run("support-desk", "tickets")
    second = await run("support-desk", "tickets")

    assert [query.get("start_time") for query in application.queries(EXPORT)] == ["0", None]
    assert (first.is_full, second.is_full) == (True, False)
    assert (second.added, second.deleted) == (1, 1)
    assert list(await stored("tickets")) == ["1", "3"]


async def test_a_cursor_that_the_application_forgot_makes_everything_be_read(application, run, stored):
    def export(query: Any) -> Any:
        if "cursor" in query:
            return 400, {"error": "InvalidCursor"}
        return {"tickets": [{"id": 1, "status": "open"}], "after_cursor": "c1", "end_of_stream": True}

    application.answers[EXPORT] = export
    await run("support-desk", "tickets")

    report = await run("support-desk", "tickets")

    assert report.is_full
    assert list(await stored("tickets")) == ["1"]


async def test_what_the_application_forgets_after_a_month_is_kept(application, run, stored):
    path = "/api/v2/deleted_tickets.json"
    end = {"meta": {"has_more": False, "after_cursor": None}}
    application.answers[path] = lambda _: {"deleted_tickets": [{"id": 1}, {"id": 2}], **end}
    await run("support-desk", "deleted_tickets")
    application.answers[path] = lambda _: {"deleted_tickets": [{"id": 2}], **end}

    report = await run("support-desk", "deleted_tickets")

    assert report.deleted == 0
    assert list(await stored("deleted_tickets")) == ["1", "2"]


CHANNELS, HISTORY = "/api/conversations.list", "/api/conversations.history"


def channels(*ids: str) -> Callable[[Any], Any]:
    return lambda _: {"ok": True, "channels": [{"id": id_, "is_member": id_ != "C9"} for id_ in ids]}


def history(**messages: list[str]) -> Callable[[Any], Any]:
    def answer(query: Any) -> Any:
        found = messages[query["channel"]]
        if isinstance(found, str):
            return {"ok": False, "error": found}
        return {"ok": True, "messages": [{"ts": ts, "text": "t"} for ts in found if ts >= query.get("oldest", "")]}

    return answer


async def test_children_carry_their_parent_and_only_parents_that_can_be_read_are_asked(application, run, stored):
    application.answers = {CHANNELS: channels("C1", "C2", "C9"), HISTORY: history(C1=["1.1"], C2=["1.1", "1.2"])}
    await run("team-chat", "channels")

    report = await run("team-chat", "channel_messages")

    found = await stored("channel_messages")
    assert report.read == 3
    assert list(found) == ["C1/1.1", "C2/1.1", "C2/1.2"]
    assert found["C2/1.2"] == {"ts": "1.2", "text": "t", "channel_id": "C2", "float_ts": 1.2}
    assert [query["channel"] for query in application.queries(HISTORY)] == ["C1", "C2"]


async def test_a_parent_that_is_gone_takes_its_records_with_it(application, run, stored):
    application.answers = {CHANNELS: channels("C1", "C2"), HISTORY: history(C1=["1.1"], C2=["1.2"])}
    await run("team-chat", "channels")
    await run("team-chat", "channel_messages")
    application.answers[HISTORY] = history(C1="channel_not_found", C2=["1.2"])

    report = await run("team-chat", "channel_messages", full=True)

    assert report.deleted == 1
    assert list(await stored("channel_messages")) == ["C2/1.2"]


async def test_where_a_parent_could_not_be_read_nothing_is_deleted(application, run, stored):
    application.answers = {CHANNELS: channels("C1", "C2"), HISTORY: history(C1=["1.1"], C2=["1.2", "1.3"])}
    await run("team-chat", "channels")
    await run("team-chat", "channel_messages")
    application.answers[HISTORY] = history(C1="not_in_channel", C2=["1.2"])

    report = await run("team-chat", "channel_messages", full=True)

    assert report.deleted == 0
    assert list(await stored("channel_messages")) == ["C1/1.1", "C2/1.2", "C2/1.3"]


async def test_a_sweep_that_was_partial_stays_so_when_it_is_taken_up_again(application, run, stored):
    messages = {"C1": ["1.1"], "C2": ["1.2", "1.3"], "C3": ["1.4"]}
    application.answers = {CHANNELS: channels("C1", "C2", "C3"), HISTORY: history(**messages)}
    await run("team-chat", "channels")
    await run("team-chat", "channel_messages")
    refusing = history(C1="not_in_channel", C2=["1.2"], C3=["1.4"])
    application.answers[HISTORY] = lambda query: {} if query["channel"] == "C3" else refusing(query)
    with pytest.raises(UpstreamInvalidResponse):
        await run("team-chat", "channel_messages", full=True)
    application.answers[HISTORY] = refusing
    application.asked.clear()

    report = await run("team-chat", "channel_messages")

    assert [query["channel"] for query in application.queries(HISTORY)] == ["C2", "C3"]
    assert report.deleted == 0
    assert list(await stored("channel_messages")) == ["C1/1.1", "C2/1.2", "C2/1.3", "C3/1.4"]


async def test_of_a_parent_that_is_new_everything_is_read(application, run, stored):
    application.answers = {CHANNELS: channels("C1"), HISTORY: history(C1=["1.1"], C2=["1.2"])}
    await run("team-chat", "channels")
    await run("team-chat", "channel_messages")
    application.answers[CHANNELS] = channels("C1", "C2")
    await run("team-chat", "channels")
    application.asked.clear()

    report = await run("team-chat", "channel_messages")

    assert report.is_full is False
    assert ["oldest" in query for query in application.queries(HISTORY)] == [True, False]
    assert list(await stored("channel_messages")) == ["C1/1.1", "C2/1.2"]


async def test_below_parents_only_those_that_changed_are_read_again(application, run, stored, owner, tenant):
    articles, files = (
        "/api/v2/help_center/incremental/articles.json",
        "/api/v2/help_center/articles/{}/attachments.json",
    )
    end = {"end_time": 1, "end_of_stream": True}
    application.answers = {
        articles: lambda _: {"articles": [{"id": 1, "title": "a"}, {"id": 2, "title": "b"}], **end},
        files.format(1): lambda _: {"article_attachments": [{"id": 11}]},
        files.format(2): lambda _: {"article_attachments": [{"id": 21}]},
    }
    await run("support-desk", "articles")
    await run("support-desk", "article_attachments")
    await owner.execute(LONG_AGO, tenant.organization_id, "1")
    application.asked.clear()

    report = await run("support-desk", "article_attachments")

    assert (report.is_full, report.read) == (False, 1)
    assert [path for path, _ in application.asked] == [files.format(2)]
    assert (await stored("article_attachments"))["11"]["article_id"] == 1


CONTACTS, SEARCH = "/crm/v3/objects/contacts", "/crm/v3/objects/contacts/search"


def contact(id_: str, email: str, **members: Any) -> dict[str, Any]:
    return {"id": id_, "properties": {"email": email, "hs_object_id": id_}, **members}


async def test_changes_keep_the_associations_that_the_search_does_not_know(application, run, stored):
    companies = {"associations": {"companies": {"results": [{"id": "77"}]}}}
    everyone = [contact("1", "a@x", **companies), contact("2", "b@x", **companies)]
    application.answers = {
        CONTACTS: lambda query: {"results": [] if query.get("archived") else everyone},
        SEARCH: lambda _: {"results": [contact("1", "new@x"), contact("3", "c@x")]},
    }
    await run("crm-records", "contacts")

    report = await run("crm-records", "contacts")

    found = await stored("contacts")
    assert (report.is_full, report.changed, report.added) == (False, 1, 1)
    assert found["1"]["properties"] == {"email": "new@x", "crm_object_id": "1"}
    assert found["1"]["companies"] == ["77"]
    assert "companies" not in found["3"]


async def test_what_the_application_lists_as_removed_is_gone_without_a_sweep(application, run, stored):
    archived: list[Any] = []
    everyone = [contact("1", "a@x"), contact("2", "b@x")]
    application.answers = {
        CONTACTS: lambda query: {"results": archived if query.get("archived") else everyone},
        SEARCH: lambda _: {"results": []},
    }
    await run("crm-records", "contacts")
    archived.append(contact("2", "b@x"))

    report = await run("crm-records", "contacts")

    assert (report.is_full, report.deleted) == (False, 1)
    assert list(await stored("contacts")) == ["1"]


async def test_what_a_list_cannot_show_outlives_its_sweeps(application, run, stored, database, tenant):
    application.answers = {
        "/api/1.0/workspaces": lambda _: {"data": [{"gid": "w"}]},
        "/api/1.0/projects": lambda _: {"data": [{"gid": "p"}]},
        "/api/1.0/tasks": lambda _: {"data": [{"gid": "t1", "projects": [{"gid": "p"}]}]},
        "/api/1.0/tasks/t2": lambda _: (404, {"errors": [{"message": "Not Found"}]}),
    }
    for name in ("workspaces", "projects", "tasks"):
        await run("work-management", name)
    async with database.tenant(tenant.organization_id) as connection:
        tasks = await find(connection, tenant.connector_id, "tasks")
        written = [("own", b'{"gid": "own", "projects": []}'), ("t2", b'{"gid": "t2", "projects": [{"gid": "p"}]}')]
        await records.upsert(connection, tasks, written)

    report = await run("work-management", "tasks", full=True)

    assert report.deleted == 1
    assert list(await stored("tasks")) == ["own", "t1"]


SEARCHED, PAGE = "/v1/search", "/v1/pages/{}"
INCOMPLETE = {"type": "incomplete", "incomplete_reason": "query_result_limit_reached"}


def notes(*ids: str, **members: Any) -> Callable[[Any], Any]:
    """A search that lists these pages."""
    end = {"has_more": False, "next_cursor": None, **members}
    return lambda _: {"results": [{"id": id_, "last_edited_time": "2026-01-01T00:00:00Z"} for id_ in ids], **end}


async def test_what_a_search_missed_is_gone_only_where_it_is_not_found_by_its_id(application, run, stored):
    application.answers[SEARCHED] = notes("p1", "p2", "p3", "p4", "p5")
    await run("workspace-notes", "pages")
    application.answers = {
        SEARCHED: notes("p1"),
        PAGE.format("p2"): lambda _: {"id": "p2", "last_edited_time": "2026-01-02T00:00:00Z"},
        PAGE.format("p3"): lambda _: (404, {"code": "object_not_found", "message": "Could not find page"}),
        PAGE.format("p4"): lambda _: {"id": "p4", "in_trash": True},
        PAGE.format("p5"): lambda _: (403, {"code": "restricted_resource", "message": "no"}),
    }
    application.asked.clear()

    report = await run("workspace-notes", "pages", full=True)

    found = await stored("pages")
    assert [path for path, _ in application.asked] == [SEARCHED, *map(PAGE.format, ("p2", "p3", "p4", "p5"))]
    assert (list(found), report.deleted) == (["p1", "p2", "p5"], 2)
    assert found["p2"]["last_edited_time"] == "2026-01-02T00:00:00Z"


async def test_records_that_a_search_never_lists_are_kept_however_many_they_are(application, run, stored, entity):
    names = [f"p{number}" for number in range(40)]
    application.answers[SEARCHED] = notes(*names)
    await run("workspace-notes", "pages")
    application.answers |= {
        PAGE.format(name): lambda _, name=name: {"id": name, "last_edited_time": "2026-01-01T00:00:00Z"}
        for name in names
    }
    application.answers[SEARCHED] = notes("p0")

    reports = [await run("workspace-notes", "pages", full=True) for _ in range(3)]

    assert [(report.deleted, report.held) for report in reports] == [(0, 0)] * 3
    assert len(await stored("pages")) == 40


async def test_a_large_deletion_that_the_application_confirms_one_by_one_waits_too(application, run, stored, entity):
    names = [f"p{number}" for number in range(40)]
    application.answers[SEARCHED] = notes(*names)
    await run("workspace-notes", "pages")
    not_found = (404, {"code": "object_not_found", "message": "Could not find page"})
    application.answers |= {PAGE.format(name): lambda _: not_found for name in names}
    application.answers[SEARCHED] = notes("p0")

    held = await run("workspace-notes", "pages", full=True)
    kept, waiting = len(await stored("pages")), (await entity("pages")).held_deletions
    confirmed = await run("workspace-notes", "pages")

    assert (held.deleted, held.held, kept, waiting) == (0, 39, 40, 39)
    assert (confirmed.is_full, confirmed.deleted, confirmed.held) == (True, 39, 0)


async def test_a_search_that_says_it_is_incomplete_buries_nothing(application, run, stored):
    application.answers[SEARCHED] = notes("p1", "p2")
    await run("workspace-notes", "pages")
    application.answers[SEARCHED] = notes("p1", request_status=INCOMPLETE)
    application.asked.clear()

    report = await run("workspace-notes", "pages", full=True)

    assert (list(await stored("pages")), report.deleted) == (["p1", "p2"], 0)
    assert [path for path, _ in application.asked] == [SEARCHED]


async def test_records_that_strict_parsers_and_postgresql_refuse_are_copied(application, run, stored):
    application.answers[GROUPS] = lambda _: {
        "groups": [
            {"id": 1, "name": "cut \ud83d"},
            {"id": 2, "name": "nul \0"},
            {"id": 3, "name": "long", "description": int("9" * 4000)},
            {"id": "nul \0 and half \ud83d", "name": "id"},
        ]
    }

    report = await run("support-desk", "groups")

    assert report.read == 4
    assert {id_: group["name"] for id_, group in (await stored("groups")).items()} == {
        "1": "cut \ufffd",
        "2": "nul \ufffd",
        "3": "long",
        "nul \ufffd and half \ufffd": "id",
    }
