"""Users and groups as they are stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from gateway.contract.scim import UserState


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredUser:
    """A person of one organization alone, who is no user of a client's product."""

    id: UUID
    user_name: str
    external_id: str | None
    #: the person's name and email address, which administrators can change too
    name: str | None
    email: str | None
    #: JSON of `displayName` and `name` as the provider sent them, and of the email addresses as they are now
    attributes: str
    emails: str
    #: JSON: the groups with their names
    groups: str
    created_at: datetime
    updated_at: datetime
    disabled_at: datetime | None
    #: whether a provider has added or changed the person
    is_provisioned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGroup:
    """A group of the organization."""

    id: UUID
    name: str
    external_id: str | None
    created_at: datetime
    updated_at: datetime
    members: int


def name_of(state: UserState) -> str | None:
    """The name by which the person is shown."""
    return state.display_name or _whole(state.name)


def _whole(name: Mapping[str, str]) -> str | None:
    parts = (name.get("givenName"), name.get("familyName"))
    return name.get("formatted") or " ".join(each for each in parts if each) or None


def shown_name(attributes: Mapping[str, Any]) -> str | None:
    """The same of stored attributes."""
    shown: str | None = attributes.get("displayName") or _whole(attributes.get("name") or {})
    return shown


def email_of(state: UserState) -> str | None:
    """The person's email address: the primary one, else that for work, else the first."""
    valued = [each for each in state.emails if each.get("value")]
    by_rank = sorted(valued, key=lambda each: (each.get("primary") is not True, each.get("type") != "work"))
    return by_rank[0]["value"] if by_rank else None


def user_key(user_name: str) -> str:
    """The name of a user without differences of case, by which it is unique."""
    return user_name.lower()
