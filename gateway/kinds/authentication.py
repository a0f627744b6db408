"""Models of authentication: credentials, OAuth endpoints, variables of a connector, and deprecations."""

import re
from datetime import date
from typing import Literal

from pydantic import Field

from gateway.kinds.members import JsonPath, Model


class CredentialField(Model):
    """One member of a connector's credentials."""

    description: str
    required: bool = False
    secret: bool = False
    format: Literal["email"] | None = None


class Deprecation(Model):
    """When the application switches something off (RFC 8594, RFC 9745), and what replaces it."""

    #: the first day without it, if the application has named one
    sunset: date | None = None
    #: the day since which it is deprecated; `sunset` by default
    deprecated: date | None = None
    #: its replacement: an authentication method, a path or a few words
    replacement: str | None = None
    #: the vendor's page about it
    documentation_url: str | None = None


class PathDeprecation(Deprecation):
    """Paths or operations that the application has deprecated; it may not have said when it switches them off."""

    #: the beginning of these paths; empty if it is about `operations`
    path: str = ""
    #: the operations, such as `tags.list`, if a path does not tell them from others
    operations: tuple[str, ...] = ()
    #: whether `replacement` replaces it in the paths of requests already
    switched: bool = False


class Assertion(Model):
    """The JWT that is exchanged for an access token (RFC 7523 §2.1), signed with a private RSA key.

    In `header` and `claims`, `{name}` is a credential, a variable or a member of the key file.
    """

    #: the credential with the private key: PEM, or a key file if there is `key_member`
    key: str
    #: the member of the key file, a JSON object, that holds the private key as PEM
    key_member: str | None = None
    algorithm: Literal["RS256", "RS384", "RS512"] = "RS256"
    #: members of its header beside `alg` and `typ`, such as `kid`; one without its value is left out
    header: dict[str, str] = Field(default_factory=dict)
    #: claims beside `aud`, `exp`, `iat`, `jti` and `scope`; one without its optional credential or variable is left out
    claims: dict[str, str] = Field(default_factory=dict)
    #: the claim `aud`, with `{variable}`; the token URL by default
    audience: str = ""
    #: seconds until it expires
    lifetime: int = Field(default=3600, ge=30, le=3600)
    #: the claim `scope`; the scopes of `oauth` by default, and an empty list leaves it out
    scopes: tuple[str, ...] | None = None
    #: whether it has a `jti`, so that the application accepts it once
    has_id: bool = False

    @staticmethod
    def names(text: str) -> list[str]:
        """The names that are filled in a text of `header`, `claims` or `audience`."""
        return re.findall(r"{(\w+)}", text)


class AuthMethod(Deprecation):
    """One authentication method: its credential fields, and the headers or query members that they are sent in."""

    title: str
    description: str | None = None
    #: how credentials are sent; `none` if everybody may call the application
    scheme: Literal["bearer", "basic", "api_key", "none"]
    #: for `bearer`: the field that holds the token
    token: str | None = None
    #: for `basic`: the user name, with `{field}` filled in
    username: str | None = None
    #: for `basic`: the password, with `{field}` filled in
    password: str | None = None
    #: for `api_key`: headers, with `{field}` filled in
    headers: dict[str, str] = Field(default_factory=dict)
    #: for `api_key`: query members, with `{field}` filled in
    query: dict[str, str] = Field(default_factory=dict)
    #: whether the kind's OAuth endpoints issue and renew the tokens of this method
    oauth: bool = False
    #: the grant that needs no person's consent: the app's id and secret (RFC 6749 §4.4), or an `assertion` (RFC 7523)
    grant_type: Literal["client_credentials", "jwt_bearer"] | None = None
    #: for `jwt_bearer`: what is signed, and with which credential
    assertion: Assertion | None = None
    #: the fields that hold the id and the secret of the OAuth app
    client_id: str = "client_id"
    client_secret: str = "client_secret"
    credentials: dict[str, CredentialField] = Field(default_factory=dict)

    @property
    def access_token(self) -> str:
        """The field that holds the access token of OAuth."""
        return self.token or "access_token"

    def format_of(self, field: str) -> str | None:
        """The format of a credential: the key of an assertion is a `key_file` or a `private_key`, with line breaks."""
        if self.assertion is not None and field == self.assertion.key:
            return "private_key" if self.assertion.key_member is None else "key_file"
        return self.credentials[field].format

    def optional_in(self, template: str) -> list[str]:
        """The credentials of a header or a query member without which it is left out of requests."""
        named = (name for name in re.findall(r"{(\w+)}", template) if name in self.credentials)
        token = self.access_token if self.oauth else None
        return [name for name in named if not self.credentials[name].required and name != token]

    @property
    def header_names(self) -> tuple[str, ...]:
        """The headers that hold its credentials."""
        return tuple(self.headers) if self.scheme in ("api_key", "none") else ("Authorization",)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(name for name, field in self.credentials.items() if field.secret)

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, field in self.credentials.items() if field.required)


