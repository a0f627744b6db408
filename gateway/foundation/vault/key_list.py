"""Changes of a key list, pure: the first key, which is the newest, encrypts; all of them decrypt."""

import base64

from gateway.foundation.vault.vault import KeyListError, WrappedKey, WrittenKeys


def text_of(keys: WrittenKeys) -> str:
    """The list in the format of its file: one key per line."""
    return "".join(f"{key_id}:{_written(key)}\n" for key_id, key in keys)


def added(
    keys: WrittenKeys, new: tuple[str, bytes | WrappedKey], *, is_standby: bool
) -> list[tuple[str, bytes | WrappedKey]]:
    """The list with a new key, which encrypts from now on or, on standby, only decrypts; raises KeyListError."""
    if new[0] in dict(keys):
        raise KeyListError(f"there is a key {new[0]} already; give each its own id")
    return [*keys, new] if is_standby else [new, *keys]


def promoted(keys: WrittenKeys, key_id: str) -> list[tuple[str, bytes | WrappedKey]]:
    """The list with that key first, so that it encrypts; raises KeyListError."""
    _require(keys, key_id)
    return [*(key for key in keys if key[0] == key_id), *(key for key in keys if key[0] != key_id)]


def without(keys: WrittenKeys, key_id: str, rows: int) -> list[tuple[str, bytes | WrappedKey]]:
    """The list without that key; raises KeyListError if it encrypts, or still wraps any of the counted `rows`."""
    _require(keys, key_id)
    if keys[0][0] == key_id:
        raise KeyListError(f"{key_id} is the key that seals; add or promote another first")
    if rows:
        raise KeyListError(f"{key_id} still wraps {rows} credentials; run `gateway keys rotate` first")
    return [key for key in keys if key[0] != key_id]


def _require(keys: WrittenKeys, key_id: str) -> None:
    if key_id not in dict(keys):
        raise KeyListError(f"there is no key {key_id}; the list has {', '.join(each for each, _ in keys)}")


def _written(key: bytes | WrappedKey) -> str:
    return key.text if isinstance(key, WrappedKey) else base64.b64encode(key).decode()
