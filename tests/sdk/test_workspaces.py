"""Looking up connectors, and the errors if there is none or more than one."""

from uuid import uuid4

import pytest

from gateway.client import Gateway
from tests.sdk.conftest import KINDS, NOT_INSTALLED, SLUGS, WORKSPACE

sdk = pytest.importorskip("airbyte_agent_sdk", reason=NOT_INSTALLED)
errors = pytest.importorskip("airbyte_agent_sdk.errors", reason=NOT_INSTALLED)
exceptions = pytest.importorskip("airbyte_agent_sdk.http.exceptions", reason=NOT_INSTALLED)

CREDENTIALS = {"bot_key": "t"}


@pytest.fixture
async def workspace():
    opened = sdk.Workspace(workspace_name=WORKSPACE)
    yield opened
    await opened._cloud_client.close()


@pytest.fixture
async def elsewhere(running):
    """The gateway's client in a new workspace."""
    name = f"w-{uuid4().hex[:8]}"
    async with Gateway(running.base_url, running.client_id, running.client_secret, name) as opened:
        yield opened


async def test_a_workspace_lists_its_connectors(workspace, connectors):
    found = await workspace.list_connectors()

    assert {each.id for each in found} == {each.id for each in connectors.values()}
    assert "Support-Desk" in {each.connector_type for each in found}


async def test_a_connector_is_found_by_its_slug(workspace, connectors):
    found = await workspace.get_connector(name=SLUGS["team-chat"])
    answer = await found.check()
    await found.close()

    assert answer.success


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_a_connector_is_checked_without_the_class_of_its_kind(executor, kind):
    assert (await executor(kind.name).check()).success


async def test_a_connector_is_deleted(elsewhere):
    made = await elsewhere.connectors.create("team-chat", CREDENTIALS)
    workspace = sdk.Workspace(workspace_name=elsewhere.settings.workspace_name)

    await workspace.delete_connector(made.id)
    left = await workspace.list_connectors()
    await workspace._cloud_client.close()

    assert left == []


async def test_an_unknown_workspace_has_no_connectors():
    with pytest.raises(errors.ConnectorNotFoundError):
        sdk.connect(SLUGS["team-chat"], workspace_name="nobody-has-made-this")


async def test_two_of_a_kind_are_ambiguous(elsewhere):
    await elsewhere.connectors.create("team-chat", CREDENTIALS)
    await elsewhere.connectors.create("team-chat", CREDENTIALS)

    with pytest.raises(errors.ConnectorAmbiguityError):
        sdk.connect(SLUGS["team-chat"], workspace_name=elsewhere.settings.workspace_name)


async def test_a_wrong_secret_is_an_authentication_error_that_can_be_read():
    with pytest.raises(exceptions.AuthenticationError) as raised:
        sdk.connect(SLUGS["team-chat"], workspace_name=WORKSPACE, client_secret="wrong")

    assert raised.value.status_code == 401
    assert "secret" in str(raised.value)
