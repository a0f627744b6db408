"""Approvals: calls that wait for a person's word, for clients with the scope `approve`."""

from typing import Any, ClassVar
from uuid import UUID

from aiohttp import web
from pydantic import Field

from gateway.access.identity.model import Scope
from gateway.contract.approval_notices import ApprovalNoticeView
from gateway.contract.approvals import ApprovalPage, ApprovalStatus, ApprovalView
from gateway.contract.members import ID
from gateway.operations.approvals.notices import NewNotice
from gateway.web.bodies import Body, QueryString, path_id, read_body, read_query
from gateway.web.keys import CALLER, SERVICES
from gateway.web.route import Route

_PATH = "/api/v1/approvals"
_NOTICE = _PATH + "/notice"
_ONE = _PATH + "/{approval_id}"


class ApprovalQuery(QueryString):
    """A filter of approvals, and the page."""

    status: ApprovalStatus | None = Field(
        None, description="`pending`, `approved`, `denied`, `expired` or `superseded`"
    )
    connector_id: UUID | None = Field(None, description="only calls of this connector")
    requested_by: UUID | None = Field(None, description="only calls of this client or person")
    limit: int = Field(100, ge=1, le=1000, description="maximum approvals of a page")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


class DecideApproval(Body):
    """A person's word about exactly what the approval shows."""

    EXAMPLES: ClassVar = {"decided": {"digest": "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"}}

    digest: str = Field(max_length=100, description="`digest` of the approval that was read")
    reason: str | None = Field(None, max_length=2000, pattern=r"^[^\x00]*$", description="why")


class PutApprovalNotice(Body):
    """What is sent when a call begins to wait."""

    EXAMPLES: ClassVar = {
        "chat": {
            "connector_id": ID,
            "entity": "messages",
            "action": "create",
            "params": {"channel": "C024BE91L", "text": "{{requested_by}} asks to run {{operation}}: {{url}}"},
        }
    }

    connector_id: UUID = Field(strict=False, description="a connector that the organization shares")
    entity: str = Field(max_length=200, description="the operation's entity")
    action: str = Field(max_length=200, description="the operation's action, which does not only read")
    params: dict[str, Any] = Field(description="the operation's params; their texts may have placeholders")


async def get_approval_notice(request: web.Request) -> ApprovalNoticeView:
    """The message that is sent when a call begins to wait, and what became of the last one."""
    return await request.app[SERVICES].operations.approval_notice.get(request[CALLER])


async def put_approval_notice(request: web.Request) -> ApprovalNoticeView:
    """Sets the message that is sent by a connector when a call begins to wait: once for each approval, as a job in the
    name of the client that sets it. Placeholders in texts: `{{approval_id}}`, `{{url}}`, `{{operation}}`, `{{items}}`,
    `{{reason}}`, `{{connector}}`, `{{workspace}}`, `{{requested_by}}` and `{{expires_at}}`; no value of a request or a
    record is one. The params are checked with examples in place of placeholders. A message never asks for an approval:
    if a policy demands one, it is 403 `denied_by_policy`.
    """
    body = await read_body(request, PutApprovalNotice)
    new = NewNotice(connector_id=body.connector_id, entity=body.entity, action=body.action, params=body.params)
    return await request.app[SERVICES].operations.approval_notice.put(request[CALLER], new)


async def delete_approval_notice(request: web.Request) -> web.Response:
    """Sends no message any longer."""
    await request.app[SERVICES].operations.approval_notice.delete(request[CALLER])
    return web.Response(status=204)


async def list_approvals(request: web.Request) -> ApprovalPage:
    """The approvals of the organization, in the workspaces that the client sees, the newest first."""
    query = read_query(request, ApprovalQuery)
    return await request.app[SERVICES].operations.approvals.find(
        request[CALLER],
        status=query.status,
        connector_id=query.connector_id,
        requested_by=query.requested_by,
        cursor=query.cursor,
        limit=query.limit,
    )


async def get_approval(request: web.Request) -> ApprovalView:
    """An approval with the exact requests, their secrets as `***`, and with what they change in the records."""
    approvals = request.app[SERVICES].operations.approvals
    return await approvals.get(request[CALLER], path_id(request, "approval_id"))


async def approve_call(request: web.Request) -> ApprovalView:
    """Approves exactly what has this digest. When enough people have approved, the job goes on by itself: it compares
    requests, account and records again before the first byte is sent. The same word again changes nothing. If the
    approval has `questions`, the reason must answer them.
    """
    return await _decided(request, ApprovalStatus.APPROVED)


async def deny_call(request: web.Request) -> ApprovalView:
    """Denies the call: its job ends `canceled`, with the error `approval_denied`."""
    return await _decided(request, ApprovalStatus.DENIED)


async def _decided(request: web.Request, decision: ApprovalStatus) -> ApprovalView:
    body = await read_body(request, DecideApproval)
    approvals, approval_id = request.app[SERVICES].operations.approvals, path_id(request, "approval_id")
    return await approvals.decide(request[CALLER], approval_id, decision, body.digest, body.reason)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        _PATH,
        list_approvals,
        "List approvals",
        "Approvals",
        query=ApprovalQuery,
        response=ApprovalPage,
        scope=Scope.APPROVE,
        command="gateway approvals list",
        python='print(await gateway.approvals.list(status="pending"))',
    ),
    Route(
        "GET",
        _NOTICE,
        get_approval_notice,
        "Get the notice of approvals",
        "Approvals",
        response=ApprovalNoticeView,
        errors=(404,),
        scope=Scope.ADMIN,
        command="gateway approvals notice show",
        python="print(await gateway.approvals.notice())",
    ),
    Route(
        "PUT",
        _NOTICE,
        put_approval_notice,
        "Set the notice of approvals",
        "Approvals",
        body=PutApprovalNotice,
        response=ApprovalNoticeView,
        errors=(404, 409),
        scope=Scope.ADMIN,
        audit="approval_notice.put",
        command="gateway approvals notice set team-chat messages create channel=C024BE91L text={{url}}",
        python="""await gateway.approvals.set_notice(
    "team-chat", "messages", "create", {"channel": "C024BE91L", "text": "{{url}}"}
)""",
    ),
    Route(
        "DELETE",
        _NOTICE,
        delete_approval_notice,
        "Delete the notice of approvals",
        "Approvals",
        answers={204: "No notice is sent"},
        errors=(404,),
        scope=Scope.ADMIN,
        audit="approval_notice.delete",
        command="gateway approvals notice delete",
        python="await gateway.approvals.delete_notice()",
    ),
    Route(
        "GET",
        _ONE,
        get_approval,
        "Get an approval",
        "Approvals",
        response=ApprovalView,
        errors=(404,),
        scope=Scope.APPROVE,
    ),
    Route(
        "POST",
        _ONE + "/approve",
        approve_call,
        "Approve a call",
        "Approvals",
        body=DecideApproval,
        response=ApprovalView,
        errors=(404, 409),
        scope=Scope.APPROVE,
        audit="approval.approve",
    ),
    Route(
        "POST",
        _ONE + "/deny",
        deny_call,
        "Deny a call",
        "Approvals",
        body=DecideApproval,
        response=ApprovalView,
        errors=(404, 409),
        scope=Scope.APPROVE,
        audit="approval.deny",
    ),
)
