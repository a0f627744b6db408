"""The audit log and usage, for administrators of an organization."""

from dataclasses import asdict, replace
from datetime import timedelta
from typing import ClassVar, Literal
from uuid import UUID

import msgspec
from aiohttp import web
from pydantic import Field

from gateway.access.audit.log import EntryFilter, StoredEntry
from gateway.access.audit.metering import HourUsed
from gateway.access.identity.model import Caller, Scope, id_of
from gateway.contract.gateway_state import (
    ActorView,
    ApproverView,
    AuditApprovalView,
    AuditEntryView,
    AuditKeyView,
    AuditPage,
    UsageEventPage,
    UsageEventView,
    UsageHourView,
    UsagePointView,
    UsageShareView,
    UsageView,
    WorkInProgressView,
)
from gateway.contract.kinds import Effect
from gateway.contract.members import ActorSessionView, NamedActorView, as_of_member
from gateway.errors import FieldError, InvalidParams
from gateway.foundation.aio.clock import CLOCK
from gateway.kinds.catalog import Catalog
from gateway.run.monitoring.statistics import read_work_in_progress
from gateway.web.bodies import CLOUD_EVENTS, NDJSON, Moment, QueryString, accepts, json_response, read_query
from gateway.web.keys import CALLER, SERVICES
from gateway.web.route import Route
from gateway.web.streaming import stream

#: maximum points of a usage response
_MAX_POINTS = 2000


class AuditQuery(QueryString):
    """The filter and page of audit entries."""

    EXAMPLE: ClassVar = {"limit": 20}

    connector_id: UUID | None = Field(None, description="only actions on this connector")
    actor: str | None = Field(None, max_length=200, description="only actions of this client: its id or its name")
    operation: str | None = Field(
        None, max_length=200, description="only this operation or action, such as `tickets.update`"
    )
    target: str | None = Field(None, max_length=200, description="only actions on this record, job or workspace")
    outcome: str | None = Field(
        None, max_length=100, description="only this outcome: `succeeded`, `accepted` or an error code"
    )
    request_id: str | None = Field(None, max_length=128, description="only actions of this request")
    since: Moment | None = Field(None, description="only from this time on")
    until: Moment | None = Field(None, description="only before this time")
    limit: int = Field(100, ge=1, le=1000, description="maximum entries of a page")
    cursor: int | None = Field(None, ge=1, le=2**62, description="`next_cursor` of the page before")


class ExportQuery(QueryString):
    """The period of an export."""

    since: Moment | None = Field(None, description="from the first entry since this time on")
    until: Moment | None = Field(None, description="to the last entry before this time")


class UsageQuery(QueryString):
    """The start and the interval of usage points."""

    since: Moment | None = Field(None, description="an hour ago when left out; at most 31 days")
    step: int = Field(
        60,
        ge=10,
        le=86_400,
        description="seconds between points; rounded up to whole ten seconds, from 60 on to whole minutes, from 600 on "
        "to whole ten minutes",
    )
    by: Literal["client", "person", "connector", "workspace"] | None = Field(
        None, description="also count the calls of each of these, if there are at most 100,000"
    )


async def show_usage(request: web.Request) -> UsageView:
    """Calls, errors and durations over time, from the audit log, and the work in progress.

    A client that is limited to workspaces sees the calls of their connectors, at most 100,000 since `since`. Only
    administrators see with `by` other people, and connectors of other people.
    """
    query, now, services = read_query(request, UsageQuery), CLOCK.now(), request.app[SERVICES]
    since = max(query.since or now - timedelta(hours=1), now - timedelta(days=31))
    if (now - since).total_seconds() / query.step > _MAX_POINTS:
        message = f"step: more than {_MAX_POINTS} points; ask for a longer step or a later since"
        raise InvalidParams(faults=[FieldError("/step", "step", "too_many", message)])
    caller = request[CALLER]
    organization_id, workspaces = caller.organization_id, caller.client.workspaces
    audit = services.logs.audit
    points = await audit.usage(organization_id, since, query.step, workspaces)
    seen_by = None if Scope.ADMIN in caller.client.scopes else caller.client_id
    shares = None if query.by is None else await audit.usage_by(organization_id, since, query.by, workspaces, seen_by)
    in_progress = await read_work_in_progress(services.database, organization_id, workspaces)
    view = [
        UsagePointView(at=point.at, calls=point.calls, errors=point.errors, p50_ms=point.p50_ms, p95_ms=point.p95_ms)
        for point in points
    ]
    by = None if shares is None else [UsageShareView(**asdict(share)) for share in shares]
    return UsageView(view, WorkInProgressView(**asdict(in_progress)), by)


