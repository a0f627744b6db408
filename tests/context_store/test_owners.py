"""PostgreSQL shows the copy of a personal connector to its owner only, whatever Python asks it for."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest

import gateway
from gateway.context_store.entities import StoredEntity, freshness, register
from gateway.context_store.fields import FieldType
from gateway.context_store.layout import chosen
from gateway.context_store.records import documents, remove, upsert
from gateway.context_store.search.parse import parse
from gateway.context_store.search.search import ContextStore
from gateway.context_store.word_index import catch_up
from gateway.foundation.db.pool import Connection, Database
from tests.context_store.conftest import CONNECTOR, Tenant

FIELDS = {"id": FieldType.STRING, "name": FieldType.STRING}
OWNED = CONNECTOR.replace("status)", "status, owner_id)").replace("'active')", "'active', $4)")
#: the tables of the copy, with the column by which they belong to an entity
COPY = {
    "context_entities": "id",
    "context_records": "entity_id",
    "context_words": "entity_id",
    "context_marks": "entity_id",
    "context_pending_words": "entity_id",
    "context_terms": "entity_id",
}
#: the other tables that name a connector or an entity, and why the owner is no condition of their policy
OTHERS = {
    "connector_secrets": "credentials, which are sealed, and no records",
    "connector_holds": "times only",
    "jobs": "calls and their results, which are sealed; they have an owner_id of their own",
    "idempotency_keys": "keys of clients, which name jobs",
    "audit": "who called what, without records",
    "request_log": "which requests were sent, without records",
    "oauth_flows": "consents; they have an owner_id of their own",
    "connect_sessions": "connect links; they have an owner_id of their own",
    "events": "ids of records; they have an owner_id of their own",
    "webhooks": "subscriptions; they have an owner_id of their own",
    "schedules": "calls to come; they have an owner_id of their own",
    "inbound_hooks": "addresses of notices, whose secrets are sealed",
    "inbound_changes": "ids of records that workers read next",
    "uploads": "files on their way to the application, without records",
    "approvals": "calls that wait, sealed with the data key of their job",
    "approval_notices": "messages to approvers, which are sealed",
}
# The tables that name a connector or an entity, and whether their policy knows the person.
TABLES = """
    SELECT relname,
           EXISTS (SELECT FROM pg_policies WHERE tablename = relname AND qual LIKE '%gateway.person%') AS is_held
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
      AND attname IN ('connector_id', 'entity_id')
"""
#: the modules that see everybody's copies: they synchronize, remove and count them
GATEWAYS_OWN_WORK = {
    "context_store/sync/job.py",
    "context_store/sync/parents.py",
    "context_store/sync/run.py",
    "context_store/sync/service.py",
    "context_store/sync/single.py",
    "context_store/sync/write_through.py",
    "operations/deletion.py",
    "run/monitoring/statistics.py",
}

Use = Callable[[Database], AbstractAsyncContextManager[Connection]]


@dataclass(frozen=True)
class Personal:
    """The copy of a person's connector, in which every table has a row."""

    tenant: Tenant
    owner_id: UUID
    entity: StoredEntity

    def by(self, person: UUID | None) -> Use:
        return lambda database: database.tenant(self.tenant.organization_id, person)


async def filled(connection: Connection, connector_id: UUID, tenant: Tenant) -> StoredEntity:
    """An entity of the connector with an indexed, a queued and a marked record."""
    entity = await register(connection, connector_id, tenant.organization_id, "things", chosen(FIELDS))
    records = [(id_, msgspec.json.encode({"id": id_, "name": f"letter {id_}"})) for id_ in ("a", "b")]
    await upsert(connection, entity, records[:1])
    await catch_up(connection, entity)
    await upsert(connection, entity, records, generation=1)
    return entity


@pytest.fixture
async def personal(database: Database, owner: Any, tenant: Tenant) -> Personal:
    """A person's connector beside the shared one of the tenant, both with a copy."""
    owner_id, connector_id = uuid4(), uuid4()
    await owner.execute(OWNED, connector_id, tenant.organization_id, tenant.workspace_id, owner_id)
    async with database.all_copies(tenant.organization_id) as connection:
        await filled(connection, tenant.connector_id, tenant)
        return Personal(tenant, owner_id, await filled(connection, connector_id, tenant))


