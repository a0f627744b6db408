"""The model of an import: the operations of a document, and remarks on how they were mapped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

#: a mapping of a document
Node = Mapping[str, Any]

#: the member of a document, an overlay or an operation that holds a person's corrections
CORRECTIONS = "x-gateway"
#: the member of a read document with the addresses of the documents that it refers to and that cannot be read → why
UNREAD = "x-unread"


class Confidence(StrEnum):
    """How certain the mapping is that a finding is about."""

    #: mapped by a rule that may be wrong: check it
    GUESSED = "guessed"
    #: not mapped, or not mapped completely: a person must decide
    NEEDS_PERSON = "needs a person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One remark of an import for a person."""

    confidence: Confidence
    #: `GET /path`, or `the document`
    place: str
    #: the sentence that all findings of one sort have
    reason: str
    #: the part of the message that differs between findings of one sort
    detail: str = ""
    #: the member of an action; once a person corrects it, the finding is no longer reported
    member: str = ""


@dataclass(frozen=True, slots=True)
class SourceBody:
    """The body of a request in the one media type that is sent."""

    content_type: str
    schema: Node
    is_required: bool
    #: how members of forms and multiparts are written (OpenAPI's `encoding`)
    encoding: Node = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """A response with a status of success."""

    status: str
    #: media type → media type object
    content: Mapping[str, Node]
    #: names in lower case
    headers: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOperation:
    """One operation of a document. Its own members are resolved; references deeper inside are not."""

    #: in upper case
    method: str
    path: str
    operation_id: str
    tags: Sequence[str]
    summary: str
    description: str
    is_deprecated: bool
    #: parameter objects, including those of the path
    parameters: Sequence[Node]
    body: SourceBody | None
    responses: Sequence[Response]
    #: schemas of error responses
    failures: Sequence[Node]
    #: server objects, if they are not those of the document
    servers: Any
    #: alternatives, each the names of schemes that are needed together; None if the document's apply
    security: Sequence[Sequence[str]] | None
    #: references in its own members that lead nowhere
    missing: Sequence[str]
    #: a person's corrections: members of the action, `entity`, `action` and `ignore`
    corrections: Node

    @property
    def place(self) -> str:
        return f"{self.method} {self.path}"


def guessed(operation: SourceOperation, reason: str, detail: str = "", member: str = "") -> Finding:
    """A finding about a mapping by a rule that may be wrong."""
    return Finding(confidence=Confidence.GUESSED, place=operation.place, reason=reason, detail=detail, member=member)


def for_a_person(operation: SourceOperation, reason: str, detail: str = "", member: str = "") -> Finding:
    """A finding that a person must decide."""
    return Finding(
        confidence=Confidence.NEEDS_PERSON, place=operation.place, reason=reason, detail=detail, member=member
    )


class NotMapped(Exception):
    """An operation cannot be expressed in the spec language or is too uncertain; the text is the reason."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


class ImportFailed(Exception):
    """A document cannot be imported; the text gives the reason and what to do."""
