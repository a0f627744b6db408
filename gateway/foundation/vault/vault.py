"""Sealing credentials: AES-256-GCM with a data key for each row, wrapped by the newest key of a list.

Associated data binds a sealed value to its organization, connector and field, so that rows cannot be swapped, and to
the members that decide where it is sent, so that it does not open after such a member was changed.
"""

import base64
import hmac
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

from gateway.errors import InternalError

#: bytes of a nonce
_NONCE = 12
#: bytes of a key
_KEY = 32
#: the id and the bytes of each encryption key, the newest first
KeyList = Sequence[tuple[str, bytes]]


class KeyListError(Exception):
    """The list of encryption keys cannot be used; the text says why and how to fix it."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed value in the columns of a row."""

    key_id: str
    wrapped_key: bytes
    sealed: bytes


@dataclass(frozen=True, slots=True)
class Binding:
    """The associated data of a sealed value: it cannot be opened in another place."""

    organization_id: UUID
    owner_id: UUID | str
    field: str = "credentials"
    #: further values that must not have changed
    context: str = ""

    def associated_data(self, purpose: str) -> bytes:
        bound = f"gateway:{purpose}:{self.organization_id}:{self.owner_id}:{self.field}"
        return f"{bound}:{self.context}".encode() if self.context else bound.encode()


def parse_keys(text: str) -> list[tuple[str, bytes]]:
    """Keys written `id:base64`, separated by commas or lines, the newest first; raises KeyListError."""
    keys = []
    for entry in text.replace("\n", ",").split(","):
        if not entry.strip():
            continue
        key_id, _, encoded = entry.strip().partition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
        except ValueError:  # not Base64, or not ASCII
            key = b""
        if not key_id or len(key) != _KEY:
            raise KeyListError("an encryption key is written `id:base64 of 32 bytes`; `gateway keys new` makes one")
        keys.append((key_id, key))
    if not keys:
        raise KeyListError("no encryption keys: set GATEWAY_ENCRYPTION_KEYS; `gateway keys new` makes one")
    if len({key_id for key_id, _ in keys}) != len(keys):
        raise KeyListError("two encryption keys have the same id; give each its own")
    return keys


def read_keys(setting: SecretStr | None, path: Path | None) -> list[tuple[str, bytes]]:
    """The keys in the setting, or else in its file; raises KeyListError."""
    if setting:
        return parse_keys(setting.get_secret_value())
    if path is None:
        raise KeyListError("no encryption keys: set GATEWAY_ENCRYPTION_KEYS; `gateway keys new` makes one")
    try:
        return parse_keys(path.read_text("utf-8-sig"))
    except OSError as error:
        raise KeyListError(f"the key file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise KeyListError(f"the key file {path} cannot be read: it is not text in UTF-8") from error


def derived_key(keys: KeyList, purpose: str) -> bytes:
    """32 bytes for one purpose that every process with this key list has; they change with the newest key."""
    return hmac.digest(keys[0][1], f"gateway:{purpose}".encode(), "sha256")


def new_key() -> str:
    """A new key in the format of the key list."""
    return f"k{os.urandom(4).hex()}:{base64.b64encode(os.urandom(_KEY)).decode()}"


class Vault:
    """Seals with the newest key and opens with any."""

    def __init__(self, keys: KeyList) -> None:
        self._keys = {key_id: AESGCM(key) for key_id, key in keys}
        self.newest = keys[0][0]

    def seal(self, values: Mapping[str, str], binding: Binding) -> Sealed:
        """The values, readable only with the key list and for this binding."""
        wrapped, data_key = self.new_data_key(binding)
        text = json.dumps(dict(values)).encode()
        return replace(wrapped, sealed=encrypt(AESGCM(data_key), text, binding.associated_data("value")))

    def open(self, sealed: Sealed, binding: Binding) -> dict[str, str]:
        """The values; raises InternalError, for the log only, if the row was altered or swapped."""
        text = decrypt(AESGCM(self.data_key(sealed, binding)), sealed.sealed, binding.associated_data("value"))
        values: dict[str, str] = json.loads(text)
        return values

    def rewrapped(self, sealed: Sealed, binding: Binding) -> Sealed:
        """The same value, with its data key wrapped by the newest key; the value is not decrypted."""
        wrapped_key = self.wrap(self.data_key(sealed, binding), binding)
        return Sealed(self.newest, wrapped_key, sealed.sealed)

    def new_data_key(self, binding: Binding) -> tuple[Sealed, bytes]:
        """A data key for values that are stored elsewhere: wrapped, and unwrapped."""
        data_key = AESGCM.generate_key(256)
        return Sealed(self.newest, self.wrap(data_key, binding), b""), data_key

    def data_key(self, wrapped: Sealed, binding: Binding) -> bytes:
        """The unwrapped data key; raises InternalError if it was altered or swapped."""
        key = self._keys.get(wrapped.key_id)
        if key is None:
            raise InternalError(f"credentials are sealed with the key {wrapped.key_id}, which is not in the key list")
        return decrypt(key, wrapped.wrapped_key, binding.associated_data("key"))

    def wrap(self, data_key: bytes, binding: Binding) -> bytes:
        """The data key, wrapped by the newest key."""
        return encrypt(self._keys[self.newest], data_key, binding.associated_data("key"))


def encrypt(key: AESGCM, value: bytes, associated_data: bytes) -> bytes:
    """A nonce and the sealed value."""
    nonce = os.urandom(_NONCE)
    return nonce + key.encrypt(nonce, value, associated_data)


def decrypt(key: AESGCM, value: bytes, associated_data: bytes) -> bytes:
    """The decrypted value; raises InternalError if it was altered or moved."""
    try:
        return key.decrypt(value[:_NONCE], value[_NONCE:], associated_data)
    except InvalidTag as error:
        raise InternalError("credentials do not open: the row was altered or belongs elsewhere") from error
