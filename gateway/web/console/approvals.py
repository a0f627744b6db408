"""Approvals in the console: what waits, and a page on which a person decides. It works without scripts."""

import json

import msgspec
from aiohttp import web

from gateway.contract.approvals import ApprovalStatus
from gateway.errors import InvalidParams
from gateway.web.bodies import path_id
from gateway.web.console.page import connectors_by_id, console_page, see_other
from gateway.web.console.session import read_console_form
from gateway.web.keys import CALLER, SERVICES

_PAGE, _LIMIT = "/console/approvals", 25
_WORDS = {"approve": ApprovalStatus.APPROVED, "deny": ApprovalStatus.DENIED}


async def list_approvals(request: web.Request) -> web.Response:
    """GET /console/approvals: those that wait, or all with `all`."""
    status = None if "all" in request.query else ApprovalStatus.PENDING
    page = await request.app[SERVICES].operations.approvals.find(
        request[CALLER], status=status, cursor=request.query.get("cursor"), limit=_LIMIT
    )
    return console_page(
        request,
        "approvals.html",
        active="approvals",
        approvals=page.data,
        connectors=await connectors_by_id(request, (each.connector_id for each in page.data if each.connector_id)),
        cursor=page.next_cursor,
        shows_all=status is None,
    )


async def show_approval(request: web.Request) -> web.Response:
    """GET /console/approvals/{approval_id}."""
    approvals = request.app[SERVICES].operations.approvals
    approval = await approvals.get(request[CALLER], path_id(request, "approval_id"))
    connectors = await connectors_by_id(request, [approval.connector_id] if approval.connector_id else [])
    return console_page(
        request,
        "approval.html",
        active="approvals",
        approval=approval,
        connector=connectors.get(approval.connector_id or ""),
        requests=[(each, _shown(each.body)) for each in approval.requests],
        changes=[(each, _shown(each.old), _shown(each.new)) for each in approval.changes],
        is_own=str(request[CALLER].client_id) in _ids(approval.requested_by),
    )


async def decide_approval(request: web.Request) -> web.Response:
    """POST /console/approvals/{approval_id}: approve or deny what the page showed."""
    fields, approval_id = await read_console_form(request), path_id(request, "approval_id")
    word = _WORDS.get(fields.get("word", ""))
    if word is None:
        raise InvalidParams("the form has no word: approve or deny")
    await request.app[SERVICES].operations.approvals.decide(
        request[CALLER], approval_id, word, fields.get("digest", ""), fields.get("reason") or None
    )
    return see_other(f"{_PAGE}/{approval_id}")


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=False)


def _ids(requester: object) -> list[str]:
    actors = (getattr(requester, "client", None), getattr(requester, "person", None))
    return [each.id for each in actors if each is not None]
