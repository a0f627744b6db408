"""The services that run operations, at once or as jobs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gateway.access.budgets.store import BudgetStore
from gateway.access.identity.directory import Directory
from gateway.access.identity.people import People
from gateway.access.identity.sessions import SessionStore
from gateway.access.identity.store import IdentityStore
from gateway.access.services import LogServices, PolicyServices
from gateway.connectors.services import ConnectorServices
from gateway.context_store.services import CopyServices
from gateway.context_store.sync.write_through import WriteThrough
from gateway.foundation.db.notifications import WRITTEN, NotificationListener
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault
from gateway.jobs.removal import JobRemoval
from gateway.jobs.services import JobServices
from gateway.kinds.catalog import Catalog
from gateway.operations.approvals.changes import ChangeReading
from gateway.operations.approvals.gate import ApprovalGate
from gateway.operations.approvals.notice_store import NoticeStore
from gateway.operations.approvals.notices import ApprovalNotices, NoticeSettings
from gateway.operations.approvals.service import Approvals
from gateway.operations.approvals.store import ApprovalStore
from gateway.operations.batches.inputs import BatchInputs
from gateway.operations.batches.service import Batches
from gateway.operations.copy_search import CopySearch
from gateway.operations.delegation import Delegation
from gateway.operations.deletion import Deletion
from gateway.operations.execution import Execution
from gateway.operations.exports.service import Exports
from gateway.operations.job_control import JobControl
from gateway.operations.offers import Offers
from gateway.operations.organization_deletion import OrganizationDeletion
from gateway.operations.permission import Permission
from gateway.operations.policy_trials import PolicyTrials
from gateway.operations.reading import ResultReading
from gateway.operations.response_cache import WRITING, ResponseCache
from gateway.operations.runs import OperationRuns
from gateway.operations.schedules.due import DueRuns
from gateway.operations.schedules.service import ScheduleService
from gateway.operations.schedules.store import ScheduleStore
from gateway.operations.spending import Meter, Spending
from gateway.operations.uploads.service import Uploads
from gateway.operations.uploads.store import UploadStore
from gateway.settings import Settings


@dataclass(frozen=True, kw_only=True)
class OperationServices:
    """The use cases that run operations."""

    permission: Permission
    approvals: Approvals
    approval_notice: NoticeSettings
    offers: Offers
    reading: ResultReading
    policy_trials: PolicyTrials
    runs: OperationRuns
    execution: Execution
    copy_search: CopySearch
    batches: Batches
    exports: Exports
    uploads: Uploads
    deletion: Deletion
    organization_deletion: OrganizationDeletion
    delegation: Delegation
    job_control: JobControl
    schedules: ScheduleService
    due_runs: DueRuns


@asynccontextmanager
async def open_operations(
    settings: Settings,
    *,
    catalog: Catalog,
    database: Database,
    notifications: NotificationListener,
    vault: Vault,
    logs: LogServices,
    identity: IdentityStore,
    policy: PolicyServices,
    connectors: ConnectorServices,
    jobs: JobServices,
    copy: CopyServices,
) -> AsyncIterator[OperationServices]:
    """Open the use cases, and the cache of responses that they share."""
    audit, resolver, permission = logs.audit, connectors.resolver, Permission(policy.point)
    spending = Spending(Meter(policy.budget_point, policy.point))
    approvals = ApprovalStore(database, jobs.sealing, settings.job_retention)
    notice_store = NoticeStore(database, vault)
    notices = ApprovalNotices(audit, notice_store, jobs.store, jobs.wakeup, settings.base_url)
    gate = ApprovalGate(approvals, notices, settings.approval_seconds)
    cache = ResponseCache(database, settings.cache_bytes, notifications.is_current)
    notifications.subscribe(
        {"connector": cache.on_notify, WRITING: cache.on_writing, WRITTEN: cache.on_notify}, cache.invalidate_all
    )
    runs = OperationRuns(audit, resolver, permission, spending, gate, jobs.files, WriteThrough(database), cache)
    copy_search = CopySearch(audit, resolver, permission, spending, database, copy.search)
    execution = Execution(
        audit=audit,
        connectors=resolver,
        permission=permission,
        spending=spending,
        jobs=jobs.store,
        acceptance=jobs.acceptance,
        waiters=jobs.waiters,
        runner=jobs.runner,
        runs=runs,
        cache=cache,
        inline_budget=settings.inline_budget,
        idempotency_seconds=settings.idempotency_seconds,
    )
    inputs = BatchInputs(database, jobs.sealing)
    people = People(database, identity)
    directory = Directory(audit, people, identity)
    deletion = Deletion(
        audit=audit,
        database=database,
        connectors=connectors.store,
        access=connectors.access,
        identity=identity,
        directory=directory,
        jobs=jobs.store,
        job_removal=JobRemoval(database, settings.job_retention, jobs.sealing),
        files=jobs.files,
        authorizers=connectors.oauth.authorizers,
        wakeup=jobs.wakeup,
        request_log=logs.requests,
        forget=resolver.on_notify,
    )
    schedule_store = ScheduleStore(database, vault)
    try:
        yield OperationServices(
            permission=permission,
            approvals=Approvals(audit, approvals, ChangeReading(permission, resolver), jobs.wakeup, settings.base_url),
            approval_notice=NoticeSettings(audit, catalog, connectors.access, permission, notice_store),
            offers=Offers(connectors.access, permission),
            policy_trials=PolicyTrials(
                audit=audit,
                catalog=catalog,
                connectors=connectors.access,
                records=connectors.store,
                policies=policy.change,
                identity=identity,
                acceptance=jobs.acceptance,
            ),
            reading=ResultReading(resolver, permission, jobs.store, jobs.access, inputs),
            runs=runs,
            execution=execution,
            copy_search=copy_search,
            batches=Batches(
                audit=audit,
                connectors=resolver,
                permission=permission,
                spending=spending,
                gate=gate,
                runs=runs,
                jobs=jobs.store,
                inputs=inputs,
                sealing=jobs.sealing,
                acceptance=jobs.acceptance,
                idempotency_seconds=settings.idempotency_seconds,
            ),
            exports=Exports(
                audit,
                database,
                connectors=resolver,
                permission=permission,
                spending=spending,
                gate=gate,
                copy_search=copy_search,
                execution=execution,
                jobs=jobs.store,
                files=jobs.files,
            ),
            uploads=Uploads(audit, resolver, permission, spending, runs, UploadStore(database, vault)),
            deletion=deletion,
            organization_deletion=OrganizationDeletion(
                audit=audit,
                database=database,
                jobs=jobs.store,
                deletion=deletion,
                wakeup=jobs.wakeup,
                signer=logs.chain.keys[0],
            ),
            delegation=Delegation(
                audit=audit,
                database=database,
                catalog=catalog,
                identity=identity,
                people=people,
                directory=directory,
                sessions=SessionStore(database),
                budgets=BudgetStore(database),
                connectors=connectors.access,
                links=connectors.links,
                base_url=settings.base_url,
            ),
            job_control=JobControl(audit, resolver, jobs.store, jobs.acceptance),
            schedules=ScheduleService(
                audit=audit,
                catalog=catalog,
                connectors=connectors.access,
                permission=permission,
                store=schedule_store,
                jobs=jobs.store,
                acceptance=jobs.acceptance,
                wakeup=jobs.wakeup,
            ),
            due_runs=DueRuns(
                audit=audit,
                catalog=catalog,
                database=database,
                store=schedule_store,
                jobs=jobs.store,
                wakeup=jobs.wakeup,
            ),
        )
    finally:
        await cache.close()
