"""The SDK's error classes, with messages that say how to fix the error."""

import pytest

from tests.harness.sandbox import faults
from tests.sdk.conftest import KINDS, NOT_INSTALLED

sdk = pytest.importorskip("airbyte_agent_sdk", reason=NOT_INSTALLED)
exceptions = pytest.importorskip("airbyte_agent_sdk.http.exceptions", reason=NOT_INSTALLED)


#: the kind that the SDK loads fastest: others take seconds for each connector
KIND = next(kind for kind in KINDS if kind.name == "incident-management")


@pytest.fixture
async def fault(running):
    """`await fault(status=429)`: sets a fault of the sandbox."""
    async with faults(running.sandbox_url, kind=KIND.name) as arm:
        yield arm


@pytest.fixture
async def incidents(gateway):
    """A new connector for each test, because the gateway keeps rate limits for each connector."""
    made = await gateway.connectors.create(KIND.name, KIND.credentials)
    opened = sdk.connect(KIND.slug, connector_id=made.id)
    yield opened
    await opened.close()
    await gateway.connectors.delete(made)


@pytest.mark.parametrize(
    ("operation", "params", "message"),
    [
        (("tikets", "list"), {}, "did you mean tickets"),
        (("tickets", "lists"), {}, "did you mean list"),
        (("tickets", "list"), {"sort_order": "up"}, "sort_order is 'up'; allowed: asc, desc"),
        (("tickets", "list"), {"per_pge": 2}, "did you mean per_page"),
        (("tickets", "get"), {}, "ticket_id is missing"),
        (("tickets", "context_store_search"), {"query": {"filter": {"eq": {"statis": "x"}}}}, "status"),
        (("tickets", "context_store_sql_query"), {"sql": "SELECT 1"}, "no action 'context_store_sql_query'"),
    ],
)
async def test_an_invalid_call_is_an_error_with_the_fault(executor, operation, params, message):
    with pytest.raises(exceptions.ConnectorValidationError) as raised:
        await executor("support-desk").execute(*operation, params=params)

    assert raised.value.status_code == 422
    assert message in str(raised.value)


async def test_an_unknown_record_is_a_404(typed):
    with pytest.raises(exceptions.HTTPStatusError) as raised:
        await typed(KIND.name).users.get(id="nobody")

    assert raised.value.status_code == 404


async def test_an_unknown_connector_is_a_404(executor):
    missing = executor("support-desk", connector_id="00000000-0000-0000-0000-000000000000")

    with pytest.raises(exceptions.HTTPStatusError) as raised:
        await missing.execute("tickets", "list")

    assert raised.value.status_code == 404


async def test_a_rate_limit_has_its_retry_after(incidents, fault):
    await fault(entity="severities", status=429, headers={"Retry-After": "17"}, times=1)

    with pytest.raises(exceptions.RateLimitError) as raised:
        await incidents.severities.list()

    assert raised.value.retry_after == 17


async def test_a_failing_application_is_a_status_error(incidents, fault):
    await fault(entity="severities", status=500)

    with pytest.raises(exceptions.HTTPStatusError) as raised:
        await incidents.severities.list()

    assert raised.value.status_code == 502


async def test_an_unknown_client_is_an_authentication_error(executor):
    unknown = executor("support-desk", airbyte_client_secret="wrong")

    with pytest.raises(exceptions.AuthenticationError) as raised:
        await unknown.execute("tickets", "list")

    assert raised.value.status_code == 401


async def test_the_check_of_an_unhealthy_connector_has_the_error(incidents, fault):
    await fault(entity="users", status=500)

    health = await incidents.check()

    assert health.status == "unhealthy"
    assert "502" in health.error
