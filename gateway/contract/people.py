"""People of an organization, and the groups from which they have rights."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType

from gateway.contract.members import Id, PageOf, Time, member

#: maximum groups of a person, and workspaces of a person or a group
MAX_GROUPS, MAX_WORKSPACES = 100, 1000

_SUBJECT = "The person's id at the issuer, or in the client's namespace."
_OWN_SCOPES = "The scopes that the person has beside those of the groups."
_OWN_WORKSPACES = "The workspaces that the person may see beside those of the groups; null for all."


class PersonStatus(StrEnum):
    """Whether a person may use the gateway."""

    ACTIVE = "active"
    #: every token, session and grant ended; nothing of it comes back with the person
    SUSPENDED = "suspended"


class PersonView(Struct, frozen=True, kw_only=True):
    """A person of the organization."""

    id: Annotated[Id, member("The person's id.")]
    email: Annotated[str | None, member("The email address; it never identifies the person.", "ada@example.com")]
    name: Annotated[str | None, member("The person's name.", "Ada")]
    issuer: Annotated[str | None, member("The OpenID provider that signs the person in.", "https://login.example.com")]
    subject: Annotated[str | None, member(_SUBJECT, "u-4711")]
    client_id: Annotated[Id | None, member("The client in whose namespace `subject` is.")]
    groups: Annotated[list[str], member("The names of the person's groups.", ["support"])]
    workspaces: Annotated[list[str] | None, member(_OWN_WORKSPACES, ["acme"])]
    scopes: Annotated[list[str], member(_OWN_SCOPES, ["read"])]
    status: Annotated[PersonStatus, member("Whether the person may use the gateway.", "active")]
    created_at: Annotated[Time, member("When the person was added.")]
    last_seen_at: Annotated[Time | None, member("When the person last signed in.")]


class PeoplePage(PageOf[PersonView], frozen=True):
    """People, the oldest first."""


class GroupView(Struct, frozen=True):
    """A group, whose rights its members have beside their own."""

    name: Annotated[str, member("The group's name.", "support")]
    workspaces: Annotated[list[str] | None, member("The workspaces that members may see; null for all.", ["acme"])]
    scopes: Annotated[list[str], member("The scopes that members have.", ["read", "write"])]


class ListedGroupView(GroupView, frozen=True):
    """A group in the list of groups."""

    members: Annotated[int, member("How many people are in the group.", 12)]


class GroupPage(PageOf[ListedGroupView], frozen=True):
    """Groups, by name."""


class PersonSelection(Struct, frozen=True, kw_only=True):
    """A filter of people; None matches every value."""

    #: a part of the name, the email address or the subject
    containing: str | None = None
    status: PersonStatus | None = None
    group: str | None = None
    issuer: str | None = None
    subject: str | None = None
    client_id: UUID | None = None
    #: only people who can see no other workspaces
    workspaces: Sequence[str] | None = None
    #: the position after which the page begins
    after: tuple[datetime, UUID] | None = None


class PersonChange(Struct, frozen=True, kw_only=True):
    """Members of a person that change; UNSET ones stay as they are."""

    email: str | UnsetType | None = UNSET
    name: str | UnsetType | None = UNSET
    groups: Sequence[str] | UnsetType = UNSET
    workspaces: Sequence[str] | UnsetType | None = UNSET
    scopes: Sequence[str] | UnsetType = UNSET
    status: PersonStatus | UnsetType = UNSET


class NewPerson(Struct, frozen=True, kw_only=True):
    """A person to add."""

    email: str | None = None
    name: str | None = None
    issuer: str | None = None
    subject: str | None = None
    client_id: UUID | None = None
    groups: Sequence[str] = ()
    workspaces: Sequence[str] | None = ()
    scopes: Sequence[str] = ()
