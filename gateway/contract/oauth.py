"""Tokens, consents at the applications, organizations' OAuth apps, and the authorization server for agents' hosts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType
from yarl import URL

from gateway.contract.issuers import ACCESS_TOKEN_TYPE, ID_JAG_PROFILE
from gateway.contract.members import TIME, Id, ListOf, PageOf, Time, Url, member

_ISSUER = "https://gateway.example.com"
_CALLBACK = "http://127.0.0.1:33418/callback"
_TOKEN = "2YotnFZFEjr1zCsicMWpAA"


#: the client id of `gateway login`: a public client, which needs no registration
COMMAND_LINE = "gateway-cli"
#: scopes that an agent may be granted; the audit log and clients need `admin`
AGENT_SCOPES = ("read", "write")
#: paths of the metadata of resources (RFC 9728) and of the authorization server (RFC 8414), and of its endpoints
RESOURCE_METADATA, SERVER_METADATA = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"
AUTHORIZE, TOKEN, REVOKE, REGISTER = "/oauth/authorize", "/oauth/token", "/oauth/revoke", "/oauth/register"
#: path of the document that describes the gateway as a client, whose URL is then its client id
CLIENT_DOCUMENT = "/oauth/client-metadata.json"
#: the same for authorization servers at which the gateway must sign, and the keys
SIGNED_CLIENT_DOCUMENT, CLIENT_KEYS = "/oauth/client-metadata-signed.json", "/oauth/client-keys.json"
#: path of the page of the console to which its own consents return; every client may use it
CONSOLE_RETURN_PATH = "/console/kinds"
#: path of the page of the console to which its connect links return; every client may use it
CONSOLE_CONNECTED_PATH = "/console/connectors"
#: the path of the API as a resource (RFC 8707), for the tokens of `gateway login`
API_RESOURCE = "/api"
#: seconds until a consent at an application expires
CONSENT_SECONDS = 600
#: seconds within which a person must sign in at the provider
SIGN_IN_SECONDS = 600
#: the path of the redirect URI that is registered at the sign-in provider
SIGN_IN_CALLBACK = "/sign-in/callback"


class FlowStatus(StrEnum):
    """The state of a consent."""

    #: the user has not answered yet
    PENDING = "pending"
    #: the connector exists
    COMPLETED = "completed"
    #: there is no connector; the error says why
    FAILED = "failed"
    #: the user did not answer in time
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerToSignInTo:
    """An MCP server whose tools are accepted by a consent, and perhaps the OAuth app that is registered for it."""

    url: str
    #: the name of its kind; made from the server's name when left out
    kind: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentRequest:
    """A request to create or reauthorize a connector by consent."""

    workspace_name: str
    connector_type: str
    redirect_url: str
    name: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    scopes: Sequence[str] | None = None
    #: the existing connector to reauthorize
    connector_id: UUID | None = None
    #: the caller's `state`; `redirect_url` receives it unchanged
    state: str | None = None
    #: `me` or a person's id; None for a shared connector
    owner: str | None = None
    #: in place of a served kind
    mcp_server: ServerToSignInTo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """A host's authorization request, validated."""

    host_id: str
    host_name: str
    redirect_uri: str
    scopes: tuple[str, ...]
    challenge: str
    resource: str
    state: str | None = None

    @property
    def place(self) -> str:
        """The target of the redirect for people: a network host, or `the program behind SCHEME:`."""
        url = URL(self.redirect_uri, encoded=True)
        return str(url.host) if url.scheme in ("http", "https") else f"the program behind {url.scheme}:"

    @property
    def form_target(self) -> str:
        """The target of the redirect as a source of a content security policy: an origin, or a scheme."""
        url = URL(self.redirect_uri, encoded=True)
        return str(url.origin()) if url.scheme in ("http", "https") else f"{url.scheme}:"


@dataclass(frozen=True, slots=True)
class NewGrant:
    """The scopes and workspaces that a person granted, at most those of their own client."""

    scopes: tuple[str, ...]
    #: names of the granted workspaces; None for all
    workspaces: tuple[str, ...] | None = None


class TokenView(Struct, frozen=True):
    """A bearer token."""

    access_token: Annotated[str, member("The token, sent as `Authorization: Bearer …`.", _TOKEN)]
    token_type: Annotated[Literal["bearer"], member("Always `bearer`.")]
    expires_in: Annotated[int, member("Seconds until the token expires.", 900)]
    organization_id: Annotated[Id | None, member("The client's organization; null when it can access several.", None)]


