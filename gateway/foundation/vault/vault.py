"""Sealing credentials: AES-256-GCM with a data key for each row, wrapped by the newest key of a list.

Associated data binds a sealed value to its organization, connector and field, so that rows cannot be swapped, and to
the members that decide where it is sent, so that it does not open after such a member was changed.
"""

import base64
import hmac
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

from gateway.errors import InternalError, Unavailable

#: bytes of a nonce
_NONCE = 12
#: bytes of a key
_KEY = 32
#: seconds until a caller should try again while a key service is away
_RETRY_AFTER = 30
#: bytes of the value that tells a wrongly unwrapped key
_CHECK = 6
#: the id and the bytes of each encryption key, the newest first
KeyList = Sequence[tuple[str, bytes]]


class KeyListError(Exception):
    """The list of encryption keys cannot be used; the text says why and how to fix it."""


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """An encryption key that a key service has wrapped."""

    #: of the service and its key, such as `awskms://alias/gateway?region=eu-central-1`
    url: str
    wrapped: bytes
    #: derived from the id and the key
    check: bytes

    @classmethod
    def of(cls, key_id: str, key: bytes, url: str, wrapped: bytes) -> "WrappedKey":
        """The key, which `url` has wrapped."""
        return cls(url, wrapped, _check_of(key_id, key))

    @classmethod
    def read(cls, text: str) -> "WrappedKey":
        """The key that is written `URL#check.wrapped`; raises ValueError."""
        url, _, fragment = text.partition("#")
        check, _, wrapped = fragment.partition(".")
        read = cls(url, _bytes_of(wrapped), _bytes_of(check))
        if not read.wrapped or len(read.check) != _CHECK:
            raise ValueError(text)
        return read

    @property
    def text(self) -> str:
        return f"{self.url}#{_text_of(self.check)}.{_text_of(self.wrapped)}"

    def is_key(self, key_id: str, key: bytes) -> bool:
        """Whether the service has unwrapped the key that it has wrapped."""
        return len(key) == _KEY and hmac.compare_digest(self.check, _check_of(key_id, key))


#: the id and the key of each entry of the setting: a key, or one that a key service unwraps; the newest first
WrittenKeys = Sequence[tuple[str, bytes | WrappedKey]]


def wrapped_keys(keys: WrittenKeys) -> dict[str, WrappedKey]:
    """The entries that a key service unwraps, by their ids."""
    return {key_id: key for key_id, key in keys if isinstance(key, WrappedKey)}


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


def parse_keys(text: str) -> list[tuple[str, bytes | WrappedKey]]:
    """Keys written `id:base64` or `id:URL#…`, separated by commas or lines, the newest first; raises KeyListError."""
    keys = [_parsed(entry.strip()) for entry in text.replace("\n", ",").split(",") if entry.strip()]
    if not keys:
        raise KeyListError("no encryption keys: set GATEWAY_ENCRYPTION_KEYS; `gateway keys new` makes one")
    if len({key_id for key_id, _ in keys}) != len(keys):
        raise KeyListError("two encryption keys have the same id; give each its own")
    return keys


def _parsed(entry: str) -> tuple[str, bytes | WrappedKey]:
    key_id, _, encoded = entry.partition(":")
    if key_id and "://" in encoded:
        try:
            return key_id, WrappedKey.read(encoded)
        except ValueError:
            raise KeyListError(
                f"the encryption key {key_id} has a URL, but no wrapped key; `gateway keys new --url URL` makes one"
            ) from None
    try:
        key = base64.b64decode(encoded, validate=True)
    except ValueError:  # not Base64, or not ASCII
        key = b""
    if not key_id or len(key) != _KEY:
        raise KeyListError("an encryption key is written `id:base64 of 32 bytes`; `gateway keys new` makes one")
    return key_id, key


def read_keys(setting: SecretStr | None, path: Path | None) -> list[tuple[str, bytes | WrappedKey]]:
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


def random_key() -> tuple[str, bytes]:
    """The id of a new key, and the key."""
    return f"k{os.urandom(4).hex()}", os.urandom(_KEY)


