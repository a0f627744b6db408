"""A small server that implements the HTTP contract, with faults that tests set."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.client.contract import LATER, breaches, example
from tests.client.stub_kind import KIND

CONNECTOR_ID = "0b6f1f04-0c1f-4c7c-9c52-000000000001"
CHAT_ID = "0b6f1f04-0c1f-4c7c-9c52-000000000002"
FLOW_ID = "0b6f1f04-0c1f-4c7c-9c52-00000000000f"
JOB_ID = "0b6f1f04-0c1f-4c7c-9c52-00000000000a"
BLOB = bytes(range(256)) * 4096
TICKETS = [
    {"id": number, "subject": f"Ticket {number}", "status": "open", "priority": ("low", "high")[number % 2]}
    for number in range(1, 6)
]


def problem(status: int, code: str, detail: str, **more: Any) -> web.Response:
    headers = {"Retry-After": str(more.pop("retry_after"))} if "retry_after" in more else {}
    document = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "message": detail,
        "retryable": status in (429, 503),
        "docs": f"https://gateway.example.com/docs#{code}",
        "request_id": "r-1",
        **more,
    }
    return web.json_response(document, status=status, headers=headers, content_type="application/problem+json")


async def write(response: web.StreamResponse, body: bytes, size: int | None) -> None:
    """Write a part of a body in chunks of `size` bytes, which the client receives one by one, as through a proxy."""
    for start in range(0, len(body), size or len(body) or 1):
        await response.write(body[start : start + size] if size else body)
        for _ in range(3):  # the loop of this process also runs the client
            await asyncio.sleep(0)


@dataclass
class Stub:
    """The state of the server, and the faults that tests set; each fault is for one request."""

    tokens: int = 0
    refused_tokens: set[str] = field(default_factory=set)
    requests: list[tuple[str, str]] = field(default_factory=list)
    arrival: asyncio.Event = field(default_factory=asyncio.Event)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    #: `lose` closes the connection after the request was executed; a response is sent in place of the normal one
    faults: deque[Any] = field(default_factory=deque)
    created: dict[str, dict[str, Any]] = field(default_factory=dict)
    job_states: deque[dict[str, Any]] = field(default_factory=deque)
    #: long polls that end without a change
    quiet_polls: int = 0
    job_error: web.Response | None = None
    job_records: list[dict[str, Any]] = field(default_factory=list)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    #: number of events after which the stream is cut, once
    cut_events_after: int | None = None
    blob: bytes = BLOB
    etag: str | None = '"v1"'
    #: the error message, if there is no file
    missing_file: str | None = None
    #: bytes after which a download is cut, one number for each request
    cuts: deque[int] = field(default_factory=deque)
    ranges: list[str | None] = field(default_factory=list)
    #: bytes that the client has received: a download is cut only after the client has the bytes before the cut
    received: int = 0
    queries: list[dict[str, str]] = field(default_factory=list)
    #: ids of grants
    revoked: list[str] = field(default_factory=list)
    client_progress: asyncio.Event = field(default_factory=asyncio.Event)
    flow: deque[dict[str, Any]] = field(default_factory=deque)
    kind: dict[str, Any] = field(default_factory=lambda: deepcopy(KIND))
    #: the status of connectors
    connector_status: str = "active"
    #: members of the answers to lists
    list_members: dict[str, Any] = field(default_factory=dict)
    #: bytes of each chunk of a chunked response; None sends the body as a whole
    chunk_size: int | None = None
    #: differences between responses and the OpenAPI document
    breaches: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[TestServer]:
        """Serve the stub on a port; at the end, fails if a response differed from the OpenAPI document."""
        async with TestServer(self.application()) as server:
            yield server
        assert not self.breaches, "\n".join(self.breaches)

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._chunked, self._middleware])
        api = "/api/v1"
        connectors = f"{api}/integrations/connectors"
        app.router.add_post(f"{api}/account/applications/token", self._token)
        app.router.add_get(connectors, self._connectors)
        app.router.add_post(connectors, self._create)
        app.router.add_post(f"{connectors}/oauth/initiate", self._initiate)
        app.router.add_get(f"{connectors}/oauth/flows/{FLOW_ID}", self._flow)
        app.router.add_get(f"{connectors}/{{id}}", self._connector)
        app.router.add_patch(f"{connectors}/{{id}}", self._connector)
        app.router.add_delete(f"{connectors}/{{id}}", self._delete)
        app.router.add_post(f"{connectors}/{{id}}/check", self._check)
        app.router.add_get(f"{connectors}/{{id}}/inspect", self._inspect)
        app.router.add_post(f"{connectors}/{{id}}/execute", self._execute)
        app.router.add_get(f"{connectors}/{{id}}/download/{{entity}}", self._download)
        app.router.add_get(f"{api}/integrations/connector-types", self._types)
        app.router.add_get(f"{api}/integrations/connector-types/{{kind}}", self._type)
        app.router.add_put(f"{api}/oauth/credentials", self._set_app)
        app.router.add_get(f"{api}/workspaces", self._workspaces)
        app.router.add_get(f"{api}/audit", self._audit)
        app.router.add_get(f"{api}/requests", self._requests)
        app.router.add_get(f"{api}/grants", self._grants)
        app.router.add_delete(f"{api}/grants/{{grant_id}}", self._revoke)
        app.router.add_get(f"{api}/jobs", self._jobs)
        app.router.add_get(f"{api}/jobs/{JOB_ID}", self._job)
        app.router.add_get(f"{api}/jobs/{JOB_ID}/events", self._events)
        app.router.add_get(f"{api}/jobs/{JOB_ID}/result", self._result)
        app.router.add_post(f"{api}/jobs/{JOB_ID}/cancel", self._cancel)
        app.router.add_post(f"{api}/jobs/{JOB_ID}/retry", self._retry)
        return app

    @web.middleware
    async def _chunked(self, request: web.Request, handler: Any) -> web.StreamResponse:
        response = await handler(request)
        if self.chunk_size is None or not isinstance(response, web.Response) or not response.body:
            return response
        chunked = web.StreamResponse(status=response.status, headers=response.headers)
        await chunked.prepare(request)
        await write(chunked, bytes(response.body), self.chunk_size)
        return chunked

    @web.middleware
    async def _middleware(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append((request.method, request.path))
        self.arrival.set()
        self.headers.append(dict(request.headers))
        self.queries.append(dict(request.query))
        if not request.path.endswith("/token"):
            token = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if not token or token in self.refused_tokens:
                return self._checked(request, problem(401, "unauthorized", "the token is not valid"))
            if request.method in ("POST", "PUT") and request.can_read_body:
                self.bodies.append(await request.json())
            fault = self.faults.popleft() if self.faults else None
            if isinstance(fault, web.Response):
                return self._checked(request, fault)
            response = self._checked(request, await handler(request))
            if fault == "lose":
                request.transport.close()
                await asyncio.sleep(0)
            return response
        return self._checked(request, await handler(request))

    def _checked(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        self.breaches += breaches(request, response)
        return response

    async def _set_app(self, request: web.Request) -> web.Response:
        return web.json_response(example("App"))

    async def _workspaces(self, request: web.Request) -> web.Response:
        workspace = {**example("Workspace"), "name": "default", "connectors": 1}
        return web.json_response({"data": [workspace], "next_cursor": None})

    async def _grants(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [example("Grant")], "next_cursor": None})

    async def _revoke(self, request: web.Request) -> web.Response:
        self.revoked.append(request.match_info["grant_id"])
        return web.Response(status=204)

    async def _audit(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [example("AuditEntry")], "next_cursor": None})

    async def _requests(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [example("Request")], "next_cursor": None})

    async def _token(self, request: web.Request) -> web.Response:
        if (await request.json())["client_secret"] != "s3cret":
            return problem(401, "unauthorized", "unknown client or wrong secret")
        self.tokens += 1
        return web.json_response({**example("Token"), "access_token": f"t{self.tokens}"})

    def _view(self, connector_id: str = CONNECTOR_ID) -> dict[str, Any]:
        kind = "support-desk" if connector_id == CONNECTOR_ID else "team-chat"
        name = "Help" if connector_id == CONNECTOR_ID else "Chat"
        return {
            **example("Connector"),
            "id": connector_id,
            "name": name,
            "kind": kind,
            "connector_type": kind.title(),
            "workspace_name": "default",
            "status": self.connector_status,
            "created_at": "2026-01-01T00:00:00Z",
            LATER: 1,
        }

    async def _connectors(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [self._view(), self._view(CHAT_ID)], "next_cursor": None})

    async def _create(self, request: web.Request) -> web.Response:
        if "bad" in str(self.bodies[-1]["credentials"]):
            fault = {
                "pointer": "/credentials/api_token",
                "field": "api_token",
                "code": "refused",
                "message": "credentials.api_token was refused by the application",
            }
            return problem(422, "invalid_credentials", fault["message"], errors=[fault])
        return web.json_response(self._view(), status=201)

    async def _initiate(self, request: web.Request) -> web.Response:
        return web.json_response(
            {**example("StartedConsent"), "consent_url": "http://app.test/consent", "flow_id": FLOW_ID}
        )

    async def _flow(self, request: web.Request) -> web.Response:
        state = self.flow.popleft() if len(self.flow) > 1 else self.flow[0]
        return web.json_response({**example("Flow"), "flow_id": FLOW_ID, **state})

    async def _connector(self, request: web.Request) -> web.Response:
        if request.match_info["id"] not in (CONNECTOR_ID, CHAT_ID):
            return problem(404, "not_found", "there is no such connector")
        return web.json_response(self._view(request.match_info["id"]))

    async def _inspect(self, request: web.Request) -> web.Response:
        return web.json_response({**example("Inspection"), **self._view(request.match_info["id"])})

    async def _delete(self, request: web.Request) -> web.Response:
        return web.json_response({"job_id": JOB_ID}, status=202)

    async def _check(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "healthy"})

    async def _types(self, request: web.Request) -> web.Response:
        entities = {name: list(entity["actions"]) for name, entity in self.kind["entities"].items()}
        return web.json_response({"data": [{**self.kind, "entities": entities}], "next_cursor": None})

    async def _type(self, request: web.Request) -> web.Response:
        if request.match_info["kind"] != "support-desk":
            return problem(422, "unknown_connector_type", "there is no such connector type")
        return web.json_response(self.kind)

    async def _execute(self, request: web.Request) -> web.Response:
        body = self.bodies[-1]
        if "respond-async" in request.headers.get("Prefer", "") or body["entity"] == "ticket_bulk_updates":
            self.created.setdefault(request.headers["Idempotency-Key"], body)
            return self._accepted()
        if body.get("dry_run"):
            url = "https://acme.example/api/v2/tickets.json?per_page=2&sort_by=created_at"
            request = {"method": "GET", "url": url, "headers": {"Authorization": "***"}, "body": {"reason": "none"}}
            return self._done([request])
        match body["entity"], body["action"]:
            case "tickets", "list":
                return self._tickets(body["params"], body.get("select_fields"))
            case "tickets", "context_store_search":
                return self._search(body["params"])
            case "tickets", "create":
                key = request.headers["Idempotency-Key"]
                ticket = self.created.setdefault(key, {"id": 100 + len(self.created), **body["params"]["ticket"]})
                return self._done(ticket)
            case _:
                fault = {
                    "pointer": "/entity",
                    "field": "entity",
                    "code": "unknown",
                    "message": "support-desk has no entity 'tikets'; did you mean tickets?",
                }
                return problem(422, "unknown_entity", fault["message"], errors=[fault])

    def _tickets(self, params: dict[str, Any], select: list[str] | None) -> web.Response:
        size, page = params.get("per_page", 2), params.get("page", 1)
        whole = TICKETS[(page - 1) * size : page * size]
        some = whole if select is None else [{name: ticket[name] for name in select} for ticket in whole]
        following = {**params, "page": page + 1} if page * size < len(TICKETS) else None
        meta = {"next_page": following and "https://acme.example/tickets?page=next", "count": len(TICKETS)}
        return self._done(some, meta, **{"next": following, **self.list_members})

    def _search(self, params: dict[str, Any]) -> web.Response:
        start = int(params.get("cursor") or 0)
        some = TICKETS[start : start + min(2, params["limit"])]
        end = start + len(some)
        meta = {"has_more": end < len(TICKETS), "cursor": str(end) if end < len(TICKETS) else None, "took_ms": 1}
        following = {**params, "cursor": meta["cursor"]} if meta["has_more"] else None
        return self._done({"data": some, "meta": meta}, next=following)

    def _done(self, result: Any, meta: Any = None, **members: Any) -> web.Response:
        return web.json_response({"status": "success", "result": result, "connector_metadata": meta, **members})

    def _accepted(self) -> web.Response:
        job = self._job_view()
        return web.json_response({"status": "accepted", "result": job, "job": job}, status=202)

    def _job_view(self) -> dict[str, Any]:
        state = self.job_states[0] if self.job_states else {"status": "succeeded", "done": True}
        fresh = {"id": JOB_ID, "progress": 0, "total": None, "message": None}
        return {**example("Job"), **fresh, **state}

    async def _jobs(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [self._job_view()], "next_cursor": None})

    async def _job(self, request: web.Request) -> web.Response:
        if "If-None-Match" in request.headers and self.quiet_polls:
            self.quiet_polls -= 1
            return web.Response(status=304)
        if "If-None-Match" in request.headers and len(self.job_states) > 1:
            self.job_states.popleft()
        return web.json_response(self._job_view(), headers={"ETag": f'"{len(self.job_states)}"'})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        seen = int(request.headers.get("Last-Event-ID", "0"))
        for number, (name, data) in enumerate(self.events, start=1):
            if number <= seen:
                continue
            event = f": alive\nid: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n"
            await write(response, event.encode(), self.chunk_size)
            if number == self.cut_events_after:
                self.cut_events_after = None
                request.transport.close()
                break
        return response

    async def _result(self, request: web.Request) -> web.Response:
        if len(self.job_states) > 1:
            self.job_states.popleft()
            return self._accepted()
        if self.job_error is not None:
            return self.job_error
        if "application/x-ndjson" in request.headers["Accept"]:
            lines = "".join(json.dumps(record) + "\n" for record in self.job_records)
            return web.Response(text=lines, content_type="application/x-ndjson")
        failed = sum(record.get("success") is False for record in self.job_records)
        return self._done({"total": len(self.job_records), "failed": failed, "results": self.job_records})

    async def _cancel(self, request: web.Request) -> web.Response:
        return web.json_response({**self._job_view(), "cancel_requested": True}, status=202)

    async def _retry(self, request: web.Request) -> web.Response:
        return self._accepted()

    async def _download(self, request: web.Request) -> web.StreamResponse:
        if self.missing_file is not None:
            return problem(404, "upstream_not_found", self.missing_file)
        wanted = request.headers.get("Range")
        self.ranges.append(wanted)
        headers = {"Content-Disposition": 'attachment; filename="../report.pdf"', "Content-Type": "application/pdf"}
        if self.etag:
            headers["ETag"] = self.etag
        start = 0
        if wanted and request.headers.get("If-Range") == self.etag:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            headers["Content-Range"] = f"bytes {start}-{len(self.blob) - 1}/{len(self.blob)}"
        rest = self.blob[start:]
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        response.content_length = len(rest)
        await response.prepare(request)
        cut = self.cuts.popleft() if self.cuts and request.method == "GET" else None
        if request.method == "GET":
            await write(response, rest[:cut], self.chunk_size)
        if cut is not None:
            await self._until_received(start + cut)
            request.transport.close()
        return response

    async def wait_for_requests(self, method: str, path: str, times: int) -> None:
        """Wait until this number of these requests has arrived."""
        while self.requests.count((method, path)) < times:
            self.arrival.clear()
            await self.arrival.wait()

    def progress(self, at: int, _of: int | None) -> None:
        """A progress callback for the client."""
        self.received = at
        self.client_progress.set()

    async def _until_received(self, size: int) -> None:
        while self.received < size:
            self.client_progress.clear()
            await self.client_progress.wait()
