"""The tokens of identity providers, for administrators."""

from typing import Annotated, ClassVar

from aiohttp import web
from msgspec import UNSET
from pydantic import Field

from gateway.access.identity.model import Scope
from gateway.contract.scim import NewScimToken, NewScimTokenView, ScimTokenList, SubjectAttribute
from gateway.web.bodies import Body, Name, json_response, path_id, read_body
from gateway.web.keys import ACCESS, CALLER
from gateway.web.route import Route

_PATH = "/api/v1/scim/tokens"


class CreateScimToken(Body):
    """A token for an identity provider."""

    EXAMPLES: ClassVar = {
        "Okta": {"name": "Okta", "issuer": "https://acme.okta.com"},
        "Entra": {"name": "Entra", "issuer": "https://login.microsoftonline.com/TENANT/v2.0"},
    }

    name: Name = Field("SCIM", description="the name, as the audit log shows it")
    issuer: str | None = Field(
        None,
        max_length=2048,
        description="the OpenID provider at which its people sign in: an https URL, null for none; left out, the "
        "operator's sign-in provider",
    )
    subject: Annotated[SubjectAttribute, Field(strict=False)] = Field(
        SubjectAttribute.EXTERNAL_ID, description="the attribute that is `sub` of its people there"
    )


async def list_scim_tokens(request: web.Request) -> ScimTokenList:
    """The tokens that are valid; a token itself is shown once, when it is created."""
    return await request.app[ACCESS].scim_tokens.all(request[CALLER])


async def create_scim_token(request: web.Request) -> web.Response:
    """Creates a token with which an identity provider manages people and groups at `/scim/v2`, and nothing else. It is
    valid until it is revoked. Whom the provider adds is identified by `issuer` and `subject` when signing in.
    """
    body = await read_body(request, CreateScimToken) if request.can_read_body else CreateScimToken()
    issuer = body.issuer if "issuer" in body.model_fields_set else UNSET
    new = NewScimToken(name=body.name, issuer=issuer, subject=body.subject)
    return json_response(await request.app[ACCESS].scim_tokens.create(request[CALLER], new), 201)


async def revoke_scim_token(request: web.Request) -> web.Response:
    """Ends a token in every process within a second. The people and groups stay."""
    await request.app[ACCESS].scim_tokens.revoke(request[CALLER], path_id(request, "token_id"))
    return web.Response(status=204)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        _PATH,
        list_scim_tokens,
        "List the tokens of identity providers",
        "SCIM",
        response=ScimTokenList,
        scope=Scope.ADMIN,
        command="gateway people tokens",
        python="print(await gateway.people.scim_tokens())",
    ),
    Route(
        "POST",
        _PATH,
        create_scim_token,
        "Create a token for an identity provider",
        "SCIM",
        body=CreateScimToken,
        has_optional_body=True,
        response=NewScimTokenView,
        answers={201: "The token"},
        errors=(409,),
        scope=Scope.ADMIN,
        audit="scim_token.create",
        command="gateway people create-token Okta --issuer https://acme.okta.com",
        python='print(await gateway.people.create_scim_token("Okta", issuer="https://acme.okta.com"))',
    ),
    Route(
        "DELETE",
        _PATH + "/{token_id}",
        revoke_scim_token,
        "Revoke a token of an identity provider",
        "SCIM",
        answers={204: "The token is no longer valid"},
        errors=(404,),
        scope=Scope.ADMIN,
        audit="scim_token.revoke",
        command="gateway people revoke-token TOKEN",
        python="await gateway.people.revoke_scim_token(token_id)",
    ),
)
