"""Assembles the OAuth client of a process."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import SecretStr

from gateway.access.audit.log import Audit
from gateway.access.identity.store import IdentityStore
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.consent.apps import RegisteredApps
from gateway.connectors.consent.authorizers import OAuthAuthorizers
from gateway.connectors.consent.consent_apps import ConsentApps
from gateway.connectors.consent.flows import CALLBACK_PATH, Flows
from gateway.connectors.consent.leases import LeaseStore
from gateway.connectors.consent.renewals import Renewals
from gateway.connectors.consent.store import FlowStore
from gateway.connectors.consent.token_persistence import TokenPersistence
from gateway.connectors.imports.service import Imports
from gateway.connectors.store import ConnectorStore
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault
from gateway.kinds.catalog import Catalog
from gateway.upstream.oauth_tokens.client_keys import ClientKeys
from gateway.upstream.upstreams import Upstreams


@dataclass(frozen=True, slots=True)
class OAuth:
    """Apps, consents and grants."""

    apps: RegisteredApps
    consent_apps: ConsentApps
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
    imports: Imports,
    platform: Mapping[str, tuple[str, SecretStr]],
    client_keys: ClientKeys,
    *,
    base_url: str,
    is_embedded: bool,
) -> AsyncIterator[OAuth]:
    """Open OAuth for the block. Leaving it waits for running renewals, so leave it before closing what they use."""
    apps = RegisteredApps(audit, catalog, database, vault, platform, client_keys)
    leases = LeaseStore(database)
    persistence = TokenPersistence(database, connectors, leases)
    store = FlowStore(database, vault, connectors)
    consent_apps = ConsentApps(apps, upstreams, base_url, base_url + CALLBACK_PATH)
    flows = Flows(
        audit,
        catalog,
        identity=identity,
        connectors=access,
        apps=apps,
        consent_apps=consent_apps,
        imports=imports,
        store=store,
        upstreams=upstreams,
        base_url=base_url,
        is_embedded=is_embedded,
    )
    async with Renewals(
        catalog=catalog, connectors=connectors, apps=apps, leases=leases, persistence=persistence, upstreams=upstreams
    ) as renewals:
        yield OAuth(
            apps,
            consent_apps,
            flows,
            OAuthAuthorizers(
                catalog=catalog,
                connectors=connectors,
                apps=apps,
                renewals=renewals,
                persistence=persistence,
                upstreams=upstreams,
            ),
        )
