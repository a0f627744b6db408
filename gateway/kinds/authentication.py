"""Models of authentication: credentials, OAuth endpoints, the variables of a connector, and what of it ends."""

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
    """When something of the application ends (RFC 8594, RFC 9745), and what replaces it."""

    #: the first day without it
    sunset: date | None = None
    #: since when new users should not adopt it; `sunset` by default
    deprecated: date | None = None
    #: its replacement: an authentication method, a path or a few words
    replacement: str | None = None
    #: the vendor's page about it
    documentation_url: str | None = None


class PathDeprecation(Deprecation):
    """Paths of the application that end."""

    #: how the paths of the requests concerned begin
    path: str
    #: whether requests go to `replacement` already: their paths then begin with it
    switched: bool = False


class AuthMethod(Deprecation):
    """One authentication method: its credential fields and how they become a header."""

    title: str
    description: str | None = None
    scheme: Literal["bearer", "basic", "api_key"]
    #: for `bearer`: the field that holds the token
    token: str | None = None
    #: for `basic`: the two halves, with `{field}` filled in
    username: str | None = None
    password: str | None = None
    #: for `api_key`: headers and members of the query, with `{field}` filled in
    headers: dict[str, str] = Field(default_factory=dict)
    query: dict[str, str] = Field(default_factory=dict)
    #: tokens of this method come from, and are renewed by, the kind's OAuth endpoints
    oauth: bool = False
    #: how they come without a person's consent: for the app's own id and secret (RFC 6749 §4.4)
    grant_type: Literal["client_credentials"] | None = None
    credentials: dict[str, CredentialField]

    @property
    def header_names(self) -> tuple[str, ...]:
        """The headers that hold its credentials."""
        return tuple(self.headers) if self.scheme == "api_key" else ("Authorization",)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(name for name, field in self.credentials.items() if field.secret)

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, field in self.credentials.items() if field.required)


class OAuthEndpoints(Model):
    """The kind's OAuth 2.0 authorization server (RFC 6749), as far as it differs from the RFC's defaults."""

    #: where a person consents; none where tokens come of the app's own credentials alone
    authorization_url: str = ""
    token_url: str
    revocation_url: str | None = None
    #: the server's identifier, which an `iss` in its answers must be (RFC 9207); the origin of
    #: `authorization_url` by default
    issuer: str | None = None
    #: how the revocation is sent: RFC 7009 form, a form without client authentication, or the bearer token alone
    revocation_style: Literal["rfc7009", "bearer"] = "rfc7009"
    revocation_method: Literal["POST", "DELETE"] = "POST"
    #: client authentication at the token endpoint
    client_authentication: Literal["basic", "body"] = "body"
    #: encoding of the token request
    encoding: Literal["form", "json"] = "form"
    scopes: tuple[str, ...] = ()
    scope_separator: str = " "
    pkce: bool = False
    #: constant query members of the authorization request
    authorization_params: dict[str, str] = Field(default_factory=dict)
    #: credentials and variables that come with the token answer: name → where it lies; of the members that RFC 6749
    #: names, such as `access_token`, the path that is read when the response has no such member
    outputs: dict[str, JsonPath] = Field(default_factory=dict)
    #: the application's own codes for RFC 6749's `invalid_grant`: the refresh token is no longer valid
    invalid_grant_codes: tuple[str, ...] = ()
    #: and for `invalid_client`: the app's id or secret is wrong
    invalid_client_codes: tuple[str, ...] = ()


class Variable(Model):
    """A non-secret value of one connector that addresses need, such as the account's subdomain."""

    description: str
    #: not for a variable among the `outputs` of OAuth: until the first token a connector may be without it
    required: bool = True
    #: its form: one DNS label, one of the kind's hosts, or an https origin on one of them
    type: Literal["dns_label", "host", "origin"] = "dns_label"
    example: str | None = None
    #: the default
    default: str | None = None
