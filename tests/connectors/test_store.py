"""Connector records: a tenant's own, credentials sealed, changed wholly or not at all."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from gateway.connectors.model import changed_columns
from gateway.connectors.store import ConnectorStore
from gateway.contract.connectors import ConnectorSelection, ConnectorStatus
from gateway.errors import InternalError, NotFound, Unavailable
from gateway.foundation.db.pool import Database
from tests.connectors.conftest import CREDENTIALS, Create, MarkDeleted
from tests.harness.databases import waits_for_lock
from tests.harness.waiting import eventually

SWAP = """
    UPDATE connector_secrets AS mine
    SET key_id = theirs.key_id, wrapped_key = theirs.wrapped_key, sealed = theirs.sealed
    FROM connector_secrets AS theirs
    WHERE mine.connector_id = $1 AND theirs.connector_id = $2
"""
EVERYTHING_OF = """
    SELECT connectors::text || connector_secrets::text || encode(sealed, 'escape')
    FROM connectors JOIN connector_secrets ON connector_secrets.connector_id = connectors.id
    WHERE connectors.id = $1
"""


async def test_a_connector_comes_back_as_it_was_created(store: ConnectorStore, organization_id: UUID, create: Create):
    connector_id = await create(workspace="support", name="Desk")

    record = await store.get(organization_id, connector_id)
    secret = await store.secret(organization_id, connector_id)

    assert (record.kind, record.name, record.workspace_name) == ("support-desk", "Desk", "support")
    assert (record.status, record.environment) == (ConnectorStatus.ACTIVE, {"subdomain": "acme"})
    assert (secret.values, secret.version) == (CREDENTIALS, 1)


async def test_no_credential_is_in_the_database_in_clear(database: Database, create: Create):
    connector_id = await create()

    async with database.system() as connection:
        row = await connection.fetchval(EVERYTHING_OF, connector_id)

    assert "CANARY" not in row
    assert "agent@example.com" not in row


async def test_another_organization_finds_nothing(
    store: ConnectorStore, organization_id: UUID, stranger_id: UUID, create: Create, mark_deleted: MarkDeleted
):
    connector_id = await create()

    with pytest.raises(NotFound) as theirs:
        await store.get(stranger_id, connector_id)
    with pytest.raises(NotFound) as nobodys:
        await store.get(stranger_id, uuid4())
    with pytest.raises(NotFound):
        await store.secret(stranger_id, connector_id)
    with pytest.raises(NotFound):
        await store.update(stranger_id, connector_id, name="mine now")
    with pytest.raises(NotFound):
        await mark_deleted(stranger_id, connector_id)

    assert theirs.value.detail == nobodys.value.detail
    assert await store.find(stranger_id, ConnectorSelection()) == []
    assert (await store.get(organization_id, connector_id)).name == "c"


async def test_credentials_moved_to_another_connector_refuse_to_open(
    store: ConnectorStore, database: Database, organization_id: UUID, create: Create
):
    ours, other = await create(), await create()

    async with database.system() as connection:
        await connection.execute(SWAP, ours, other)

    with pytest.raises(InternalError):
        await store.secret(organization_id, ours)


async def test_new_credentials_take_the_place_of_the_old_ones(
    store: ConnectorStore, organization_id: UUID, create: Create
):
    connector_id = await create()

    await store.update(organization_id, connector_id, credentials={"api_token": "newer"})

    secret = await store.secret(organization_id, connector_id)
    assert (secret.values, secret.version) == ({"api_token": "newer"}, 2)


async def test_a_change_that_fails_changes_nothing(
    store: ConnectorStore, organization_id: UUID, create: Create, mark_deleted: MarkDeleted
):
    connector_id = await create()
    await mark_deleted(organization_id, connector_id)

    with pytest.raises(NotFound):
        await store.update(organization_id, connector_id, name="late", credentials={"api_token": "late"})

    assert (await store.secret(organization_id, connector_id)).values == CREDENTIALS


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {}),
        ({"name": "Desk"}, {"name": "Desk"}),
        ({"name": None}, {}),
        ({"status": None, "credentials": {"api_token": "t"}, "expires_at": None}, {}),
        ({"status": "active"}, {"status": "active", "status_reason": None}),
        ({"status": "needs_reauth", "status_reason": "r"}, {"status": "needs_reauth", "status_reason": "r"}),
        ({"status_reason": None, "environment": {}}, {"status_reason": None, "environment": {}}),
    ],
)
def test_a_change_sets_what_it_has_and_clears_only_what_may_be_empty(change: dict[str, Any], expected: dict[str, Any]):
    assert changed_columns(change) == expected


async def test_a_status_brings_its_reason_and_takes_it_away_again(
    store: ConnectorStore, organization_id: UUID, create: Create
):
    connector_id = await create()

    await store.update(
        organization_id, connector_id, status=ConnectorStatus.NEEDS_REAUTH, status_reason="the grant was revoked"
    )
    refused = await store.get(organization_id, connector_id)
    await store.update(organization_id, connector_id, name="renamed")
    renamed = await store.get(organization_id, connector_id)
    await store.update(organization_id, connector_id, status=ConnectorStatus.ACTIVE)
    active = await store.get(organization_id, connector_id)

    assert (refused.status, refused.status_reason) == (ConnectorStatus.NEEDS_REAUTH, "the grant was revoked")
    assert (renamed.name, renamed.status_reason) == ("renamed", "the grant was revoked")
    assert (active.status, active.status_reason) == (ConnectorStatus.ACTIVE, None)


async def test_a_connector_whose_deletion_began_is_there_for_its_deletion_only(
    store: ConnectorStore, organization_id: UUID, create: Create, mark_deleted: MarkDeleted
):
    connector_id = await create()
    record = await store.get(organization_id, connector_id)

    await mark_deleted(organization_id, connector_id)

    with pytest.raises(NotFound):
        await store.get(organization_id, connector_id)
    with pytest.raises(NotFound):
        await mark_deleted(organization_id, connector_id)
    assert await store.find(organization_id, ConnectorSelection()) == []
    assert await store.deleted_of(organization_id, record.workspace_id) == [connector_id]
    assert (await store.get_deleted(organization_id, connector_id)).id == connector_id


async def test_a_deleted_connector_takes_its_credentials_with_it(
    store: ConnectorStore, organization_id: UUID, create: Create
):
    connector_id = await create()

    await store.delete(organization_id, connector_id)
    await store.delete(organization_id, connector_id)

    with pytest.raises(NotFound):
        await store.secret(organization_id, connector_id)


async def test_a_list_narrows_by_what_is_asked(store: ConnectorStore, organization_id: UUID, create: Create):
    desk = await create(workspace="a")
    chat = await create("team-chat", workspace="b")
    await store.update(organization_id, chat, status=ConnectorStatus.DISABLED)

    assert [each.id for each in await store.find(organization_id, ConnectorSelection())] == [desk, chat]
    assert [each.id for each in await store.find(organization_id, ConnectorSelection(workspace_name="a"))] == [desk]
    assert [each.id for each in await store.find(organization_id, ConnectorSelection(kind="team-chat"))] == [chat]
    assert [each.id for each in await store.find(organization_id, ConnectorSelection(status="disabled"))] == [chat]
    assert await store.find(organization_id, ConnectorSelection(workspace_name="a", kind="team-chat")) == []


async def test_pages_of_a_list_leave_nothing_out(store: ConnectorStore, organization_id: UUID, create: Create):
    created = [await create() for _ in range(5)]

    first = await store.find(organization_id, ConnectorSelection(), limit=2)
    rest = await store.find(organization_id, ConnectorSelection(), after=(first[-1].created_at, first[-1].id))

    assert [each.id for each in [*first, *rest]] == created


@pytest.mark.parametrize(
    "change",
    [
        """UPDATE connectors SET environment = '{"subdomain": "evil"}' WHERE id = $1""",
        "UPDATE connectors SET kind = 'team-chat' WHERE id = $1",
        "UPDATE connectors SET environment = '{}' WHERE id = $1",
    ],
)
async def test_credentials_of_a_row_that_was_changed_refuse_to_open(
    store: ConnectorStore, database: Database, organization_id: UUID, create: Create, change: str
):
    connector_id = await create()

    async with database.system() as connection:
        await connection.execute(change, connector_id)

    with pytest.raises(InternalError):
        await store.secret(organization_id, connector_id)


async def test_a_record_that_is_not_what_the_credentials_are_for_is_refused(
    store: ConnectorStore, organization_id: UUID, create: Create
):
    connector_id = await create()
    record = await store.get(organization_id, connector_id)
    secret = await store.secret(organization_id, connector_id)

    secret.require_for(record)
    with pytest.raises(Unavailable):
        secret.require_for(replace(record, environment={"subdomain": "evil"}))
    with pytest.raises(Unavailable):
        secret.require_for(replace(record, kind="team-chat"))


async def test_new_variables_keep_the_credentials_readable(
    store: ConnectorStore, organization_id: UUID, create: Create
):
    connector_id = await create()

    await store.update(organization_id, connector_id, environment={"subdomain": "renamed"})

    secret = await store.secret(organization_id, connector_id)
    assert (secret.values, secret.environment) == (CREDENTIALS, {"subdomain": "renamed"})


async def test_credentials_stay_readable_where_variables_are_changed_twice_at_the_same_moment(
    database: Database, store: ConnectorStore, organization_id: UUID, create: Create
):
    connector_id = await create()
    async with database.tenant(organization_id) as connection, connection.transaction():
        await store.update_within(connection, organization_id, connector_id, {"environment": {"subdomain": "first"}})
        later = asyncio.create_task(store.update(organization_id, connector_id, environment={"subdomain": "second"}))
        await eventually(lambda: waits_for_lock(database))
    await later

    secret = await store.secret(organization_id, connector_id)
    assert (secret.values, secret.environment) == (CREDENTIALS, {"subdomain": "second"})


async def test_many_connectors_are_opened_by_one_statement_each_for_its_own_organization_alone(
    store: ConnectorStore, organization_id: UUID, stranger_id: UUID, create: Create
):
    ids = [await create() for _ in range(3)]

    mine = await asyncio.gather(*(store.open(organization_id, each) for each in ids))
    theirs = await asyncio.gather(
        *(store.open(stranger_id, each) for each in ids),
        *(store.open(organization_id, each) for each in ids),
        return_exceptions=True,
    )

    assert [record.id for record, _ in mine] == ids
    assert [(await store.unsealed(*each)).values for each in mine] == [CREDENTIALS] * 3
    assert [isinstance(each, NotFound) for each in theirs] == [True] * 3 + [False] * 3