class UsageEventQuery(QueryString):
    """The page of usage events."""

    EXAMPLE: ClassVar = {"after": 4711}

    after: int = Field(0, ge=0, le=2**62, description="only events after this `sequence`; 0 for the oldest stored one")
    since: Moment | None = Field(None, description="only hours that begin at this time or later")
    limit: int = Field(100, ge=1, le=1000, description="maximum events of a page")


async def list_usage_events(request: web.Request) -> web.Response:
    """Usage for billing, by hour, client, person and workspace. Each event is a CloudEvent that never changes: its `id`
    is the same whenever it is read, and events of the same hour add up. With `Accept:
    application/cloudevents-batch+json` the response is the array of events alone, and `Link` has the next page. Call
    again with `next_cursor` as `after`. A client that is limited to workspaces gets their events. Only administrators
    get the ids of other people. Events are kept for 100 days.
    """
    query, caller = read_query(request, UsageEventQuery), request[CALLER]
    found = await request.app[SERVICES].logs.metering.find(
        caller.organization_id,
        after=query.after,
        since=query.since,
        workspaces=caller.client.workspaces,
        limit=query.limit,
    )
    source = f"urn:gateway:organization:{caller.organization_id}"
    events = [_usage_event(_seen(each, caller), source) for each in found]
    cursor = _sequence(found[-1].number if found else query.after)
    if not accepts(request, CLOUD_EVENTS):
        return json_response(UsageEventPage(events, cursor))
    following = request.rel_url.update_query(after=cursor)
    headers = {"Content-Type": CLOUD_EVENTS, "Link": f'<{following}>; rel="next"'}
    return web.Response(body=msgspec.json.encode(events), headers=headers)


def _seen(used: HourUsed, caller: Caller) -> HourUsed:
    """The usage without the id of another person, which only administrators see."""
    if used.person_id in (None, caller.person_id) or Scope.ADMIN in caller.client.scopes:
        return used
    client_id = None if used.client_id == used.person_id else used.client_id
    return replace(used, client_id=client_id, person_id=None)


def _usage_event(used: HourUsed, source: str) -> UsageEventView:
    return UsageEventView(
        id=str(used.id),
        source=source,
        subject="unknown" if used.client_id is None else str(used.client_id),
        time=used.hour + timedelta(hours=1),
        sequence=_sequence(used.number),
        data=UsageHourView(
            hour=used.hour,
            client_id=None if used.client_id is None else str(used.client_id),
            person_id=None if used.person_id is None else str(used.person_id),
            workspace_name=used.workspace_name,
            calls=used.succeeded + used.failed + used.unknown,
            succeeded=used.succeeded,
            failed=used.failed,
            unknown=used.unknown,
            writes=used.writes,
        ),
    )


def _sequence(number: int) -> str:
    """The number as CloudEvents order a `sequence`: as text."""
    return f"{number:016}"


async def list_audit(request: web.Request) -> AuditPage:
    """Who did what, when and with which outcome, the newest first. The audit log has no params and no bodies."""
    query, caller = read_query(request, AuditQuery), request[CALLER]
    services = request.app[SERVICES]
    entries, as_of = await services.logs.audit.find_as_of(
        caller.organization_id, entry_filter(query, caller), before=query.cursor, limit=query.limit + 1
    )
    page = entries[: query.limit]
    next_cursor = str(page[-1].id) if len(entries) > len(page) else None
    views = [entry_view(entry, services.catalog) for entry in page]
    return AuditPage(views, next_cursor, as_of_member(as_of))


def entry_filter(query: AuditQuery, caller: Caller) -> EntryFilter:
    """The filter of a query; the actor is an id or a name."""
    actor = id_of(query.actor)
    return EntryFilter(
        connector_id=query.connector_id,
        actor=actor,
        actor_name=None if actor else query.actor,
        operation=query.operation,
        target=query.target,
        outcome=query.outcome,
        request_id=query.request_id,
        since=query.since,
        until=query.until,
        workspaces=caller.client.workspaces,
    )


