"""Policies in Cedar: the versions of a policy, and where a call comes from."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType, field

from gateway.contract.members import Id, ListOf, Time, member

_CEDAR = 'permit(principal, action in Action::"read", resource);'


class PolicyMode(StrEnum):
    """Whether a policy decides."""

    #: it decides
    ENFORCE = "enforce"
    #: what it would have decided is counted and logged
    SHADOW = "shadow"


class Surface(StrEnum):
    """Where a call comes from, as `context.surface` of policies names it."""

    HTTP = "http"
    MCP = "mcp"
    CONSOLE = "console"
    BATCH = "batch"
    SCHEDULE = "schedule"
    #: the message that tells people of an approval
    NOTICE = "notice"
    #: reading records of events
    EVENTS = "events"


class NewPolicy(Struct, frozen=True, kw_only=True):
    """A version to store, or to try."""

    name: str
    mode: PolicyMode
    cedar: str
    description: str | None = None


class PolicyView(Struct, frozen=True, kw_only=True):
    """One version of a policy."""

    name: Annotated[str, member("The policy's name.", "read-only")]
    version: Annotated[int, member("Its number; the next change makes the next one.", 1)]
    mode: Annotated[PolicyMode, member("`enforce` decides; `shadow` only reports.")]
    cedar: Annotated[str, member("The text in Cedar.", _CEDAR)]
    description: Annotated[str | None, member("What it is for.")]
    created_at: Annotated[Time, member("When this version was stored.")]
    created_by: Annotated[Id | None, member("The client that stored this version.")]


class PolicyList(ListOf[PolicyView], frozen=True):
    """The organization's policies by name, or the versions of one, the newest first."""


class ClientEffectView(Struct, frozen=True, kw_only=True):
    """What policies would have decided of one client's calls."""

    id: Annotated[Id, member("The client.")]
    name: Annotated[str | None, member("The client's name.", "support agent")]
    refused: Annotated[int, member("Calls that would have been refused.", 3)]
    asked: Annotated[int, member("Calls that a person would have had to approve.", 0)]
    undecided: Annotated[int, member("Calls whose decision depends on params, time or surface.", 1)]


class PolicyEffectView(Struct, frozen=True, kw_only=True):
    """What policies would have decided of earlier calls."""

    refused: Annotated[int, member("Calls that would have been refused.", 3)]
    asked: Annotated[int, member("Calls that a person would have had to approve.", 0)]
    redacted: Annotated[int, member("Calls whose answers would have been redacted.", 0)]
    undecided: Annotated[
        int, member("Calls whose decision depends on params, time or surface, which the audit log does not have.", 1)
    ]
    by_client: Annotated[list[ClientEffectView], member("The clients whose calls are among these.")]


class StoredPolicyView(PolicyView, frozen=True, kw_only=True):
    """The version that was stored, and its effect."""

    would_have: Annotated[
        PolicyEffectView | None,
        member("What it would have decided with the enforced policies; null if that could not be computed."),
    ] = None


class PolicyCase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call that is decided but not made."""

    operation: Annotated[str, member("`kind.entity.action`.", "support-desk.tickets.update")]
    client: Annotated[UUID | UnsetType, member("The client; by default the caller.")] = UNSET
    person: Annotated[UUID | UnsetType, member("The person that calls instead of a client.")] = UNSET
    connector_id: Annotated[UUID | UnsetType, member("The connector; without one, a connector of no workspace.")] = (
        UNSET
    )
    params: Annotated[Mapping[str, Any], member("The params of the operation.")] = field(default_factory=dict)
    surface: Annotated[Surface, member("Where the call comes from.")] = Surface.HTTP
    explain: Annotated[bool, member("Whether the answer has Cedar's request and entities.")] = False


class CheckedCaseView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The decision of a case."""

    decision: Annotated[Literal["allow", "deny", "approve"], member("The decision.")]
    policies: Annotated[list[str], member("The deciding statements: `@id`, else the policy.", ["no-deletions"])]
    advice: Annotated[str | None, member("The advice of the refusal.")]
    redact: Annotated[list[str], member("The members that the answer would leave out.", ["email"])]
    request: Annotated[dict[str, Any] | None, member("With `explain`: Cedar's request.")] = None
    entities: Annotated[list[dict[str, Any]] | None, member("With `explain`: Cedar's entities.")] = None


class CheckedCases(ListOf[CheckedCaseView], frozen=True):
    """The decisions, in the order of the cases."""