QUERIES: dict[str, dict[str, Any]] = {
    "all": {},
    "one": {"filter": {"eq": {"id": "a"}}},
    "word": {"filter": {"keyword": {"name": "letter"}}},
    "part of a word": {"filter": {"like": {"name": "ette"}}},
    "word in a walk": {"filter": {"or": [{"keyword": {"name": "letter"}}, {"eq": {"id": "a"}}]}},
    "sorted": {"sort": [{"name": "desc"}]},
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
async def test_the_search_of_a_copy_finds_nothing_for_anybody_else(
    database: Database, personal: Personal, query: dict[str, Any]
):
    """The store is asked directly for the connector, as by a front end that forgot to check the owner."""
    store, parsed = ContextStore(b"k" * 32), parse({"query": query}, FIELDS)

    async def found(person: UUID | None) -> tuple[int, int]:
        async with personal.by(person)(database) as connection:
            page = await store.search(connection, personal.entity.connector_id, "things", parsed)
        return len(page.data), page.total_synced

    owners = await found(personal.owner_id)  # the store remembers the entity

    assert owners[0] >= 1
    assert owners[1] == 2
    assert [await found(person) for person in (uuid4(), None)] == [(0, 0), (0, 0)]


@pytest.mark.parametrize("person", ["the owner", "another person", "nobody"])
async def test_the_copies_of_shared_connectors_are_everybodys(database: Database, personal: Personal, person: str):
    whose = {"the owner": personal.owner_id, "another person": uuid4(), "nobody": None}[person]
    store, everything = ContextStore(b"k" * 32), parse({"query": {}}, FIELDS)

    async with personal.by(whose)(database) as connection:
        page = await store.search(connection, personal.tenant.connector_id, "things", everything)

    assert len(page.data) == 2


@pytest.mark.parametrize("table", COPY)
async def test_each_table_of_the_copy_shows_its_rows_to_the_owner_and_to_the_gateway(
    database: Database, personal: Personal, table: str
):
    count = f"SELECT count(*) FROM {table} WHERE {COPY[table]} = $1"

    async def seen(use: AbstractAsyncContextManager[Connection]) -> int:
        async with use as connection:
            return int(await connection.fetchval(count, personal.entity.id))

    organization_id = personal.tenant.organization_id
    allowed = [
        await seen(database.tenant(organization_id, personal.owner_id)),
        await seen(database.all_copies(organization_id)),
        await seen(database.system()),
    ]
    refused = [
        await seen(database.tenant(organization_id, uuid4())),
        await seen(database.tenant(organization_id)),
        await seen(database.tenant(uuid4(), personal.owner_id)),
        await seen(database.all_copies(uuid4())),
    ]

    assert min(allowed) >= 1
    assert len(set(allowed)) == 1
    assert refused == [0, 0, 0, 0]


@pytest.mark.parametrize("table", COPY)
async def test_a_session_that_names_no_person_sees_no_personal_copy(database_url: str, personal: Personal, table: str):
    connection = await asyncpg.connect(
        database_url, server_settings={"gateway.tenant": str(personal.tenant.organization_id)}
    )
    await connection.execute("SET ROLE gateway_app")

    seen = await connection.fetchval(f"SELECT count(*) FROM {table} WHERE {COPY[table]} = $1", personal.entity.id)
    await connection.close()

    assert seen == 0


async def test_the_functions_of_the_search_find_nothing_for_anybody_else(database: Database, personal: Personal):
    id_ = personal.entity.id
    term = f"{id_}/"

    async def found(person: UUID) -> tuple[int, int, int]:
        async with personal.by(person)(database) as connection:
            candidates = await connection.fetchval("SELECT context_candidates($1, ($2 || ':*')::tsquery, 9)", id_, term)
            terms = await connection.fetch("SELECT * FROM context_terms_in_use($1, '', 9)", id_)
            parts = await connection.fetch(
                "SELECT * FROM context_terms_containing($1, $2, $3, 9)", id_, [term], ["ett"]
            )
        return len(candidates), len(terms), len(parts)

    assert min(await found(personal.owner_id)) >= 1
    assert await found(uuid4()) == (0, 0, 0)


async def test_the_state_of_a_copy_is_its_owners(database: Database, personal: Personal):
    async def states(person: UUID | None) -> int:
        async with personal.by(person)(database) as connection:
            return len(await freshness(connection, personal.entity.connector_id))

    assert [await states(person) for person in (personal.owner_id, uuid4(), None)] == [1, 0, 0]


async def test_deliveries_have_the_records_of_the_receivers_own_copies(database: Database, personal: Personal):
    which = (personal.entity.connector_id, "things", ["a"], 10_000)

    async def read(person: UUID) -> list[str]:
        return list((await documents(database, personal.tenant.organization_id, person, *which)).found)

    assert await read(personal.owner_id) == ["a"]
    assert await read(uuid4()) == []


@pytest.mark.parametrize("table", COPY)
async def test_nobody_else_removes_rows_of_a_copy(database: Database, personal: Personal, table: str):
    async with personal.by(uuid4())(database) as connection:
        done = await connection.execute(f"DELETE FROM {table} WHERE {COPY[table]} = $1", personal.entity.id)

    assert done == "DELETE 0"


#: a new row of each table in the same organization, with the entity or its connector as $1
ROWS = {
    "context_entities": "(connector_id, organization_id, entity, layout) VALUES ($1, $2, 'others', '{}')",
    "context_records": "(entity_id, organization_id, id, document, generation, observed_at)"
    " VALUES ($1, $2, 'c', '{}', 1, now())",
    "context_words": "(entity_id, organization_id, id, digest, terms) VALUES ($1, $2, 'c', 1, '')",
    "context_marks": "(entity_id, organization_id, generation, id) VALUES ($1, $2, 1, 'c')",
    "context_pending_words": "(entity_id, organization_id, ids) VALUES ($1, $2, '{c}')",
    "context_terms": "(entity_id, organization_id, term) VALUES ($1, $2, 'c')",
}


@pytest.mark.parametrize("table", COPY)
async def test_nobody_else_adds_rows_to_a_copy(database: Database, personal: Personal, table: str):
    whose = personal.entity.connector_id if table == "context_entities" else personal.entity.id
    add = f"INSERT INTO {table} {ROWS[table]}"

    async with personal.by(uuid4())(database) as connection:
        with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.NotNullViolationError)):
            await connection.execute(add, whose, personal.tenant.organization_id)
    async with database.all_copies(personal.tenant.organization_id) as connection:
        assert await connection.execute(add, whose, personal.tenant.organization_id) == "INSERT 0 1"


