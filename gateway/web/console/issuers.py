"""The issuers that the organization trusts, in the console: whose tokens clients exchange."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from aiohttp import web

from gateway.access.identity.model import id_of
from gateway.contract.issuers import MAX_ISSUER_CLIENTS, SUBJECT_CLAIM, NewIssuer
from gateway.errors import Conflict, FieldError, InvalidParams
from gateway.web.bodies import path_id
from gateway.web.console.page import console_page, see_other
from gateway.web.console.rights import lines_in
from gateway.web.console.session import read_console_form
from gateway.web.keys import ACCESS, CALLER

_PAGE = "/console/issuers"


async def list_issuers(request: web.Request) -> web.Response:
    """GET /console/issuers: the trusted issuers, and the form for another one."""
    return await _listed(request)


async def add_issuer(request: web.Request) -> web.Response:
    """POST /console/issuers: trust an issuer."""
    fields = await read_console_form(request)
    try:
        new = NewIssuer(
            issuer=fields.get("issuer", "").strip(),
            audience=fields.get("audience", "").strip(),
            client_ids=_clients_in(fields) or None,
            groups_claim=fields.get("groups_claim", "").strip() or None,
            subject_claim=fields.get("subject_claim", "").strip() or SUBJECT_CLAIM,
            create_people="create_people" in fields,
        )
        await request.app[ACCESS].issuers.add(request[CALLER], new)
    except (InvalidParams, Conflict) as error:
        return await _listed(request, problem=error.detail, fields=fields)
    return see_other(_PAGE)


async def delete_issuer(request: web.Request) -> web.Response:
    """POST /console/issuers/{issuer_id}/delete: end the trust, and the sessions that came from the issuer's tokens."""
    await read_console_form(request)
    await request.app[ACCESS].issuers.delete(request[CALLER], path_id(request, "issuer_id"))
    return see_other(_PAGE)


def _clients_in(fields: Mapping[str, str]) -> Sequence[UUID]:
    """The ids of clients, one per line; raises InvalidParams."""
    lines = lines_in(fields, "client_ids")
    ids = [each for each in map(id_of, lines) if each is not None]
    if len(ids) < len(lines) or len(ids) > MAX_ISSUER_CLIENTS:
        message = f"client_ids: write up to {MAX_ISSUER_CLIENTS} ids of clients, one per line"
        raise InvalidParams(faults=[FieldError("/client_ids", "client_ids", "invalid", message)])
    return ids


async def _listed(
    request: web.Request, *, problem: str | None = None, fields: Mapping[str, str] | None = None
) -> web.Response:
    access, caller = request.app[ACCESS], request[CALLER]
    found = (await access.issuers.all(caller)).data
    return console_page(
        request,
        "issuers.html",
        active="people",
        status=422 if problem else 200,
        issuers=found,
        names=await access.clients.names(caller, (client for each in found for client in each.client_ids or ())),
        fields=fields or {},
        problem=problem,
    )
