"""What happens to a connector is told in its organization's feed."""

from gateway.contract.connectors import ConnectorStatus
from gateway.events.feed import Feed
from gateway.events.model import EventFilter


async def test_a_connector_is_reported_from_its_creation_to_its_deletion(
    store, database, organization_id, create, mark_deleted
):
    connector_id = await create(workspace="acme", name="Help desk")
    await store.update(organization_id, connector_id, status=ConnectorStatus.NEEDS_REAUTH, status_reason="refused")
    await store.update(organization_id, connector_id, name="Renamed")
    await store.update(organization_id, connector_id, status=ConnectorStatus.ACTIVE)
    await mark_deleted(organization_id, connector_id)

    events = (await Feed(database).read(organization_id, EventFilter(), None, 100)).events

    assert [str(event.type) for event in events] == [
        "connector.created", "connector.needs_reauth", "connector.deleted",
    ]  # fmt: skip
    assert {event.connector_id for event in events} == {connector_id}
    assert events[0].data == {
        "connector_id": str(connector_id), "name": "Help desk", "kind": "support-desk", "workspace_name": "acme",
        "status": "active", "status_reason": None,
    }  # fmt: skip
    assert events[1].data["status_reason"] == "refused"
