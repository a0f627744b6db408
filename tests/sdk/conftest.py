"""The public SDK in its hosted mode, unmodified, against a running gateway and its sandbox."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from gateway.client import Connector, Gateway
from tests.harness.up import Running

#: why the suite is skipped
NOT_INSTALLED = "airbyte-agent-sdk is not installed; it is a development dependency"
WORKSPACE = "sdk"
OAUTH = {"access_token": "t", "refresh_token": "refresh", "client_id": "app", "client_secret": "secret"}


@dataclass(frozen=True)
class Kind:
    """The names of a kind in the gateway and in the SDK, and credentials that the sandbox accepts."""

    name: str
    slug: str
    credentials: dict[str, str]
    environment: dict[str, str] = field(default_factory=dict)


KINDS = (
    Kind("zoho-crm", "zoho-crm", OAUTH),
    Kind("google-analytics-data-api", "google-analytics-data-api", OAUTH),
    Kind("google-search-console", "google-search-console", OAUTH),
    Kind("amplitude", "amplitude", {"api_key": "t", "secret_key": "s"}),
    Kind("greenhouse", "greenhouse", OAUTH),
    Kind("confluence", "confluence", {"username": "a@example.com", "password": "t"}, {"subdomain": "acme"}),
    Kind("gmail", "gmail", {"refresh_token": "refresh", "access_token": "t"}),
    Kind("google-drive", "google-drive", {"refresh_token": "refresh", "access_token": "t"}),
    Kind("jira", "jira", {"username": "a@example.com", "password": "t"}, {"subdomain": "acme"}),
    Kind("mailchimp", "mailchimp", {"api_key": "t-us6"}, {"data_center": "us6"}),
    Kind("support-desk", "zendesk-support", {"email": "a@example.com", "api_token": "t"}, {"subdomain": "acme"}),
    Kind("zendesk-talk", "zendesk-talk", {"email": "a@example.com", "api_token": "t"}, {"subdomain": "acme"}),
    Kind("clickup-api", "clickup-api", {"api_key": "t"}),
    Kind("zendesk-chat", "zendesk-chat", {"access_token": "t"}, {"subdomain": "acme"}),
    Kind("paypal-transaction", "paypal-transaction", {"client_id": "app", "client_secret": "secret"}),
    Kind("monday", "monday", {"api_key": "t"}),
    Kind("customer-io", "customer-io", {"app_api_key": "t"}),
    Kind("crm-records", "hubspot", {"private_app_token": "t"}),
    Kind("crm-query", "salesforce", OAUTH, {"instance_url": "https://acme.my.salesforce.com"}),
    Kind("workspace-notes", "notion", {"token": "t"}),
    Kind("team-chat", "slack", {"bot_key": "t"}),
    Kind("work-management", "asana", {"token": "t"}),
    Kind("incident-management", "incident-io", {"api_key": "t"}),
    Kind("github", "github", {"token": "t"}),
    Kind("gitlab", "gitlab", {"access_token": "t"}),
    Kind("airtable", "airtable", {"personal_access_token": "t"}),
    Kind("ashby", "ashby", {"api_key": "t"}),
    Kind("linear", "linear", {"api_key": "t"}),
    Kind("shopify", "shopify", {"api_key": "t"}, {"shop": "acme"}),
    Kind("sendgrid", "sendgrid", {"api_key": "t"}),
    Kind("sentry", "sentry", {"auth_token": "t"}),
    Kind("twilio", "twilio", {"account_sid": "AC1", "auth_token": "t"}),
    Kind("chargebee", "chargebee", {"api_key": "t"}, {"site": "acme-test"}),
    Kind("woocommerce", "woocommerce", {"api_key": "t", "api_secret": "s"}, {"shop": "shop.example.com"}),
    Kind("orb", "orb", {"api_key": "t"}),
    Kind("pylon", "pylon", {"api_token": "t"}),
    Kind("facebook-marketing", "facebook-marketing", {"access_token": "t"}),
    Kind("reddit-ads", "reddit-ads", OAUTH),
    Kind("exa", "exa", {"api_key": "t"}),
    Kind("klaviyo", "klaviyo", {"api_key": "t"}),
    Kind("tiktok-marketing", "tiktok-marketing", {"access_token": "t"}, {"advertiser_id": "7001234567890123456"}),
    Kind("snapchat-marketing", "snapchat-marketing", OAUTH),
    Kind("amazon-ads", "amazon-ads", OAUTH, {"region": "https://advertising-api.amazon.com"}),
    Kind(
        "amazon-seller-partner",
        "amazon-seller-partner",
        {"lwa_app_id": "app", "lwa_client_secret": "secret", "refresh_token": "refresh", "access_token": "t"},
        {"region": "na"},
    ),
    Kind("google-ads", "google-ads", {**OAUTH, "developer_token": "d"}),
    Kind("linkedin-ads", "linkedin-ads", OAUTH),
    Kind("typeform", "typeform", {"access_token": "t"}),
    Kind("granola", "granola", {"api_key": "t"}),
    Kind("harvest", "harvest", {"token": "t", "account_id": "1"}),
    Kind("snowflake", "snowflake", {"programmatic_access_token": "t"}, {"account": "acme-main"}),
    Kind("stripe", "stripe", {"api_key": "t"}),
    Kind("intercom", "intercom", {"access_token": "t"}),
    Kind("freshdesk", "freshdesk", {"api_key": "t"}, {"subdomain": "acme"}),
    Kind("outreach", "outreach", OAUTH),
    Kind("pinterest", "pinterest", OAUTH),
    Kind("gong", "gong", {"access_key": "t", "access_key_secret": "s"}),
)
SLUGS = {kind.name: kind.slug for kind in KINDS}


@pytest.fixture(scope="session")
async def gateway(running: Running) -> AsyncIterator[Gateway]:
    """The gateway's own client, for calls that the SDK lacks."""
    async with Gateway(running.base_url, running.client_id, running.client_secret, WORKSPACE) as opened:
        yield opened


