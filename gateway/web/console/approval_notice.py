"""The notice of approvals in the console: the message that a connector sends when a call begins to wait."""

import contextlib
import json
from collections.abc import Mapping, Sequence

import msgspec
from aiohttp import web

from gateway.access.identity.model import id_of
from gateway.contract.approval_notices import ApprovalNoticeView
from gateway.contract.connectors import Connector
from gateway.errors import DeniedByPolicy, FieldError, GatewayError, InvalidParams, NotFound
from gateway.operations.approvals.notice_text import PLACEHOLDERS
from gateway.operations.approvals.notices import NewNotice
from gateway.web.console.page import connectors_to_choose, console_page, see_other
from gateway.web.console.schema_form import json_value
from gateway.web.console.session import read_console_form
from gateway.web.keys import ACCESS, CALLER, SERVICES

PAGE = "/console/approvals/notice"
#: errors that are shown at the form
_REFUSED = (InvalidParams, DeniedByPolicy, NotFound)


async def show_notice(request: web.Request) -> web.Response:
    """GET /console/approvals/notice: what is sent, what became of the last message, and the form."""
    return await _shown(request)


async def put_notice(request: web.Request) -> web.Response:
    """POST /console/approvals/notice: set what is sent from now on, in the name of the caller."""
    fields = await read_console_form(request)
    try:
        await request.app[SERVICES].operations.approval_notice.put(request[CALLER], _notice_in(fields))
    except _REFUSED as error:
        return await _shown(request, problem=error, fields=fields)
    return see_other(PAGE)


async def delete_notice(request: web.Request) -> web.Response:
    """POST /console/approvals/notice/delete: send nothing from now on."""
    await read_console_form(request)
    await request.app[SERVICES].operations.approval_notice.delete(request[CALLER])
    return see_other(PAGE)


def _notice_in(fields: Mapping[str, str]) -> NewNotice:
    """The notice of the form; raises InvalidParams."""
    connector_id = id_of(fields.get("connector", ""))
    if connector_id is None:
        raise _fault("connector", "choose the connector that sends the message")
    entity, _, action = fields.get("operation", "").strip().rpartition(".")
    if not entity:
        raise _fault("operation", "write its entity and action, such as messages.create")
    try:
        params = json_value(fields.get("params", ""))
    except ValueError as error:
        raise _fault("params", f"write a JSON object: {error}") from error
    if not isinstance(params, dict):
        raise _fault("params", 'write a JSON object, such as {"text": "{{url}}"}')
    return NewNotice(connector_id=connector_id, entity=entity, action=action, params=params)


def _fault(name: str, message: str) -> InvalidParams:
    return InvalidParams(faults=[FieldError(f"/{name}", name, "invalid", f"{name}: {message}")])


def _fields_of(notice: ApprovalNoticeView) -> Mapping[str, str]:
    """The fields of a form that has this notice, as a browser would send them."""
    return {
        "connector": notice.connector_id,
        "operation": f"{notice.entity}.{notice.action}",
        "params": json.dumps(msgspec.to_builtins(notice.params), indent=2, ensure_ascii=False),
    }


async def _shown(
    request: web.Request, *, problem: GatewayError | None = None, fields: Mapping[str, str] | None = None
) -> web.Response:
    notice: ApprovalNoticeView | None = None
    with contextlib.suppress(NotFound):
        notice = await request.app[SERVICES].operations.approval_notice.get(request[CALLER])
    fields = fields if fields is not None else {} if notice is None else _fields_of(notice)
    connectors = await _shared_connectors(request, fields.get("connector", ""))
    return console_page(
        request,
        "approval_notice.html",
        active="policies",
        status=422 if problem else 200,
        notice=notice,
        connector=next((each for each in connectors if notice and each.id == notice.connector_id), None),
        names={} if notice is None else await request.app[ACCESS].clients.names(request[CALLER], [notice.set_by]),
        connectors=connectors,
        placeholders=PLACEHOLDERS,
        fields=fields,
        problem=problem,
    )


async def _shared_connectors(request: web.Request, chosen: str) -> Sequence[Connector]:
    """The connectors that may send a notice: those of no person."""
    return [each for each in await connectors_to_choose(request, id_of(chosen)) if each.owner is None]
