"""Console sessions: their cookie, and the protection of their forms against other sites."""

from collections.abc import Mapping
from uuid import uuid5

from aiohttp import web
from pydantic import TypeAdapter, ValidationError

from gateway.access.identity.model import Caller, id_of
from gateway.agents.mcp.origins import is_origin_allowed, origins_of
from gateway.errors import Conflict, FieldError, Forbidden, InvalidParams
from gateway.web.bodies import Name, read_form_fields
from gateway.web.keys import ACCESS, SERVICES, SESSION
from gateway.web.pages.sign_in import SESSION_COOKIE, SignInRequired, console_caller

_NAME: TypeAdapter[str] = TypeAdapter(Name)
#: schemes of this host's origin in the browser; a proxy may have terminated TLS
_SCHEMES = ("http", "https")


class ForeignForm(Forbidden):
    """The form was not sent by a page of the gateway."""

    code, title = "foreign_form", "This form cannot be accepted"


class FormSentTwice(Conflict):
    """The form was sent before, and does its work once."""

    code, title = "form_sent_twice", "This form was sent already"


async def signed_in(request: web.Request) -> Caller:
    """The signed-in caller; raises SignInRequired."""
    token, caller = SESSION_COOKIE.secret(request), await console_caller(request)
    if token is None or caller is None:
        raise SignInRequired("sign in first")
    request[SESSION] = token
    return caller


async def read_console_form(request: web.Request) -> dict[str, str]:
    """The fields of a form of the console; raises ForeignForm for a form that is not of this session."""
    fields = await read_form_fields(request)
    require_csrf(request, fields.pop("csrf", ""))
    return fields


async def read_form_once(request: web.Request) -> dict[str, str]:
    """As `read_console_form`; raises FormSentTwice if this session has sent the form before, to the same address."""
    fields = await read_console_form(request)
    key = id_of(fields.pop("key", ""))
    sessions = request.app[ACCESS].console_sessions
    if key is not None and not await sessions.is_sent_first(request[SESSION], uuid5(key, request.path)):
        raise FormSentTwice("it does its work once; reload the page to see what it did, or to send it again")
    return fields


def require_csrf(request: web.Request, token: str) -> None:
    """Raise ForeignForm unless it is the CSRF token of this session."""
    if not request.app[ACCESS].console_sessions.is_csrf_token(request[SESSION], token):
        raise ForeignForm("the form is not of this session; go back, reload the page and send it again")


def name_in(fields: Mapping[str, str], field: str) -> str | None:
    """The name in a field; None if it is empty. Raises InvalidParams, like the API, for an invalid name."""
    text = fields.get(field, "").strip()
    if not text:
        return None
    try:
        return _NAME.validate_python(text)
    except ValidationError as error:
        message = f"{field} must be at most 200 characters without control characters"
        raise InvalidParams(message, faults=[FieldError(f"/{field}", field, "invalid", message)]) from error


def chosen_in(fields: Mapping[str, str], prefix: str) -> list[str]:
    """The names of the checked boxes with a prefix, without it: `tickets` of `entity:tickets`."""
    return [name.removeprefix(prefix) for name in fields if name.startswith(prefix)]


async def read_sign_in_form(request: web.Request) -> dict[str, str]:
    """The fields of a sign-in form; raises ForeignForm for a form of another site."""
    own = origins_of(request.app[SERVICES].settings.base_url) | {f"{scheme}://{request.host}" for scheme in _SCHEMES}
    if not is_origin_allowed(request, own):
        raise ForeignForm("the form was sent by another site; sign in on the gateway's own page")
    return await read_form_fields(request)
