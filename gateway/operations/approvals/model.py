"""What is approved, and when enough people have approved it. Pure."""

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import rfc8785
from msgspec import Struct

from gateway.access.policy.model import Approval
from gateway.access.policy.paths import covers, first_redacted
from gateway.contract.approvals import ApprovalStatus
from gateway.jobs.model import StoredJob

#: requests that approvers see; the digest is that of all
MAX_SHOWN = 100
#: changes of a record and of a request for approval that approvers see, and bytes of JSON of a value
_MAX_CHANGES, MAX_ALL_CHANGES, _MAX_VALUE = 100, 1000, 4096
#: the largest whole number that canonical JSON has (RFC 8785 §3.2.2.3)
_LARGEST = 2**53 - 1
_APPROVERS = re.compile(r'(Group|Client|Person)::"([^"]+)"(?:\s*,\s*([1-9]))?')
_SECONDS = {"m": 60, "h": 3600, "d": 86_400}


class ApprovalRule(Struct, frozen=True, kw_only=True):
    """What one statement demands: so many approvals of a group, of a client or person, or of anybody."""

    policy: str
    reason: str
    #: `Group`, `Client`, `Person`, or None for anybody with the scope
    approver_type: str | None = None
    approver: str | None = None
    count: int = 1
    #: what the reason of everybody who approves must answer; None if no reason is demanded
    question: str | None = None


class ApproverWord(Struct, frozen=True, kw_only=True):
    """What one person decided."""

    client_id: UUID
    groups: Sequence[str]


class RecordChange(Struct, frozen=True, kw_only=True):
    """What a request changes in a record."""

    record: str
    member: str
    old: Any
    new: Any
    #: the operation that changes it, `entity.action`
    operation: str = ""


class Proposal(Struct, frozen=True, kw_only=True):
    """What approvers see of a job, and what is compared with it when the job goes on."""

    digest: str
    account_id: UUID
    items: int
    requests: Sequence[Mapping[str, Any]]
    changes: Sequence[RecordChange] = ()
    #: of a batch: the operations that need the approval, as ranges of indexes
    asked: Sequence[tuple[int, int]] = ()


class Asked(Struct, frozen=True, kw_only=True):
    """An approval that was just requested."""

    id: UUID
    job: StoredJob
    reason: str
    items: int
    expires_at: datetime


class StoredApproval(Struct, frozen=True, kw_only=True):
    """An approval of a job."""

    id: UUID
    organization_id: UUID
    job_id: UUID
    status: ApprovalStatus
    rules: Sequence[ApprovalRule]
    digest: str
    account_id: UUID
    changes: Sequence[RecordChange]
    #: of a batch: the operations that need the approval, as ranges of indexes
    asked: Sequence[tuple[int, int]]
    expires_at: datetime
    released_at: datetime | None

    @property
    def indexes(self) -> set[int]:
        """Of a batch: the indexes of the operations that need the approval."""
        return {index for first, end in self.asked for index in range(first, end)}

    def sends(self, proposal: Proposal) -> bool:
        """Whether what was approved is what would be sent now, by the same account."""
        return (self.digest, self.account_id) == (proposal.digest, proposal.account_id)

    def is_for(self, proposal: Proposal, rules: Sequence[ApprovalRule]) -> bool:
        """Whether what was approved is what would be done now, and no other approvals are demanded.

        Policies that read whether a call is approved demand fewer.
        """
        is_same = self.sends(proposal) and list(self.changes) == list(proposal.changes)
        return is_same and set(rules) <= set(self.rules)


