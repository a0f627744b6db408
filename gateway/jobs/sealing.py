"""Sealing jobs: params, state and results are encrypted like credentials, with a data key for each job.

A sealed text begins with a prefix that no JSON has, so that rows from before sealing was switched on, or after it was
switched off, can be read too.
"""

import binascii
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.errors import InternalError
from gateway.foundation.aio.turns import in_thread
from gateway.foundation.vault.vault import Binding, Sealed, Vault, decrypt, encrypt

_SEALED = "sealed:"
#: texts that are not sealed, because they reveal nothing and SQL compares them
_EMPTY = "{}"
#: characters of a text that is encrypted or decrypted in a thread
_LONG = 256 << 10
#: data keys that are cached, of jobs that run or are read
_REMEMBERED = 2000


class HasKey(Protocol):
    """A job or its `JobKey`: the owner of the texts and their wrapped data key, None if they are not sealed."""

    @property
    def organization_id(self) -> UUID: ...
    @property
    def id(self) -> UUID: ...
    @property
    def key_id(self) -> str | None: ...
    @property
    def wrapped_key(self) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class JobKey:
    """The wrapped data key of a job that is not inserted yet."""

    organization_id: UUID
    #: of the job
    id: UUID
    key_id: str | None
    wrapped_key: bytes | None


def binding(organization_id: UUID, job_id: UUID) -> Binding:
    """The associated data of a job's data key: it cannot be opened for another job."""
    return Binding(organization_id, job_id, "job")


def part_field(part: int) -> str:
    """The field name of one part of a result, so that parts cannot be swapped."""
    return f"part {part}"


class JobSealing:
    """Seals new jobs if `is_on`, and opens sealed texts."""

    def __init__(self, vault: Vault, *, is_on: bool = True) -> None:
        self._vault = vault
        self._is_on = is_on
        self._ciphers: OrderedDict[bytes, AESGCM] = OrderedDict()

    @property
    def forgotten(self) -> list[str]:
        """The ids of the keys that the vault has forgotten: jobs that they wrap wait."""
        return self._vault.forgotten

    def require_newest(self) -> None:
        """Raise Unavailable while the vault has forgotten the newest key: no job runs, because runs seal."""
        self._vault.require_newest()

    def new_key(self, organization_id: UUID, job_id: UUID) -> JobKey:
        """A data key for a new job."""
        if not self._is_on:
            return JobKey(organization_id, job_id, None, None)
        wrapped, data_key = self._vault.new_data_key(binding(organization_id, job_id))
        self._remember(wrapped.wrapped_key, AESGCM(data_key))
        return JobKey(organization_id, job_id, wrapped.key_id, wrapped.wrapped_key)

    def seal(self, key: HasKey, field: str, text: str) -> str:
        """The text encrypted for this field of this job; unchanged if the job has no key."""
        if key.wrapped_key is None or text == _EMPTY:
            return text
        sealed = encrypt(self._cipher(key), text.encode(), _associated_data(key, field))
        return _SEALED + binascii.b2a_base64(sealed, newline=False).decode()

    async def sealed(self, key: HasKey, field: str, text: str) -> str:
        """The same; a long text is encrypted in a thread."""
        if len(text) <= _LONG or key.wrapped_key is None:
            return self.seal(key, field, text)
        self._cipher(key)  # the cache of ciphers is the event loop's
        return await in_thread(partial(self.seal, key, field), text)

    def seal_document(self, key: HasKey, field: str, document: Mapping[str, Any]) -> str:
        """The document as JSON, sealed."""
        return self.seal(key, field, json.dumps(dict(document)))

    def open(self, key: HasKey, field: str, text: str) -> str:
        """The decrypted text; raises InternalError if it was altered or belongs to another field or job."""
        if not text.startswith(_SEALED):
            return text
        try:
            sealed = binascii.a2b_base64(text[len(_SEALED) :])
            return decrypt(self._cipher(key), sealed, _associated_data(key, field)).decode()
        except ValueError as error:
            raise InternalError(f"{field} of a job is no sealed text; it was altered") from error

    async def opened(self, key: HasKey, field: str, text: str) -> str:
        """The same; a long text is decrypted in a thread."""
        if len(text) <= _LONG or not text.startswith(_SEALED):
            return self.open(key, field, text)
        self._cipher(key)  # the cache of ciphers is the event loop's
        return await in_thread(partial(self.open, key, field), text)

    def _cipher(self, key: HasKey) -> AESGCM:
        if key.key_id is None or key.wrapped_key is None:
            raise InternalError("a job is sealed, and there is no key for it")
        cipher = self._ciphers.get(key.wrapped_key)
        if cipher is None:
            wrapped = Sealed(key.key_id, key.wrapped_key, b"")
            cipher = AESGCM(self._vault.data_key(wrapped, binding(key.organization_id, key.id)))
            self._remember(key.wrapped_key, cipher)
        return cipher

    def _remember(self, wrapped_key: bytes, cipher: AESGCM) -> None:
        self._ciphers[wrapped_key] = cipher
        if len(self._ciphers) > _REMEMBERED:
            self._ciphers.popitem(last=False)


def _associated_data(key: HasKey, field: str) -> bytes:
    """The associated data that binds a sealed text to its field of this job."""
    return binding(key.organization_id, key.id).associated_data(field)
