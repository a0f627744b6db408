"""Opens the services of a process, each bundle by the function of its package; they close in reverse order."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING
from uuid import UUID

import asyncpg

from gateway.access.identity.standing import Standing
from gateway.access.identity.store import IdentityStore
from gateway.access.services import (
    AccessServices,
    LogServices,
    PolicyServices,
    open_access,
    open_logs,
    policies_of,
)
from gateway.connectors.model import ConnectorRecord
from gateway.connectors.secret_values import require_one_vault
from gateway.connectors.services import ConnectorServices, open_connectors
from gateway.context_store.records import documents
from gateway.context_store.services import CopyServices, copy_of
from gateway.context_store.sync.schedule import Intervals
from gateway.contract.oauth import SIGNED_CLIENT_DOCUMENT
from gateway.errors import Unavailable
from gateway.events.deliverer import RecordsOfDeliveries
from gateway.events.services import EventServices, open_events
from gateway.foundation.aio.loops import every, running
from gateway.foundation.aio.remembered import Remembered
from gateway.foundation.aio.threads import share_threads
from gateway.foundation.db.notifications import RESTARTING, NotificationListener, notify
from gateway.foundation.db.pool import Database
from gateway.foundation.db.replica import Replica
from gateway.foundation.telemetry.loop_lag import LoopLag
from gateway.foundation.telemetry.metrics import LOOP_LAG
from gateway.foundation.vault.held_keys import open_keys
from gateway.foundation.vault.vault import KeyList, Vault, derived_key, read_keys
from gateway.jobs.processes import process_name
from gateway.jobs.services import JobServices, open_jobs
from gateway.kinds.catalog import Catalog
from gateway.kinds.loading import serving_catalog
from gateway.operations.services import OperationServices, open_operations
from gateway.run.moving.departure import Departure
from gateway.run.moving.files import DepartingFiles
from gateway.run.moving.service import OrganizationExport
from gateway.run.schema import schema_required
from gateway.settings import Settings
from gateway.upstream.field_selection import FieldSelection, selected_records
from gateway.upstream.oauth_tokens.client_keys import ClientKeys

if TYPE_CHECKING:
    from gateway.kinds.find.index import OperationIndex

log = logging.getLogger(__name__)

#: seconds of `shutdown_grace` that are reserved for requeueing unfinished jobs and closing the stores
CLOSING = 3.0
#: seconds between readings of PostgreSQL's time of day
_CLOCK_INTERVAL = 10.0


@dataclass(frozen=True, kw_only=True)
class Process:
    """This process: its name, which no other has, earlier or later; what others tell it; the lag of its event loop."""

    name: str
    notifications: NotificationListener
    loop_lag: LoopLag


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The keys that seal stored secrets."""

    all: KeyList = field(repr=False)
    vault: Vault


@dataclass(frozen=True, kw_only=True)
class Services:
    """What a worker uses; a front end too, because it runs calls with an Idempotency-Key as jobs."""

    settings: Settings
    catalog: Catalog
    process: Process
    database: Database
    keys: Keys
    logs: LogServices
    identity: IdentityStore
    standing: Standing
    policy: PolicyServices
    connectors: ConnectorServices
    jobs: JobServices
    events: EventServices
    copy: CopyServices
    operations: OperationServices
    organization_export: OrganizationExport


@dataclass(frozen=True, kw_only=True)
class FrontEnd:
    """What a front end uses."""

    services: Services
    access: AccessServices
    #: finds operations by words; created for the first search, because its libraries take 0.2 s to load
    index: "Remembered[OperationIndex]"


@asynccontextmanager
async def open_front_end(settings: Settings) -> AsyncIterator[FrontEnd]:
    """Open the services of a front end; raises Unavailable, KeyListError and SpecError if it cannot start."""
    async with _open(settings) as services:
        access = open_access(
            settings,
            key_list=services.keys.all,
            catalog=services.catalog,
            database=services.database,
            notifications=services.process.notifications,
            audit=services.logs.audit,
            identity=services.identity,
        )
        async with access as opened, _listening(services):
            index = Remembered(
                partial(asyncio.to_thread, _index_of, services.catalog), inf, lambda: services.catalog.version
            )
            yield FrontEnd(services=services, access=opened, index=index)


@asynccontextmanager
async def open_worker(settings: Settings) -> AsyncIterator[Services]:
    """Open the services of a worker; raises as `open_front_end` does."""
    async with _open(settings) as services, _listening(services):
        yield services


