"""Clients, audit log, request log, usage, health, and the root document."""

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Struct

from gateway.contract.kinds import Effect
from gateway.contract.members import (
    ID,
    TIME,
    ActorSessionView,
    Id,
    ListOf,
    NamedActorView,
    PageAsOf,
    PageOf,
    Time,
    member,
)


class ClientView(Struct, frozen=True, kw_only=True):
    """A program or a person that may act for the organization."""

    id: Annotated[Id, member("The client's id.")]
    name: Annotated[str, member("The client's name.", "agent")]
    is_person: Annotated[bool, member("Whether it is a person who signs in and has no secret.", False)]
    scopes: Annotated[list[str], member("`read`, `write`, `admin`, `approve` or `delegate`.", ["read", "write"])]
    redirect_urls: Annotated[
        list[str], member("The redirect URLs of its consents.", ["https://app.example.com/connected"])
    ]
    callback_urls: Annotated[
        list[str], member("The URLs that `callback_url` of its calls may name.", ["https://app.example.com/jobs"])
    ]
    delegate_for: Annotated[
        list[str], member("The groups for whose members it may open sessions, with the scope `delegate`.", [])
    ]
    created_at: Annotated[Time | None, member("When the client was created.", TIME)]
    disabled_at: Annotated[Time | None, member("When the client was disabled.")]


class ChangedClientView(ClientView, frozen=True, kw_only=True):
    """A changed client."""

    webhook_secret: Annotated[
        str | None,
        member("The secret that signs its callbacks, shown once: when its first callback URL is registered.", None),
    ] = None


class ClientList(ListOf[ClientView], frozen=True):
    """The organization's clients."""


class ActorView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who acted: a client, a person, or in a session a client for a person."""

    id: Annotated[Id, member("The id of the person, else of the client.")]
    name: Annotated[str | None, member("The name; null if it is unknown.", "agent")]
    client: Annotated[NamedActorView | None, member("The client that acted.")] = None
    person: Annotated[NamedActorView | None, member("The person who acted, or for whom the client acted.")] = None
    session: Annotated[ActorSessionView | None, member("The session in which the client acted for the person.")] = None


class AuditKeyView(Struct, frozen=True, kw_only=True):
    """A key that signs checkpoints of the exported audit log."""

    key_id: Annotated[str, member("The id that checkpoints name.", "9f86d081884c7d65")]
    public_key: Annotated[str, member("Ed25519, base64.", "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=")]


class ApproverView(Struct, frozen=True, kw_only=True):
    """A person or client that approved a call."""

    id: Annotated[Id, member("The id.")]
    name: Annotated[str | None, member("The name.", "Dana")]


class AuditApprovalView(Struct, frozen=True, kw_only=True):
    """The approval of a call."""

    id: Annotated[Id, member("The approval.")]
    approved_by: Annotated[list[ApproverView], member("Those who approved it, in that order.")]


class AuditEntryView(Struct, frozen=True, kw_only=True):
    """An entry of the audit log."""

    id: Annotated[str, member("The entry's id; ids grow with time.", "4711")]
    at: Annotated[Time, member("The time of the call.")]
    actor: Annotated[ActorView | None, member("The client.")]
    connector_id: Annotated[Id | None, member("The connector.", "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11")]
    application: Annotated[str | None, member("The connector's application.", "Zendesk")]
    what: Annotated[str, member("The operation, or the action on a connector, job or workspace.", "tickets.update")]
    target: Annotated[str | None, member("The record, job, workspace, connector or client.", "42")]
    changed: Annotated[
        list[str], member("The names of the members that were written, never their values.", ["ticket.status"])
    ]
    outcome: Annotated[
        str,
        member(
            "`succeeded`, an error code, `unknown` for a write that may have been done, or `accepted` for a job; its "
            "end adds an entry with its status.",
            "succeeded",
        ),
    ]
    intent: Annotated[str | None, member("The caller's reason.")]
    request_id: Annotated[str | None, member("The request's id.", "5e1f0c3d")]
    took_ms: Annotated[int | None, member("Duration in milliseconds.", 41)]
    policies: Annotated[
        list[str],
        member("The policies' statements that decided about the call; none without a policy.", ["refunds"]),
    ]
    approval: Annotated[AuditApprovalView | None, member("The approval that the call asked for.")]
    effect: Annotated[
        Effect | None, member("The effect of the operation; null for an action that is no call.", "idempotent")
    ]


class AuditPage(PageAsOf[AuditEntryView], frozen=True):
    """Entries of the audit log, the newest first."""


class RequestSelection(Struct, frozen=True, kw_only=True):
    """A filter of requests to applications; None matches every value."""

    connector_id: UUID | None = None
    job_id: UUID | None = None
    request_id: str | None = None
    #: `404`, `5xx`, or `failed` for no complete response or a status from 400 on
    status: str | None = None
    since: datetime | None = None
    #: the caller's person; requests of other people's connectors are left out
    person_id: UUID | None = None
    #: names of the workspaces whose connectors are included; None for all
    workspaces: Collection[str] | None = None


class RequestView(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One HTTP request to an application."""

    id: Annotated[str, member("The request's id; ids grow with time.", "81923")]
    at: Annotated[Time, member("When it ended.")]
    connector_id: Annotated[Id, member("The connector.")]
    operation: Annotated[str | None, member("The operation; `oauth.token` renews a token.", "tickets.list")]
    method: Annotated[str, member("The method.", "GET")]
    path: Annotated[str, member("The path without the query; `//host/…` for a host of files.", "/api/v2/tickets.json")]
    status: Annotated[int | None, member("The status; null without a complete response.", 200)]
    duration_ms: Annotated[int, member("Duration in milliseconds, without waiting for the rate limit.", 41)]
    attempt: Annotated[int, member("The number of the attempt, from 1.", 1)]
    bytes_in: Annotated[int, member("Bytes of the decoded response.", 2048)]
    bytes_out: Annotated[int, member("Bytes of the request's body.", 0)]
    request_id: Annotated[
        str | None, member("The id of the request to the gateway; null if the gateway acted by itself.", "5e1f0c3d")
    ]
    job_id: Annotated[Id | None, member("The job.")] = None
    upstream_request_id: Annotated[str | None, member("The application's id of the request.")] = None
    error: Annotated[str | None, member("The error code of a request without a complete response.")] = None


