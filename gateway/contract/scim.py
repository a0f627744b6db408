"""SCIM 2.0: tokens of providers, and the resources that they read and write (RFC 7643, 7644)."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType, field

from gateway.contract.members import ID, TIME, Id, ListOf, Time, Url, member

#: the path of the endpoints, which is also the only one that accepts a provider's token
SCIM = "/scim/v2"
MEDIA_TYPE = "application/scim+json"
USER_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:Group"
LIST_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
PATCH_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
ERROR_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error"
#: maximum resources of a page, operations of a patch, members in one request, tokens of an organization, and characters
#: of a filter or of a list of attributes
MAX_PAGE, MAX_OPERATIONS, MAX_MEMBERS, MAX_TOKENS, MAX_FILTER = 100, 500, 10_000, 20, 1000

_LOCATION = f"https://gateway.example.com/scim/v2/Users/{ID}"
_SCHEMAS = member("The schemas of the document.", [USER_SCHEMA])


class SubjectAttribute(StrEnum):
    """The attribute of a user that is the person's subject at the issuer."""

    EXTERNAL_ID = "externalId"
    USER_NAME = "userName"


class ScimTokenView(Struct, frozen=True, kw_only=True):
    """A token with which a provider manages people and groups."""

    id: Annotated[Id, member("The token's id: that of the client that the audit log names.")]
    name: Annotated[str, member("The name.", "Okta")]
    issuer: Annotated[
        Url | None,
        member("The OpenID provider at which its people sign in; null for none.", "https://login.example.com"),
    ]
    subject: Annotated[SubjectAttribute, member("The attribute that is `sub` of its people there.", "externalId")]
    created_at: Annotated[Time, member("When it was created.")]


class NewScimTokenView(ScimTokenView, frozen=True, kw_only=True):
    """A new token, which is shown once."""

    token: Annotated[str, member("The bearer token for the provider.", "Wm9v…")]
    url: Annotated[Url, member("The provider's base URL.", "https://gateway.example.com/scim/v2")]


class ScimTokenList(ListOf[ScimTokenView], frozen=True):
    """The tokens that are valid, the oldest first."""


class NewScimToken(Struct, frozen=True, kw_only=True):
    """A token to create; without `issuer` its people sign in at the operator's provider, with None nowhere."""

    name: str
    issuer: str | UnsetType | None = UNSET
    subject: SubjectAttribute = SubjectAttribute.EXTERNAL_ID


class ScimQuery(Struct, frozen=True, kw_only=True):
    """A filter and a page of resources, and the attributes of the response."""

    filter: str | None = None
    start_index: int = 1
    count: int = MAX_PAGE
    attributes: str | None = None
    excluded_attributes: str | None = None


class ScimNameView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The parts of a person's name."""

    formatted: Annotated[str | UnsetType, member("The whole name.", "Ada Lovelace")] = UNSET
    family_name: Annotated[str | UnsetType, member("The family name.", "Lovelace")] = UNSET
    given_name: Annotated[str | UnsetType, member("The given name.", "Ada")] = UNSET


class ScimEmailView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An email address."""

    value: Annotated[str | UnsetType, member("The address.", "ada@example.com")] = UNSET
    type: Annotated[str | UnsetType, member("Its function.", "work")] = UNSET
    display: Annotated[str | UnsetType, member("How it is shown.")] = UNSET
    primary: Annotated[bool | UnsetType, member("Whether it is the person's email address.", True)] = UNSET


class ScimReferenceView(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member of a group, or a group of a user."""

    value: Annotated[str | UnsetType, member("The id.", ID)] = UNSET
    display: Annotated[str | UnsetType | None, member("The name.", "Ada")] = UNSET
    type: Annotated[str | UnsetType, member("`User`, or `direct` for a group.", "User")] = UNSET
    # Without an example: tools would take it for a reference of the document.
    ref: Annotated[str | UnsetType, member("The URL.")] = field(default=UNSET, name="$ref")


class ScimMetaView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the gateway says of a resource."""

    resource_type: Annotated[str | UnsetType, member("`User` or `Group`.", "User")] = UNSET
    created: Annotated[str | UnsetType, member("When it was added.", TIME)] = UNSET
    last_modified: Annotated[str | UnsetType, member("When a provider last changed it.", TIME)] = UNSET
    location: Annotated[str | UnsetType, member("Its URL.", _LOCATION)] = UNSET


class ScimUserView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A person as a provider sees it."""

    schemas: Annotated[list[str], _SCHEMAS]
    id: Annotated[str | UnsetType, member("The person's id.", ID)] = UNSET
    external_id: Annotated[str | UnsetType, member("The provider's id.", "00u1a2b3")] = UNSET
    user_name: Annotated[str | UnsetType, member("The unique name, in any case.", "ada@example.com")] = UNSET
    display_name: Annotated[str | UnsetType, member("The name that is shown.", "Ada Lovelace")] = UNSET
    name: Annotated[ScimNameView | UnsetType, member("The parts of the name.")] = UNSET
    emails: Annotated[list[ScimEmailView] | UnsetType, member("The email addresses.")] = UNSET
    active: Annotated[bool | UnsetType, member("False for a suspended person.", True)] = UNSET
    groups: Annotated[list[ScimReferenceView] | UnsetType, member("The groups.")] = UNSET
    meta: Annotated[ScimMetaView | UnsetType, member("What the gateway says of it.")] = UNSET


