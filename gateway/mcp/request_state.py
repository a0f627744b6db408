"""What a server wants back with the answers to its questions: sealed, for one caller, one call and a short time."""

import base64
import binascii
import hashlib
import os
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.mcp.messages import Message, RpcError, invalid_params

_NONCE = 12


class RequestStates:
    """Seals states with AES-256-GCM; any process that has the key opens them."""

    def __init__(self, key: bytes, seconds: float = 600) -> None:
        self._cipher = AESGCM(key)
        self._seconds = seconds

    def sealed(self, message: Message, caller: str, state: Mapping[str, Any]) -> str:
        """The state for the caller to send back with the same call."""
        nonce = os.urandom(_NONCE)
        content = msgspec.json.encode({"until": time.time() + self._seconds, "state": dict(state)})
        return base64.urlsafe_b64encode(nonce + self._cipher.encrypt(nonce, content, _bound(message, caller))).decode()

    def opened(self, message: Message, caller: str) -> dict[str, Any] | None:
        """The state that came back, None when none did; raises RpcError for what was altered, is another's or old."""
        sealed = message.params.get("requestState")
        if sealed is None:
            return None
        try:
            raw = base64.b64decode(str(sealed), altchars=b"-_", validate=True)
            content = msgspec.json.decode(self._cipher.decrypt(raw[:_NONCE], raw[_NONCE:], _bound(message, caller)))
        except (binascii.Error, ValueError, InvalidTag) as error:
            raise _refusal() from error
        if content["until"] < time.time():
            raise _refusal()
        state: dict[str, Any] = content["state"]
        return state


def _bound(message: Message, caller: str) -> bytes:
    """What the state holds for: the caller and the call, whatever was answered since."""
    params = message.params
    whole = [caller, message.method, params.get("name") or params.get("uri"), params.get("arguments")]
    return hashlib.sha256(msgspec.json.encode(whole, order="deterministic")).digest()


def _refusal() -> RpcError:
    return invalid_params("requestState is not one of ours for this call, or it has expired; call again without it")
