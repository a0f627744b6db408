"""`Gateway`: the asynchronous client of the gateway's API."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from mimetypes import guess_type
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from gateway.client.approvals import ApprovalRequests
from gateway.client.apps import Apps
from gateway.client.budgets import Budgets
from gateway.client.connectors import Connectors
from gateway.client.downloads import Resource, ResourceSource, chunks
from gateway.client.hooks import Hooks
from gateway.client.issuers import TrustedIssuers
from gateway.client.jobs import Job, Jobs, accepted
from gateway.client.logs import Logs
from gateway.client.paths import segment
from gateway.client.people import PeopleAndGroups
from gateway.client.policies import Policies
from gateway.client.retries import RetryPolicy
from gateway.client.schedules import Schedules
from gateway.client.session import ApiRequest, ApiResponse, Session
from gateway.client.sessions import PersonSessions
from gateway.client.settings import ClientSettings, client_settings
from gateway.client.tools import Tool, runner
from gateway.client.uploads import send_file
from gateway.client.webhooks import Webhooks
from gateway.contract.answers import Answer
from gateway.contract.connectors import Connector
from gateway.contract.events import EventPage, EventView
from gateway.contract.kinds import OperationMatches, ToolsView
from gateway.errors import InvalidParams, NotFound, UpstreamNotFound
from gateway.foundation.aio.paging import PageWalk, records_of
from gateway.foundation.numbered_pages import Numbering, Place, are_identified, identifier, step
from gateway.foundation.saving.save import Downloaded, Progress, save
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.find.formats import from_mcp

_CONNECTORS = "/api/v1/integrations/connectors"
_TYPES = "/api/v1/integrations/connector-types"
#: actions that change nothing, so that a repeated call needs no key
_READS = frozenset({"list", "get", "api_search", "search", SEARCH_ACTION, "download"})
#: records of one page of a search
_SEARCH_PAGE = 1000
#: events of one request
_EVENTS_PAGE = 200
#: seconds that the gateway waits for the first event
_EVENTS_WAIT = 25


class Gateway:
    """A client for one workspace of a gateway. A `connector` is an id, a name, or a kind with a single connector.

    Settings that are not given come from `GATEWAY_URL`, `GATEWAY_CLIENT_ID`, `GATEWAY_CLIENT_SECRET`,
    `GATEWAY_WORKSPACE` and `GATEWAY_ORGANIZATION_ID`, or from a profile of `gateway login`. With `token`, such as that
    of a session for a person, no client and no profile is needed. Every method raises the errors of `gateway.errors`.
    """

    def __init__(
        self,
        base_url: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        workspace_name: str | None = None,
        organization_id: str | None = None,
        *,
        profile: str | None = None,
        token: str | None = None,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        settings = client_settings(
            base_url, client_id, client_secret, workspace_name, organization_id, profile=profile, token=token
        )
        self.settings: ClientSettings = settings
        self._session = Session(settings, retry_policy or RetryPolicy())
        self._types: dict[str, dict[str, Any]] = {}
        self.connectors = Connectors(self._session)
        self.jobs = Jobs(self._session)
        self.schedules = Schedules(self._session, self.connectors)
        self.apps = Apps(self._session)
        self.logs = Logs(self._session)
        self.webhooks = Webhooks(self._session)
        self.policies = Policies(self._session)
        self.approvals = ApprovalRequests(self._session, self.connectors)
        self.budgets = Budgets(self._session)
        self.people = PeopleAndGroups(self._session)
        self.sessions = PersonSessions(self._session)
        self.issuers = TrustedIssuers(self._session)
        self.hooks = Hooks(self._session, self.connectors)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def delete_organization(self, confirm: str) -> Job:
        """Delete the organization, whose name `confirm` is, with all its data; the job's result is a certificate."""
        call = ApiRequest(method="DELETE", path="/api/v1/organization", query={"confirm": confirm})
        return accepted(self._session, await self._session.fetch(call))

    async def export_organization(self, recipient_key: str, *, without_files: bool = False) -> Job:
        """Export the organization for the gateway whose `gateway keys recipient` is `recipient_key`.

        Save the sealed file with `download` of the job. Writes are refused from the export on. With `without_files`,
        the stored files of jobs are left out.
        """
        body = {"recipient_key": recipient_key, "without_files": without_files}
        call = ApiRequest(method="POST", path="/api/v1/organization/export", body=body)
        return accepted(self._session, await self._session.fetch(call))

    async def execute(
        self,
        connector: str | Connector,
        entity: str,
        action: str,
        params: Mapping[str, Any] | None = None,
        *,
        select: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        intent: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Run one operation until it finishes, however long it takes. Retries never send a write twice."""
        started = await self.begin(
            connector,
            entity,
            action,
            params,
            select=select,
            exclude=exclude,
            intent=intent,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
        return await started.result() if isinstance(started, Job) else started

    async def begin(
        self,
        connector: str | Connector,
        entity: str,
        action: str,
        params: Mapping[str, Any] | None = None,
        *,
        select: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        intent: str | None = None,
        dry_run: bool = False,
        wait: int | None = None,
        idempotency_key: str | None = None,
    ) -> Answer | Job:
        """Run one operation. Returns its answer, or its job if it takes longer than `wait` seconds (at most 300).

        Without `wait` the gateway decides how long it waits.
        """
        if action == "download":
            raise InvalidParams(f"the result of {entity}.download is a file; read it with `download` or `chunks`")
        body = _body(entity, action, params, select_fields=select, exclude_fields=exclude, intent=intent)
        if dry_run:
            return (await self._execute(connector, {**body, "dry_run": True}, {}, is_read=True)).into(Answer)
        is_read = action in _READS
        headers = {} if is_read else _key(idempotency_key)
        if wait is not None:
            headers["Prefer"] = f"wait={wait}"
        reply = await self._execute(connector, body, headers, is_read=is_read, wait=wait or 0)
        return accepted(self._session, reply) if reply.status == 202 else reply.into(Answer)

    async def submit(
        self,
        connector: str | Connector,
        entity: str,
        action: str,
        params: Mapping[str, Any] | None = None,
        *,
        select: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        intent: str | None = None,
        labels: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Run one operation on the workers; the job is stored when this returns."""
        body = _body(entity, action, params, select_fields=select, exclude_fields=exclude, intent=intent, labels=labels)
        headers = {"Prefer": "respond-async", **_key(idempotency_key)}
        return accepted(self._session, await self._execute(connector, body, headers))

    async def batch(
        self,
        connector: str | Connector,
        operations: Iterable[Mapping[str, Any]],
        *,
        concurrency: int | None = None,
        stop_on_error: bool = False,
        steps: bool = False,
        idempotency_key: str | None = None,
    ) -> Job:
        """Run many operations as one job, at most 100,000: each `{entity, action, params?, id?}`.

        The gateway first checks all operations; InvalidParams names the invalid ones. `records()` of the job yields a
        result for each: `{index, id?, status, result?, error?}`. With `steps`, at most 20 operations run in order, and
        a param may be `{"$from": "<id>.<path>"}`, a value from the result of an earlier operation.
        """
        found = await self.connectors.resolve(connector)
        options: dict[str, Any] = {"concurrency": concurrency, "stop_on_error": True if stop_on_error else None}
        given = {name: value for name, value in options.items() if value is not None}
        headers = {"Prefer": "respond-async", **_key(idempotency_key)}
        path = f"{_CONNECTORS}/{segment(found.id)}/batch"
        if steps:
            body = {"operations": list(operations), "steps": True, **given}
            reply = await self._session.fetch(ApiRequest(method="POST", path=path, body=body, headers=headers))
        else:
            lines = b"".join(msgspec.json.encode(operation) + b"\n" for operation in operations)
            reply = await self._session.fetch(
                ApiRequest(method="POST", path=path, query=given, lines=lines, headers=headers)
            )
        if reply.status == 202:
            return accepted(self._session, reply)
        # The key is that of a batch that has ended: the response is its result, and `Location` names its job.
        return await self.jobs.get(reply.headers["Location"].rsplit("/", 1)[-1])

    async def export(
        self,
        connector: str | Connector,
        entity: str,
        action: str = "list",
        params: Mapping[str, Any] | None = None,
        *,
        file: str = "ndjson",
        select: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        intent: str | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Collect all pages of a list or search into a file; `job.download` saves it.

        `file` is `ndjson`, `csv`, or `csv-bom` for Excel; `select` names the columns of a CSV file.
        """
        body = _body(
            entity,
            action,
            params,
            select_fields=select,
            exclude_fields=exclude,
            labels=labels,
            intent=intent,
            output={"file": file},
        )
        return accepted(self._session, await self._execute(connector, body, _key(idempotency_key)))

    async def pages(
        self,
        connector: str | Connector,
        entity: str,
        action: str = "list",
        params: Mapping[str, Any] | None = None,
        *,
        select: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
    ) -> AsyncGenerator[Answer, None]:
        """Every page of a list or search.

        No record is skipped while others move, if `select` keeps the member by which they are told apart, such as `id`.
        Raises UpstreamRejected after the last page if records are or may be missing.
        """
        connector, walk = await self.connectors.resolve(connector), PageWalk(compares=not select and not exclude)
        following: Mapping[str, Any] | None = params or {}
        numbering, place = None, Place(params=dict(params or {}))
        while following is not None:
            page = await self.execute(connector, entity, action, following, select=select, exclude=exclude)
            # Parts of records without their identifiers may be equal: they do not show which were read before.
            is_whole = not select and not exclude and not page.redacted
            is_numbered = walk.pages == 0 and page.next is not None and action != SEARCH_ACTION
            if is_numbered and (is_whole or are_identified(page.records)):
                numbering = _numbering(await self.type(connector.kind), entity, action, following)
            if numbering is not None:
                names = [identifier(record) for record in page.records]
                found = step(numbering, place, following, names, following=page.next, incomplete=page.incomplete)
                records, place = [page.records[index] for index in found.new], found.place
                page = replace(page, result=records, next=found.following, incomplete=found.incomplete)
            yield page
            following = page.next
            walk.add(following, page.records, page.incomplete, may_repeat=numbering is not None)
        walk.require_complete()

    async def records(
        self,
        connector: str | Connector,
        entity: str,
        action: str = "list",
        params: Mapping[str, Any] | None = None,
        *,
        select: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Any, None]:
        """The records of every page one by one, at most `limit` of them."""
        pages = self.pages(connector, entity, action, params, select=select, exclude=exclude)
        async with aclosing(records_of(pages, limit)) as records:
            async for record in records:
                yield record

    async def search(
        self,
        connector: str | Connector,
        entity: str,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the query's name
        *,
        sort: Sequence[Mapping[str, Any]] | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The records of the synchronized copy that match the filter, at most `limit`; fetches page after page."""
        query = {name: value for name, value in (("filter", filter), ("sort", sort)) if value}
        size = _SEARCH_PAGE if limit is None else min(limit, _SEARCH_PAGE)
        params: dict[str, Any] = {"query": query, "limit": size, **({"fields": list(fields)} if fields else {})}
        async with aclosing(self.records(connector, entity, SEARCH_ACTION, params, limit=limit)) as records:
            async for record in records:
                yield record

    async def events(
        self,
        after: int | None = None,
        *,
        types: Sequence[str] | None = None,
        connector: str | Connector | None = None,
        follow: bool = True,
    ) -> AsyncGenerator[EventView, None]:
        """The events after an id, by default from the oldest stored event, in order; waits for new events.

        Store the id of the last event that you have handled: with it as `after`, no event is missed or repeated.
        `types` may be groups: `job.*`. Without `follow` the iteration ends after the newest event. Raises CursorExpired
        if events after `after` have been deleted.
        """
        query: dict[str, Any] = {"limit": _EVENTS_PAGE}
        if types is not None:
            query["types"] = ",".join(types)
        if connector is not None:
            query["connector_id"] = (await self.connectors.resolve(connector)).id
        wait = _EVENTS_WAIT if follow else 0
        while True:
            call = ApiRequest(
                method="GET", path="/api/v1/events", query={**query, "after": after, "wait": wait}, wait=wait
            )
            page = (await self._session.fetch(call)).into(EventPage)
            for event in page.data:
                yield event
            if not follow and len(page.data) < _EVENTS_PAGE:
                return
            after = int(page.next_cursor)

    async def latest_event(self) -> int:
        """The id of the newest event; `events(after=…)` with it yields new events only."""
        call = ApiRequest(method="GET", path="/api/v1/events", query={"limit": 1})
        return (await self._session.fetch(call)).into(EventPage).latest_id

    async def download(
        self,
        connector: str | Connector,
        entity: str,
        params: Mapping[str, Any],
        to: str | PathLike[str],
        *,
        sha256: str | None = None,
        on_progress: Progress | None = None,
    ) -> Downloaded:
        """Save a file to the path or in the folder `to`; resumes an interrupted download."""
        resource = await self._file(connector, entity, params)
        return await save(ResourceSource(self._session, resource), to, sha256=sha256, on_progress=on_progress)

    async def upload(
        self,
        connector: str | Connector,
        entity: str,
        file: str | PathLike[str],
        params: Mapping[str, Any] | None = None,
        *,
        filename: str | None = None,
        content_type: str | None = None,
    ) -> Answer:
        """Send a file to the application with the entity's `create`; the file is read while it is sent.

        The default of `content_type` follows from the file's name. If the application has upload sessions, the upload
        of a large file is resumed after a broken connection. Any other file is sent once: if the application's response
        is lost, the error says that the outcome is unknown.
        """
        found, path = await self.connectors.resolve(connector), Path(file)
        named = filename or path.name
        type_ = content_type or guess_type(named)[0] or "application/octet-stream"
        call = ApiRequest(
            method="POST",
            path=f"{_CONNECTORS}/{segment(found.id)}/upload/{segment(entity)}",
            query={**{name: _in_query(value) for name, value in (params or {}).items()}, "filename": named},
            headers={"Content-Type": type_},
            file=path,
        )
        return await send_file(self._session, call, path)

    async def chunks(
        self, connector: str | Connector, entity: str, params: Mapping[str, Any]
    ) -> AsyncGenerator[bytes, None]:
        """A file's bytes as they arrive; raises Unavailable if the connection breaks."""
        async with aclosing(chunks(self._session, await self._file(connector, entity, params))) as stream:
            async for chunk in stream:
                yield chunk

    async def types(self) -> list[dict[str, Any]]:
        """A summary of every kind."""
        found = (await self._session.fetch(ApiRequest(method="GET", path=_TYPES))).into(dict[str, Any])
        return list(found["data"])

    async def type(self, kind: str) -> dict[str, Any]:
        """The description of a kind: authentication, entities, actions, and the JSON Schema of their params."""
        if kind not in self._types:
            self._types[kind] = (
                await self._session.fetch(ApiRequest(method="GET", path=f"{_TYPES}/{segment(kind)}"))
            ).into(dict[str, Any])
        return self._types[kind]

    async def find_operations(
        self,
        task: str | None = None,
        *,
        kind: str | None = None,
        effect: str | None = None,
        connector: str | Connector | None = None,
        limit: int | None = None,
    ) -> OperationMatches:
        """The operations for a task in plain words, best first, by default 6; all operations without a task.

        If no operation matches, `data` is empty, `closest` has the closest operations, and `message` says what is
        missing.
        """
        query = {**await self._filter_query(kind, effect, connector), "query": task, "limit": limit}
        reply = await self._session.fetch(ApiRequest(method="GET", path="/api/v1/operations", query=query))
        return reply.into(OperationMatches)

    async def tools(
        self,
        *,
        kind: str | None = None,
        effect: str | None = None,
        connector: str | Connector | None = None,
        operations: Sequence[str] | None = None,
    ) -> list[Tool]:
        """Operations as tools for a model. Each runs on `connector`, by default on the only connector of its kind."""
        query = await self._filter_query(kind, effect, connector)
        if operations is not None:
            query["operations"] = ",".join(operations)
        reply = await self._session.fetch(
            ApiRequest(method="GET", path="/api/v1/tools", query={**query, "format": "mcp"})
        )
        found, bound = reply.into(ToolsView), query.get("connector_id")
        definitions = [from_mcp(document, found.operations[document["name"]]) for document in found.data]
        return [Tool(definition, runner(self, definition.operation, bound)) for definition in definitions]

    async def _filter_query(
        self, kind: str | None, effect: str | None, connector: str | Connector | None
    ) -> dict[str, Any]:
        connector_id = None if connector is None else (await self.connectors.resolve(connector)).id
        return {"kind": kind, "effect": effect, "connector_id": connector_id}

    async def _execute(
        self,
        connector: str | Connector,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        *,
        is_read: bool = False,
        wait: float = 0,
    ) -> ApiResponse:
        found = await self.connectors.resolve(connector)
        path = f"{_CONNECTORS}/{segment(found.id)}/execute"
        try:
            call = ApiRequest(method="POST", path=path, body=body, headers=headers, is_read=is_read, wait=wait)
            return await self._session.fetch(call)
        except NotFound as error:
            if not isinstance(error, UpstreamNotFound):
                self.connectors.forget(found)
            raise

    async def _file(self, connector: str | Connector, entity: str, params: Mapping[str, Any]) -> Resource:
        found = await self.connectors.resolve(connector)
        return Resource(f"{_CONNECTORS}/{segment(found.id)}/download/{segment(entity)}", dict(params))


def _body(entity: str, action: str, params: Mapping[str, Any] | None, **others: Any) -> dict[str, Any]:
    members = {name: value for name, value in others.items() if value is not None}
    return {"entity": entity, "action": action, "params": dict(params or {}), **members}


def _in_query(value: Any) -> Any:
    """A value in a query: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _key(key: str | None) -> dict[str, str]:
    """The header with the idempotency key, which all attempts of a call share; a new key by default."""
    return {"Idempotency-Key": key or uuid4().hex}


def _numbering(kind: Mapping[str, Any], entity: str, action: str, params: Mapping[str, Any]) -> Numbering | None:
    """How the pages of a list are numbered, from the description of its kind."""
    described = kind["entities"][entity]["actions"][action]
    others = (each["paging"] for each in described["alternatives"] if each["without"] not in params)
    paging = next(others, described["paging"])
    if paging is None:
        return None
    # An earlier gateway does not state the order.
    return Numbering.of(style=paging["style"], param=paging["param"], size=paging["size"], order=paging.get("order"))
