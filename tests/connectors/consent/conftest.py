"""An organization with a client, OAuth over a real PostgreSQL, and a stand-in for every application."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID, uuid4

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr
from yarl import URL

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Client
from gateway.access.identity.store import IdentityStore
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.consent.flows import RedirectResult
from gateway.connectors.consent.service import OAuth, open_oauth
from gateway.connectors.model import ConnectorRecord, NewConnector
from gateway.connectors.store import ConnectorStore
from gateway.contract.oauth import SIGNED_CLIENT_DOCUMENT
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault
from gateway.kinds.catalog import Catalog
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.limits.rate_limiter import SharedRateLimiter
from gateway.upstream.oauth_tokens.client_keys import ClientKeys
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.connectors.consent.no_imports import no_imports
from tests.connectors.consent.stand_in import StandIn
from tests.harness.catalog import shipped_catalog

KEY = ("k1", bytes(range(32)))
REDIRECT = "https://app.example/redirected?tab=1"
BASE_URL = "https://gateway.example"
#: what a browser's cookie says
BROWSER = "b" * 43


@dataclass(frozen=True)
class World:
    """What tests act on."""

    oauth: OAuth
    identity: IdentityStore
    connectors: ConnectorStore
    database: Database
    catalog: Catalog
    upstreams: Upstreams
    server: StandIn
    origin: URL
    organization_id: UUID
    caller: Caller

    async def connector(
        self,
        kind: str,
        credentials: Mapping[str, str],
        *,
        environment: Mapping[str, str] | None = None,
        ends_in: float | None = 3600,
        method: str = "oauth",
        owner_id: UUID | None = None,
    ) -> ConnectorRecord:
        """A connector record whose access token ends in so many seconds."""
        workspace_id = await self.identity.workspace_named(self.organization_id, "w")
        ends = None if ends_in is None else datetime.now(UTC) + timedelta(seconds=ends_in)
        new = NewConnector(
            workspace_id=workspace_id,
            kind=kind,
            settings={"name": "c"},
            auth_method=method,
            environment=environment or {},
            credentials=credentials,
            expires_at=ends,
            owner_id=owner_id,
        )
        return await self.connectors.create(self.organization_id, new)

    async def again(self, connector_id: UUID) -> ConnectorRecord:
        return await self.connectors.get(self.organization_id, connector_id)

    async def secrets(self, connector_id: UUID) -> dict[str, str]:
        return (await self.connectors.secret(self.organization_id, connector_id)).values

    async def asked(self, consent_url: str, browser: str = BROWSER) -> str:
        """The application's page that a browser is led on to."""
        address = await self.oauth.flows.bind_browser(parse_qsl(urlsplit(consent_url).query), browser)
        assert address is not None
        return address

    async def came_back(self, consent_url: str, **changes: str) -> RedirectResult | None:
        """The user says yes, and the browser comes back."""
        query = {**self.server.consent(await self.asked(consent_url)), **changes}
        return await self.oauth.flows.finish(list(query.items()), BROWSER)

    async def sql(self, statement: str, *arguments: object) -> object:
        async with self.database.system() as connection:
            return await connection.fetchval(statement, *arguments)


Opening = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return shipped_catalog()


@pytest.fixture
async def server() -> AsyncIterator[tuple[StandIn, URL]]:
    """The stand-in, and where it listens."""
    stand_in = StandIn()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", stand_in.answer)
    async with TestServer(app) as listening:
        yield stand_in, listening.make_url("/").origin()


@asynccontextmanager
async def opened_upstreams(catalog: Catalog, origin: URL) -> AsyncIterator[Upstreams]:
    """The way out, every application of it at one address; limited as in a process whose Redis is away."""
    async with (
        SharedRateLimiter.open("redis://127.0.0.1:1/0", "alone") as limiter,
        Transport(EgressPolicy.of([origin]), limiter) as transport,
    ):
        yield Upstreams(transport, {kind.name: origin for kind in catalog})


@pytest.fixture
def opening(database: Database, catalog: Catalog, server: tuple[StandIn, URL]) -> Opening:
    """Opens a world: of the platform's app and one encryption key unless told otherwise."""
    stand_in, origin = server

    @asynccontextmanager
    async def opened(
        *, has_platform_app: bool = True, is_embedded: bool = False, vault: Vault | None = None
    ) -> AsyncIterator[World]:
        app = (stand_in.client_id, SecretStr(stand_in.client_secret))
        platform = {kind.name: app for kind in catalog} if has_platform_app else {}
        vault, identity = vault or Vault([KEY]), IdentityStore(database)
        connectors = ConnectorStore(database, vault)
        organization = await identity.create_organization(f"o-{uuid4().hex[:8]}")
        client_id = await identity.create_client("c", [organization.id], b"hash", ["read", "write"], [REDIRECT])
        client = Client(
            id=client_id,
            name="c",
            organization_ids=frozenset({organization.id}),
            scopes=frozenset({"read", "write"}),
            redirect_urls=(REDIRECT,),
        )
        async with (
            opened_upstreams(catalog, origin) as upstreams,
            open_oauth(
                Audit(database),
                catalog,
                database=database,
                vault=vault,
                client_keys=ClientKeys([b"secret"], f"{BASE_URL}{SIGNED_CLIENT_DOCUMENT}"),
                identity=identity,
                connectors=connectors,
                access=ConnectorAccess(connectors, identity, catalog),
                upstreams=upstreams,
                imports=no_imports(database, catalog, upstreams),
                platform=platform,
                base_url=BASE_URL,
                is_embedded=is_embedded,
            ) as oauth,
        ):
            yield World(
                oauth,
                identity,
                connectors,
                database,
                catalog,
                upstreams,
                stand_in,
                origin,
                organization.id,
                Caller(client, organization.id),
            )

    return opened


@pytest.fixture
async def world(opening: Opening) -> AsyncIterator[World]:
    async with opening() as opened:
        yield opened
