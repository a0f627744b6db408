"""Bodies, queries and headers of requests as models, and Structs as bodies of responses.

One error lists all faults of a request, each with its place.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Annotated, Any, ClassVar, TypeVar, get_args
from urllib.parse import parse_qsl
from uuid import UUID

import msgspec
from aiohttp import web
from aiohttp.hdrs import ACCEPT, AUTHORIZATION
from multidict import istr
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from gateway.access.identity.model import Client, id_of
from gateway.access.identity.tokens import bearer_token, hashed
from gateway.contract.answers import Answer, ExecutionView, PageAnswer
from gateway.contract.scim import SCIM
from gateway.errors import MAX_FAULTS, BodyTooLarge, FieldError, InvalidParams, MalformedRequest, NotFound
from gateway.foundation import payloads
from gateway.foundation.aio.turns import in_turn
from gateway.kinds.suggestions import did_you_mean
from gateway.upstream.responses import OperationResult
from gateway.web.admission.load_shedding import BODY_MEMORY, LIMITS
from gateway.web.faults import sentence
from gateway.web.keys import CALLER, REQUEST_ID, SERVICES
from gateway.web.weights import weights_of

_DECODER = msgspec.json.Decoder()

#: maximum objects and arrays of a JSON text; 350,000 in 1 MiB would hold the event loop for 100 ms
_MAX_CONTAINERS = 100_000
#: maximum digits of a number
_MAX_DIGITS = 18
#: maximum fields of a form, and escapes such as `%20`, because 1 MiB of them would hold the event loop for 350 ms
_MAX_FIELDS, _MAX_ESCAPES = 100, 200_000
#: maximum bytes of a form of somebody who is not signed in
_MAX_OPEN_FORM = 64 << 10
#: bytes of a body whose memory is not counted; most calls have less
_UNCOUNTED = 4 << 10
#: bytes after which a body is decoded in turns; decoding so many takes less than half of a millisecond
_LARGE = 64 << 10

#: maximum seconds of `Prefer: wait`
MAX_WAIT = 300
#: the media type of one record per line
NDJSON = "application/x-ndjson"
#: the media type of a batch of CloudEvents
CLOUD_EVENTS = "application/cloudevents-batch+json"
#: headers of calls, as `istr`, because multidict lowercases a plain text at each look-up
_PREFER, _IDEMPOTENCY_KEY, _SDK = istr("Prefer"), istr("Idempotency-Key"), istr("X-ADP-Agent-SDK")
_NUMBER = re.compile(r"\s*[+-]?[\d._]+\s*")
#: a preference with its parameters, up to the next comma outside quotes; and its name and value (RFC 7240 §2)
_PREFERENCE = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+')
_NAME_AND_VALUE = re.compile(r'\s*([^\s=;"]+)\s*(?:=\s*"?([^";]*))?')

M = TypeVar("M", bound=BaseModel)
#: the name of a workspace or a connector
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


class Body(BaseModel):
    """A request body: unknown members are refused by name, and values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    #: examples for the OpenAPI document, by name
    EXAMPLES: ClassVar[Mapping[str, Mapping[str, Any]]] = {}


class QueryString(BaseModel):
    """A query string: unknown members are refused by name, and text such as `5` is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    #: the example for the OpenAPI document
    EXAMPLE: ClassVar[Mapping[str, Any]] = {}


class Form(BaseModel):
    """A form: unknown members are ignored, as RFC 6749 §3.2 requires."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    #: examples for the OpenAPI document, by name
    EXAMPLES: ClassVar[Mapping[str, Mapping[str, Any]]] = {}


async def read_body(request: web.Request, model: type[M]) -> M:
    """The JSON body as a model; raises MalformedRequest, BodyTooLarge and InvalidParams."""
    document = await read_json(request)
    return validated(model, document)


