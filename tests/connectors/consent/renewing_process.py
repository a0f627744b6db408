"""A process of the gateway that renews: says `ready`, waits for a line, and calls `headers` many times at once.

python -m tests.connectors.consent.renewing_process DATABASE_URL ORIGIN ORGANIZATION_ID CONNECTOR_ID CALLS
"""

import asyncio
import json
import sys
from uuid import UUID

from pydantic import SecretStr
from yarl import URL

from gateway.access.audit.log import Audit
from gateway.access.identity.store import IdentityStore
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.consent.service import open_oauth
from gateway.connectors.store import ConnectorStore
from gateway.contract.oauth import SIGNED_CLIENT_DOCUMENT
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault
from gateway.kinds.loading import load_catalog
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.oauth_tokens.client_keys import ClientKeys
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.connectors.consent.no_imports import no_imports

KEY = ("k1", bytes(range(32)))


async def main(database_url: str, origin: str, organization_id: str, connector_id: str, calls: str) -> None:
    catalog, vault = load_catalog(), Vault([KEY])
    overrides = {kind.name: URL(origin) for kind in catalog}
    platform = {kind.name: ("app-1", SecretStr("app-secret-1")) for kind in catalog}
    async with Database.open(database_url, size=4) as database, Transport(EgressPolicy.of([URL(origin)])) as transport:
        identity, connectors = IdentityStore(database), ConnectorStore(database, vault)
        async with open_oauth(
            Audit(database),
            catalog,
            database=database,
            vault=vault,
            client_keys=ClientKeys([b"secret"], f"https://gateway.example{SIGNED_CLIENT_DOCUMENT}"),
            identity=identity,
            connectors=connectors,
            access=ConnectorAccess(connectors, identity, catalog),
            upstreams=(upstreams := Upstreams(transport, overrides)),
            imports=no_imports(database, catalog, upstreams),
            platform=platform,
            base_url="https://gateway.example",
            is_embedded=False,
        ) as oauth:
            record = await connectors.get(UUID(organization_id), UUID(connector_id))
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            authorizers = [oauth.authorizers.authorizer_of(record) for _ in range(int(calls))]
            headers = await asyncio.gather(*(authorizer.headers() for authorizer in authorizers))
            print(json.dumps([each["Authorization"] for each in headers]), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
