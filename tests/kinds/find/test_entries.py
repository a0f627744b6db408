"""Names of operations: with a kind, with an application, or without either."""

import pytest

from gateway.errors import InvalidParams, UnknownConnectorType
from gateway.kinds.find.entries import entry_of
from tests.harness.catalog import shipped_catalog

CATALOG = shipped_catalog()


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("support-desk.tickets.list", "support-desk.tickets.list"),
        ("zendesk.tickets.list", "support-desk.tickets.list"),
        ("Slack.channels.get", "team-chat.channels.get"),
        ("incident.io.incidents.list", "incident-management.incidents.list"),
        ("HubSpot.deals.search", "crm-records.deals.api_search"),
        ("macros.list", "support-desk.macros.list"),
    ],
)
def test_an_operation_is_found_by_kind_by_application_or_by_its_only_kind(name, operation):
    assert entry_of(CATALOG, name).name == operation


def test_without_a_kind_the_connected_kind_is_used():
    assert entry_of(CATALOG, "tickets.list", {"support-desk", "team-chat"}).name == "support-desk.tickets.list"


@pytest.mark.parametrize("connected", [(), {"support-desk", "crm-records"}])
def test_without_a_kind_every_kind_that_has_the_operation_is_named(connected):
    with pytest.raises(InvalidParams) as refusal:
        entry_of(CATALOG, "tickets.list", connected)

    assert "support-desk.tickets.list (Zendesk" in refusal.value.detail
    assert "crm-records.tickets.list (HubSpot" in refusal.value.detail


def test_connected_kinds_are_named_first():
    with pytest.raises(InvalidParams, match=r"name one of [\w.-]+ \(\w+, connected\), [\w.-]+ \(\w+, connected\), "):
        entry_of(CATALOG, "users.list", {"team-chat", "support-desk"})


def test_the_error_for_an_unknown_operation_has_the_nearest():
    with pytest.raises(InvalidParams, match=r"did you mean tickets\.list"):
        entry_of(CATALOG, "tickts.list")


def test_the_error_for_an_unknown_kind_has_the_nearest():
    with pytest.raises(UnknownConnectorType, match="Zendesk"):
        entry_of(CATALOG, "zendsk.tickets.list")