class GrantedTokenView(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The response of the token endpoint (RFC 6749 §5.1)."""

    access_token: Annotated[str, member("The token, sent as `Authorization: Bearer …`.", _TOKEN)]
    token_type: Annotated[Literal["bearer"], member("Always `bearer`.")]
    expires_in: Annotated[int, member("Seconds until the token expires.", 900)]
    scope: Annotated[str, member("The scopes, separated by spaces.", "read write")]
    issued_token_type: Annotated[
        str | None, member("Of a token exchange: the type of the token (RFC 8693 §2.2.1).", ACCESS_TOKEN_TYPE)
    ] = None
    refresh_token: Annotated[
        str | None, member("Of a person's grant: gets the next token; it is valid for one use.")
    ] = None


class StartedConsentView(Struct, frozen=True):
    """A consent that waits for the user."""

    consent_url: Annotated[
        Url,
        member(
            "The address for the user's browser.",
            f"{_ISSUER}/api/v1/integrations/connectors/oauth/consent?flow=5e1f0c3d",
        ),
    ]
    flow_id: Annotated[Id, member("The id to ask for the state of the consent.")]
    expires_at: Annotated[Time, member("When the consent expires.")]


class FlowView(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The state of a consent."""

    flow_id: Annotated[Id, member("The consent's id.")]
    status: Annotated[FlowStatus, member("The state of the consent.", "pending")]
    expires_at: Annotated[Time, member("When the consent expires.")]
    connector_id: Annotated[Id | None, member("Of a completed consent: the connector.")] = None
    error: Annotated[str | None, member("Of a failed consent: the error code (RFC 6749 §4.1.2.1).")] = None
    error_description: Annotated[str | None, member("Of a failed consent: what went wrong.")] = None


class AppIdentityView(Struct, frozen=True):
    """An OAuth app, without its secret."""

    client_id: Annotated[str, member("The app's id.", "acme-agents")]


class AppView(Struct, frozen=True):
    """The organization's own OAuth app for a kind."""

    connector_type: Annotated[str, member("The kind.", "support-desk")]
    configuration: Annotated[AppIdentityView, member("The app, without its secret.")]
    created_at: Annotated[Time | None, member("When the app was first set.", TIME)] = None
    updated_at: Annotated[Time | None, member("When the app was last set.", TIME)] = None


class AppList(ListOf[AppView], frozen=True):
    """The organization's own OAuth apps."""


class GrantView(Struct, frozen=True, kw_only=True):
    """Access that a person gave to an agent's host."""

    id: Annotated[Id, member("The grant's id.")]
    client_id: Annotated[Id, member("The client that gave the access.")]
    client_name: Annotated[str, member("The client's name; of a person the sign-in name.", "ada@example.com")]
    host_id: Annotated[str, member("The host's client id.", "https://host.example.com/client.json")]
    host_name: Annotated[str, member("The host's name.", "An agent's host")]
    scopes: Annotated[list[str], member("`read` or `write`.", ["read"])]
    workspaces: Annotated[list[str] | None, member("The granted workspaces; null for all.", ["acme"])]
    resource: Annotated[str, member("The only URL that accepts the tokens.", f"{_ISSUER}/mcp")]
    created_at: Annotated[Time, member("When the access was given.")]
    expires_at: Annotated[Time | None, member("When the host's refresh token expires.", TIME)]


class GrantPage(PageOf[GrantView], frozen=True):
    """Grants, the newest first."""


class ResourceMetadataView(Struct, frozen=True, kw_only=True):
    """The metadata of a protected resource (RFC 9728 §2)."""

    resource: Annotated[Url, member("The resource.", f"{_ISSUER}/mcp")]
    authorization_servers: Annotated[list[str], member("The issuers of its tokens.", [_ISSUER])]
    scopes_supported: Annotated[list[str], member("The scopes of tokens.", ["read", "write"])]
    bearer_methods_supported: Annotated[list[str], member("How a token is sent.", ["header"])]
    resource_name: Annotated[str, member("The resource's name.", "Agent connector gateway")]


class ServerMetadataView(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The metadata of the authorization server (RFC 8414 §2)."""

    issuer: Annotated[Url, member("The server's identifier.", _ISSUER)]
    authorization_endpoint: Annotated[Url, member("The URL at which a consent begins.", f"{_ISSUER}/oauth/authorize")]
    token_endpoint: Annotated[Url, member("The URL at which clients get tokens.", f"{_ISSUER}/oauth/token")]
    response_types_supported: Annotated[list[str], member("RFC 8414 §2.", ["code"])]
    response_modes_supported: Annotated[list[str], member("RFC 8414 §2.", ["query"])]
    grant_types_supported: Annotated[
        list[str], member("RFC 8414 §2.", ["authorization_code", "refresh_token", "client_credentials"])
    ]
    authorization_grant_profiles_supported: Annotated[
        list[str], member("The profiles of the grant `jwt-bearer`.", [ID_JAG_PROFILE])
    ]
    token_endpoint_auth_methods_supported: Annotated[
        list[str], member("RFC 8414 §2.", ["none", "client_secret_basic", "client_secret_post"])
    ]
    code_challenge_methods_supported: Annotated[list[str], member("RFC 7636.", ["S256"])]
    scopes_supported: Annotated[list[str], member("The scopes of tokens.", ["read", "write"])]
    authorization_response_iss_parameter_supported: Annotated[bool, member("RFC 9207.", True)]
    client_id_metadata_document_supported: Annotated[
        bool, member("Whether a client_id may be the URL of a metadata document.", True)
    ]
    registration_endpoint: Annotated[
        Url,
        member(
            "The URL at which hosts register; it refuses them unless the operator allows it.",
            "https://gateway.example.com/oauth/register",
        ),
    ]
    service_documentation: Annotated[
        Url, member("How to connect a host.", "https://gateway.example.com/docs/how-to/agents")
    ]


class ClientDocumentView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The gateway as a client of other authorization servers: its client ID metadata document."""

    client_id: Annotated[Url, member("The URL of this document.", f"{_ISSUER}{CLIENT_DOCUMENT}")]
    client_name: Annotated[str, member("The name that consent pages show.", "Agent connector gateway")]
    client_uri: Annotated[Url, member("The gateway.", _ISSUER)]
    redirect_uris: Annotated[list[str], member("The URLs that receive the authorization response.")]
    grant_types: Annotated[list[str], member("The grants.", ["authorization_code", "refresh_token"])]
    response_types: Annotated[list[str], member("The response types.", ["code"])]
    token_endpoint_auth_method: Annotated[
        str, member("`none`: the gateway is a public client. `private_key_jwt`: it signs.", "none")
    ]
    jwks_uri: Annotated[
        str | UnsetType, member("Where the keys are, if the gateway signs.", f"{_ISSUER}{CLIENT_KEYS}")
    ] = UNSET
    token_endpoint_auth_signing_alg: Annotated[str | UnsetType, member("How the gateway signs.", "ES256")] = UNSET


class ClientKeyView(Struct, frozen=True, kw_only=True):
    """A public key of the gateway (RFC 7517)."""

    kty: Annotated[str, member("The type of the key.", "EC")]
    crv: Annotated[str, member("The curve.", "P-256")]
    x: Annotated[str, member("A coordinate.", "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU")]
    y: Annotated[str, member("A coordinate.", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")]
    kid: Annotated[str, member("The id of the key.", "eyJ0")]
    use: Annotated[str, member("What it is for.", "sig")]
    alg: Annotated[str, member("How it signs.", "ES256")]


class ClientKeysView(Struct, frozen=True):
    """The keys with which the gateway signs as a client of authorization servers, the newest first."""

    keys: Annotated[list[ClientKeyView], member("The public keys.")]


class HostRegistration(Struct, frozen=True):
    """The metadata that a host registers (RFC 7591 §2); other members are ignored."""

    redirect_uris: Annotated[list[str], member("The URLs that receive the authorization response.", [_CALLBACK])]
    client_name: Annotated[str | None, member("The host's name.", "My agent")] = None


class RegisteredHostView(Struct, frozen=True, kw_only=True):
    """A registered host (RFC 7591 §3.2.1)."""

    client_id: Annotated[str, member("The host's id.", "5e1f0c3d")]
    client_name: Annotated[str, member("The host's name.", "My agent")]
    redirect_uris: Annotated[list[str], member("The URLs that receive the authorization response.", [_CALLBACK])]
    token_endpoint_auth_method: Annotated[str, member("`none`: the host is a public client.", "none")]
    grant_types: Annotated[
        list[str], member("The grants that the host may use.", ["authorization_code", "refresh_token"])
    ]
    response_types: Annotated[list[str], member("The response types that the host may use.", ["code"])]


class JsonRpcRequest(Struct, frozen=True):
    """A request of the Model Context Protocol; without `id` a notification."""

    jsonrpc: Annotated[Literal["2.0"], member("Always `2.0`.")]
    method: Annotated[str, member("The method.", "tools/list")]
    id: Annotated[str | int | None, member("Repeated in the response.", 1)] = None
    params: Annotated[dict[str, Any] | None, member("The params of the method.", {})] = None


class JsonRpcErrorView(Struct, frozen=True, omit_defaults=True):
    """The error of a method."""

    code: Annotated[int, member("The code of JSON-RPC 2.0 or of the protocol.")]
    message: Annotated[str, member("What is wrong.")]
    data: Annotated[Any, member("How to fix it.")] = None


class JsonRpcResponse(Struct, frozen=True, omit_defaults=True):
    """JSON-RPC 2.0: `result` or `error`, with the members of the Model Context Protocol."""

    jsonrpc: Annotated[Literal["2.0"], member("Always `2.0`.")]
    id: Annotated[str | int | None, member("The request's id.", 1)] = None
    result: Annotated[
        dict[str, Any] | None,
        member("The method's answer.", {"resultType": "complete", "content": [], "isError": False}),
    ] = None
    error: Annotated[JsonRpcErrorView | None, member("The error of the method.")] = None
