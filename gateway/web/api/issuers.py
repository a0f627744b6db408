"""Trusted issuers, for administrators of an organization."""

from typing import Annotated, ClassVar
from uuid import UUID

from aiohttp import web
from pydantic import Field

from gateway.access.identity.model import Scope
from gateway.contract.issuers import MAX_ISSUER_CLIENTS, SUBJECT_CLAIM, IssuerList, IssuerView, NewIssuer
from gateway.web.bodies import Body, json_response, path_id, read_body
from gateway.web.keys import ACCESS, CALLER
from gateway.web.route import Route

_PATH = "/api/v1/issuers"


class AddIssuer(Body):
    """An issuer to trust."""

    EXAMPLES: ClassVar = {
        "provider": {"issuer": "https://login.example.com", "audience": "gateway", "groups_claim": "groups"}
    }

    issuer: str = Field(max_length=2048, description="`iss` of its tokens, exactly; its metadata name its keys")
    audience: str = Field(max_length=255, description="`aud` of its ID tokens; an ID-JAG has the gateway's own URL")
    client_ids: Annotated[list[Annotated[UUID, Field(strict=False)]], Field(max_length=MAX_ISSUER_CLIENTS)] | None = (
        Field(None, description="the only clients that may exchange its tokens; all with the scope `delegate`")
    )
    groups_claim: str | None = Field(
        None,
        max_length=200,
        description="the claim with the names of the person's groups, which replace those of the person",
    )
    subject_claim: str = Field(
        SUBJECT_CLAIM,
        max_length=200,
        description="the claim that is the person's `subject`; `oid` for Microsoft Entra, whose `sub` differs from "
        "application to application",
    )
    create_people: bool = Field(False, description="whether unknown people are added, with their groups only")


async def list_issuers(request: web.Request) -> IssuerList:
    """The issuers that the organization trusts."""
    return await request.app[ACCESS].issuers.all(request[CALLER])


async def add_issuer(request: web.Request) -> web.Response:
    """Trusts an issuer: clients with the scope `delegate` exchange its tokens for tokens of the people whom they name.
    People are known by `issuer` and `subject`, which the claim `subject_claim` has. Keys are fetched from public
    addresses only, unless the operator allows others (`GATEWAY_OIDC_PRIVATE`).
    """
    body = await read_body(request, AddIssuer)
    new = NewIssuer(
        issuer=body.issuer,
        audience=body.audience,
        client_ids=body.client_ids,
        groups_claim=body.groups_claim,
        subject_claim=body.subject_claim,
        create_people=body.create_people,
    )
    return json_response(await request.app[ACCESS].issuers.add(request[CALLER], new), 201)


async def delete_issuer(request: web.Request) -> web.Response:
    """Ends the trust in an issuer, and the sessions that came from its tokens, in every process within a second."""
    await request.app[ACCESS].issuers.delete(request[CALLER], path_id(request, "issuer_id"))
    return web.Response(status=204)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        _PATH,
        list_issuers,
        "List the trusted issuers",
        "Sessions",
        response=IssuerList,
        scope=Scope.ADMIN,
        command="gateway issuers list",
        python="print(await gateway.issuers.list())",
    ),
    Route(
        "POST",
        _PATH,
        add_issuer,
        "Trust an issuer",
        "Sessions",
        body=AddIssuer,
        response=IssuerView,
        answers={201: "The issuer"},
        errors=(409,),
        scope=Scope.ADMIN,
        audit="issuer.add",
        command="gateway issuers add https://login.example.com --audience gateway",
        python='print(await gateway.issuers.add("https://login.example.com", audience="gateway"))',
    ),
    Route(
        "DELETE",
        _PATH + "/{issuer_id}",
        delete_issuer,
        "End the trust in an issuer",
        "Sessions",
        answers={204: "The issuer is no longer trusted"},
        errors=(404,),
        scope=Scope.ADMIN,
        audit="issuer.delete",
        command="gateway issuers delete ISSUER",
        python="await gateway.issuers.delete(issuer_id)",
    ),
)
