"""The sealed states that clients return with answers."""

import pytest

from gateway.agents.mcp.messages import Message, RpcError
from gateway.agents.mcp.request_state import RequestStates
from gateway.foundation.vault.sealed_text import SealedText

KEY = bytes(range(32))


def call(state: str | None = None, **arguments: object) -> Message:
    params = {"name": "read", "arguments": arguments}
    return Message(1, "tools/call", params if state is None else {**params, "requestState": state})


def test_a_state_is_valid_in_another_process_with_the_same_key():
    sealed = RequestStates(SealedText(KEY)).sealed(call(limit=1), "client", {"flow": "f"})

    assert RequestStates(SealedText(KEY)).opened(call(sealed, limit=1), "client") == {"flow": "f"}


def test_a_call_without_a_state_has_none():
    assert RequestStates(SealedText(KEY)).opened(call(), "client") is None


@pytest.mark.parametrize("caller", ["client", "another"])
@pytest.mark.parametrize("limit", [1, 2])
def test_a_state_is_valid_for_one_caller_and_one_call(caller, limit):
    sealed = RequestStates(SealedText(KEY)).sealed(call(limit=1), "client", {})
    if (caller, limit) == ("client", 1):
        return

    with pytest.raises(RpcError):
        RequestStates(SealedText(KEY)).opened(call(sealed, limit=limit), caller)


@pytest.mark.parametrize("suffix", ["AAAA", "-TAMPERED", "é"])
def test_a_changed_state_is_refused(suffix):
    sealed = RequestStates(SealedText(KEY)).sealed(call(), "client", {})

    with pytest.raises(RpcError):
        RequestStates(SealedText(KEY)).opened(call(sealed + suffix), "client")


def test_a_state_expires():
    sealed = RequestStates(SealedText(KEY, seconds=-1)).sealed(call(), "client", {})

    with pytest.raises(RpcError):
        RequestStates(SealedText(KEY)).opened(call(sealed), "client")
