"""Credentials by reference: the values of secrets are read when they are used, and are never stored.

The operator decides which references an organization may use (`GATEWAY_SECRET_REFERENCES`).
"""

import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import aiohttp

from gateway.connectors.model import REFERENCE, references_in
from gateway.contract.connectors import SECRET
from gateway.errors import FieldError, InvalidCredentials, ReauthorizationRequired, Unavailable
from gateway.foundation.aio.clock import steady
from gateway.foundation.aio.single_flight import SingleFlight
from gateway.foundation.aio.turns import Places
from gateway.foundation.least_used import LeastUsed
from gateway.foundation.vault.key_services.hashicorp import field_of_secret, look_up_token
from gateway.foundation.vault.key_services.service import (
    Http,
    KeyServiceAway,
    KeyServiceError,
    KeyServiceRefused,
    key_service_session,
)
from gateway.foundation.vault.secret_references import SecretPlace, SecretReference
from gateway.foundation.vault.vault import WrappedKey, WrittenKeys
from gateway.kinds.authentication import AuthMethod
from gateway.kinds.spec import ConnectorSpec
from gateway.settings import SettingsError
from gateway.upstream.auth import shown_name

log = logging.getLogger(__name__)

#: seconds for which a process uses a value that it has read
_SECONDS = 60.0
#: maximum values that a process remembers
_MAX_VALUES = 10_000
#: reads of an organization at once, so that those of others find connections while the secret service is slow
_READS_AT_ONCE = 4
#: seconds after which a caller should try again while the secret service is away
_RETRY_AFTER = 5
_NETLOC = re.compile(r"^(.*?)(?::([0-9]*))?$")
_NOT_ALLOWED = (
    "the operator allows references by GATEWAY_SECRET_REFERENCES, and this one is not allowed for the organization"
)

#: an organization and a reference of it, so that organizations do not wait for the reads of others
_Key = tuple[UUID, SecretReference]
#: organization → the places below which it may name secrets
AllowedPlaces = Mapping[UUID, Sequence[SecretPlace]]


class SecretValues:
    """The values of referenced secrets, each remembered for a minute at most."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        allowed: AllowedPlaces,
        environ: Mapping[str, str] = os.environ,
        now: Callable[[], float] = steady,
    ) -> None:
        self._session, self._allowed, self._environ, self._now = session, allowed, environ, now
        #: whose secret → its value, and when it was asked for
        self._values: dict[_Key, tuple[str, float]] = {}
        self._used: LeastUsed[_Key] = LeastUsed(_MAX_VALUES)
        self._reading = SingleFlight(self._read)
        self._places = Places(_READS_AT_ONCE)

    async def given(
        self, organization_id: UUID, spec: ConnectorSpec, credentials: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The credentials with current values in place of references, and the members that are stored for these.

        Raises InvalidCredentials for what is no reference, is not allowed or cannot be read, and Unavailable.
        """
        named = {name: value[SECRET] for name, value in credentials.items() if _is_reference(value)}
        faults = [
            _fault(spec, name, f"{name} is a variable, which is not secret; give its value")
            for name in named
            if name in spec.environment
        ]
        values: dict[str, str] = {}
        stored: dict[str, str] = {}
        for name, text in named.items():
            try:
                reference = self._allowed_reference(organization_id, text)
                stored[REFERENCE + name] = reference.url
                self.forget(organization_id, [reference.url])  # the person may just have corrected the secret
                values[name] = await self._value((organization_id, reference))
            except (ValueError, ReauthorizationRequired) as error:
                faults.append(_fault(spec, name, f"{shown_name(name)}: {error}"))
        if faults:
            raise InvalidCredentials(faults=faults)
        return {**credentials, **values}, stored

    async def resolved(self, organization_id: UUID, stored: Mapping[str, str]) -> dict[str, str]:
        """Stored credentials with the values of their references, which stay among them.

        Raises ReauthorizationRequired if a secret is not allowed or cannot be read, Unavailable if its service is away.
        """
        values = {}
        for name, url in references_in(stored).items():
            try:
                values[name] = await self._value((organization_id, self._allowed_reference(organization_id, url)))
            except ValueError as error:
                raise ReauthorizationRequired(f"{name} is the secret {url}: {error}") from error
        return {**stored, **values}

    async def trouble(self, organization_id: UUID, url: str) -> str | None:
        """Why the organization cannot use a reference, in words without it; None if it can.

        Raises KeyServiceAway. The value is read again and not remembered.
        """
        try:
            reference = self._allowed_reference(organization_id, url)
            await field_of_secret(Http(self._session, reference.place.netloc), reference, self._environ)
        except (ValueError, KeyServiceRefused) as error:
            return str(error)
        return None

    async def require_sign_in(self) -> None:
        """Sign in to the Vault of the setting, if there is one; raises KeyServiceError."""
        netloc = next((place.netloc for places in self._allowed.values() for place in places), None)
        if netloc is not None:
            await look_up_token(Http(self._session, netloc), netloc, self._environ)

    def forget(self, organization_id: UUID, urls: Iterable[str]) -> None:
        """Read these secrets again on their next use, because the application refused their values."""
        for url in urls:
            key = organization_id, SecretReference.read(url)
            self._reading.forget_one(key)
            self._values.pop(key, None)
            self._used.discard(key)

    def _allowed_reference(self, organization_id: UUID, text: object) -> SecretReference:
        """The reference; raises ValueError if it is none, or if the organization may not use it."""
        reference = SecretReference.read(text if isinstance(text, str) else "")
        if not any(place.contains(reference.place) for place in self._allowed.get(organization_id, ())):
            raise ValueError(_NOT_ALLOWED)
        return reference

    async def _value(self, key: _Key) -> str:
        value, asked_at = self._values.get(key, ("", 0.0))
        return value if value and self._now() - asked_at < _SECONDS else await self._reading(key)

    async def _read(self, key: _Key) -> str:
        organization_id, reference = key
        try:
            async with self._places.of(organization_id):
                asked_at = self._now()
                value = await field_of_secret(Http(self._session, reference.url), reference, self._environ)
        except KeyServiceError as error:
            log.warning("a credential's secret cannot be read: %s", error)
            raise _error_of(reference, error) from None
        value = value.rstrip("\r\n")
        if self._reading.is_shared(key):
            self._used.discard(key)
            self._values[key] = value, asked_at
            for dropped in self._used.add(key, organization_id):
                del self._values[dropped]
        return value


