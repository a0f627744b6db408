import pytest
from msgspec.structs import replace

from gateway import errors
from gateway.client.connectors import choose
from gateway.contract.connectors import Connector
from tests.client.stub import CONNECTOR_ID, JOB_ID


def connector(number: int, name: str, status: str = "active") -> Connector:
    return Connector(
        id=str(number),
        name=name,
        kind="support-desk",
        connector_type="Support-Desk",
        workspace_name="default",
        status=status,
    )


async def test_a_connector_is_created_from_credentials(gateway, stub):
    made = await gateway.connectors.create(
        "support-desk", {"email": "a@b.example", "api_token": "t"}, environment={"subdomain": "acme"}
    )

    assert made.id == CONNECTOR_ID
    assert stub.bodies[-1]["workspace_name"] == "default"
    assert stub.bodies[-1]["environment"] == {"subdomain": "acme"}


async def test_refused_credentials_name_the_field(gateway):
    with pytest.raises(errors.InvalidCredentials) as raised:
        await gateway.connectors.create("support-desk", {"api_token": "bad"})

    assert raised.value.faults[0].field == "api_token"


async def test_waiting_for_a_consent_returns_the_connector(gateway, stub):
    stub.flow += [{"status": "pending"}, {"status": "completed", "connector_id": CONNECTOR_ID}]

    consent = await gateway.connectors.connect("team-chat", "http://127.0.0.1/redirected")
    made = await consent.wait(every=0)

    assert consent.url == "http://app.test/consent"
    assert made.id == CONNECTOR_ID


async def test_a_refused_consent_is_an_error(gateway, stub):
    stub.flow.append({"status": "failed", "error": "access_denied", "error_description": "the user said no"})

    consent = await gateway.connectors.connect("team-chat", "http://127.0.0.1/redirected")

    with pytest.raises(errors.ReauthorizationRequired, match="failed: the user said no"):
        await consent.wait()


async def test_a_connector_is_checked_and_removed(gateway):
    health = await gateway.connectors.check("support-desk")
    job = await gateway.connectors.delete("support-desk")

    assert health.is_healthy
    assert job.id == JOB_ID


async def test_a_changed_connector_is_looked_up_again(gateway, stub):
    await gateway.connectors.update("Help", name="Desk")

    await gateway.connectors.resolve("Help")

    assert sum(path.endswith("/connectors") for _, path in stub.requests) == 2


def test_a_name_takes_precedence_over_a_kind():
    named = connector(2, "support-desk")

    assert choose("support-desk", [connector(1, "Help"), named], "acme") is named


@pytest.mark.parametrize("name", ["Zendesk", "zendesk", "ZENDESK"])
def test_a_connector_is_found_by_the_name_of_its_application(name):
    desk = Connector(
        id="1",
        name="Help",
        kind="support-desk",
        connector_type="Support-Desk",
        workspace_name="default",
        status="active",
        application="Zendesk",
    )

    assert choose(name, [desk], "acme") is desk


def test_the_active_connector_of_a_kind_is_chosen():
    active = connector(2, "New")

    assert choose("support-desk", [connector(1, "Old", "disabled"), active], "acme") is active


def test_the_callers_own_connector_comes_before_shared_ones_unless_it_is_disabled():
    shared, own = connector(1, "Shared"), replace(connector(2, "Own"), owner="p")

    assert choose("support-desk", [shared, own], "acme") is own
    assert choose("support-desk", [shared, replace(own, status="disabled")], "acme") is shared


def test_several_connectors_of_a_kind_are_a_conflict():
    with pytest.raises(errors.Conflict, match=r"2 connectors: A \(1\), B \(2\); use an id"):
        choose("support-desk", [connector(1, "A"), connector(2, "B")], "acme")


def test_a_connector_without_finished_consent_is_not_chosen():
    with pytest.raises(
        errors.NotFound, match=r"the workspace 'acme' has .* it has none\. Create one with .* GATEWAY_WORKSPACE"
    ):
        choose("support-desk", [connector(1, "A", "pending")], "acme")
