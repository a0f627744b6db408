"""A file of lines, compressed and sealed for one recipient or by a passphrase; it is written and read as a stream.

The first line is `MAGIC`, the second a JSON object: `recipient` and `ephemeral` (X25519), or `salt` (scrypt). Chunks of
64 KiB follow, each sealed with AES-256-GCM by the key of the file. Its nonce has the chunk's number and whether it is
the last, so that a chunk cannot be left out, repeated or cut off.
"""

import base64
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from gateway.foundation.vault.vault import KeyList, derived_key

MAGIC = b"agent-connector-gateway organization 1\n"
_CHUNK = 64 << 10
_TAG = 16
#: maximum bytes of the second line, and of a line of the content: four times the largest response of an application
_MAX_HEADER = 1000
_MAX_LINE = 128 << 20
#: bytes that are decompressed at a time
_STEP = 1 << 20
#: cost of a passphrase: 128 MiB and about half a second
_SCRYPT = {"length": 32, "n": 2**17, "r": 8, "p": 1}


class SealedFileError(Exception):
    """A sealed file cannot be read; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The second line of a file, and the key of its chunks."""

    header: bytes
    key: AESGCM

    @classmethod
    def for_recipient(cls, public_key: str) -> "Lock":
        """A new lock that only the recipient opens; raises SealedFileError for a text that is no key."""
        try:
            recipient = X25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
            ephemeral = X25519PrivateKey.generate()
            secret = ephemeral.exchange(recipient)
        except ValueError as error:
            raise SealedFileError("the recipient key is not valid; `gateway keys recipient` prints it") from error
        return cls._of(_header(recipient=public_key, ephemeral=_text_of(ephemeral)), secret)

    @classmethod
    def by_passphrase(cls, passphrase: str) -> "Lock":
        """A new lock that the passphrase opens."""
        salt = os.urandom(16)
        header = _header(salt=base64.b64encode(salt).decode())
        return cls._of(header, Scrypt(salt=salt, **_SCRYPT).derive(passphrase.encode()))

    @classmethod
    def opened(cls, header: bytes, recipients: Sequence[X25519PrivateKey], passphrase: str | None) -> "Lock":
        """The lock of a file; raises SealedFileError if neither a recipient nor the passphrase opens it."""
        try:
            members = json.loads(header)
            values = {name: base64.b64decode(members[name], validate=True) for name in members}
        except (ValueError, TypeError) as error:
            raise SealedFileError("the file is damaged") from error
        if "salt" in values:
            if passphrase is None:
                raise SealedFileError("the file is sealed by a passphrase; name its file with --passphrase-file")
            return cls._of(header, Scrypt(salt=values["salt"], **_SCRYPT).derive(passphrase.encode()))
        for recipient in recipients:
            if recipient.public_key().public_bytes_raw() == values.get("recipient"):
                try:
                    sender = X25519PublicKey.from_public_bytes(values["ephemeral"])
                    return cls._of(header, recipient.exchange(sender))
                except (KeyError, ValueError) as error:
                    raise SealedFileError("the file is damaged") from error
        raise SealedFileError(
            "the file is sealed for the key of another gateway; export it again with the key that "
            "`gateway keys recipient` prints here"
        )

    @classmethod
    def _of(cls, header: bytes, secret: bytes) -> "Lock":
        return cls(header, AESGCM(HKDF(SHA256(), 32, salt=None, info=MAGIC + header).derive(secret)))


def recipients_of(keys: KeyList) -> Sequence[X25519PrivateKey]:
    """The keys that open files for the gateway with these encryption keys, the newest first."""
    return [
        X25519PrivateKey.from_private_bytes(derived_key(keys[place:], "organization imports"))
        for place in range(len(keys))
    ]


def recipient_key(keys: KeyList) -> str:
    """The public key for which files for this gateway are sealed."""
    return _text_of(recipients_of(keys)[0])


class SealedWriter:
    """Writes a file; it can only be read after `close`."""

    def __init__(self, file: BinaryIO, lock: Lock) -> None:
        self._file = file
        self._lock = lock
        self._compressing = zlib.compressobj(6)
        self._pending = bytearray()
        self._number = 0
        file.write(MAGIC + lock.header)

    def write(self, line: bytes) -> None:
        """Add a line, which ends with a newline."""
        self._pending += self._compressing.compress(line)
        while len(self._pending) > _CHUNK:
            self._seal(bytes(self._pending[:_CHUNK]), is_last=False)
            del self._pending[:_CHUNK]

    def close(self) -> None:
        """Write the last chunk."""
        self._pending += self._compressing.flush()
        while len(self._pending) > _CHUNK:
            self._seal(bytes(self._pending[:_CHUNK]), is_last=False)
            del self._pending[:_CHUNK]
        self._seal(bytes(self._pending), is_last=True)

    def _seal(self, chunk: bytes, *, is_last: bool) -> None:
        self._file.write(self._lock.key.encrypt(_nonce(self._number, is_last=is_last), chunk, None))
        self._number += 1


def sealed_lines(
    file: BinaryIO, recipients: Sequence[X25519PrivateKey], passphrase: str | None = None
) -> Iterator[bytes]:
    """The lines of a file; raises SealedFileError, at the latest after its last line if the file was cut off."""
    if file.readline(len(MAGIC)) != MAGIC:
        raise SealedFileError("the file is no export of an organization")
    lock = Lock.opened(file.readline(_MAX_HEADER), recipients, passphrase)
    line = bytearray()
    for piece in _decompressed(_chunks(file, lock.key)):
        *whole, rest = piece.split(b"\n")
        for each in whole:
            yield bytes(line + each)
            line.clear()
        line += rest
        if len(line) > _MAX_LINE:
            raise SealedFileError(f"the file has a line of more than {_MAX_LINE >> 20} MiB, which no export writes")
    if line:
        raise SealedFileError("the file is damaged: its last line does not end")


def _chunks(file: BinaryIO, key: AESGCM) -> Iterator[bytes]:
    number, sealed = 0, file.read(_CHUNK + _TAG)
    while True:
        following = file.read(_CHUNK + _TAG)
        try:
            yield key.decrypt(_nonce(number, is_last=not following), sealed, None)
        except InvalidTag:
            reason = "the passphrase is wrong, or the file was altered" if number == 0 else "it was altered or cut off"
            raise SealedFileError(f"the file cannot be opened: {reason}") from None
        if not following:
            return
        number, sealed = number + 1, following


def _decompressed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    decompressing = zlib.decompressobj()
    try:
        for chunk in chunks:
            while chunk:
                yield decompressing.decompress(chunk, _STEP)
                chunk = decompressing.unconsumed_tail
            if decompressing.unused_data:
                raise SealedFileError("the file is damaged: it goes on after its end")
        yield decompressing.flush()
    except zlib.error as error:
        raise SealedFileError("the file is damaged") from error


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11) + bytes([is_last])


def _header(**members: str) -> bytes:
    return json.dumps(members).encode() + b"\n"


def _text_of(key: X25519PrivateKey) -> str:
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()
