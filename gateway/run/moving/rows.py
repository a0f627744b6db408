"""What is believed of a row of a file, which a stranger may have written. Rows of tables of one organization alone are
checked by what they refer to (`ownership.py`); here are those of tables that all organizations share, and values that
work for all of them reads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.access.oauth_server.hosts import redirect_uris_of, registered_name
from gateway.errors import InvalidParams, OAuthError
from gateway.operations.schedules.cron import parsed
from gateway.run.moving.document import Manifest


@dataclass(frozen=True, slots=True)
class RowRule:
    """A rule for the rows that were imported."""

    table: str
    text: str
    #: selects the key of a row that breaks it; `$1` is the organization
    statement: str


RULES: tuple[RowRule, ...] = (
    RowRule(
        "clients",
        "a client acts for the organization of the file",
        """SELECT id::text FROM clients WHERE xmin = pg_current_xact_id()::xid AND NOT EXISTS (
               SELECT FROM client_organizations WHERE client_id = clients.id AND organization_id = $1) LIMIT 1""",
    ),
    # The scopes of a group are the member's in every organization.
    RowRule(
        "group_members",
        "members of groups act for no other organization",
        """SELECT client_id::text
           FROM group_members AS member JOIN client_organizations AS other USING (client_id)
           WHERE member.organization_id = $1 AND other.organization_id <> $1 LIMIT 1""",
    ),
    RowRule(
        "agent_hosts",
        "a grant of the organization names the host",
        """SELECT id::text FROM agent_hosts WHERE xmin = pg_current_xact_id()::xid AND NOT EXISTS (
               SELECT FROM agent_grants WHERE host_id = agent_hosts.id::text AND organization_id = $1) LIMIT 1""",
    ),
    # What follows gets the next number. If it were taken, the statements that number for all organizations would fail.
    RowRule(
        "audit_chain",
        "the head of the chain has the number of its last entry, or a later one",
        """SELECT seq::text FROM audit_chain WHERE organization_id = $1
           AND seq > COALESCE((SELECT seq FROM audit_heads WHERE organization_id = $1), 0) LIMIT 1""",
    ),
    RowRule(
        "job_events",
        "the job has the number of its last event, or a later one",
        """SELECT id::text FROM jobs JOIN job_events AS event ON job_id = id
           WHERE jobs.organization_id = $1 AND event.number > version LIMIT 1""",
    ),
    RowRule(
        "events",
        "an event has a size, and the feed has the number of its last event, or a later one",
        """SELECT sequence::text FROM events WHERE organization_id = $1 AND (size < 1
           OR last_id > COALESCE((SELECT last_id FROM event_feeds WHERE organization_id = $1), 0)) LIMIT 1""",
    ),
)


def believed(table: str, row: dict[str, Any], manifest: Manifest, name: str) -> dict[str, Any]:
    """The row as it is imported; raises InvalidParams for one that a file may not bring."""
    checked = _CHECKED.get(table)
    return row if checked is None else checked(row, manifest, name)


def is_checked(table: str) -> bool:
    """Whether rows of the table are read before they are imported."""
    return table in _CHECKED


def refused(table: str, row: object, rule: str) -> InvalidParams:
    """The error for a row."""
    return InvalidParams(f"the file is not imported: {table} {row}: {rule}")


def _organization(row: dict[str, Any], manifest: Manifest, name: str) -> dict[str, Any]:
    if row.get("id") != str(manifest.organization_id):
        raise refused("organizations", row.get("id"), f"the file is of the organization {manifest.organization_id}")
    return {**row, "name": name}


def _person(row: dict[str, Any], manifest: Manifest, name: str) -> dict[str, Any]:
    """A person whom an operator has added, by the login, or whom the organization has, by an issuer's subject.

    The subject of a login at the provider is what another gateway says: the first sign-in at this one binds the login.
    """
    client_id, named_in, login = row.get("client_id"), row.get("named_in"), row.get("login")
    if named_in is None and login is not None:
        return {**row, "issuer": None, "subject": None}
    if named_in != str(manifest.organization_id):
        raise refused("people", client_id, "named_in is null for a person with a login, else the organization")
    if login is not None:
        raise refused("people", client_id, "a person whom the organization names has no login")
    return row


def _host(row: dict[str, Any], manifest: Manifest, name: str) -> dict[str, Any]:
    """A host as it could register itself."""
    try:
        registered_name({"client_name": row.get("name")})
        redirect_uris_of(row)
    except OAuthError as error:
        raise refused("agent_hosts", row.get("id"), error.description) from error
    return row


def _schedule(row: dict[str, Any], manifest: Manifest, name: str) -> dict[str, Any]:
    """One loop computes the slots of all organizations, so that an expression that it cannot read would stop it."""
    cron, timezone = row.get("cron"), row.get("timezone")
    try:
        if not isinstance(cron, str) or not isinstance(timezone, str):
            raise InvalidParams("cron and timezone are texts")
        parsed(cron, timezone)
    except InvalidParams as error:
        raise refused("schedules", row.get("id"), error.detail) from error
    return row


_CHECKED: Mapping[str, Callable[[dict[str, Any], Manifest, str], dict[str, Any]]] = {
    "organizations": _organization,
    "people": _person,
    "agent_hosts": _host,
    "schedules": _schedule,
}