def new_key() -> str:
    """A new key in the format of the key list."""
    key_id, key = random_key()
    return f"{key_id}:{base64.b64encode(key).decode()}"


def _check_of(key_id: str, key: bytes) -> bytes:
    return hmac.digest(key, f"gateway:check:{key_id}".encode(), "sha256")[:_CHECK]


def _text_of(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _bytes_of(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


_VALUES = msgspec.json.Decoder(dict[str, str])


class Vault:
    """Seals with the newest key and opens with any."""

    def __init__(self, keys: KeyList) -> None:
        self.newest = keys[0][0]
        self._forgotten: frozenset[str] = frozenset()
        self._keys = {key_id: AESGCM(key) for key_id, key in keys}

    @property
    def forgotten(self) -> list[str]:
        """The ids of the keys that `forget` removed: work of all organizations leaves out the rows that they wrap."""
        return sorted(self._forgotten)

    def hold(self, keys: Mapping[str, bytes]) -> None:
        """Use these keys, after `forget` again."""
        self._keys |= {key_id: AESGCM(key) for key_id, key in keys.items()}
        self._forgotten -= keys.keys()

    def forget(self, key_ids: Collection[str]) -> None:
        """Forget keys: until `hold`, what they seal raises Unavailable."""
        self._forgotten |= frozenset(key_ids)
        self._keys = {key_id: key for key_id, key in self._keys.items() if key_id not in self._forgotten}

    def require_newest(self) -> None:
        """Raise Unavailable while the newest key is forgotten: work that has something to seal waits."""
        if self.newest in self._forgotten:
            raise _away()

    def seal(self, values: Mapping[str, str], binding: Binding) -> Sealed:
        """The values, readable only with the key list and for this binding."""
        wrapped, data_key = self.new_data_key(binding)
        text = json.dumps(dict(values)).encode()
        return replace(wrapped, sealed=encrypt(AESGCM(data_key), text, binding.associated_data("value")))

    def open(self, sealed: Sealed, binding: Binding) -> dict[str, str]:
        """The values; raises InternalError, for the log only, if the row was altered or swapped.

        So it does for what are no values: who wrote the file of an imported organization has sealed its rows.
        """
        text = decrypt(AESGCM(self.data_key(sealed, binding)), sealed.sealed, binding.associated_data("value"))
        try:
            return _VALUES.decode(text)
        except ValueError as error:
            raise InternalError("credentials do not open: they are not names and texts") from error

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
        data_key = decrypt(self._key(wrapped.key_id), wrapped.wrapped_key, binding.associated_data("key"))
        if len(data_key) != _KEY:
            raise InternalError("credentials do not open: their data key is none")
        return data_key

    def wrap(self, data_key: bytes, binding: Binding) -> bytes:
        """The data key, wrapped by the newest key; raises ValueError for one that is none."""
        if len(data_key) != _KEY:
            raise ValueError(f"a data key has {_KEY} bytes")
        return encrypt(self._key(self.newest), data_key, binding.associated_data("key"))

    def _key(self, key_id: str) -> AESGCM:
        key = self._keys.get(key_id)
        if key is not None:
            return key
        if key_id in self._forgotten:
            raise _away()
        raise InternalError(f"credentials are sealed with the key {key_id}, which is not in the key list")


def _away() -> Unavailable:
    return Unavailable("the service that unwraps the encryption keys does not respond", retry_after=_RETRY_AFTER)


def encrypt(key: AESGCM, value: bytes, associated_data: bytes) -> bytes:
    """A nonce and the sealed value."""
    nonce = os.urandom(_NONCE)
    return nonce + key.encrypt(nonce, value, associated_data)


def decrypt(key: AESGCM, value: bytes, associated_data: bytes) -> bytes:
    """The decrypted value; raises InternalError if it was altered or moved."""
    try:
        return key.decrypt(value[:_NONCE], value[_NONCE:], associated_data)
    except (InvalidTag, ValueError) as error:  # a ValueError: too short for a nonce
        raise InternalError("credentials do not open: the row was altered or belongs elsewhere") from error