class RequestPage(PageOf[RequestView], frozen=True):
    """Requests to applications, the newest first."""


class UsagePointView(Struct, frozen=True, kw_only=True):
    """The calls of one interval."""

    at: Annotated[Time, member("The start of the interval.")]
    calls: Annotated[int, member("The number of calls.", 12)]
    errors: Annotated[int, member("The number of failed calls.", 1)]
    p50_ms: Annotated[float | None, member("The median duration in milliseconds.", 38.0)]
    p95_ms: Annotated[float | None, member("The 95th percentile in milliseconds.", 210.5)]


class WorkInProgressView(Struct, frozen=True, kw_only=True):
    """Jobs that have not ended, and the synchronized copies."""

    queued: Annotated[int, member("Jobs that no worker has claimed.", 2)]
    running: Annotated[int, member("Running jobs.", 1)]
    waiting: Annotated[int, member("Jobs that wait for their next attempt or for the application's limits.", 0)]
    copies: Annotated[int, member("Entities with a synchronized copy.", 9)]
    failed: Annotated[int, member("Entities whose last synchronization failed.", 0)]
    incomplete: Annotated[int, member("Entities whose copy lacks records.", 0)]
    held_deletions: Annotated[
        int, member("Records of large deletions that wait until the next synchronization confirms them.", 0)
    ]
    oldest_synced_at: Annotated[Time | None, member("When the oldest copy was synchronized.", TIME)]


class UsageShareView(Struct, frozen=True):
    """The calls of one client, connector or workspace."""

    id: Annotated[Id, member("Its id.")]
    name: Annotated[str, member("Its name.", "Support bot")]
    calls: Annotated[int, member("The number of calls.", 12)]
    errors: Annotated[int, member("The number of failed calls.", 1)]


