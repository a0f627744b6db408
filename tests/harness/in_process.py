"""A front end in the test process, on real stores and the sandbox, so that tests of handlers are fast."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch
from uuid import UUID

from aiohttp import web, web_app
from aiohttp.test_utils import TestServer
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from yarl import URL

from gateway.access.identity.model import Caller
from gateway.access.services import AccessServices
from gateway.contract.oauth import AuthorizationRequest, GrantedTokenView, NewGrant
from gateway.run.services import Services
from gateway.sandbox.app import create_sandbox
from gateway.settings import Settings
from gateway.web.admission.load_shedding import LIMITS, Limits
from gateway.web.app import create_app
from gateway.web.keys import ACCESS, SERVICES
from gateway.web.server.connection_guard import ConnectionLimits, GuardedRunner
from tests.harness.caller import Api
from tests.harness.catalog import shipped_catalog
from tests.harness.clients import EVERY_SCOPE, new_client, new_organization
from tests.harness.processes import KEYS, upstreams_at


@dataclass(frozen=True)
class FrontEnd:
    """A front end that accepts requests, and its services."""

    base_url: str
    services: Services
    access: AccessServices
    sandbox_url: str
    limits: Limits

    async def organization(self) -> UUID:
        return await new_organization(self.services.identity)

    async def client(self, organization_id: UUID | None = None, scopes: Sequence[str] = EVERY_SCOPE) -> tuple[str, str]:
        """Id and secret of a new client of this organization, or of a new one."""
        client = await new_client(self.services.identity, organization_id, scopes)
        return client.id, client.secret

    @asynccontextmanager
    async def api(self, organization_id: UUID | None = None, scopes: Sequence[str] = EVERY_SCOPE) -> AsyncIterator[Api]:
        """A caller with a token, of this organization or a new one."""
        async with Api.of(self.base_url, *await self.client(organization_id, scopes)) as api:
            yield api

    async def granted(self, caller: Caller, grant: NewGrant) -> GrantedTokenView:
        """The tokens of a host to which the caller gave this access."""
        verifier = "v" * 50
        request = AuthorizationRequest(
            host_id="host",
            host_name="A <host>",
            redirect_uri="https://host.example/",
            scopes=grant.scopes,
            challenge=create_s256_code_challenge(verifier),
            resource=f"{self.services.settings.base_url}/mcp",
        )
        landed = URL(await self.access.authorization.granted(request, caller, grant))
        form = {"grant_type": "authorization_code", "client_id": "host", "code_verifier": verifier}
        return await self.access.authorization.exchange({**form, "code": landed.query["code"]})

    async def authorization_query(self, redirect_uri: str) -> dict[str, str]:
        """The query of an authorization request of a new host."""
        host = await self.access.authorization.store.register("A host", (redirect_uri,))
        return {
            "client_id": host.id,
            "response_type": "code",
            "redirect_uri": redirect_uri,
            "code_challenge": "c" * 43,
            "code_challenge_method": "S256",
            "state": "s",
        }


@asynccontextmanager
async def front_end(
    folder: Path,
    database_url: str,
    redis_url: str,
    routes: Sequence[web.RouteDef] = (),
    connections: ConnectionLimits = ConnectionLimits(),  # noqa: B008  a frozen dataclass
    **settings: object,
) -> AsyncIterator[FrontEnd]:
    """A front end with its connection guard and additional routes; its applications are the sandbox."""
    catalog = shipped_catalog()
    async with TestServer(create_sandbox(catalog, seed=7, job_seconds=0.2)) as sandbox:
        upstream = str(sandbox.make_url("/").origin())
        with patch.dict(os.environ, upstreams_at(upstream)):
            app = create_app(_settings(folder, database_url, redis_url, {"sandbox_url": upstream, **settings}))
            app.add_routes(routes)
            runner = GuardedRunner(app, connections, shutdown_timeout=1)
            async with _running(runner, str(settings.get("bind", "127.0.0.1:0"))) as base_url:
                yield FrontEnd(base_url, app[SERVICES], app[ACCESS], upstream, app[LIMITS])


def _settings(folder: Path, database_url: str, redis_url: str, others: dict[str, object]) -> Settings:
    stores = {"database_url": database_url, "redis_url": redis_url, "data_dir": folder, "encryption_keys": KEYS}
    unasked = {"synchronize": False, "max_load": 1}  # requests of tests are not refused because the machine is busy
    return Settings(**{**unasked, **stores, **others})


@asynccontextmanager
async def _running(runner: GuardedRunner, bind: str) -> AsyncIterator[str]:
    host, _, port = bind.rpartition(":")
    await runner.setup()
    try:
        await web.TCPSite(runner, host, int(port)).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
        # aiohttp keeps the applications of the last 1,024 handlers, with catalogs and indexes: gigabytes.
        web_app._cached_build_middleware.cache_clear()  # type: ignore[attr-defined]