async def test_the_owner_of_a_connector_never_changes(database: Database, personal: Personal):
    async with database.system() as connection:
        for owner_id in (uuid4(), None):
            with pytest.raises(asyncpg.RaiseError, match="the owner of a connector does not change"):
                await connection.execute(
                    "UPDATE connectors SET owner_id = $2 WHERE id = $1", personal.entity.connector_id, owner_id
                )


async def test_the_gateway_removes_a_copy_as_a_whole(database: Database, personal: Personal):
    async with database.all_copies(personal.tenant.organization_id) as connection:
        removed = await remove(connection, personal.entity.connector_id)

    assert removed == 2
    assert await rows_left(database, personal) == dict.fromkeys(COPY, 0)


async def test_with_a_connector_all_rows_of_its_copy_end(database: Database, personal: Personal):
    """An earlier version, which does not see them, deletes the connector."""
    async with personal.by(None)(database) as connection:
        assert await remove(connection, personal.entity.connector_id) == 0
        await connection.execute("DELETE FROM connectors WHERE id = $1", personal.entity.connector_id)

    assert await rows_left(database, personal) == dict.fromkeys(COPY, 0)


async def rows_left(database: Database, personal: Personal) -> dict[str, int]:
    async with database.system() as connection:
        return {
            table: await connection.fetchval(f"SELECT count(*) FROM {table} WHERE {column} = $1", personal.entity.id)
            for table, column in COPY.items()
        }


async def test_every_table_of_copies_is_held_to_the_owner(database: Database):
    async with database.system() as connection:
        tables = dict(await connection.fetch(TABLES))

    assert {name for name, is_held in tables.items() if is_held} == set(COPY)
    assert {name for name, is_held in tables.items() if not is_held} == set(OTHERS)


def test_only_the_gateways_own_work_sees_everybodys_copies():
    package = Path(gateway.__file__).parent
    modules = {str(path.relative_to(package)) for path in package.rglob("*.py") if ".all_copies(" in path.read_text()}

    assert modules == GATEWAYS_OWN_WORK
