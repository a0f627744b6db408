"""The services of jobs: the queue, the runner, and results."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.access.audit.log import Audit
from gateway.access.identity.standing import Standing
from gateway.access.identity.store import IdentityStore
from gateway.foundation.db.notifications import NotificationListener
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import KeyList, Vault, derived_key
from gateway.jobs.acceptance import JobAcceptance
from gateway.jobs.access import JobAccess
from gateway.jobs.file_links import FileLinks
from gateway.jobs.leases import Leases
from gateway.jobs.maintenance import Maintenance
from gateway.jobs.runner import Runner
from gateway.jobs.sealing import JobSealing
from gateway.jobs.store import JobStore
from gateway.jobs.stored_files.blobs import Blobs, FolderBlobs
from gateway.jobs.stored_files.store import StoredFiles
from gateway.jobs.waiters import JobWaiters
from gateway.jobs.wakeup import Wakeup
from gateway.settings import Settings


@dataclass(frozen=True, kw_only=True)
class JobServices:
    """The queue of jobs, the runner of this process, and the results."""

    sealing: JobSealing
    store: JobStore
    access: JobAccess
    acceptance: JobAcceptance
    waiters: JobWaiters
    wakeup: Wakeup
    runner: Runner
    maintenance: Maintenance
    files: StoredFiles
    file_links: FileLinks


@asynccontextmanager
async def open_jobs(
    settings: Settings,
    *,
    process: str,
    database: Database,
    notifications: NotificationListener,
    key_list: KeyList,
    vault: Vault,
    audit: Audit,
    identity: IdentityStore,
    standing: Standing,
) -> AsyncIterator[JobServices]:
    """Open the queue, and the runner without its heartbeats, which begin with `Runner.renewing_leases`."""
    sealing = JobSealing(vault, is_on=settings.seal_jobs)
    store = JobStore(database, settings.job_retention, sealing)
    waiters = JobWaiters(store)
    runner = Runner(Leases(database, settings.job_retention, sealing), process)
    access = JobAccess(store, waiters, identity, standing)
    notifications.subscribe({"job": waiters.on_notify}, waiters.wake_all)
    # A cancellation that the runner missed reaches it with the next heartbeat.
    notifications.subscribe({"cancel": runner.on_notify}, None)
    async with Wakeup.open(settings.redis_url) as wakeup:
        yield JobServices(
            sealing=sealing,
            store=store,
            access=access,
            acceptance=JobAcceptance(database, store, wakeup, settings.organization_jobs),
            waiters=waiters,
            wakeup=wakeup,
            runner=runner,
            maintenance=Maintenance(database, settings.job_retention, sealing),
            files=StoredFiles(open_blobs(settings), database, settings.max_file_bytes),
            file_links=FileLinks(audit, derived_key(key_list, "file links"), identity, access),
        )


def open_blobs(settings: Settings) -> Blobs:
    """The store of files that the settings name."""
    url = settings.files_url or str(settings.data_dir / "blobs")
    if not url.startswith("s3://"):
        return FolderBlobs(Path(url.removeprefix("file://")))
    from gateway.jobs.stored_files.bucket import BucketBlobs  # its library is needed only here

    return BucketBlobs(url)
