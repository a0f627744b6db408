"""The SCIM tokens of identity providers in the console: create one, which is shown once, and revoke."""

from collections.abc import Mapping

from aiohttp import web
from msgspec import UNSET

from gateway.contract.scim import NewScimToken, NewScimTokenView, SubjectAttribute
from gateway.errors import Conflict, FieldError, InvalidParams
from gateway.web.bodies import path_id
from gateway.web.console.page import console_page, see_other
from gateway.web.console.session import read_console_form, read_form_once
from gateway.web.keys import ACCESS, CALLER, SERVICES

_PAGE = "/console/scim"


async def list_tokens(request: web.Request) -> web.Response:
    """GET /console/scim: the tokens, and the form for another one."""
    return await _listed(request)


async def create_token(request: web.Request) -> web.Response:
    """POST /console/scim: create a token; it is shown once."""
    fields = await read_form_once(request)
    try:
        new = NewScimToken(
            name=fields.get("name", "").strip(),
            issuer=fields.get("issuer", "").strip() or UNSET,
            subject=_subject_in(fields),
        )
        created = await request.app[ACCESS].scim_tokens.create(request[CALLER], new)
    except (InvalidParams, Conflict) as error:
        return await _listed(request, problem=error.detail, fields=fields)
    return await _listed(request, created=created)


async def revoke_token(request: web.Request) -> web.Response:
    """POST /console/scim/{token_id}/revoke: end a token; the people and groups stay."""
    await read_console_form(request)
    await request.app[ACCESS].scim_tokens.revoke(request[CALLER], path_id(request, "token_id"))
    return see_other(_PAGE)


def _subject_in(fields: Mapping[str, str]) -> SubjectAttribute:
    try:
        return SubjectAttribute(fields.get("subject", ""))
    except ValueError as error:
        message = f"subject: choose {' or '.join(SubjectAttribute)}"
        raise InvalidParams(faults=[FieldError("/subject", "subject", "invalid", message)]) from error


async def _listed(
    request: web.Request,
    *,
    created: NewScimTokenView | None = None,
    problem: str | None = None,
    fields: Mapping[str, str] | None = None,
) -> web.Response:
    return console_page(
        request,
        "scim.html",
        active="people",
        status=422 if problem else 200,
        tokens=(await request.app[ACCESS].scim_tokens.all(request[CALLER])).data,
        subjects=[each.value for each in SubjectAttribute],
        provider=request.app[SERVICES].settings.oidc_issuer,
        created=created,
        fields=fields or {},
        problem=problem,
    )