async def read_json(request: web.Request, max_size: int | None = None) -> Any:
    """The JSON object in the body, strictly by RFC 8259: UTF-8, no NaN, no lone surrogates.

    Raises MalformedRequest and BodyTooLarge.
    """
    raw = (await read_bytes(request, max_size)).removeprefix(payloads.BYTE_ORDER_MARK)
    if not raw or raw.isspace():
        raise MalformedRequest("the body is empty; send a JSON object")
    require_fast_json(raw)
    try:
        document = await in_turn(partial(_DECODER.decode, raw)) if len(raw) > _LARGE else _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedRequest(f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise MalformedRequest("the body is nested too deeply") from error
    if not isinstance(document, dict):
        raise MalformedRequest("the body must be a JSON object")
    return document


def require_fast_json(raw: bytes) -> None:
    """Raise MalformedRequest for JSON that may take longer to decode than one turn of the loop.

    What looks like an object, an array or such a number in a text counts too.
    """
    if len(raw) > _LARGE and raw.count(b"[") + raw.count(b"{") > _MAX_CONTAINERS:
        raise MalformedRequest(f"the JSON has more than {_MAX_CONTAINERS:,} objects and arrays; split the request")
    if payloads.has_many_extreme_numbers(raw):
        most = payloads.MAX_EXTREME_NUMBERS
        raise MalformedRequest(f"the JSON has more than {most:,} numbers with exponents beyond 280; split the request")


async def read_form(request: web.Request, model: type[M]) -> M:
    """The form as a model; raises MalformedRequest, BodyTooLarge and InvalidParams."""
    return validated(model, await read_form_fields(request))


async def read_form_fields(request: web.Request) -> dict[str, str]:
    """The fields of a form in UTF-8, each at most once; raises MalformedRequest and BodyTooLarge.

    A form that is read before its sender is known has at most 64 KiB.
    """
    if request.content_type != "application/x-www-form-urlencoded":
        raise MalformedRequest("the body must be application/x-www-form-urlencoded")
    raw = await read_bytes(request, None if CALLER in request else _MAX_OPEN_FORM)
    if raw.count(b"%") > _MAX_ESCAPES:
        raise MalformedRequest(f"the form has more than {_MAX_ESCAPES:,} escapes; send a shorter text")
    try:
        text = raw.decode()
        members = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError as error:
        raise MalformedRequest(f"the body is not a form in UTF-8 with at most {_MAX_FIELDS} fields") from error
    if any("\x00" in name or "\x00" in text for name, text in members):
        raise MalformedRequest("the form contains NUL; remove it")
    form = dict(members)
    if len(form) < len(members):
        raise MalformedRequest("the form has a field twice; send it once")
    return form


async def read_bytes(request: web.Request, max_size: int | None = None) -> bytes:
    """The bytes of the body; raises BodyTooLarge, Unavailable before it is read if memory for bodies is short, and
    Unauthorized if the caller's token is revoked while it arrives.
    """
    most = request.client_max_size if max_size is None else min(max_size, request.client_max_size)
    hold_memory(request, most)
    if request.content.is_eof():
        return await _bytes(request, most)
    with request.app[LIMITS].suspended():  # a body that arrives slowly is no work when load is shed
        caller = request.get(CALLER)
        if caller is None:
            return await _bytes(request, most)
        async with request.app[SERVICES].standing.held(_holder(caller.client)):
            return await _bytes(request, most)


def _holder(client: Client) -> Client:
    """The client whose token must stay valid while a body arrives; that of a provider has no scope by itself."""
    return replace(client, scopes=frozenset()) if client.resource == SCIM else client


async def _bytes(request: web.Request, most: int) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > most:
                raise _too_large(most)
        return bytes(body)
    finally:
        body.clear()  # the traceback of an error is in a cycle of references, and keeps it until the next collection


def hold_memory(request: web.Request, most: int, held: int | None = None) -> None:
    """Count the memory of the body, at most `held` bytes of it, until the request ends or calls `release_memory`.

    Raises BodyTooLarge for a body of more than `most` bytes, and Unavailable if the bodies of the organization, or of
    all requests, take too much memory.
    """
    size = request.content_length
    if size is not None and size > most:
        raise _too_large(most)
    taken = min(most if size is None else size, most if held is None else held)
    if taken > _UNCOUNTED and request.body_exists and BODY_MEMORY not in request:
        caller = request.get(CALLER)
        holder = None if caller is None else caller.organization_id
        request[BODY_MEMORY] = request.app[LIMITS].bodies.acquire(holder, taken)


def release_memory(request: web.Request) -> None:
    """Give back the memory of a body that is no longer needed."""
    if BODY_MEMORY in request:
        request[BODY_MEMORY].release()
        del request[BODY_MEMORY]


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is larger than {most} bytes")


def read_query(request: web.Request, model: type[M]) -> M:
    """The query string as a model; raises MalformedRequest for a name that is sent twice, and InvalidParams."""
    twice = next((name for name in request.query if len(request.query.getall(name)) > 1), None)
    if twice is not None:
        raise MalformedRequest(f"the query has {twice} twice; send it once")
    for name, text in request.query.items():
        if "\x00" in name or "\x00" in text:
            raise InvalidParams(
                faults=[FieldError(f"/{_escaped(name)}", name, "text", f"{name} contains NUL; remove it")]
            )
    return validated(model, dict(request.query))


def whole_number(text: str) -> int | None:
    """The number in a text of ASCII digits, if it fits into PostgreSQL's bigint; else None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("it must be between the years 1 and 9999 in UTC") from error


def split_at_commas(value: object) -> object:
    """Split a query member that accepts several values; for `BeforeValidator`."""
    return value.split(",") if isinstance(value, str) else value


def _no_number(value: object) -> object:
    """Refuse a number, such as 2026: pydantic would read it as seconds since 1970."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        raise PydanticCustomError("datetime_parsing", "a number")
    return value


#: a time with its zone, converted to UTC
Moment = Annotated[AwareDatetime, BeforeValidator(_no_number), AfterValidator(_in_utc)]


def validated(model: type[M], document: dict[str, Any]) -> M:
    """The document as a model; raises InvalidParams with all faults."""
    _refuse_many_unknown(model, document)
    for name, member in document.items():
        if isinstance(member, dict) and len(member) >= MAX_FAULTS:
            nested = _model_at(model, [name])
            if nested is not model:
                _refuse_many_unknown(nested, member, name)
    try:
        # `model_validate` does the same with options, and adds a quarter to the time that a small body takes.
        result: M = model.__pydantic_validator__.validate_python(document)
        return result
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise InvalidParams(faults=(_field_error(model, fault) for fault in errors)) from error


def _refuse_many_unknown(model: type[BaseModel], document: dict[str, Any], outer: str = "") -> None:
    """Raise InvalidParams for many unknown names before the validation, which would list every one of them."""
    if len(document) < MAX_FAULTS or model.model_config.get("extra") != "forbid":
        return
    members = _members(model)
    first = list(islice((name for name in document if name not in members), MAX_FAULTS))
    if len(first) == MAX_FAULTS:
        at, of = (f"/{_escaped(outer)}", f"{outer}.") if outer else ("", "")
        raise InvalidParams(faults=(_unknown(f"{at}/{_escaped(name)}", f"{of}{name}", members) for name in first))


def _field_error(model: type[BaseModel], fault: Any) -> FieldError:
    place = [str(part) for part in fault["loc"]]
    name = ".".join(place)
    pointer = "".join(f"/{_escaped(part)}" for part in place)
    match fault["type"]:
        case "extra_forbidden":
            return _unknown(pointer, name, _members(_model_at(model, place[:-1])))
        case "missing":
            return FieldError(pointer, name, "required", f"{name} is missing")
        case _:
            return FieldError(pointer, name, "invalid", sentence(name, fault))


def _model_at(model: type[BaseModel], place: Iterable[str]) -> type[BaseModel]:
    """The model of the innermost object around a place."""
    for part in place:
        annotation = model.model_fields[part].annotation if part in model.model_fields else None
        types = (each for each in (annotation, *get_args(annotation)) if isinstance(each, type))
        model = next((each for each in types if issubclass(each, BaseModel)), model)
    return model


def _members(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _unknown(pointer: str, name: str, members: Iterable[str]) -> FieldError:
    message = f"{name} is not a member of the request; {did_you_mean(name.rpartition('.')[2], members)}"
    return FieldError(pointer, name, "unknown", message)


def _escaped(part: str) -> str:
    """A part of a JSON pointer (RFC 6901 §3)."""
    return part.replace("~", "~0").replace("/", "~1")


class UnknownId(NotFound):
    """A text that should be a UUID, in a path or a query; `gateway.web.unknown_ids` adds the nearest names."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"there is no {name.removesuffix('_id').replace('_', ' ')} {text[:60]!r}; ids are UUIDs")
        #: the name of the variable or member
        self.name = name
        self.text = text


def path_id(request: web.Request, name: str) -> UUID:
    """An id of the path; raises UnknownId for text that is not a UUID."""
    text = request.match_info[name]
    identifier = id_of(text)
    if identifier is None:
        raise UnknownId(name, text)
    return identifier


def query_id(request: web.Request, name: str) -> UUID | None:
    """An id of the query string, if one is given; raises UnknownId for text that is not a UUID."""
    text = request.query.get(name)
    identifier = id_of(text)
    if text and identifier is None:
        raise UnknownId(name, text)
    return identifier


@dataclass(frozen=True, slots=True)
class Preferences:
    """The preferences in `Prefer` (RFC 7240)."""

    respond_async: bool = False
    wait: int | None = None
    #: the response header `Preference-Applied`
    applied: Mapping[str, str] = field(default_factory=dict)


_NO_PREFERENCES = Preferences()


def preferences_of(request: web.Request) -> Preferences:
    """The preferences of a request; unknown ones are ignored (RFC 7240 §2). Raises MalformedRequest."""
    if _PREFER not in request.headers:
        return _NO_PREFERENCES
    sent = _PREFERENCE.findall(",".join(request.headers.getall(_PREFER)))
    pairs = [match.groups("") for match in map(_NAME_AND_VALUE.match, sent) if match]
    # The first of two with the same name counts (§2).
    preferences = {name.lower(): value.strip() for name, value in reversed(pairs)}
    wait = _wait(preferences["wait"]) if "wait" in preferences else None
    if "respond-async" in preferences:
        return Preferences(True, wait, {"Preference-Applied": "respond-async"})
    return _NO_PREFERENCES if wait is None else Preferences(False, wait, {"Preference-Applied": f"wait={wait}"})


def _wait(text: str) -> int:
    seconds = whole_number(text)
    if seconds is None or seconds > MAX_WAIT:
        raise MalformedRequest(f"Prefer: wait is {text[:20]!r}; it must be a number of seconds, at most {MAX_WAIT}")
    return seconds


def accepts(request: web.Request, media_type: str) -> bool:
    """Whether `Accept` names a media type, and does not prefer JSON to it (RFC 9110 §12.5.1)."""
    weights = weights_of(",".join(request.headers.getall(ACCEPT, ())))
    return weights.get(media_type, 0.0) > 0 and weights[media_type] >= weights.get("application/json", 0.0)


def accepts_lines(request: web.Request) -> bool:
    """Whether `Accept` names NDJSON, and does not prefer JSON to it."""
    return accepts(request, NDJSON)


def is_sdk(request: web.Request) -> bool:
    """Whether the caller is the public SDK, which cannot follow a job: it gets redirects to the result instead."""
    return _SDK in request.headers


class CallHeaders(msgspec.Struct, frozen=True):
    """The options in the headers of a call."""

    preferences: Preferences
    #: a repeated request with the same key gets the first response
    idempotency_key: str | None
    #: SHA-256 of the token of the SDK, which cannot follow a job and gets redirects to the result; None for others
    token_hash: bytes | None


def call_headers(request: web.Request) -> CallHeaders:
    """The options in the headers of a call; raises MalformedRequest."""
    key = request.headers.get(_IDEMPOTENCY_KEY)
    if key is not None and not (1 <= len(key) <= 255 and key.isascii() and key.isprintable() and " " not in key):
        raise MalformedRequest("Idempotency-Key must be 1 to 255 visible ASCII characters")
    if key is not None and len(set(request.headers.getall(_IDEMPOTENCY_KEY))) > 1:
        raise MalformedRequest("the request has two values of Idempotency-Key; send one")
    token_hash = hashed(bearer_token(request.headers.get(AUTHORIZATION))) if is_sdk(request) else None
    return CallHeaders(preferences_of(request), key, token_hash)


def json_response(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(document), status=status, content_type="application/json", headers=headers
    )


def envelope(
    request: web.Request,
    connector_id: str,
    answer: OperationResult,
    took_ms: int,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """The response of an inline call; the records are the bytes that the application sent."""
    return json_response(answer_of(request, connector_id, answer, took_ms), headers=headers)


def answer_of(request: web.Request, connector_id: str | None, answer: OperationResult, took_ms: int) -> Answer:
    """The answer of an inline call; only lists and searches have `next`, which may be null."""
    execution = ExecutionView(connector_id, took_ms, request[REQUEST_ID])
    if answer.is_page:
        return PageAnswer(
            result=answer.result,
            next=answer.next,
            incomplete=answer.incomplete,
            redacted=answer.redacted,
            warning=answer.warning,
            meta=answer.meta,
            execution=execution,
        )
    return Answer(
        result=answer.result,
        redacted=answer.redacted,
        warning=answer.warning,
        meta=answer.meta,
        execution=execution,
    )
