"""Bodies, queries and headers of requests into models; everything wrong with them at once, each fault by its place."""

from typing import Any, TypeVar
from uuid import UUID

import msgspec
from aiohttp import web
from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.errors import BodyTooLarge, FieldError, InvalidParams, MalformedRequest, NotFound, Unauthorized
from gateway.http.keys import SERVICES
from gateway.kinds.suggestions import did_you_mean

_DECODER = msgspec.json.Decoder()

M = TypeVar("M", bound=BaseModel)


class Body(BaseModel):
    """A request body: unknown members are refused by name, values are taken for what they are."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Query(BaseModel):
    """A query string: values are text, so `5` is a number where a number is expected."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def bearer_token(request: web.Request) -> str:
    """The token of `Authorization: Bearer` (RFC 6750 §2.1); raises Unauthorized without one."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("a bearer token is needed: Authorization: Bearer <token>")
    return token.strip()


async def read_body(request: web.Request, model: type[M]) -> M:
    """The JSON body as a model; raises MalformedRequest, BodyTooLarge and InvalidParams."""
    return _validated(model, await read_json(request))


async def read_json(request: web.Request) -> Any:
    """The JSON body, RFC 8259 to the letter: no NaN, no lone surrogates, UTF-8 only."""
    most = request.app[SERVICES].settings.max_body_bytes
    if (request.content_length or 0) > most:
        raise BodyTooLarge(f"the body is larger than {most} bytes")
    try:
        raw = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise BodyTooLarge(f"the body is larger than {most} bytes") from error
    if not raw.strip():
        raise MalformedRequest("the body is empty; send a JSON object")
    try:
        document = _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedRequest(f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise MalformedRequest("the body is nested too deeply") from error
    if not isinstance(document, dict):
        raise MalformedRequest("the body must be a JSON object")
    return document


def read_query(request: web.Request, model: type[M]) -> M:
    """The query string as a model; a name that is sent twice is refused."""
    twice = next((name for name in request.query if len(request.query.getall(name)) > 1), None)
    if twice is not None:
        raise MalformedRequest(f"the query names {twice} twice; send it once")
    return _validated(model, dict(request.query))


def _validated(model: type[M], document: dict[str, Any]) -> M:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        faults = [_fault(model, fault) for fault in error.errors(include_url=False, include_context=False)]
        detail = faults[0].message if len(faults) == 1 else f"{len(faults)} members of the request are invalid"
        raise InvalidParams(detail, faults=faults) from error


def _fault(model: type[BaseModel], fault: Any) -> FieldError:
    place = [str(part) for part in fault["loc"]]
    name = ".".join(place)
    pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in place)
    match fault["type"]:
        case "extra_forbidden":
            known = [field.alias or name for name, field in model.model_fields.items()]
            return FieldError(
                pointer, name, "unknown", f"{name} is not a member of the request; {did_you_mean(name, known)}"
            )
        case "missing":
            return FieldError(pointer, name, "required", f"{name} is missing")
        case _:
            return FieldError(pointer, name, "invalid", f"{name}: {fault['msg'][:1].lower()}{fault['msg'][1:]}")


def path_id(request: web.Request, name: str) -> UUID:
    """An id of the path; what is no UUID names nothing."""
    try:
        return UUID(request.match_info[name])
    except ValueError as error:
        raise NotFound("there is no such thing: its id is not a UUID") from error