@asynccontextmanager
async def _listening(services: Services) -> AsyncIterator[None]:
    """Receive notifications and renew leases within the block; all subscriptions must be made before."""
    async with services.process.notifications.listening(), services.jobs.runner.renewing_leases():
        yield


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[Services]:
    """Open all services except those for callers of a front end."""
    share_threads()
    written_keys = read_keys(settings.encryption_keys, settings.encryption_keys_file)
    catalog = serving_catalog(settings.specs)
    require_one_vault(settings.secret_references, written_keys)
    Intervals(settings.sync_every).require_known(catalog)
    for missing in catalog.missing:
        log.error("kinds of a folder are not served: %s", missing)
    for name, refused in catalog.refused.items():
        log.error("%s is not served, its spec has %s", name, refused.summary)
    process = process_name()
    notifications = NotificationListener(settings.session_url, process)

    async def begin_copies(connector: ConnectorRecord, client_id: UUID | None) -> object:
        return await copy.synchronization.begin(connector, client_id)  # opened below, and called by requests only

    async def read_records(
        organization_id: UUID, client_id: UUID, connector_id: UUID, entity: str, ids: Sequence[str], room: int
    ) -> RecordsOfDeliveries:
        redact = await operations.reading.records_redaction(organization_id, client_id, connector_id, entity)
        if redact is None:
            return RecordsOfDeliveries({}, ())
        read = await documents(database, organization_id, client_id, connector_id, entity, ids, room)
        records = await selected_records(list(read.found.values()), FieldSelection(redact=redact))
        return RecordsOfDeliveries(dict(zip(read.found, records, strict=True)), read.later)

    async with AsyncExitStack() as stack:
        key_list, vault = await stack.enter_async_context(open_keys(written_keys, settings.encryption_keys_seconds))
        signing = [derived_key(key_list[place:], "client authentication") for place in range(len(key_list))]
        database = await stack.enter_async_context(_pool(settings))
        await stack.enter_async_context(schema_required(database))
        await stack.enter_async_context(running(every(_CLOCK_INTERVAL, database.read_clock, name="clock")))
        if settings.database_read_url is not None:
            database.replica = await stack.enter_async_context(
                Replica.open(
                    database,
                    settings.database_read_url,
                    size=settings.database_pool,
                    max_lag=settings.database_read_lag,
                    has_pooler=settings.has_pooler,
                )
            )
        logs = await stack.enter_async_context(open_logs(database, settings.data_dir / "audit", key_list, catalog))
        identity = IdentityStore(database)
        standing = Standing(identity)
        notifications.subscribe({"client": standing.on_notify}, standing.wake_all)
        policy = policies_of(catalog, database, notifications, logs.audit)
        connectors = await stack.enter_async_context(
            open_connectors(
                settings,
                process=process,
                catalog=catalog,
                database=database,
                notifications=notifications,
                vault=vault,
                client_keys=ClientKeys(signing, settings.base_url + SIGNED_CLIENT_DOCUMENT),
                logs=logs,
                identity=identity,
                begin_copies=begin_copies,
            )
        )
        await _log_unserved(connectors, catalog)
        events = await stack.enter_async_context(
            open_events(
                settings,
                process=process,
                database=database,
                notifications=notifications,
                vault=vault,
                audit=logs.audit,
                identity=identity,
                standing=standing,
                read_records=read_records,
                rights_of=policy.point.rights_of,
            )
        )
        jobs = await stack.enter_async_context(
            open_jobs(
                settings,
                process=process,
                database=database,
                notifications=notifications,
                key_list=key_list,
                vault=vault,
                audit=logs.audit,
                identity=identity,
                standing=standing,
            )
        )
        copy = copy_of(
            settings,
            catalog=catalog,
            database=database,
            key_list=key_list,
            vault=vault,
            audit=logs.audit,
            connectors=connectors,
            jobs=jobs,
        )
        operations = await stack.enter_async_context(
            open_operations(
                settings,
                catalog=catalog,
                database=database,
                notifications=notifications,
                vault=vault,
                logs=logs,
                identity=identity,
                policy=policy,
                connectors=connectors,
                jobs=jobs,
                copy=copy,
            )
        )
        loop_lag = stack.enter_context(LoopLag().watching())
        loop_lag.subscribe(LOOP_LAG.observe)
        yield Services(
            settings=settings,
            catalog=catalog,
            process=Process(name=process, notifications=notifications, loop_lag=loop_lag),
            database=database,
            keys=Keys(all=key_list, vault=vault),
            logs=logs,
            identity=identity,
            standing=standing,
            policy=policy,
            connectors=connectors,
            jobs=jobs,
            events=events,
            copy=copy,
            operations=operations,
            organization_export=OrganizationExport(
                audit=logs.audit,
                database=database,
                departure=Departure(
                    database=database,
                    vault=vault,
                    signers=logs.chain.keys,
                    files=DepartingFiles(database=database, sealing=jobs.sealing, files=jobs.files),
                ),
                jobs=jobs.store,
                files=jobs.files,
                wakeup=jobs.wakeup,
            ),
        )


def _pool(settings: Settings) -> contextlib.AbstractAsyncContextManager[Database]:
    return Database.open(
        settings.database_url,
        # One more connection runs long statements, and one listens, unless a pooler leaves no way for it.
        size=settings.database_pool - 1 - (settings.session_url is not None),
        is_patient=True,
        has_pooler=settings.has_pooler,
    )


async def _log_unserved(connectors: ConnectorServices, catalog: Catalog) -> None:
    """Log the kinds that connectors need and that are not served; skipped without PostgreSQL or its tables."""
    with contextlib.suppress(Unavailable, asyncpg.PostgresError):
        for kind, count in (await connectors.store.count_by_kind()).items():
            if (reason := catalog.unserved_reason(kind)) is not None:
                log.error("connectors are unserved: %s", reason, extra={"kind": kind, "connectors": count})


def _index_of(catalog: Catalog) -> "OperationIndex":
    from gateway.kinds.find.index import index_of  # takes seconds, in a thread

    return index_of(catalog)


def watch_restarts(services: Services, on_restart: Callable[[], None]) -> None:
    """Call `on_restart` when another process starts or stops."""
    services.process.notifications.subscribe({RESTARTING: lambda _: on_restart()}, None)


async def announce_restart(services: Services) -> None:
    """Notify front ends that this process starts or stops; without PostgreSQL they get no notification."""
    with contextlib.suppress(Unavailable):
        await notify(services.database, RESTARTING, services.process.name)
