"""The playground: find an operation, fill in its form, see its requests, run it, and copy the call as code."""

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from aiohttp import web

from gateway.access.identity.model import id_of
from gateway.contract.connectors import Connector
from gateway.contract.kinds import Effect
from gateway.contract.policies import Surface
from gateway.errors import (
    Conflict,
    FieldError,
    GatewayError,
    IdempotencyMismatch,
    InvalidParams,
    NotFound,
    UpstreamInvalidResponse,
)
from gateway.foundation import payloads
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Catalog
from gateway.kinds.find.entries import OperationEntry, entry_of
from gateway.kinds.find.signatures import signature_of
from gateway.operations.call import Accepted, OperationCall
from gateway.upstream.field_selection import without_result
from gateway.web.console.page import connectors_to_choose, console_page, see_other
from gateway.web.console.schema_form import fields_of, params_of, table_of
from gateway.web.console.session import read_console_form
from gateway.web.keys import AUDIT, CALLER, INDEX, REQUEST_ID, SERVICES

#: maximum operations in the list
_LIMIT = 8
#: maximum characters of a response on the page
_SHOWN = 20_000
_EXECUTE = "/api/v1/integrations/connectors/{connector_id}/execute"
_NOTHING_SHOWN = dict.fromkeys(("requests", "answer", "took_ms", "columns", "rows", "next", "incomplete", "warning"))


async def show_playground(request: web.Request) -> web.Response:
    """GET /console/playground: operations for a task in plain words, and the form of the chosen one."""
    query, services = request.query.get("query", ""), request.app[SERVICES]
    chosen_id = id_of(request.query.get("connector"))
    records = await connectors_to_choose(request, chosen_id)
    record = next((each for each in records if id_of(each.id) == chosen_id), None)
    entry = entry_of(services.catalog, request.query["operation"]) if request.query.get("operation") else None
    found = (await request.app[INDEX]()).search(query, limit=_LIMIT, connected={record.kind for record in records})
    matches = [match.entry for match in found.data or found.closest]
    return console_page(
        request,
        "playground.html",
        active="playground",
        query=query,
        matches=[_summary(each) for each in await services.operations.offers.among(request[CALLER], matches)],
        message=found.message,
        **_chosen(request, entry, records, entry.example if entry else {}, record),
        applications=_applications(services.catalog, {each.kind for each in records}),
        browsed=_browsed(services.catalog, request.query.get("kind")),
    )


def _applications(catalog: Catalog, connected: Collection[str]) -> list[dict[str, Any]]:
    """The applications to browse, connected ones first."""
    return sorted(
        (
            {"kind": kind.name, "application": kind.spec.application, "is_connected": kind.name in connected}
            for kind in catalog
        ),
        key=lambda each: (not each["is_connected"], each["application"]),
    )


def _browsed(catalog: Catalog, kind_name: str | None) -> dict[str, Any] | None:
    """The operations of an application by entity; None without an application."""
    if not kind_name:
        return None
    kind = catalog.kind(kind_name)
    entities = {name: (entity.description, kind.actions_of(name)) for name, entity in kind.spec.entities.items()}
    return {"kind": kind.name, "application": kind.spec.application, "entities": entities}


async def run_operation(request: web.Request) -> web.Response:
    """POST /console/playground: run the operation, or show the requests that it would send."""
    fields, services = await read_console_form(request), request.app[SERVICES]
    entry = entry_of(services.catalog, fields.get("operation", ""))
    record = await services.connectors.change.get(request[CALLER], _connector_id(fields))
    params: dict[str, Any] = {}
    try:
        params = params_of(entry.schema, fields)
        call = _call(request, record, entry, params, _key_in(fields, entry))
        shown = await _shown(request, entry, call, is_dry=fields.get("do") == "dry_run")
    except IdempotencyMismatch:
        used = Conflict("this form has already run another call; press Run again to run this one too")
        return await _answer(request, entry, record=record, params=params, typed=fields, shown={}, error=used)
    except GatewayError as error:
        return await _answer(request, entry, record=record, params=params, typed=fields, shown={}, error=error)
    if isinstance(shown, web.Response):
        return shown
    return await _answer(request, entry, record=record, params=params, typed=fields, shown=shown, error=None)


async def _shown(
    request: web.Request, entry: OperationEntry, call: OperationCall, *, is_dry: bool
) -> dict[str, Any] | web.Response:
    services, caller = request.app[SERVICES], request[CALLER]
    if is_dry:
        request[AUDIT].what = None
        use_case = services.operations.copy_search if call.action == SEARCH_ACTION else services.operations.execution
        return {"requests": _pretty(await use_case.dry_run(caller, call))}
    if call.action == SEARCH_ACTION:
        outcome = await services.operations.copy_search.search(caller, call)
    else:
        done = await services.operations.execution.execute(caller, call)
        if isinstance(done, Accepted):
            return see_other(f"/console/jobs/{done.job.id}")
        outcome = done
    answer = outcome.answer
    try:
        document = payloads.value(answer.result)
    except UpstreamInvalidResponse as error:
        document, answer = None, without_result(entry.effect, answer, error)
    records = document.get("data", document) if isinstance(document, dict) else document
    columns, rows = table_of(records if isinstance(records, list) else [records])
    return {
        "took_ms": outcome.took_ms,
        "columns": columns,
        "rows": rows,
        "answer": _pretty(document)[:_SHOWN],
        "next": _pretty(answer.next) if answer.next else None,
        "incomplete": answer.incomplete,
        "warning": answer.warning,
    }


