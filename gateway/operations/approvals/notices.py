"""Tells people by a connector of their organization that a call waits: a message to a chat, or a mail.

The transaction that makes a call wait accepts the job of its message, whose id follows from that of the approval: a
message is sent for each approval, and not twice. The job runs as any other, but it never asks for an approval.
"""

import logging
from dataclasses import dataclass
from datetime import UTC
from uuid import UUID, uuid4, uuid5

import msgspec

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, PersonSession, Scope
from gateway.connectors.access import ConnectorAccess
from gateway.contract.approval_notices import ApprovalNoticeView, NoticeJobView
from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.contract.policies import Surface
from gateway.errors import FieldError, GatewayError, InvalidParams
from gateway.foundation.db.pool import Connection
from gateway.jobs.model import NewJob, StoredJob, approval_url
from gateway.jobs.settlements import call_id_of
from gateway.jobs.store import JobStore
from gateway.jobs.wakeup import Wakeup
from gateway.kinds.catalog import Catalog
from gateway.operations.approvals.model import Asked
from gateway.operations.approvals.notice_store import DueNotice, NoticeSetting, NoticeStore
from gateway.operations.approvals.notice_text import PLACEHOLDERS, faults_of, plain, rendered
from gateway.operations.permission import Permission
from gateway.upstream.prepared import PreparedCall, prepare

log = logging.getLogger(__name__)

#: the label of the job of a message
APPROVAL_LABEL = "approval_id"


class NewNotice(msgspec.Struct, frozen=True, kw_only=True):
    """What an administrator wants to be sent."""

    connector_id: UUID
    entity: str
    action: str
    params: dict[str, object]


@dataclass(frozen=True, slots=True)
class _Sender:
    """The client in whose name a message is sent."""

    organization_id: UUID
    client_id: UUID
    session: PersonSession | None = None


@dataclass(frozen=True, slots=True)
class ApprovalNotices:
    """Sends the message of each approval."""

    audit: Audit
    store: NoticeStore
    jobs: JobStore
    wakeup: Wakeup
    base_url: str

    async def begin_within(self, connection: Connection, asked: Asked) -> StoredJob | None:
        """Accept the job of the message within the transaction that requests the approval; None if nothing is sent."""
        job = asked.job
        try:
            due = await self.store.take_within(connection, job.organization_id, job.client_id, job.connector_id)
        except GatewayError:
            # The call waits all the same: its event and the console tell of it.
            log.exception("the notice of an approval cannot be read", extra={"approval_id": str(asked.id)})
            return None
        if due is None:
            return None
        new = self._job_of(due, asked)
        accepted = await self.jobs.accept_within(connection, new)
        await self.store.count_within(connection, due, accepted.id)
        return accepted

    def _job_of(self, due: DueNotice, asked: Asked) -> NewJob:
        values = {
            "approval_id": str(asked.id),
            "url": approval_url(self.base_url, asked.id),
            "operation": plain(_operation_of(asked.job)),
            "items": str(asked.items),
            "reason": plain(asked.reason),
            "connector": plain(due.connector or ""),
            "workspace": plain(asked.job.workspace_name or ""),
            "requested_by": plain(due.requester or ""),
            "expires_at": f"{asked.expires_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        }
        return NewJob(
            id=uuid5(asked.id, "notice"),
            organization_id=due.organization_id,
            client_id=due.client_id,
            connector_id=due.connector_id,
            workspace_name=due.workspace_name,
            kind=due.kind,
            entity=due.entity,
            action=due.action,
            params=rendered(due.params, values),
            effect=due.effect,
            surface=Surface.NOTICE,
            labels={APPROVAL_LABEL: str(asked.id)},
            is_counted=False,
        )

    async def announce(self, job: StoredJob) -> None:
        """Record the message of a committed approval, and notify workers."""
        assert job.client_id is not None
        sender = _Sender(job.organization_id, job.client_id)
        intent = f"notice of approval {job.labels[APPROVAL_LABEL]}"
        what = f"{job.entity}.{job.action}"
        with self.audit.record(what, sender, connector_id=job.connector_id, intent=intent) as entry:
            entry.kind = job.kind
            entry.accept(call_id_of(job))
        await self.wakeup.notify(job.id, job.attempt)


def _operation_of(job: StoredJob) -> str:
    return job.task if job.entity is None else f"{job.entity}.{job.action}"


@dataclass(frozen=True, slots=True)
class NoticeSettings:
    """What administrators set."""

    audit: Audit
    catalog: Catalog
    connectors: ConnectorAccess
    permission: Permission
    store: NoticeStore

    async def get(self, caller: Caller) -> ApprovalNoticeView:
        """The notice; raises NotFound."""
        _require(caller)
        return _view(await self.store.get(caller.organization_id))

    async def put(self, caller: Caller, new: NewNotice) -> ApprovalNoticeView:
        """Set what is sent from now on, in the name of the caller.

        Raises InvalidParams with all faults, NotFound for the connector, and DeniedByPolicy if the caller may not send
        it without an approval.
        """
        with self.audit.record("approval_notice.put", caller, connector_id=new.connector_id):
            _require(caller)
            caller.require(Scope.WRITE)
            record = await self.connectors.get(caller, new.connector_id)
            if record.owner_id is not None:
                message = "connector_id is a personal connector; name one that the organization shares"
                raise InvalidParams(faults=[FieldError("/connector_id", "connector_id", "personal", message)])
            call = self._checked(record.kind, new)
            await self.permission.require_call(caller, record, call, Surface.NOTICE)
            setting = NoticeSetting(
                id=uuid4(),
                organization_id=caller.organization_id,
                client_id=caller.client_id,
                connector_id=record.id,
                workspace_name=record.workspace_name,
                kind=record.kind,
                entity=call.operation.entity_id,
                action=call.operation.action_id,
                effect=call.effect,
                params=new.params,
            )
            await self.store.put(setting)
        return _view(await self.store.get(caller.organization_id))

    async def delete(self, caller: Caller) -> None:
        """Send nothing from now on; raises NotFound."""
        with self.audit.record("approval_notice.delete", caller):
            _require(caller)
            await self.store.delete(caller.organization_id)

    def _checked(self, kind_name: str, new: NewNotice) -> PreparedCall:
        """The call with examples in place of placeholders, validated as any call is."""
        operation = self.catalog.served(kind_name).operation(new.entity, new.action)
        faults = list(faults_of(new.params))
        if faults:
            raise InvalidParams(faults=faults)
        call = prepare(operation, rendered(new.params, PLACEHOLDERS))
        if call.effect is Effect.READ:
            message = f"{operation} only reads; a notice needs an operation that sends something"
            raise InvalidParams(faults=[FieldError("/action", "action", "invalid", message)])
        return call


def _require(caller: Caller) -> None:
    """Raise InsufficientScope unless the caller administers the whole organization."""
    caller.require(Scope.ADMIN)
    caller.require_whole_organization()


def _view(setting: NoticeSetting) -> ApprovalNoticeView:
    last = None
    if setting.last_job_id is not None and setting.last_status is not None:
        last = NoticeJobView(
            job_id=str(setting.last_job_id),
            status=JobStatus(setting.last_status),
            message=setting.last_message,
            at=setting.last_at,
        )
    return ApprovalNoticeView(
        connector_id=str(setting.connector_id),
        workspace_name=setting.workspace_name,
        entity=setting.entity,
        action=setting.action,
        params=dict(setting.params),
        set_by=str(setting.client_id),
        updated_at=setting.updated_at,
        last=last,
        skipped_at=setting.skipped_at,
        skipped_reason=setting.skipped_reason,
    )
