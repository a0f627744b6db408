"""The state that a server gets back with the answers to its questions: sealed, for one caller, one call, briefly."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.agents.mcp.messages import Message, invalid_params
from gateway.vault.sealed_text import NotOurs, SealedText


class RequestStates:
    """States as clients carry them from a question to its answer."""

    def __init__(self, texts: SealedText) -> None:
        self._texts = texts

    def sealed(self, message: Message, caller: str, state: Mapping[str, Any]) -> str:
        """The state for the caller to send back with the same call."""
        return self._texts.sealed(state, _bound(message, caller))

    def opened(self, message: Message, caller: str) -> dict[str, Any] | None:
        """The state that the client sent back, or None; raises RpcError if it was altered, is old or another's."""
        sealed = message.params.get("requestState")
        if sealed is None:
            return None
        try:
            return self._texts.opened(str(sealed), _bound(message, caller))
        except NotOurs as error:
            text = "requestState is not valid for this call, or it has expired; call again without it"
            raise invalid_params(text) from error


def _bound(message: Message, caller: str) -> bytes:
    """The associated data of the state: the caller and the call, without the answers that were added since."""
    params = message.params
    whole = [caller, message.method, params.get("name") or params.get("uri"), params.get("arguments")]
    return hashlib.sha256(msgspec.json.encode(whole, order="deterministic")).digest()
