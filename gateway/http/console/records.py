"""Searching the copy, and the audit log, in the console."""

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from gateway.audit.log import EntryFilter
from gateway.errors import GatewayError, InvalidParams
from gateway.http.bodies import query_id
from gateway.http.console.page import connectors_to_choose, console_page
from gateway.http.console.schema_form import json_value, table_of
from gateway.http.keys import CALLER, SERVICES
from gateway.identity.model import id_of
from gateway.jobs.model import moment
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.search_operators import CONDITIONS, Operator
from gateway.operations.call import OperationCall

_LIMIT = 50


async def search_copy(request: web.Request) -> web.Response:
    """GET /console/search: build a filter, see it as JSON, and what it finds."""
    services, query = request.app[SERVICES], request.query
    records = await connectors_to_choose(request, id_of(query.get("connector")))
    record = next((each for each in records if str(each.id) == query.get("connector")), next(iter(records), None))
    searched: dict[str, list[str]] = {}
    if record is not None:
        kind = services.catalog.kind(record.kind)
        searched = {
            name: sorted(entity.search.fields)
            for name, entity in kind.spec.entities.items()
            if entity.search is not None
        }
    entity = query.get("entity") if query.get("entity") in searched else next(iter(searched), None)
    params = _params(query.get("field", ""), query.get("operator", ""), query.get("value", ""), query.get("cursor"))
    result: dict[str, Any] = {"columns": [], "rows": [], "meta": None, "error": None}
    if record is not None and entity is not None and "field" in query:
        result = await _result(request, OperationCall(record.id, entity, SEARCH_ACTION, params))
    return console_page(
        request,
        "search.html",
        active="search",
        connectors=records,
        connector=record,
        entities=list(searched),
        entity=entity,
        names=searched.get(entity or "", []),
        operators=CONDITIONS,
        condition={name: query.get(name, "") for name in ("field", "operator", "value")},
        document=json.dumps({"entity": entity, "action": SEARCH_ACTION, "params": params}, indent=2),
        **result,
    )


def _params(field: str, operator: str, value: str, cursor: str | None) -> dict[str, Any]:
    params: dict[str, Any] = {"query": {}, "limit": _LIMIT}
    if field and operator in CONDITIONS and value:
        params["query"] = {"filter": {operator: {field: _value(operator, value)}}}
    return {**params, "cursor": cursor} if cursor else params


def _value(operator: str, text: str) -> Any:
    """A value as it is typed: JSON where it is any, else text; several for `in`."""
    if operator == Operator.IN:
        return [_value("eq", part.strip()) for part in text.split(",")]
    try:
        return json_value(text)
    except ValueError:
        return text


async def _result(request: web.Request, call: OperationCall) -> dict[str, Any]:
    try:
        done = await request.app[SERVICES].copy_search.search(request[CALLER], call)
    except GatewayError as error:
        return {"columns": [], "rows": [], "meta": None, "error": error.detail}
    document = msgspec.json.decode(msgspec.json.encode(done.answer.result))
    columns, rows = table_of(document["data"])
    return {"columns": columns, "rows": rows, "meta": document["meta"], "error": None}


async def list_audit(request: web.Request) -> web.Response:
    """GET /console/audit: who did what, when, with which outcome."""
    services, query = request.app[SERVICES], request.query
    cursor = query.get("cursor", "")
    filters = {name: query.get(name, "") for name in ("connector", "actor", "since", "until")}
    entries = await services.audit.find(
        request[CALLER].organization_id,
        EntryFilter(
            connector_id=query_id(request, "connector"),
            actor=query_id(request, "actor"),
            since=_time(filters["since"]),
            until=_time(filters["until"]),
            workspaces=request[CALLER].client.workspaces,
        ),
        before=int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 19 else None,
        limit=_LIMIT + 1,
    )
    clients = await services.clients.all(request[CALLER])
    names = {client.id: client.name for client in clients}
    page = entries[:_LIMIT]
    return console_page(
        request,
        "audit.html",
        active="audit",
        entries=[
            {
                "at": moment(entry.at),
                "actor": names.get(entry.actor, entry.actor) if entry.actor else "",
                "what": entry.what,
                "outcome": entry.outcome,
                "is_good": entry.outcome in ("succeeded", "accepted"),
                "connector_id": entry.connector_id,
                "detail": {
                    "target": entry.target,
                    "intent": entry.intent,
                    "request_id": entry.request_id,
                    "took_ms": entry.took_ms,
                },
            }
            for entry in page
        ],
        connectors=await connectors_to_choose(request, query_id(request, "connector")),
        clients=clients,
        filters=filters,
        older=urlencode({**filters, "cursor": page[-1].id}) if len(entries) > len(page) else None,
    )


def _time(text: str) -> datetime | None:
    """A time as the browser's field writes it, in UTC; raises InvalidParams."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
    except ValueError as error:
        raise InvalidParams(f"{text!r} is not a time; write 2026-03-01T09:00") from error