async def _answer(
    request: web.Request,
    entry: OperationEntry,
    record: Connector,
    params: dict[str, Any],
    typed: Mapping[str, str],
    shown: dict[str, Any],
    error: GatewayError | None,
) -> web.Response:
    faults = error.faults if isinstance(error, InvalidParams) else ()
    offered = await connectors_to_choose(request, UUID(record.id))
    return console_page(
        request,
        "playground.html",
        active="playground",
        status=200 if error is None else 422,
        query="",
        matches=[],
        message=None,
        applications=[],
        browsed=None,
        **_chosen(
            request,
            entry,
            records=offered,
            params=params,
            record=record,
            typed=typed,
            faults=faults,
            shown=shown,
            error=error,
        ),
    )


def _chosen(
    request: web.Request,
    entry: OperationEntry | None,
    records: list[Connector],
    params: dict[str, Any],
    record: Connector | None = None,
    typed: Mapping[str, str] | None = None,
    faults: Sequence[FieldError] = (),
    shown: dict[str, Any] | None = None,
    error: GatewayError | None = None,
) -> dict[str, Any]:
    """The template's values for the chosen operation; `operation` is None before one is chosen."""
    if entry is None:
        return {"operation": None}
    matching = [each for each in records if each.kind == entry.kind.name]
    record = record if record in matching else next(iter(matching), None)
    return {
        "operation": _summary(entry),
        "connectors": matching,
        "connector": record,
        "fields": fields_of(entry.schema, params, faults, typed),
        "shown": {**_NOTHING_SHOWN, **(shown or {})},
        "error": error.detail if error else None,
        "snippets": _snippets(entry, record, params) if record else {},
    }


def _snippets(entry: OperationEntry, record: Connector, params: dict[str, Any]) -> dict[str, str]:
    """The call with curl, in Python, TypeScript and on the command line."""
    from gateway.web.openapi.samples import typescript_call  # few requests need it

    body = {"entity": entry.entity_id, "action": entry.action_id, "params": params}
    path = _EXECUTE.format(connector_id=record.id)
    data = shlex.quote(json.dumps(body, ensure_ascii=False))
    workspace, kind = json.dumps(record.workspace_name), json.dumps(entry.kind.name)
    return {
        "curl": f'curl -sS "$GATEWAY_URL{path}" -H "Authorization: Bearer $TOKEN" -d {data}',
        "Python": (
            f"async with Gateway(workspace_name={workspace}) as gateway:\n"
            f"    answer = await gateway.execute({kind}, {json.dumps(entry.entity_id)}, {json.dumps(entry.action_id)}, "
            f"{params!r})"
        ),
        "TypeScript": typescript_call("POST", _EXECUTE, body=body),
        "CLI": (
            f"GATEWAY_WORKSPACE={shlex.quote(record.workspace_name)} gateway call {entry.kind.name} {entry.entity_id} "
            f"{entry.action_id} "
            + " ".join(shlex.quote(f"{name}:={json.dumps(value)}") for name, value in params.items())
        ).rstrip(),
    }


def _key_in(fields: Mapping[str, str], entry: OperationEntry) -> str | None:
    """The idempotency key of a write: a form that is sent twice writes once."""
    key = id_of(fields.get("key"))
    return None if key is None or entry.effect is Effect.READ else str(key)


def _call(
    request: web.Request, record: Connector, entry: OperationEntry, params: dict[str, Any], key: str | None
) -> OperationCall:
    return OperationCall(
        connector_id=UUID(record.id),
        entity=entry.entity_id,
        action=entry.action_id,
        surface=Surface.CONSOLE,
        params=params,
        intent="tried in the console",
        request_id=request[REQUEST_ID],
        base_url=request.app[SERVICES].settings.base_url,
        idempotency_key=key,
    )


def _summary(entry: OperationEntry) -> dict[str, str]:
    return {
        "name": entry.name,
        "application": entry.kind.spec.application,
        "kind": entry.kind.name,
        "title": entry.title,
        "signature": signature_of(entry),
        "description": entry.description,
        "effect": entry.effect.value,
    }


def _pretty(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def _connector_id(fields: dict[str, str]) -> UUID:
    try:
        return UUID(fields.get("connector", ""))
    except ValueError as error:
        raise NotFound("choose a connector") from error
