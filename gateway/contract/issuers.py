"""Trusted issuers: providers whose tokens clients exchange for tokens of the people whom they name."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated
from uuid import UUID

from msgspec import Struct

from gateway.contract.members import Id, ListOf, Time, Url, member

#: the grants of RFC 8693 and RFC 7523, and the types of tokens of RFC 8693
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ID_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:id_token"
ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"
#: the profile of `jwt-bearer` for assertions of a company's provider
ID_JAG_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag"
#: the claim that names the person unless an issuer has another one, and that of Microsoft Entra, whose `sub` differs
#: from application to application
SUBJECT_CLAIM, ENTRA_CLAIM = "sub", "oid"
#: maximum clients of an issuer, and issuers of an organization
MAX_ISSUER_CLIENTS, MAX_ISSUERS = 1000, 20


class IssuerView(Struct, frozen=True, kw_only=True):
    """An issuer that the organization trusts."""

    id: Annotated[Id, member("The issuer's id at the gateway.")]
    issuer: Annotated[Url, member("`iss` of its tokens.", "https://login.example.com")]
    audience: Annotated[str, member("`aud` of its ID tokens.", "gateway")]
    client_ids: Annotated[
        list[Id] | None, member("The only clients that may exchange its tokens; null for all with `delegate`.", None)
    ]
    groups_claim: Annotated[str | None, member("The claim with the names of the person's groups.", "groups")]
    subject_claim: Annotated[str, member("The claim that is the person's `subject`.", "sub")]
    create_people: Annotated[bool, member("Whether people who are not known are added.", False)]
    created_at: Annotated[Time, member("When it was added.")]


class IssuerList(ListOf[IssuerView], frozen=True):
    """The issuers, by their URLs."""


class NewIssuer(Struct, frozen=True, kw_only=True):
    """An issuer to trust."""

    issuer: str
    audience: str
    client_ids: Sequence[UUID] | None = None
    groups_claim: str | None = None
    subject_claim: str = SUBJECT_CLAIM
    create_people: bool = False


class TrustedIssuer(Struct, frozen=True, kw_only=True):
    """An issuer as it is stored."""

    id: UUID
    organization_id: UUID
    issuer: str
    audience: str
    client_ids: Sequence[UUID] | None
    groups_claim: str | None
    subject_claim: str
    create_people: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRequest:
    """The form of the token endpoint."""

    client_id: str
    client_secret: str = field(repr=False)
    address: str
    #: the ID token or the ID-JAG
    token: str = field(repr=False)
    #: whether the token is an ID-JAG (RFC 7523), which says its resource and is used once
    is_assertion: bool
    scopes: frozenset[str]
    resource: str | None