@pytest.fixture(scope="session")
async def connectors(gateway: Gateway) -> dict[str, Connector]:
    """A connector of each kind in one workspace."""
    turns = asyncio.Semaphore(8)

    async def created(kind: Kind) -> Connector:
        async with turns:
            return await gateway.connectors.create(kind.name, kind.credentials, environment=kind.environment)

    made = await asyncio.gather(*map(created, KINDS))
    return {kind.name: connector for kind, connector in zip(KINDS, made, strict=True)}


@pytest.fixture(scope="session", autouse=True)
def sdk_environment(running: Running) -> Iterator[None]:
    """The environment variables with which the SDK calls the gateway."""
    variables = {
        "SDK_DEV_ADP_API_HOST": running.base_url,
        "AIRBYTE_CLIENT_ID": running.client_id,
        "AIRBYTE_CLIENT_SECRET": running.client_secret,
        "AIRBYTE_TELEMETRY_MODE": "disabled",
        "NO_PROXY": "127.0.0.1,localhost",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.delenv("SECRETS_CONFIGURED_FROM_ENVIRONMENT", raising=False)
        yield


@pytest.fixture(scope="session")
async def typed(connectors: dict[str, Connector]) -> AsyncIterator[Any]:
    """`typed("support-desk")`: the SDK's class for a kind; opened once, because the SDK takes seconds to load it."""
    from airbyte_agent_sdk import connect

    @cache
    def open_kind(kind: str) -> Any:
        opened.append(connect(SLUGS[kind], workspace_name=WORKSPACE))
        return opened[-1]

    opened: list[Any] = []
    yield open_kind
    for connector in opened:
        await connector.close()


@pytest.fixture
async def executor(connectors: dict[str, Connector]) -> AsyncIterator[Any]:
    """`executor("support-desk")`: the SDK's executor for any kind; it is closed after the test."""
    from airbyte_agent_sdk.executor.hosted_executor import HostedExecutor

    opened = []

    def open_connector(kind: str, **members: Any) -> HostedExecutor:
        opened.append(HostedExecutor(**{"connector_id": connectors[kind].id, **_credentials(), **members}))
        return opened[-1]

    yield open_connector
    for each in opened:
        await each.close()


def _credentials() -> dict[str, str]:
    import os

    return {
        "airbyte_client_id": os.environ["AIRBYTE_CLIENT_ID"],
        "airbyte_client_secret": os.environ["AIRBYTE_CLIENT_SECRET"],
    }