#: client authentication: RFC 6749 §2.3.1, none, or a JWT that the gateway signs (RFC 7523 §2.2)
ClientAuthentication = Literal["basic", "body", "none", "private_key_jwt"]


class OAuthEndpoints(Model):
    """The kind's OAuth 2.0 authorization server (RFC 6749), as far as it differs from the RFC's defaults."""

    #: where a person consents; empty if tokens are issued for the app's own credentials, or if the application's pages
    #: issue the refresh tokens
    authorization_url: str = ""
    token_url: str
    revocation_url: str | None = None
    #: the server's identifier, which an `iss` in its responses must equal (RFC 9207); the origin of
    #: `authorization_url` by default
    issuer: str | None = None
    #: whether every authorization response must name the issuer (RFC 9207)
    names_issuer: bool = False
    #: where an app registers itself (RFC 7591), if the organization and the platform have none
    registration_url: str | None = None
    #: whether the URL of an app's metadata document may be its id, which needs no registration
    reads_client_documents: bool = False
    #: how such an app authenticates: not at all, or by a JWT that the gateway signs (RFC 7523 §2.2)
    client_document_authentication: Literal["none", "private_key_jwt"] = "none"
    #: the resource that authorization and token requests name (RFC 8707)
    resource: str | None = None
    #: how the revocation is sent: the form of RFC 7009, or only the token as a bearer token
    revocation_style: Literal["rfc7009", "bearer"] = "rfc7009"
    revocation_method: Literal["POST", "DELETE"] = "POST"
    #: client authentication at the token endpoint; only apps that the gateway registers can sign
    client_authentication: ClientAuthentication = "body"
    #: client authentication that the revocation endpoint supports; that of the token endpoint by default
    revocation_authentication: tuple[Literal["basic", "body", "none"], ...] = ()
    #: encoding of the token request
    encoding: Literal["form", "json"] = "form"
    scopes: tuple[str, ...] = ()
    scope_separator: str = " "
    pkce: bool = False
    #: constant query members of the authorization request
    authorization_params: dict[str, str] = Field(default_factory=dict)
    #: constant members of the token request that exchanges a code
    code_params: dict[str, str] = Field(default_factory=dict)
    #: members of the token request of `client_credentials`, or `{variable}`; an empty text or a missing variable leaves
    #: the member out, also `scope`
    client_params: dict[str, str] = Field(default_factory=dict)
    #: credentials and variables in the token response: name → path. The path of a member that RFC 6749 defines, such as
    #: `access_token`, is read only if the response has no such member
    outputs: dict[str, JsonPath] = Field(default_factory=dict)
    #: the application's own codes for `invalid_grant` (RFC 6749), or descriptions if the code means something else:
    #: the refresh token is no longer valid
    invalid_grant_codes: tuple[str, ...] = ()
    #: the application's own codes for `invalid_client` (RFC 6749): the app's id or secret is wrong
    invalid_client_codes: tuple[str, ...] = ()
    #: statuses other than 401 of responses to an expired access token: it is renewed once, and the request repeated
    expired_statuses: tuple[int, ...] = ()


class Variable(Model):
    """A value of one connector that is not secret and that URLs contain, such as the account's subdomain."""

    description: str
    #: whether a connector needs it; one of the `outputs` of OAuth may be missing until the first token
    required: bool = True
    #: its format: one DNS label, one of the kind's hosts, an https origin on one of them, or text for paths and headers
    type: Literal["dns_label", "host", "origin", "text"] = "dns_label"
    example: str | None = None
    #: the default
    default: str | None = None
    #: the only values that it may have
    enum: tuple[str, ...] | None = None
