"""Sealed `requestState`, which a client returns with the user's answers; valid for one caller and call, for minutes."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.agents.mcp.messages import Message, invalid_params
from gateway.foundation.vault.sealed_text import NotOurs, SealedText


class RequestStates:
    """Seals and opens the states that clients return with answers."""

    def __init__(self, texts: SealedText) -> None:
        self._texts = texts

    def sealed(self, message: Message, caller: str, state: Mapping[str, Any]) -> str:
        """The sealed state, for the same caller and call."""
        return self._texts.sealed(state, _bound(message, caller))

    def opened(self, message: Message, caller: str) -> dict[str, Any] | None:
        """The state in the request, or None; raises RpcError if it was changed, has expired or is of another call."""
        sealed = message.params.get("requestState")
        if sealed is None:
            return None
        try:
            return self._texts.opened(str(sealed), _bound(message, caller))
        except NotOurs as error:
            text = "requestState is not valid for this call, or it has expired; call again without it"
            raise invalid_params(text) from error


def _bound(message: Message, caller: str) -> bytes:
    """The associated data of the state: a hash of the caller and the call without the user's answers."""
    params = message.params
    members = [caller, message.method, params.get("name") or params.get("uri"), params.get("arguments")]
    return hashlib.sha256(msgspec.json.encode(members, order="deterministic")).digest()
