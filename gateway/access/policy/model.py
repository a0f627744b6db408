"""What is asked of policies, and what they decide."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from gateway.contract.kinds import Effect
from gateway.contract.policies import PolicyMode, PolicyView, Surface
from gateway.kinds.catalog import Operation


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


class PolicyCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call to decide."""

    client_id: UUID
    target: Target
    entity: str
    action: str
    effect: Effect
    surface: Surface
    params: Mapping[str, Any] = msgspec.field(default_factory=dict)
    #: what types the params; None for a search of the copy
    operation: Operation | None = None


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