@asynccontextmanager
async def open_secret_values(
    prefixes: Mapping[UUID, Sequence[str]], environ: Mapping[str, str] = os.environ
) -> AsyncIterator[SecretValues]:
    """The values of the secrets that the setting allows, read with the VAULT_… variables."""
    allowed = {organization_id: [*map(SecretPlace.read, texts)] for organization_id, texts in prefixes.items()}
    async with key_service_session() as session:
        yield SecretValues(session, allowed, environ)


def require_one_vault(
    prefixes: Mapping[UUID, Sequence[str]], keys: WrittenKeys, environ: Mapping[str, str] = os.environ
) -> None:
    """Raise SettingsError if the gateway's sign-in, which is for one Vault, would be sent to another one by references.

    The settings have checked that the prefixes name one server.
    """
    servers = {SecretPlace.read(text).netloc for texts in prefixes.values() for text in texts}
    address = environ.get("VAULT_ADDR", "")
    others = {"VAULT_ADDR": urlsplit(address).netloc if "//" in address else address}
    for key_id, key in keys:
        if isinstance(key, WrappedKey) and urlsplit(key.url).scheme == "vault":
            others[f"the encryption key {key_id}"] = urlsplit(key.url).netloc
    for server in servers:
        for name, other in others.items():
            if other and _host_and_port(other) != _host_and_port(server):
                raise SettingsError(
                    f"GATEWAY_SECRET_REFERENCES: {server} is not {other}, which {name} names: the gateway signs in to "
                    "one Vault, so name the same host and port in both"
                )


def _host_and_port(netloc: str) -> tuple[str, str]:
    """For comparison: without a port it is that of HTTPS."""
    host, port = _NETLOC.findall(netloc.rpartition("@")[2].lower())[0]
    return host, port or "443"


def require_resolvable(spec: ConnectorSpec, method: AuthMethod, stored: Mapping[str, str]) -> None:
    """Raise InvalidCredentials for references in place of tokens, which the gateway itself renews and stores."""
    if not method.oauth:
        return
    tokens = {method.access_token, "refresh_token"} if method.grant_type else set(method.credentials)
    faults = [
        _fault(spec, name, f"{name} of {method.title} cannot be a reference, because the gateway renews its tokens")
        for name in references_in(stored)
        if name in tokens
    ]
    if faults:
        raise InvalidCredentials(faults=faults)


def _is_reference(value: object) -> bool:
    return isinstance(value, Mapping) and set(value) == {SECRET}


def _fault(spec: ConnectorSpec, name: str, message: str) -> FieldError:
    field = shown_name(name)
    return FieldError(f"/credentials/{field}", field, "reference", f"{spec.kind}: {message}")


def _error_of(reference: SecretReference, error: KeyServiceError) -> Unavailable | ReauthorizationRequired:
    """The caller's error: without the words of the service, which are for the operator's log."""
    if isinstance(error, KeyServiceAway):
        return Unavailable(
            f"the secret service {reference.place.netloc} does not respond, so nothing was sent to the application; "
            "try again",
            retry_after=_RETRY_AFTER,
        )
    assert isinstance(error, KeyServiceRefused)
    return ReauthorizationRequired(
        f"the secret service refuses {reference.url}: write the secret with this field, and let the gateway read it"
    )
