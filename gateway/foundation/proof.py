"""A hash chain of JSON objects with signed checkpoints, and its verification. Pure.

`hash` of an entry is the lower-case hex SHA-256 of the canonical JSON (RFC 8785) of the entry without `hash`, and
`previous` the hash before, 64 zeros for the first entry. A checkpoint is signed with Ed25519 (RFC 8032).
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

#: `previous` of the first entry
FIRST = "0" * 64
#: the outcome of a write without settlement
UNKNOWN = "unknown"


def hash_of(entry: Mapping[str, Any]) -> str:
    """The hash of an entry without `hash`."""
    return hashlib.sha256(rfc8785.dumps(dict(entry))).hexdigest()


class Signer:
    """Signs checkpoints; `seed` has 32 bytes."""

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        public = self._key.public_key().public_bytes_raw()
        #: base64
        self.public_key = base64.b64encode(public).decode()
        self.key_id = hashlib.sha256(public).hexdigest()[:16]

    def checkpoint(self, seq: int, hash_: str, at: str) -> dict[str, Any]:
        """The signed line for the entry with that number and hash."""
        return self.signed({"checkpoint": True, "seq": seq, "hash": hash_, "at": at})

    def signed(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The document with `key_id` and `signature`, which is over the canonical form of all other members."""
        line = {**document, "key_id": self.key_id}
        return {**line, "signature": base64.b64encode(self._key.sign(rfc8785.dumps(line))).decode()}


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verification found."""

    #: the first fault; None if the file is whole and unaltered
    fault: str | None
    entries: int = 0
    checkpoints: int = 0
    #: `seq` of the first entry; those before it are not in the file
    first: int | None = None
    #: `call_id` of writes whose outcome is not recorded
    unknown: list[str] = field(default_factory=list)


def verified(lines: Iterable[str], public_keys: Iterable[str]) -> Verified:
    """Check an exported file line by line; `public_keys` are base64, pinned outside the file."""
    keys = [Ed25519PublicKey.from_public_bytes(base64.b64decode(each)) for each in public_keys]
    entries = checkpoints = signed = 0
    first: int | None = None
    seq: int | None = None
    previous, open_writes = "", dict[str, None]()
    for number, text in enumerate(lines, 1):
        try:
            line = json.loads(text, object_pairs_hook=_object)
        except (ValueError, RecursionError):
            return Verified(f"line {number} is no JSON, or names a member twice: it was altered", entries, checkpoints)
        if not isinstance(line, dict):
            return Verified(f"line {number} is no object: it was altered", entries, checkpoints)
        if line.get("checkpoint") is True:
            fault = _checkpoint_fault(line, keys, seq, previous)
            checkpoints, signed = checkpoints + 1, entries
        else:
            fault = _entry_fault(line, seq, previous)
            entries, seq, previous = entries + 1, line.get("seq"), line.get("hash", "")
            first = seq if first is None else first
            _note(line, open_writes)
        if fault is not None:
            return Verified(f"line {number}: {fault}", entries, checkpoints)
    if signed < entries or not checkpoints:
        return Verified("the file does not end with a checkpoint: lines were left out", entries, checkpoints)
    return Verified(None, entries, checkpoints, first, list(open_writes))


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; raises ValueError if it has two members of one name, of which readers show one or the other."""
    found = dict(members)
    if len(found) < len(members):
        raise ValueError
    return found


def _entry_fault(entry: Mapping[str, Any], seq: int | None, previous: str) -> str | None:
    """What is wrong with an entry after the one with that number and hash."""
    own = entry.get("hash")
    try:
        is_own = hash_of({name: value for name, value in entry.items() if name != "hash"}) == own
    except (rfc8785.CanonicalizationError, RecursionError):
        is_own = False
    if not is_own:
        return f"entry {entry.get('seq')} was altered"
    if seq is not None and (entry.get("seq") != seq + 1 or entry.get("previous") != previous):
        return f"entry {entry.get('seq')} does not follow entry {seq}: entries were left out or put in"
    if seq is None and entry.get("seq") == 1 and entry.get("previous") != FIRST:
        return "entry 1 does not begin a chain"
    return None


def _checkpoint_fault(
    line: Mapping[str, Any], keys: Iterable[Ed25519PublicKey], seq: int | None, previous: str
) -> str | None:
    """What is wrong with a checkpoint after the entry with that number and hash."""
    signed = {name: value for name, value in line.items() if name != "signature"}
    if seq is not None and (line.get("seq"), line.get("hash")) != (seq, previous):
        return f"the checkpoint is not that of entry {seq}: entries were left out, put in or altered"
    try:
        signature, message = base64.b64decode(str(line.get("signature")), validate=True), rfc8785.dumps(signed)
    except (ValueError, rfc8785.CanonicalizationError, RecursionError):
        return "the checkpoint was altered"
    for key in keys:
        try:
            key.verify(signature, message)
        except InvalidSignature:
            continue
        return None
    return "no given key signed the checkpoint: it was altered, or another key is needed"


def _note(entry: Mapping[str, Any], open_writes: dict[str, None]) -> None:
    """Remember a write until it is settled."""
    call = str(entry.get("call_id"))
    if entry.get("kind") == "intent":
        open_writes[call] = None
    elif entry.get("kind") == "settlement":
        open_writes.pop(call, None)
