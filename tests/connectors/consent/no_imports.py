"""For consents of kinds that are served already."""

from gateway.access.audit.log import Audit
from gateway.connectors.imports.service import ImportedKinds, Imports
from gateway.connectors.imports.store import ImportedKindStore
from gateway.foundation.db.pool import Database
from gateway.kinds.catalog import Catalog
from gateway.upstream.upstreams import Upstreams


def no_imports(database: Database, catalog: Catalog, upstreams: Upstreams) -> Imports:
    """Imports that no organization may make."""
    store = ImportedKindStore(database)
    return Imports(Audit(database), store, catalog, ImportedKinds(store, catalog, lambda: None), upstreams, frozenset())
