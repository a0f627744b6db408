"""The services of the synchronized copy: synchronization, search, and notices of applications."""

from dataclasses import dataclass

from gateway.access.audit.log import Audit
from gateway.connectors.services import ConnectorServices
from gateway.context_store.notices.service import InboundWebhooks
from gateway.context_store.notices.store import HookStore
from gateway.context_store.search.search import ContextStore
from gateway.context_store.sync.schedule import Intervals
from gateway.context_store.sync.service import Synchronization
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import KeyList, Vault, derived_key
from gateway.jobs.services import JobServices
from gateway.kinds.catalog import Catalog
from gateway.settings import Settings


@dataclass(frozen=True, kw_only=True)
class CopyServices:
    """The synchronized copy of the records."""

    search: ContextStore
    synchronization: Synchronization
    notices: InboundWebhooks


def copy_of(
    settings: Settings,
    *,
    catalog: Catalog,
    database: Database,
    key_list: KeyList,
    vault: Vault,
    audit: Audit,
    connectors: ConnectorServices,
    jobs: JobServices,
) -> CopyServices:
    """The services of the copy, which need no closing."""
    synchronization = Synchronization(
        audit=audit,
        database=database,
        catalog=catalog,
        connectors=connectors.store,
        resolver=connectors.resolver,
        jobs=jobs.store,
        wakeup=jobs.wakeup,
        intervals=Intervals(settings.sync_every),
        is_automatic=settings.synchronize,
    )
    return CopyServices(
        search=ContextStore(derived_key(key_list, "context store cursors")),
        synchronization=synchronization,
        notices=InboundWebhooks(
            audit=audit,
            catalog=catalog,
            store=HookStore(database, vault),
            connectors=connectors.access,
            synchronization=synchronization,
            base_url=settings.base_url,
        ),
    )
