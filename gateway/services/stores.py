"""The stores over PostgreSQL and files, and the keys that seal their secrets."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from gateway.aio.loops import every, running
from gateway.audit.log import Audit
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.store import ConnectorStore
from gateway.context_store.sync.schedule import Intervals
from gateway.db.migrate import SchemaError, require_schema
from gateway.db.notifications import RESTARTING, NotificationListener, notify
from gateway.db.pool import Database
from gateway.errors import Unavailable
from gateway.identity.store import IdentityStore
from gateway.jobs.processes import process_name
from gateway.jobs.sealing import JobSealing
from gateway.jobs.store import JobStore
from gateway.jobs.stored_files.blobs import Blobs, FolderBlobs
from gateway.jobs.stored_files.store import StoredFiles
from gateway.kinds.catalog import Catalog
from gateway.kinds.loading import serving_catalog
from gateway.request_log.log import RequestLog
from gateway.settings import Settings
from gateway.vault.vault import Vault, read_keys

log = logging.getLogger(__name__)

#: seconds between readings of PostgreSQL's time of day
_CLOCK_INTERVAL = 10.0
#: seconds between checks of the schema while PostgreSQL is unavailable
_SCHEMA_INTERVAL = 1.0


@dataclass(frozen=True)
class Stores:
    """Stores in PostgreSQL and on disk, and the keys that seal their secrets."""

    settings: Settings
    #: the name of this process, which no other has, earlier or later
    process: str
    key_list: Sequence[tuple[str, bytes]] = field(repr=False)
    vault: Vault
    sealing: JobSealing
    catalog: Catalog
    database: Database
    notifications: NotificationListener
    audit: Audit
    request_log: RequestLog
    identity: IdentityStore
    connector_store: ConnectorStore
    connectors: ConnectorAccess
    job_store: JobStore
    files: StoredFiles


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncIterator[Stores]:
    """The pool, its clock, and the stores over it."""
    key_list = read_keys(settings.encryption_keys, settings.encryption_keys_file)
    vault = Vault(key_list)
    sealing = JobSealing(vault, is_on=settings.seal_jobs)
    catalog = serving_catalog(settings.specs)
    Intervals(settings.sync_every).require_known(catalog)
    for missing in catalog.missing:
        log.error("kinds of a folder are not served: %s", missing)
    for name, refused in catalog.refused.items():
        log.error("%s is not served, its spec has %s", name, refused.summary)
    process = process_name()
    pool = Database.open(
        settings.database_url,
        # One more connection runs long statements, and one listens, unless a pooler leaves no way for it.
        size=settings.database_pool - 1 - (settings.session_url is not None),
        is_patient=True,
        has_pooler=settings.has_pooler,
    )
    async with (
        pool as database,
        _schema_required(database),
        running(every(_CLOCK_INTERVAL, database.read_clock, name="clock")),
        Audit(database, settings.data_dir / "audit").writing() as audit,
        RequestLog(database).writing() as request_log,
    ):
        identity, connector_store = IdentityStore(database), ConnectorStore(database, vault)
        await _log_unserved(connector_store, catalog)
        yield Stores(
            settings=settings,
            process=process,
            key_list=key_list,
            vault=vault,
            sealing=sealing,
            catalog=catalog,
            database=database,
            notifications=NotificationListener(settings.session_url, process),
            audit=audit,
            request_log=request_log,
            identity=identity,
            connector_store=connector_store,
            connectors=ConnectorAccess(connector_store, identity, catalog),
            job_store=JobStore(database, settings.job_retention, sealing),
            files=StoredFiles(open_blobs(settings), database, settings.max_file_bytes),
        )


@asynccontextmanager
async def _schema_required(database: Database) -> AsyncIterator[None]:
    """Raise SchemaError for a schema that this version cannot use, before the block.

    If PostgreSQL is unavailable, the process starts and the check follows; then a schema that cannot be used ends it.
    """
    try:
        await _check_schema(database)
    except Unavailable:
        async with running(_check_schema_later(database)):
            yield
    else:
        yield


async def _check_schema(database: Database) -> None:
    async with database.system() as connection:
        await require_schema(connection)


async def _check_schema_later(database: Database) -> None:
    while True:
        await asyncio.sleep(_SCHEMA_INTERVAL)
        try:
            await _check_schema(database)
        except Unavailable:
            continue
        except (SchemaError, asyncpg.PostgresError) as error:
            log.critical("the process stops: %s", error)
            os.kill(os.getpid(), signal.SIGTERM)
        return


async def _log_unserved(connectors: ConnectorStore, catalog: Catalog) -> None:
    """Log the kinds that connectors need and that are not served; skipped without PostgreSQL or its tables."""
    with contextlib.suppress(Unavailable, asyncpg.PostgresError):
        for kind, count in (await connectors.count_by_kind()).items():
            if (reason := catalog.unserved_reason(kind)) is not None:
                log.error("connectors are unserved: %s", reason, extra={"kind": kind, "connectors": count})


def watch_restarts(services: Stores, on_restart: Callable[[], None]) -> None:
    """Call `on_restart` when another process starts or stops."""
    services.notifications.subscribe({RESTARTING: lambda _: on_restart()}, None)


async def announce_restart(services: Stores) -> None:
    """Notify front ends that this process starts or stops; without PostgreSQL they get no notification."""
    with contextlib.suppress(Unavailable):
        await notify(services.database, RESTARTING, services.process)


def open_blobs(settings: Settings) -> Blobs:
    """The store of files that the settings name."""
    url = settings.files_url or str(settings.data_dir / "blobs")
    if not url.startswith("s3://"):
        return FolderBlobs(Path(url.removeprefix("file://")))
    from gateway.jobs.stored_files.bucket import BucketBlobs  # its library is needed only here

    return BucketBlobs(url)