class UsageView(Struct, frozen=True, omit_defaults=True):
    """Calls over time, and the work in progress."""

    data: Annotated[list[UsagePointView], member("One point for each interval, the oldest first.")]
    in_progress: Annotated[WorkInProgressView, member("The work in progress.")]
    by: Annotated[
        list[UsageShareView] | None,
        member("With `by`: the calls of each client, connector or workspace since then, the busiest first."),
    ] = None


class UsageHourView(Struct, frozen=True, kw_only=True):
    """The calls of one client, for one person, in one workspace, that ended in one hour."""

    hour: Annotated[Time, member("The start of the hour.")]
    client_id: Annotated[Id | None, member("The client that called; null for a deleted one.")]
    person_id: Annotated[Id | None, member("The person who called, or for whom the client called.")]
    workspace_name: Annotated[str | None, member("The workspace; null for a deleted one.", "acme")]
    calls: Annotated[int, member("Calls that ended: the sum of the next three.", 12)]
    succeeded: Annotated[int, member("Calls that succeeded.", 10)]
    failed: Annotated[int, member("Calls that failed, were refused or were canceled.", 1)]
    unknown: Annotated[int, member("Writes of which it is not known whether they were done.", 1)]
    writes: Annotated[int, member("How many of the calls were writes.", 4)]


class UsageEventView(Struct, frozen=True, kw_only=True):
    """Usage as a CloudEvent (CloudEvents 1.0, JSON)."""

    specversion: Annotated[Literal["1.0"], member("The version of CloudEvents.")] = "1.0"
    id: Annotated[Id, member("The same whenever the event is read; with `source` it identifies the event.")]
    source: Annotated[str, member("The organization.", f"urn:gateway:organization:{ID}")]
    type: Annotated[Literal["gateway.usage.hour"], member("The type of the event.")] = "gateway.usage.hour"
    subject: Annotated[str, member("The client's id; `unknown` for a deleted one.", ID)]
    time: Annotated[Time, member("The end of the hour.")]
    datacontenttype: Annotated[Literal["application/json"], member("The type of `data`.")] = "application/json"
    sequence: Annotated[str, member("Its place in the order of events, for `after`.", "0000000000004711")]
    data: Annotated[UsageHourView, member("What is counted.")]


class UsageEventPage(Struct, frozen=True):
    """Usage events in their order."""

    data: Annotated[list[UsageEventView], member("The events.")]
    next_cursor: Annotated[str, member("`after` of the next call, also where `data` is empty.", "0000000000004711")]


class HealthCheckView(Struct, frozen=True):
    """A check of `gateway doctor`."""

    status: Annotated[Literal["passed", "warning", "failed"], member("`failed` keeps the gateway from working.")]
    what: Annotated[str, member("The part that was checked.", "PostgreSQL")]
    message: Annotated[str, member("The finding, and how to fix it.", "answers")]


class HealthCheckList(ListOf[HealthCheckView], frozen=True):
    """The checks, the most important first."""


class AliveView(Struct, frozen=True):
    """The process runs."""

    status: Annotated[Literal["ok"], member("Always `ok`.")]


class ReadinessView(Struct, frozen=True, omit_defaults=True):
    """Whether to send traffic to this process."""

    status: Annotated[Literal["ready", "not_ready"], member("Whether to send traffic.")]
    checks: Annotated[
        dict[str, bool],
        member("The checks.", {"postgres": True, "redis": True, "worker": True, "draining": False}),
    ]
    reason: Annotated[str | None, member("Why PostgreSQL is unavailable.")] = None


class RootView(Struct, frozen=True):
    """The paths of the API and of its documentation."""

    name: Annotated[str, member("The name of the service.", "agent connector gateway")]
    api: Annotated[str, member("The path of the API.", "/api/v1")]
    openapi: Annotated[str, member("The OpenAPI document.", "/openapi.json")]
    docs: Annotated[str, member("The documentation for people.", "/docs")]
