"""One operation of the HTTP contract: what it is, who may use it, and what the audit log says of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp.typedefs import Handler
from pydantic import BaseModel

from gateway.identity.model import Scope


@dataclass(frozen=True, slots=True)
class Route:
    """A method of a path and its handler; the middleware does the rest of what is said here."""

    method: str
    path: str
    handler: Handler
    summary: str
    tag: str
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    #: status → what it means, beside the errors that every route may answer
    answers: Mapping[int, str] = field(default_factory=lambda: {200: "OK"})
    #: what the client needs; None where nothing of the organization is read, or where the operation decides
    scope: Scope | None = None
    #: what the audit log calls it; None for what changes nothing
    audit: str | None = None
    #: whether it needs no token
    is_open: bool = False
    #: whether it answers also when there is too much to do: whoever asks here looks after the gateway
    is_probe: bool = False
    #: whether a person sees it: errors are pages too, and the OpenAPI document leaves it out
    is_page: bool = False
    #: whether the caller is who is signed in to the console, and not whose token it is
    is_console: bool = False
    #: whether HEAD is answered as GET is, without the body
    has_head: bool = False
    #: whether it is a protected resource of its own, with metadata that tells whom to ask for a token (RFC 9728)
    is_resource: bool = False
