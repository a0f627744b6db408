"""Wraps new keys and unwraps those of a key list, each by the service of its URL."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

from gateway.foundation.vault.key_services.aws import AwsKms
from gateway.foundation.vault.key_services.azure import AzureKeyVault
from gateway.foundation.vault.key_services.google import GoogleKms
from gateway.foundation.vault.key_services.hashicorp import VaultTransit
from gateway.foundation.vault.key_services.service import (
    Http,
    KeyService,
    KeyServiceAway,
    KeyServiceError,
    KeyServiceRefused,
    key_service_session,
)
from gateway.foundation.vault.vault import (
    KeyList,
    KeyListError,
    WrappedKey,
    WrittenKeys,
    random_key,
    wrapped_keys,
)

log = logging.getLogger(__name__)

_Service: TypeAlias = Callable[[Http, SplitResult, Mapping[str, str]], KeyService]
#: scheme of the URL → the service
SERVICES: Mapping[str, _Service] = {
    "awskms": AwsKms,
    "azurekeyvault": AzureKeyVault,
    "gcpkms": GoogleKms,
    "vault": VaultTransit,
}
#: seconds between the first two attempts to unwrap the keys of a process that starts, and the maximum
_FIRST_PAUSE, _MAX_PAUSE = 1.0, 30.0


async def new_wrapped_key(url: str, environ: Mapping[str, str] = os.environ) -> tuple[str, WrappedKey]:
    """The id of a new key and the key, wrapped by the service and unwrapped again; raises KeyServiceError."""
    key_id, key = random_key()
    async with key_service_session() as session:
        unwrapping_url, wrapped = await _service_of(url, Http(session, url), environ).wrap(key)
        entry = WrappedKey.of(key_id, key, unwrapping_url, wrapped)
        await _unwrapped(key_id, entry, Http(session, url), environ)
    return key_id, entry


async def answers(
    keys: Mapping[str, WrappedKey], environ: Mapping[str, str] = os.environ
) -> dict[str, bytes | KeyServiceError]:
    """Key id → the key, or why its service has not unwrapped it."""
    async with key_service_session() as session:

        async def answer(key_id: str, key: WrappedKey) -> bytes | KeyServiceError:
            try:
                return await _unwrapped(key_id, key, Http(session, key.url), environ)
            except KeyServiceError as error:
                return error

        found = await asyncio.gather(*(answer(*entry) for entry in keys.items()))
    return dict(zip(keys, found, strict=True))


async def unwrapped(keys: WrittenKeys, environ: Mapping[str, str] = os.environ) -> KeyList:
    """All keys of the list, those of a service unwrapped by it; raises KeyServiceError."""
    found = await answers(wrapped_keys(keys), environ)
    failures = [each for each in found.values() if isinstance(each, KeyServiceError)]
    if failures:
        raise next((each for each in failures if isinstance(each, KeyServiceRefused)), failures[0])
    plain = {key_id: key for key_id, key in keys if isinstance(key, bytes)}
    opened = plain | {key_id: key for key_id, key in found.items() if isinstance(key, bytes)}
    return [(key_id, opened[key_id]) for key_id, _ in keys]


async def unwrapped_at_start(keys: WrittenKeys, environ: Mapping[str, str] = os.environ) -> KeyList:
    """All keys of the list. While a service is away, it is asked again; raises KeyListError if one refuses."""
    pause = _FIRST_PAUSE
    while True:
        try:
            return await unwrapped(keys, environ)
        except KeyServiceAway as error:
            log.warning("the process cannot start yet: %s", error, extra={"retried_in": pause})
        except KeyServiceRefused as error:
            raise KeyListError(str(error)) from error
        await asyncio.sleep(pause)
        pause = min(pause * 2, _MAX_PAUSE)


def require_known_services(keys: WrittenKeys) -> None:
    """Raise KeyListError for a URL of a service that is not known."""
    for key_id, key in keys:
        if isinstance(key, WrappedKey) and urlsplit(key.url).scheme not in SERVICES:
            raise KeyListError(f"the encryption key {key_id}: {_unknown(key.url)}")


async def _unwrapped(key_id: str, entry: WrappedKey, http: Http, environ: Mapping[str, str]) -> bytes:
    try:
        key = await _service_of(entry.url, http, environ).unwrap(entry.wrapped)
    except KeyServiceError as error:
        raise type(error)(f"the encryption key {key_id}: {error}") from None
    if not entry.is_key(key_id, key):
        raise KeyServiceRefused(
            f"the encryption key {key_id}: {entry.url} unwraps another key than the one that was wrapped; correct the "
            "entry, or its id"
        )
    return key


def _service_of(url: str, http: Http, environ: Mapping[str, str]) -> KeyService:
    parts = urlsplit(url)
    if parts.scheme not in SERVICES or "@" in parts.netloc or "," in url or "#" in url:
        raise KeyServiceRefused(_unknown(url))
    return SERVICES[parts.scheme](http, parts, environ)


def _unknown(url: str) -> str:
    schemes = ", ".join(f"{scheme}://" for scheme in SERVICES)
    return f"{url.partition(':')[0]}:// is not the URL of a key service; it begins with one of {schemes}"
