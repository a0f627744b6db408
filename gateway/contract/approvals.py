"""Approvals: requests of calls that wait for a person's word."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Struct

from gateway.contract.members import ID, ActorSessionView, Id, NamedActorView, PageOf, Time, Url, member

_PAGE = f"https://gateway.example.com/console/approvals/{ID}"


class ApprovalStatus(StrEnum):
    """The state of an approval; all but `pending` are final, except that an approved one may still be superseded."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    #: a policy, the requests, the records or the credentials changed, or the job ended
    SUPERSEDED = "superseded"


class JobApprovalView(Struct, frozen=True, kw_only=True):
    """The approval for which a job waits or waited."""

    id: Annotated[Id, member("The approval's id.")]
    status: Annotated[ApprovalStatus, member("The state of the approval.")]
    reason: Annotated[str, member("Why a person must approve.", "Writes need a person.")]
    url: Annotated[Url, member("The page on which a person decides.", _PAGE)]
    expires_at: Annotated[Time, member("When the request for approval expires.")]


class RequesterView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who asks: a client, a person, or in a session a client for a person."""

    client: Annotated[NamedActorView | None, member("The client that asks.")] = None
    person: Annotated[NamedActorView | None, member("The person who asks, or for whom the client asks.")] = None
    session: Annotated[ActorSessionView | None, member("The session in which the client asks for the person.")] = None


class ApprovalRequestView(Struct, frozen=True, kw_only=True):
    """A request that is sent once it is approved; secrets are `***`."""

    method: Annotated[str, member("The method.", "PUT")]
    url: Annotated[str, member("The URL.", "https://acme.example.com/api/v2/tickets/1.json")]
    headers: Annotated[dict[str, str], member("The headers.")]
    body: Annotated[Any, member("The body.")]


class ApprovalChangeView(Struct, frozen=True):
    """What a request changes in a record."""

    record: Annotated[str, member("The record.", "1")]
    member: Annotated[str, member("The member.", "ticket.status")]
    old: Annotated[Any, member("Its value now.", "open")]
    new: Annotated[Any, member("Its value afterwards.", "solved")]


class ApprovalDecisionView(Struct, frozen=True, kw_only=True):
    """One person's word."""

    by: Annotated[NamedActorView, member("Who decided.")]
    at: Annotated[Time, member("When.")]
    decision: Annotated[Literal["approved", "denied"], member("What was decided.")]
    reason: Annotated[str | None, member("Why.")] = None


class ApprovalSummaryView(Struct, frozen=True, kw_only=True):
    """An approval without its requests."""

    id: Annotated[Id, member("The approval's id.")]
    status: Annotated[ApprovalStatus, member("The state of the approval.")]
    url: Annotated[Url, member("The page on which a person decides.", _PAGE)]
    job_id: Annotated[Id, member("The job that waits.")]
    connector_id: Annotated[Id | None, member("The connector.")]
    workspace_name: Annotated[str | None, member("The connector's workspace.", "acme")]
    operation: Annotated[str, member("The operation, or the task.", "tickets.update")]
    requested_by: Annotated[RequesterView, member("Who asks.")]
    reason: Annotated[str, member("Why a person must approve.", "Writes need a person.")]
    digest: Annotated[str, member("The digest of what is approved.", "sha-256=:…:")]
    account: Annotated[str, member("The account of the credentials; other credentials have another one.")]
    items: Annotated[int, member("The number of requests.", 1)]
    created_at: Annotated[Time, member("When the approval was requested.")]
    expires_at: Annotated[Time, member("When the request expires.")]
    decisions: Annotated[list[ApprovalDecisionView], member("What was decided, in order.")]


class ApprovalView(ApprovalSummaryView, frozen=True, kw_only=True, omit_defaults=True):
    """An approval with everything that an approver sees."""

    requests: Annotated[list[ApprovalRequestView], member("The exact requests, the first 100 of them.")]
    changes: Annotated[list[ApprovalChangeView], member("What they change, as far as the application can be asked.")]
    redacted: Annotated[
        Sequence[str],
        member("Paths of members whose changes the policies redact; `*` for all of them.", ["email"]),
    ] = ()
    questions: Annotated[
        Sequence[str],
        member("What the reason of whoever approves must answer; else no reason is needed.", ["Who agreed to it?"]),
    ] = ()


class ApprovalPage(PageOf[ApprovalSummaryView], frozen=True):
    """Approvals, the newest first."""