def ranges_of(indexes: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending indexes as ranges `(first, end)`."""
    ranges: list[tuple[int, int]] = []
    for index in indexes:
        if ranges and ranges[-1][1] == index:
            ranges[-1] = (ranges[-1][0], index + 1)
        else:
            ranges.append((index, index + 1))
    return ranges


class Digest:
    """`sha-256=:base64:` over the canonical JSON (RFC 8785) of `{account, connector_id, requests}`."""

    def __init__(self, connector_id: UUID, account_id: UUID) -> None:
        beginning = f'{{"account":"{account_id}","connector_id":"{connector_id}","requests":['
        self._hash = hashlib.sha256(beginning.encode())
        #: requests that were added
        self.items = 0

    def add(self, request: Mapping[str, Any]) -> None:
        """Add a request, its secrets as `***`."""
        self._hash.update(b"," if self.items else b"")
        self._hash.update(rfc8785.dumps(_canonical(request)))
        self.items += 1

    @property
    def value(self) -> str:
        """The digest of the requests that were added."""
        whole = self._hash.copy()
        whole.update(b"]}")
        return f"sha-256=:{base64.b64encode(whole.digest()).decode()}:"


def _canonical(value: Any) -> Any:
    """The value with text in place of numbers that canonical JSON does not have; no two values have the same form.

    The text is NUL and the digits. Text that begins with NUL itself gets another one.
    """
    if isinstance(value, Mapping):
        return {name: _canonical(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(each) for each in value]
    if isinstance(value, int) and abs(value) > _LARGEST:
        return f"\0{value}"
    if isinstance(value, str) and value.startswith("\0"):
        return f"\0{value}"
    return value


def rules_of(approvals: Iterable[Approval]) -> tuple[ApprovalRule, ...]:
    """What the statements demand that a decision named."""
    return tuple(dict.fromkeys(_rule(each) for each in approvals))


def _rule(approval: Approval) -> ApprovalRule:
    found = None if approval.approvers is None else _APPROVERS.fullmatch(approval.approvers.strip())
    if found is None:
        return ApprovalRule(policy=approval.policy, reason=approval.reason, question=approval.question)
    return ApprovalRule(
        policy=approval.policy,
        reason=approval.reason,
        question=approval.question,
        approver_type=found[1],
        approver=found[2],
        count=int(found[3] or 1),
    )


def lifetime(approvals: Iterable[Approval], default: int) -> int:
    """The seconds until the request for approval expires: the shortest that a statement demands."""
    stated = [int(each.expires[:-1]) * _SECONDS[each.expires[-1]] for each in approvals if each.expires is not None]
    return min(stated, default=default)


def is_complete(rules: Sequence[ApprovalRule], approvers: Sequence[ApproverWord]) -> bool:
    """Whether those who approved are enough for every rule."""
    return all(sum(_counts(rule, each) for each in approvers) >= rule.count for rule in rules)


def _counts(rule: ApprovalRule, approver: ApproverWord) -> bool:
    match rule.approver_type:
        case None:
            return True
        case "Group":
            return rule.approver in approver.groups
    return rule.approver == str(approver.client_id)


def questions_of(rules: Sequence[ApprovalRule]) -> tuple[str, ...]:
    """What the reason of everybody who approves must answer, each question once."""
    return tuple(dict.fromkeys(rule.question for rule in rules if rule.question is not None))


def may_count(rules: Sequence[ApprovalRule], approver: ApproverWord) -> bool:
    """Whether an approval of this person counts for any rule."""
    return any(_counts(rule, approver) for rule in rules)


def changes_in(operation: str, record: str, found: Mapping[str, Any], written: Mapping[str, Any]) -> list[RecordChange]:
    """What a write changes in a record that was read: members of what is written whose value is another."""
    changes = []
    for name, value in written.items():
        inner = found.get(name) if isinstance(found.get(name), Mapping) else found
        pairs = value.items() if isinstance(value, Mapping) else [(name, value)]
        prefix = f"{name}." if isinstance(value, Mapping) else ""
        for member, new in pairs:
            old = inner.get(member) if isinstance(inner, Mapping) else None
            if old != new:
                path = f"{prefix}{member}"
                change = RecordChange(record=record, member=path, old=_short(old), new=_short(new), operation=operation)
                changes.append(change)
                if len(changes) == _MAX_CHANGES:
                    return changes
    return changes


def _short(value: Any) -> Any:
    """The value; of a large one its length and its digest, by which it is compared when the job goes on.

    It is an object, like one that may have redacted members.
    """
    encoded = msgspec.json.encode(value, order="sorted")
    if len(encoded) <= _MAX_VALUE:
        return value
    return {"bytes": len(encoded), "sha-256": base64.b64encode(hashlib.sha256(encoded).digest()).decode()}


def shows(change: RecordChange, redacted: Collection[str]) -> bool:
    """Whether a reader sees a change for whom these paths are redacted.

    The path of what is written may begin with members that the record does not have, so each end of it is compared. A
    change of a redacted member is not shown at all: that it is shown would tell that the value is another one.
    """
    steps = change.member.split(".")
    ends = [steps[place:] for place in range(len(steps))]
    if any(first_redacted(redacted, [".".join(each)]) for each in ends):
        return False
    is_nested = any(isinstance(value, Mapping | list) for value in (change.old, change.new))
    return not (is_nested and any(covers(redacted, each) for each in ends))
