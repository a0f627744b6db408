"""The message that tells people of approvals."""

from typing import Annotated, Any

from msgspec import Struct

from gateway.contract.jobs import JobStatus
from gateway.contract.members import Id, Time, member


class NoticeJobView(Struct, frozen=True, kw_only=True):
    """The job of a message."""

    job_id: Annotated[Id, member("The job.")]
    status: Annotated[JobStatus, member("Its state; `failed` and `unknown` say that perhaps nobody was told.")]
    message: Annotated[str | None, member("Why it failed.")]
    at: Annotated[Time | None, member("When it was accepted.")]


class ApprovalNoticeView(Struct, frozen=True, kw_only=True):
    """The message that tells people of each approval that is requested."""

    connector_id: Annotated[Id, member("The connector that sends it.")]
    workspace_name: Annotated[str, member("The connector's workspace.", "acme")]
    entity: Annotated[str, member("The operation's entity.", "messages")]
    action: Annotated[str, member("The operation's action.", "create")]
    params: Annotated[
        dict[str, Any],
        member("The params with placeholders.", {"channel": "C024BE91L", "text": "{{requested_by}} asks: {{url}}"}),
    ]
    set_by: Annotated[Id, member("The client that set it, in whose name it is sent.")]
    updated_at: Annotated[Time | None, member("When it was set.")]
    last: Annotated[NoticeJobView | None, member("The last message.")]
    skipped_at: Annotated[Time | None, member("When an approval was requested of which nothing was sent.")]
    skipped_reason: Annotated[str | None, member("Why nothing was sent.", "60 notices were sent in this hour")]
