"""The model of an import: the operations of a document, and remarks on how they were mapped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

#: a mapping of a document
Node = Mapping[str, Any]

#: the member of a document, an overlay or an operation that holds a person's corrections
CORRECTIONS = "x-gateway"


class Confidence(StrEnum):
    """How far a finding can be trusted."""

    #: mapped by a rule that may be wrong: check it
    GUESSED = "guessed"
    #: not mapped, or mapped without something that matters: a person decides
    NEEDS_PERSON = "needs a person"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a person should know of an import."""

    confidence: Confidence
    #: `GET /path`, or `the document`
    place: str
    #: the same sentence for all findings of a sort
    reason: str
    #: the part of the message that differs between findings
    detail: str = ""
    #: the member of an action whose correction by a person settles it
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
    """The response to a success."""

    status: str
    #: media type → media type object
    content: Mapping[str, Node]
    #: names in lower case
    headers: frozenset[str]


@dataclass(frozen=True, slots=True)
class SourceOperation:
    """One operation of a document, its references resolved one level deep."""

    #: in capitals
    method: str
    path: str
    operation_id: str
    tags: Sequence[str]
    summary: str
    description: str
    is_deprecated: bool
    #: parameter objects, those of the path included
    parameters: Sequence[Node]
    body: SourceBody | None
    responses: Sequence[Response]
    #: schemas of responses that say no
    failures: Sequence[Node]
    #: the URL that requests begin with, where it is not that of the document
    server: str | None
    #: alternatives, each the names of schemes that are needed together; None where the document's apply
    security: Sequence[Sequence[str]] | None
    #: a person's corrections: members of the action, `entity`, `action` and `ignore`
    corrections: Node

    @property
    def place(self) -> str:
        return f"{self.method} {self.path}"


def guessed(operation: SourceOperation, reason: str, detail: str = "", member: str = "") -> Finding:
    """A finding of something that was mapped by a rule that may be wrong."""
    return Finding(Confidence.GUESSED, operation.place, reason, detail, member)


def for_a_person(operation: SourceOperation, reason: str, detail: str = "", member: str = "") -> Finding:
    """A finding of something that only a person can decide."""
    return Finding(Confidence.NEEDS_PERSON, operation.place, reason, detail, member)


class NotMapped(Exception):
    """An operation that the spec language cannot express or that is too uncertain; its text is the reason."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


class ImportFailed(Exception):
    """A document that cannot be imported at all; its text says why and what to do."""
