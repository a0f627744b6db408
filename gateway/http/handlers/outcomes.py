"""What calls come to: the envelope around an answer, and what the audit log is to say of them."""

from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from gateway.connectors.responses import OperationResult
from gateway.execution import OperationCall
from gateway.http.keys import AUDIT, REQUEST_ID


def envelope(
    request: web.Request,
    connector_id: str,
    answer: OperationResult,
    took_ms: int,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """The answer of an inline call; the records' bytes are spliced in as the application sent them."""
    members = {"status": "success", "result": answer.result, **metadata(request, connector_id, answer, took_ms)}
    return web.Response(body=msgspec.json.encode(members), content_type="application/json", headers=headers)


def metadata(request: web.Request, connector_id: str, answer: OperationResult, took_ms: int) -> dict[str, Any]:
    """What stands beside the result: how a page goes on, what the application says of it, and what the call took."""
    return {
        **({"next": answer.next} if answer.is_page else {}),
        "connector_metadata": answer.meta,
        "execution_metadata": {
            "connector_instance_id": connector_id,
            "execution_time_ms": took_ms,
            "request_id": request[REQUEST_ID],
        },
    }


def is_sdk(request: web.Request) -> bool:
    """A caller that cannot follow a job: it gets a chain of redirects to the result instead."""
    return "X-ADP-Agent-SDK" in request.headers


def audit_call(request: web.Request, call: OperationCall) -> None:
    """The call is what the audit log tells of, without its params."""
    pending = request[AUDIT]
    pending.what, pending.intent = f"{call.entity}.{call.action}", call.intent
