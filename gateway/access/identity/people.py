"""The people that an administrator has added; each is a client without a secret."""

import string
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

import asyncpg

from gateway.access.identity.model import Client
from gateway.access.identity.store import IdentityStore
from gateway.errors import Conflict, Forbidden, NotFound, Unavailable
from gateway.foundation.db.pool import Database

_INSERT = "INSERT INTO people (client_id, login) VALUES ($1, $2)"
_LIST = "SELECT client_id, login, issuer, subject FROM people ORDER BY login"
_SEEN = "SELECT client_id FROM people WHERE issuer = $1 AND subject = $2"
# The first sign-in with a login binds the login to that account.
_BIND = "UPDATE people SET issuer = $1, subject = $2 WHERE login = $3 AND subject IS NULL RETURNING client_id"
_DELETE = "DELETE FROM people WHERE login = $1 RETURNING client_id"


#: lower case of ASCII letters only
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class SignInRefused(Forbidden):
    code, title = "sign_in_refused", "You are not signed in"


class ProviderUnavailable(Unavailable):
    code, title = "provider_unavailable", "The sign-in provider is unavailable"


@dataclass(frozen=True, slots=True)
class Person:
    """A person who may sign in through the provider."""

    client_id: UUID
    login: str
    #: the provider's identifier of the person; None before the first sign-in
    issuer: str | None = None
    subject: str | None = None


class People:
    """The people who may sign in, and the client of each."""

    def __init__(self, database: Database, identity: IdentityStore) -> None:
        self._database = database
        self._identity = identity

    async def add(self, login: str, organization_ids: Sequence[UUID], scopes: Sequence[str]) -> Person:
        """Let a person sign in, as a new client of that name; raises Conflict and NotFound."""
        client_id = uuid4()
        try:
            async with self._database.system() as connection, connection.transaction():
                await self._identity.insert_client(
                    connection,
                    client_id,
                    name=login,
                    organization_ids=organization_ids,
                    secret_hashes=[],
                    scopes=scopes,
                )
                await connection.execute(_INSERT, client_id, login)
        except asyncpg.UniqueViolationError as error:
            raise Conflict(f"there is a person {login!r} already") from error
        return Person(client_id, login)

    async def all(self) -> Sequence[Person]:
        async with self._database.system() as connection:
            return [Person(**row) for row in await connection.fetch(_LIST)]

    async def remove(self, login: str) -> UUID:
        """Remove a person: disable their client, with its tokens and sessions. The client stays for the audit log."""
        async with self._database.system() as connection:
            client_id: UUID | None = await connection.fetchval(_DELETE, login)
        if client_id is None:
            raise NotFound(f"there is no person {login!r}")
        await self._identity.disable_client(client_id)
        return client_id

    async def signed_in(self, issuer: str, subject: str, login: str) -> Client | None:
        """The client of the provider's account; None for an unknown person and a disabled client."""
        async with self._database.system() as connection:
            client_id = (
                await connection.fetchval(_SEEN, issuer, subject)
                or await connection.fetchval(_BIND, issuer, subject, login)
                or await connection.fetchval(
                    _SEEN, issuer, subject
                )  # a concurrent sign-in of the same person has bound it
            )
        return None if client_id is None else await self._identity.enabled_client(client_id)


def login_of(claim: str, value: str) -> str:
    """The login in its stored form: an email address has its ASCII letters in lower case.

    Other letters are not folded: Unicode folds the Kelvin sign (U+212A) to `k`, which would be another person's login.
    """
    return value.strip(" ").translate(_LOWER) if claim == "email" else value.strip(" ")