class ScimGroupView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A group as a provider sees it; its rights are those of `PUT /api/v1/groups/{name}`."""

    schemas: Annotated[list[str], member("The schemas of the document.", [GROUP_SCHEMA])]
    id: Annotated[str | UnsetType, member("The group's id.", ID)] = UNSET
    external_id: Annotated[str | UnsetType, member("The provider's id.", "00g1a2b3")] = UNSET
    display_name: Annotated[str | UnsetType, member("The group's name.", "support")] = UNSET
    members: Annotated[list[ScimReferenceView] | UnsetType, member("The people in the group.")] = UNSET
    meta: Annotated[ScimMetaView | UnsetType, member("What the gateway says of it.")] = UNSET


class ScimUserList(Struct, frozen=True, kw_only=True, rename="camel"):
    """A page of users."""

    schemas: Annotated[list[str], member("The schemas of the document.", [LIST_SCHEMA])]
    total_results: Annotated[int, member("Users that match the filter.", 1)]
    start_index: Annotated[int, member("The number of the first user of the page, from 1.", 1)]
    items_per_page: Annotated[int, member("Users of the page.", 1)]
    resources: Annotated[list[ScimUserView], member("The users, the oldest first.")] = field(name="Resources")


class ScimGroupList(Struct, frozen=True, kw_only=True, rename="camel"):
    """A page of groups."""

    schemas: Annotated[list[str], member("The schemas of the document.", [LIST_SCHEMA])]
    total_results: Annotated[int, member("Groups that match the filter.", 1)]
    start_index: Annotated[int, member("The number of the first group of the page, from 1.", 1)]
    items_per_page: Annotated[int, member("Groups of the page; fewer than asked for if they have many members.", 1)]
    resources: Annotated[list[ScimGroupView], member("The groups, by name.")] = field(name="Resources")


class ScimOperation(Struct, frozen=True, kw_only=True):
    """An operation of a patch."""

    op: Annotated[str, member("`add`, `replace` or `remove`, in any case.", "replace")]
    path: Annotated[str | UnsetType, member("The attribute; left out if `value` is an object.", "active")] = UNSET
    value: Annotated[Any, member("The value.", False)] = UNSET


class ScimPatch(Struct, frozen=True, kw_only=True):
    """A patch (RFC 7644 §3.5.2)."""

    operations: Annotated[list[ScimOperation], member("The operations, in order.")] = field(name="Operations")
    schemas: Annotated[list[str] | UnsetType, member("The schemas of the document.", [PATCH_SCHEMA])] = UNSET


class ScimErrorView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An error (RFC 7644 §3.12)."""

    schemas: Annotated[list[str], member("The schemas of the document.", [ERROR_SCHEMA])]
    status: Annotated[str, member("The status.", "409")]
    detail: Annotated[str, member("What to change.", "userName 'ada@example.com' is taken")]
    scim_type: Annotated[str | UnsetType, member("The word for the error.", "uniqueness")] = UNSET


class ProviderIdentity(Struct, frozen=True):
    """How a provider's people are known when they sign in."""

    issuer: str
    subject: SubjectAttribute


class UserState(Struct, frozen=True, kw_only=True):
    """What a provider says of a person; None for what it does not say."""

    user_name: str
    external_id: str | None = None
    display_name: str | None = None
    #: the parts of the name and the email addresses, as in the documents of SCIM
    name: dict[str, str] = {}
    emails: Sequence[dict[str, Any]] = ()
    active: bool | None = None


class MembersChange(Struct, frozen=True, kw_only=True):
    """A change of a group's members: those to remove, None for all, then those to add."""

    remove: Sequence[UUID] | None = ()
    add: Sequence[UUID] = ()


class GroupChange(Struct, frozen=True, kw_only=True):
    """What a provider changes of a group; UNSET members stay as they are."""

    name: str | UnsetType = UNSET
    external_id: str | UnsetType | None = UNSET
    members: Sequence[MembersChange] = ()
