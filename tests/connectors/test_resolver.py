"""Connectors opened for use: remembered, never for another organization, and never older than the last notification."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from gateway.connectors.model import ConnectorRecord
from gateway.connectors.resolver import ConnectorResolver
from gateway.contract.connectors import ConnectorStatus
from gateway.errors import ConnectorNotReady, NotFound
from gateway.upstream.auth import StaticAuthorizer
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.catalog import shipped_catalog

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_record() -> ConnectorRecord:
    return ConnectorRecord(
        id=uuid4(),
        organization_id=uuid4(),
        workspace_id=uuid4(),
        workspace_name="w",
        kind="support-desk",
        name="c",
        status=ConnectorStatus.ACTIVE,
        status_reason=None,
        auth_method="api_token",
        environment={"subdomain": "acme"},
        account_id=uuid4(),
        created_at=NOW,
        updated_at=NOW,
    )


class Rows:
    """The rows as PostgreSQL would return them, and how often they were looked up."""

    def __init__(self, record: ConnectorRecord) -> None:
        self.record = record
        self.lookups = 0
        #: runs while an answer is on its way
        self.meanwhile: Callable[[], Awaitable[Any]] = lambda: asyncio.sleep(0)

    async def open(self, organization_id: UUID, connector_id: UUID) -> tuple[ConnectorRecord, None]:
        self.lookups += 1
        found = self.record
        await self.meanwhile()
        if (found.organization_id, found.id) != (organization_id, connector_id):
            raise NotFound("there is no such connector")
        return found, None


async def itself(record: ConnectorRecord) -> ConnectorRecord:
    return record


@pytest.fixture
def rows() -> Rows:
    return Rows(a_record())


@pytest.fixture
def resolver(rows: Rows) -> ConnectorResolver:
    authorizers: Any = SimpleNamespace(
        authorizer_of=lambda record, secret: StaticAuthorizer({}), ensure_token_variables=itself
    )
    store: Any = rows
    return ConnectorResolver(store, shipped_catalog(), Upstreams(Transport()), authorizers, lambda: True)


async def test_a_warm_call_sends_no_query(resolver: ConnectorResolver, rows: Rows):
    first = await resolver.get(rows.record.organization_id, rows.record.id)

    assert await resolver.get(rows.record.organization_id, rows.record.id) is first
    assert rows.lookups == 1


async def test_what_is_remembered_is_not_there_for_another_organization(resolver: ConnectorResolver, rows: Rows):
    await resolver.get(rows.record.organization_id, rows.record.id)

    with pytest.raises(NotFound):
        await resolver.get(uuid4(), rows.record.id)


async def test_a_notification_of_a_connector_resolves_it_anew_and_leaves_others_alone(
    resolver: ConnectorResolver, rows: Rows
):
    before = await resolver.get(rows.record.organization_id, rows.record.id)
    resolver.on_notify(str(uuid4()))
    assert await resolver.get(rows.record.organization_id, rows.record.id) is before

    rows.record = replace(rows.record, name="renamed")
    resolver.on_notify(str(rows.record.id))

    assert (await resolver.get(rows.record.organization_id, rows.record.id)).record.name == "renamed"


async def test_an_answer_that_was_overtaken_by_a_notification_is_not_remembered(
    resolver: ConnectorResolver, rows: Rows
):
    old = rows.record

    async def overtaken() -> None:
        rows.record = replace(old, status=ConnectorStatus.DISABLED)
        resolver.on_notify(str(old.id))

    rows.meanwhile = overtaken
    await resolver.get(old.organization_id, old.id)

    found = await resolver.get(old.organization_id, old.id)
    assert found.record.status is ConnectorStatus.DISABLED


@pytest.mark.parametrize("environment", [{"subdomain": "evil.example/"}, {"subdomain": "x@evil"}, {}])
async def test_a_row_whose_variables_are_not_what_the_kind_allows_is_not_opened(
    resolver: ConnectorResolver, rows: Rows, environment: dict[str, str]
):
    rows.record = replace(rows.record, environment=environment)

    with pytest.raises(ConnectorNotReady, match="subdomain"):
        await resolver.get(rows.record.organization_id, rows.record.id)
