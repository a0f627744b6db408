"""Assembles the OAuth client of a process."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import SecretStr

from gateway.audit.log import Audit
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.store import ConnectorStore
from gateway.db.pool import Database
from gateway.identity.store import IdentityStore
from gateway.kinds.catalog import Catalog
from gateway.oauth_client.apps import RegisteredApps
from gateway.oauth_client.authorizers import OAuthAuthorizers
from gateway.oauth_client.flows import Flows
from gateway.oauth_client.leases import LeaseStore
from gateway.oauth_client.renewals import Renewals
from gateway.oauth_client.store import FlowStore
from gateway.oauth_client.token_persistence import TokenPersistence
from gateway.upstream.upstreams import Upstreams
from gateway.vault.vault import Vault


@dataclass(frozen=True, slots=True)
class OAuth:
    """Apps, consents and grants."""

    apps: RegisteredApps
    flows: Flows
    authorizers: OAuthAuthorizers


@asynccontextmanager
async def open_oauth(
    audit: Audit,
    catalog: Catalog,
    database: Database,
    vault: Vault,
    identity: IdentityStore,
    connectors: ConnectorStore,
    access: ConnectorAccess,
    upstreams: Upstreams,
    platform: Mapping[str, tuple[str, SecretStr]],
    *,
    base_url: str,
    is_embedded: bool,
) -> AsyncIterator[OAuth]:
    """Open OAuth for the block. Leaving it waits for running renewals, so leave it before closing what they use."""
    apps = RegisteredApps(audit, catalog, database, vault, platform)
    leases = LeaseStore(database)
    persistence = TokenPersistence(database, connectors, leases)
    store = FlowStore(database, vault, connectors)
    flows = Flows(
        audit,
        catalog,
        identity,
        access,
        apps,
        store,
        upstreams,
        base_url=base_url,
        is_embedded=is_embedded,
    )
    async with Renewals(catalog, connectors, apps, leases, persistence, upstreams) as renewals:
        yield OAuth(apps, flows, OAuthAuthorizers(catalog, connectors, apps, renewals, persistence, upstreams))
