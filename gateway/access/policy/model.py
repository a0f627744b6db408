"""What is asked of policies, and what they decide."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

import msgspec

from gateway.contract.kinds import Effect
from gateway.contract.policies import PolicyMode, PolicyView, Surface
from gateway.kinds.catalog import Operation


class PersonRights(msgspec.Struct, frozen=True):
    """What a person may do now."""

    groups: tuple[str, ...]
    scopes: frozenset[str]
    #: names of the workspaces that the person may see; None for all
    workspaces: frozenset[str] | None

    def allows(self, scope: str, workspace_name: str | None) -> bool:
        """Whether the person has the scope and sees the workspace."""
        return scope in self.scopes and (self.workspaces is None or workspace_name in self.workspaces)


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """One stored version of a policy."""

    name: str
    version: int
    mode: PolicyMode
    cedar: str
    description: str | None = None
    created_at: datetime
    created_by: UUID | None = None

    @property
    def view(self) -> PolicyView:
        return PolicyView(
            name=self.name,
            version=self.version,
            mode=self.mode,
            cedar=self.cedar,
            description=self.description,
            created_at=self.created_at,
            created_by=None if self.created_by is None else str(self.created_by),
        )


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The resource of a call: a connector with its workspace and kind."""

    connector_id: UUID
    name: str
    workspace_name: str
    kind: str


class Counted(msgspec.Struct, frozen=True):
    """A number of calls, or the sum of a param."""

    last_hour: Decimal = Decimal()
    #: since midnight in UTC
    today: Decimal = Decimal()


NOTHING = Counted()


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What a client has called before."""

    calls: Counted = NOTHING
    writes: Counted = NOTHING
    #: the sums of params of the operation, by their dotted paths
    sums: Mapping[str, Counted] = msgspec.field(default_factory=dict)


class MadeCall(Protocol):
    """A call that counts, or with -1 calls one that was counted and not made."""

    @property
    def client_id(self) -> UUID | None: ...

    @property
    def operation(self) -> str: ...

    @property
    def params(self) -> Mapping[str, Any]: ...

    @property
    def is_write(self) -> bool: ...

    @property
    def calls(self) -> int: ...


class PolicyCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call to decide."""

    client_id: UUID
    #: the groups of the person whose id `client_id` is; None for a client
    groups: tuple[str, ...] | None = None
    #: the client that acts for the person in a session
    acting_client_id: UUID | None = None
    target: Target
    entity: str
    action: str
    effect: Effect
    surface: Surface
    params: Mapping[str, Any] = msgspec.field(default_factory=dict)
    #: what types the params; None for a search of the copy
    operation: Operation | None = None
    #: whether what the client has called includes this call, as that of a job that was counted when it was accepted
    is_counted: bool = False
    #: whether people have approved the call
    is_approved: bool = False
    history: History = msgspec.field(default_factory=History)

    @property
    def principal(self) -> tuple[str, str]:
        """The type and id of the entity that calls."""
        return "Client" if self.groups is None else "Person", str(self.client_id)


class Verdict(StrEnum):
    """The result of a decision."""

    ALLOW = "allow"
    DENY = "deny"
    #: a person must approve the call first
    APPROVE = "approve"


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """The approval that one statement demands."""

    #: the label of the statement
    policy: str
    reason: str
    #: who may approve, and how many of them: the text of `@approvers`
    approvers: str | None = None
    #: the lifetime of the request for approval: the text of `@expires`
    expires: str | None = None
    #: what the reason of everybody who approves must answer: the text of `@reason`; None if no reason is demanded
    question: str | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What the policies decide of a call."""

    verdict: Verdict
    #: labels of the statements that decide; empty if no permit applies
    policies: tuple[str, ...] = ()
    advice: str | None = None
    #: for `approve`: every approval that is demanded
    approvals: tuple[Approval, ...] = ()
    #: paths of members that the answer leaves out
    redact: tuple[str, ...] = ()


#: without policies
ALLOWED = Decision(verdict=Verdict.ALLOW)
