"""One operation of the HTTP contract: its handler, its permissions and its description in the OpenAPI document."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import web
from msgspec import Struct
from pydantic import BaseModel

from gateway.identity.model import Scope

#: a handler answers with a Struct, which is sent as the JSON of a 200, or with a response of its own
RouteHandler = Callable[[web.Request], Awaitable[web.StreamResponse | Struct]]

#: headers that several operations read
RANGE_HEADERS = ("Range", "If-Range", "If-None-Match")
#: headers that several answers have
FILE_HEADERS = (
    "Accept-Ranges",
    "ETag",
    "Last-Modified",
    "Content-Disposition",
    "Content-Security-Policy",
    "Cache-Control",
)
PART_HEADERS = ("Content-Range", *FILE_HEADERS)
#: files have any media type; generators of clients know the first one
FILE_MEDIA = ("application/octet-stream", "*/*")
ACCEPTED_HEADERS = ("Location", "Retry-After", "Preference-Applied")
NO_STORE = ("Cache-Control", "Pragma")
PRIVATE = ("Cache-Control", "Referrer-Policy")
PAGE_HEADERS = (*PRIVATE, "Content-Security-Policy")


@dataclass(frozen=True, slots=True)
class Route:
    """A method of a path and its handler, whose docstring is the description in the OpenAPI document."""

    method: str
    path: str
    handler: RouteHandler
    summary: str
    tag: str
    #: the JSON body; a Struct where the handler reads the JSON by itself
    body: type[BaseModel] | type[Struct] | None = None
    has_optional_body: bool = False
    #: media types of a body of lines, which the handler takes as well
    line_media: tuple[str, ...] = ()
    #: the first lines that the document shows
    line_example: str = ""
    #: the fields of a form, of the OAuth endpoints
    form: type[BaseModel] | None = None
    #: the media type that the document shows of a body that is a file
    file_media: str | None = None
    query: type[BaseModel] | None = None
    #: the JSON of every 2xx answer, or of each status; None for answers without JSON
    response: type[Struct] | Mapping[int, type[Struct]] | None = None
    #: status → what it means, beside the errors that every route may answer
    answers: Mapping[int, str] = field(default_factory=lambda: {200: "OK"})
    #: status → media types beside JSON, or instead of it
    media: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    #: statuses of errors beside those of every route
    errors: tuple[int, ...] = ()
    #: request headers beside those that every route reads
    reads: tuple[str, ...] = ()
    #: status → response headers beside those of every response
    sends: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    #: the scope that the client needs; None if nothing of the organization is read, or if the operation decides
    scope: Scope | None = None
    #: its name in the audit log; None if it changes nothing
    audit: str | None = None
    #: whether it needs no token
    is_open: bool = False
    #: whether it is answered under overload too, so that operators can watch the gateway
    is_probe: bool = False
    #: whether a person sees it: errors are pages too, and the OpenAPI document leaves it out
    is_page: bool = False
    #: whether the caller is the person signed in to the console, not the owner of a token
    is_console: bool = False
    #: whether browsers alone open it, in the course of a consent
    is_browser_step: bool = False
    #: whether it is a protected resource of its own, with metadata that names its authorization server (RFC 9728)
    is_resource: bool = False
    #: the command that calls it, where `gateway api` is not the best one
    command: str | None = None
    #: lines of Python within `async with Gateway() as gateway:`, where `gateway.client` has a method for it
    python: str | None = None

    @property
    def is_stream(self) -> bool:
        """Whether the answer has no end."""
        return "text/event-stream" in self.media.get(200, ())

    def response_of(self, status: int) -> type[Struct] | None:
        """The Struct of the JSON that is answered with a status."""
        if isinstance(self.response, Mapping):
            return self.response.get(status)
        return self.response if 200 <= status < 300 and status not in (204, 206) else None
