"""One operation of the HTTP contract: its handler, its permissions and its description in the OpenAPI document."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import web
from msgspec import Struct
from pydantic import BaseModel

from gateway.access.identity.model import Caller, Scope

#: a handler returns a Struct, which is sent as the JSON of a 200, or a response
RouteHandler = Callable[[web.Request], Awaitable[web.StreamResponse | Struct]]
#: who sends the request; raises Unauthorized, or SignInRequired for a page
Authenticate = Callable[[web.Request], Awaitable[Caller]]
#: a page about an error, of its heading, text and status
ErrorPage = Callable[[web.Request, str, str, int], web.Response]

#: statuses of errors that the application's response can cause, with which a job can end
CALL_ERRORS = (404, 409, 410, 416, 422, 424, 502, 504)
#: the paths of connectors, and of one of them
CONNECTORS = "/api/v1/integrations/connectors"
CONNECTOR = CONNECTORS + "/{connector_id}"
#: headers that several operations read
RANGE_HEADERS = ("Range", "If-Range", "If-None-Match")
#: headers that several responses have
FILE_HEADERS = (
    "Accept-Ranges",
    "ETag",
    "Last-Modified",
    "Content-Disposition",
    "Content-Security-Policy",
    "Cache-Control",
)
FILE_SENDS: Mapping[int, tuple[str, ...]] = {
    200: FILE_HEADERS,
    206: ("Content-Range", *FILE_HEADERS),
    304: FILE_HEADERS,
    416: ("Content-Range", "Accept-Ranges"),
}
#: media types of a file; client generators support the first one
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
    #: the JSON body; a Struct if the handler reads the JSON itself
    body: type[BaseModel] | type[Struct] | None = None
    has_optional_body: bool = False
    #: media types of a body of lines, which the handler also accepts
    line_media: tuple[str, ...] = ()
    #: the example of a body of lines
    line_example: str = ""
    #: the form of an OAuth endpoint
    form: type[BaseModel] | None = None
    #: the media type of a body that is a file
    file_media: str | None = None
    query: type[BaseModel] | None = None
    #: the JSON of all 2xx responses, or by status; None for responses without JSON
    response: type[Struct] | Mapping[int, type[Struct]] | None = None
    #: whether the JSON is an array of `response`
    is_array: bool = False
    #: status → description, in addition to the errors of every route
    answers: Mapping[int, str] = field(default_factory=lambda: {200: "OK"})
    #: status → media types in addition to JSON, or instead of it
    media: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    #: statuses of errors in addition to those of every route
    errors: tuple[int, ...] = ()
    #: request headers in addition to those that every route reads
    reads: tuple[str, ...] = ()
    #: status → response headers in addition to those of every response
    sends: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    #: the scope that the client needs; None if no data of the organization is read, or if the handler checks the scope
    scope: Scope | None = None
    #: whether a client may call it in a session for a person
    in_session: bool = False
    #: whether it is served too while the organization is moved to another database, when only reads are
    while_moving: bool = False
    #: the name in the audit log; None if the route changes nothing
    audit: str | None = None
    #: whether the route needs no token
    is_open: bool = False
    #: whether it is answered under overload too, so that operators can monitor the gateway
    is_probe: bool = False
    #: whether it is a page for people: its errors are pages too, and it is not in the OpenAPI document
    is_page: bool = False
    #: whether browsers open it too: they get its errors as pages
    is_link: bool = False
    #: how the page shows an error; None for a card without the pages around it
    error_page: ErrorPage | None = None
    #: who sends the request, if its token in `Authorization` alone does not say it
    authenticate: Authenticate | None = None
    #: whether it is an endpoint of SCIM: JSON has its media type, and errors its format (RFC 7644 §3.1, §3.12)
    is_scim: bool = False
    #: whether it is a step of a consent, which only browsers open
    is_browser_step: bool = False
    #: whether it is a protected resource with its own metadata, which names its authorization server (RFC 9728)
    is_resource: bool = False
    #: the command of its sample, if there is a better one than `gateway api`
    command: str | None = None
    #: the Python of its sample, within `async with Gateway() as gateway:`, if `gateway.client` has a method for it
    python: str | None = None

    @property
    def is_stream(self) -> bool:
        """Whether the response is a stream of events."""
        return "text/event-stream" in self.media.get(200, ())

    @property
    def has_pages(self) -> bool:
        """Whether the caller chooses how many items the answer has, and gets it at once."""
        return self.query is not None and "limit" in self.query.model_fields and "wait" not in self.query.model_fields

    def response_of(self, status: int) -> type[Struct] | None:
        """The Struct of the JSON of a response with this status."""
        if isinstance(self.response, Mapping):
            return self.response.get(status)
        return self.response if 200 <= status < 300 and status not in (204, 206) else None
