"""The search of the synchronized copy, and the audit log, in the console."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from aiohttp import web
from msgspec.structs import replace

from gateway.access.audit.log import EntryFilter
from gateway.contract.connectors import Connector
from gateway.contract.members import moment
from gateway.contract.policies import Surface
from gateway.errors import GatewayError, InvalidParams, NotFound
from gateway.foundation import payloads
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.search_operators import CONDITIONS, Operator
from gateway.operations.call import OperationCall
from gateway.web.api.audit import entry_view
from gateway.web.bodies import query_id, whole_number
from gateway.web.console.csv_files import csv_response
from gateway.web.console.page import connectors_by_id, connectors_to_choose, console_page
from gateway.web.console.schema_form import json_value, table_of
from gateway.web.keys import ACCESS, CALLER, SERVICES

_LIMIT = 50
#: maximum conditions of a search
_MAX_CONDITIONS = 6
#: maximum records of its CSV file
_MAX_RECORDS = 1000
#: maximum columns of its CSV file
_MAX_COLUMNS = 100


async def search_copy(request: web.Request) -> web.Response:
    """GET /console/search: a form for several conditions, the search as JSON, and the matching records."""
    search = await _search_of(request)
    result: dict[str, Any] = {"columns": [], "rows": [], "documents": [], "meta": None, "error": None}
    if search.call is not None and "field" in request.query:
        result = await _result(request, search.call)
    params = {} if search.call is None else dict(search.call.params)
    return console_page(
        request,
        "search.html",
        active="search",
        connectors=search.records,
        connector=search.record,
        entities=list(search.searched),
        entity=search.entity,
        names=search.searched.get(search.entity or "", []),
        operators=CONDITIONS,
        conditions=[*search.conditions, ("", "", "")][:_MAX_CONDITIONS],
        document=json.dumps({"entity": search.entity, "action": SEARCH_ACTION, "params": params}, indent=2),
        as_query=urlencode([(name, value) for name, value in request.query.items() if name != "cursor"]),
        **result,
    )


async def export_search(request: web.Request) -> web.Response:
    """GET /console/search.csv: the matching records, at most 1,000, with up to 100 members."""
    search = await _search_of(request)
    if search.call is None:
        raise InvalidParams("choose a connector and an entity to search")
    call = replace(search.call, params={**search.call.params, "limit": _MAX_RECORDS})
    done = await request.app[SERVICES].operations.copy_search.search(request[CALLER], call)
    records = payloads.value(done.answer.result)["data"]
    columns, rows = table_of(records, max_columns=_MAX_COLUMNS)
    return csv_response(f"{search.entity}.csv", columns, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """The values of the form."""

    records: list[Connector]
    record: Connector | None
    #: entity → the fields that searches can use
    searched: dict[str, list[str]]
    entity: str | None
    #: field, operator and value of each complete condition
    conditions: list[tuple[str, str, str]]
    call: OperationCall | None


async def _search_of(request: web.Request) -> _Search:
    query, chosen_id = request.query, query_id(request, "connector")
    records = await connectors_to_choose(request, chosen_id)
    if chosen_id is None:
        record = next(iter(records), None)
    else:
        record = next((each for each in records if each.id == str(chosen_id)), None)
        if record is None:
            raise NotFound("there is no such connector")
    kind = None if record is None else request.app[SERVICES].catalog.kinds.get(record.kind)
    searched = {
        name: sorted(entity.search.fields)
        for name, entity in (kind.spec.entities.items() if kind else ())
        if entity.search is not None
    }
    # Preselect the entity with the most fields: tickets rather than their attachments.
    richest = max(searched, key=lambda name: len(searched[name]), default=None)
    entity = query.get("entity") if query.get("entity") in searched else richest
    given = zip(query.getall("field", []), query.getall("operator", []), query.getall("value", []), strict=False)
    conditions = [each for each in given if each[0] and each[1] in CONDITIONS and each[2]]
    params = _params(conditions[:_MAX_CONDITIONS], query.get("cursor"))
    call = (
        OperationCall(
            connector_id=UUID(record.id),
            entity=entity,
            action=SEARCH_ACTION,
            surface=Surface.CONSOLE,
            params=params,
        )
        if record is not None and entity
        else None
    )
    return _Search(records=records, record=record, searched=searched, entity=entity, conditions=conditions, call=call)


def _params(conditions: Sequence[tuple[str, str, str]], cursor: str | None) -> dict[str, Any]:
    filters = [{operator: {field: _value(operator, value)}} for field, operator, value in conditions]
    query = {"filter": {"and": filters} if len(filters) > 1 else filters[0]} if filters else {}
    params: dict[str, Any] = {"query": query, "limit": _LIMIT}
    return {**params, "cursor": cursor} if cursor else params


def _value(operator: str, text: str) -> Any:
    """A typed value: JSON if it is valid JSON, else text; for `in` the values between commas."""
    if operator == Operator.IN:
        return [_value("eq", part.strip()) for part in text.split(",")]
    try:
        return json_value(text)
    except ValueError:
        return text


async def _result(request: web.Request, call: OperationCall) -> dict[str, Any]:
    try:
        done = await request.app[SERVICES].operations.copy_search.search(request[CALLER], call)
    except GatewayError as error:
        return {"columns": [], "rows": [], "documents": [], "meta": None, "error": error.detail}
    document = payloads.value(done.answer.result)
    columns, rows = table_of(document["data"])
    documents = [json.dumps(record, indent=2, ensure_ascii=False) for record in document["data"]]
    return {"columns": columns, "rows": rows, "documents": documents, "meta": document["meta"], "error": None}


#: filters of the audit log: members of the query
_FILTERS = ("connector", "actor", "operation", "target", "outcome", "request_id", "since", "until")
#: maximum entries of a CSV file
_MAX_EXPORTED = 10_000


async def list_audit(request: web.Request) -> web.Response:
    """GET /console/audit: the entries that match the filters, the newest first."""
    services = request.app[SERVICES]
    filters = {name: request.query.get(name, "").strip() for name in _FILTERS}
    entries = await services.logs.audit.find(
        request[CALLER].organization_id,
        _entry_filter(request, filters),
        before=whole_number(request.query.get("cursor", "")),
        limit=_LIMIT + 1,
    )
    page = entries[:_LIMIT]
    ids = [each for entry in page for each in (entry.target, entry.connector_id)]
    return console_page(
        request,
        "audit.html",
        active="audit",
        entries=[entry_view(entry, services.catalog) for entry in page],
        connectors=await connectors_to_choose(request, query_id(request, "connector")),
        named=await connectors_by_id(request, ids),
        clients=await request.app[ACCESS].clients.all(request[CALLER]),
        filters=filters,
        is_filtered=any(filters.values()),
        older=urlencode({**filters, "cursor": page[-1].id}) if len(entries) > len(page) else None,
    )


async def export_audit(request: web.Request) -> web.Response:
    """GET /console/audit.csv: the entries that match the filters, at most 10,000, the newest first."""
    services = request.app[SERVICES]
    filters = {name: request.query.get(name, "").strip() for name in _FILTERS}
    entries = await services.logs.audit.find(
        request[CALLER].organization_id, _entry_filter(request, filters), limit=_MAX_EXPORTED
    )
    views = [entry_view(entry, services.catalog) for entry in entries]
    columns = ["at", "client", "application", "what", "record", "members", "outcome", "connector", "reason", "request"]
    rows = [
        [
            moment(each.at),
            each.actor and (each.actor.name or each.actor.id),
            each.application,
            each.what,
            each.target,
            " ".join(each.changed),
            each.outcome,
            each.connector_id,
            each.intent,
            each.request_id,
        ]
        for each in views
    ]
    return csv_response("audit.csv", columns, rows)


def _entry_filter(request: web.Request, filters: Mapping[str, str]) -> EntryFilter:
    return EntryFilter(
        connector_id=query_id(request, "connector"),
        actor=query_id(request, "actor"),
        operation=filters["operation"] or None,
        target=filters["target"] or None,
        outcome=filters["outcome"] or None,
        request_id=filters["request_id"] or None,
        since=_time(filters["since"]),
        until=_time(filters["until"]),
        workspaces=request[CALLER].client.workspaces,
    )


def _time(text: str) -> datetime | None:
    """A time of a `datetime-local` field, in UTC; None for an empty one. Raises InvalidParams."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
    except ValueError as error:
        raise InvalidParams(f"{text!r} is not a time; write 2026-03-01T09:00") from error
