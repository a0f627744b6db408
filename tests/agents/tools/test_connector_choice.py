"""The choice of a call's connector."""

from dataclasses import replace

import pytest

from gateway.agents.tools.backend import ConnectorInfo
from gateway.agents.tools.connector_choice import NotConnected, choose
from gateway.errors import InvalidParams
from tests.harness.catalog import shipped_catalog

KIND = shipped_catalog().kind("Zendesk")
DESK = ConnectorInfo(id="1", name="Acme desk", kind="support-desk", workspace_name="acme")
OTHER = ConnectorInfo(id="2", name="Other desk", kind="support-desk", workspace_name="other")
STALE = ConnectorInfo(id="3", name="Old desk", kind="support-desk", status="needs_reauth", workspace_name="acme")
OWN = ConnectorInfo(id="5", name="Own desk", kind="support-desk", workspace_name="acme", is_personal=True)
EXPIRED = replace(OWN, status="needs_reauth")
CHAT = ConnectorInfo(id="4", name="Chat", kind="team-chat")


@pytest.mark.parametrize(
    ("connectors", "wanted", "expected"),
    [
        ([DESK, CHAT], None, DESK),
        ([DESK, STALE], None, DESK),
        ([DESK, OTHER], "2", OTHER),
        ([DESK, OTHER], "Acme desk", DESK),
        ([DESK, OTHER, OWN], None, OWN),
        ([DESK, OWN], "Acme desk", DESK),
        ([DESK, EXPIRED], None, DESK),
    ],
)
def test_the_named_connector_or_the_only_active_one_is_chosen(connectors, wanted, expected):
    assert choose(connectors, KIND, wanted) is expected


def test_several_active_connectors_are_an_error_that_lists_them():
    with pytest.raises(InvalidParams, match=r"Acme desk \(1, workspace acme\), Other desk \(2, workspace other\)"):
        choose([DESK, OTHER], KIND, None)


def test_the_error_for_an_unknown_name_has_the_nearest():
    with pytest.raises(InvalidParams, match="Acme desk"):
        choose([DESK], KIND, "acme dsk")


@pytest.mark.parametrize(
    ("connectors", "wanted", "connector"), [([CHAT], None, None), ([STALE], None, STALE), ([DESK, STALE], "3", STALE)]
)
def test_without_an_active_connector_a_person_has_to_connect_one(connectors, wanted, connector):
    with pytest.raises(NotConnected) as refusal:
        choose(connectors, KIND, wanted)

    assert refusal.value.connector is connector


def test_the_error_for_a_missing_connector_names_the_application():
    with pytest.raises(NotConnected, match=r"Zendesk \(support-desk\) is not connected"):
        choose([], KIND, None)
