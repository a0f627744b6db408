"""Small documents that clients carry and send back: sealed, for one context and a short time."""

import base64
import binascii
import os
from collections.abc import Mapping
from typing import Any

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.foundation.aio.clock import CLOCK

_NONCE = 12


class NotOurs(ValueError):
    """The text was altered, belongs to another context, or has expired."""


class SealedText:
    """Seals with AES-256-GCM; any process that has the key opens."""

    def __init__(self, key: bytes, seconds: float = 600) -> None:
        self._cipher = AESGCM(key)
        self._seconds = seconds

    def sealed(self, document: Mapping[str, Any], context: bytes) -> str:
        """The document as text that is safe in URLs and forms."""
        nonce = os.urandom(_NONCE)
        content = msgspec.json.encode({"until": CLOCK.unix_time() + self._seconds, "document": dict(document)})
        return base64.urlsafe_b64encode(nonce + self._cipher.encrypt(nonce, content, context)).decode()

    def opened(self, text: str, context: bytes) -> dict[str, Any]:
        """The document that was sealed in this context; raises NotOurs."""
        try:
            raw = base64.b64decode(text, altchars=b"-_", validate=True)
            content = msgspec.json.decode(self._cipher.decrypt(raw[:_NONCE], raw[_NONCE:], context))
        except (binascii.Error, ValueError, InvalidTag) as error:
            raise NotOurs from error
        if content["until"] < CLOCK.unix_time():
            raise NotOurs
        document: dict[str, Any] = content["document"]
        return document