def entry_view(entry: StoredEntry, catalog: Catalog) -> AuditEntryView:
    """The entry for the response, with the names of its client and its application."""
    return AuditEntryView(
        id=str(entry.id),
        at=entry.at,
        actor=None if entry.actor is None else _actor(entry, str(entry.actor)),
        connector_id=None if entry.connector_id is None else str(entry.connector_id),
        application=None if entry.kind is None else catalog.application_of(entry.kind),
        what=entry.what,
        target=entry.target,
        changed=list(entry.changed or ()),
        outcome=entry.outcome,
        intent=entry.intent,
        request_id=entry.request_id,
        took_ms=entry.took_ms,
        policies=list(entry.policies or ()),
        approval=None if entry.approval_id is None else _approval(entry.approval_id, entry.approvers),
        effect=None if entry.effect is None else Effect(entry.effect),
    )


def _approval(approval_id: UUID, approvers: str | None) -> AuditApprovalView:
    approved_by = [] if approvers is None else msgspec.json.decode(approvers, type=list[ApproverView])
    return AuditApprovalView(id=str(approval_id), approved_by=approved_by)


def _actor(entry: StoredEntry, actor_id: str) -> ActorView:
    actor = NamedActorView(id=actor_id, name=entry.actor_name)
    if entry.session_id is None and entry.is_person:
        return ActorView(id=actor_id, name=entry.actor_name, person=actor)
    if entry.session_id is None:
        return ActorView(id=actor_id, name=entry.actor_name, client=actor)
    client = NamedActorView(id=str(entry.acting_client), name=entry.acting_name)
    session = ActorSessionView(str(entry.session_id))
    return ActorView(id=actor_id, name=entry.actor_name, person=actor, client=client, session=session)


async def export_audit(request: web.Request) -> web.StreamResponse:
    """The audit log as NDJSON, in the order of its hash chain: each entry has `seq`, `kind` (`intent`, `settlement` or
    `event`), `call_id`, `previous` and `hash`. Signed checkpoints stand between entries and at the end. `gateway audit
    verify` checks the file, and `docs/how-to/audit-proof.md` says how to check it without the gateway.
    """
    query, caller = read_query(request, ExportQuery), request[CALLER]
    caller.require_whole_organization()
    chunks = request.app[SERVICES].logs.chain.export(caller.organization_id, query.since, query.until)
    return await stream(request, chunks, NDJSON)


async def list_audit_keys(request: web.Request) -> web.Response:
    """The public keys of checkpoints, the newest first, then those of the gateways from which the organization was
    moved. Keep them in another place than the exported files.
    """
    chain = request.app[SERVICES].logs.chain
    keys = {each.key_id: each.public_key for each in chain.keys}
    keys |= await chain.former_keys(request[CALLER].organization_id)
    return json_response([AuditKeyView(key_id=key_id, public_key=public_key) for key_id, public_key in keys.items()])


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/audit",
        list_audit,
        "Read the audit log",
        "Audit",
        query=AuditQuery,
        response=AuditPage,
        scope=Scope.ADMIN,
        command="gateway audit list --limit 20",
    ),
    Route(
        "GET",
        "/api/v1/audit/export",
        export_audit,
        "Export the audit log with its proof",
        "Audit",
        query=ExportQuery,
        media={200: (NDJSON,)},
        scope=Scope.ADMIN,
        command="gateway audit export --output audit.ndjson",
    ),
    Route(
        "GET",
        "/api/v1/audit/keys",
        list_audit_keys,
        "List the keys that sign the audit log",
        "Audit",
        response=AuditKeyView,
        is_array=True,
        scope=Scope.ADMIN,
    ),
    Route(
        "GET",
        "/api/v1/usage",
        show_usage,
        "Get calls, errors and durations over time",
        "Audit",
        query=UsageQuery,
        response=UsageView,
        scope=Scope.READ,
    ),
    Route(
        "GET",
        "/api/v1/usage/events",
        list_usage_events,
        "Read usage for billing, as CloudEvents",
        "Audit",
        query=UsageEventQuery,
        response=UsageEventPage,
        media={200: (CLOUD_EVENTS,)},
        sends={200: ("Link",)},
        scope=Scope.READ,
    ),
)
