"""Sealed values of rows that others may have sealed."""

from uuid import UUID

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.errors import InternalError
from gateway.foundation.vault.vault import Binding, Sealed, Vault, encrypt

VAULT = Vault([("k1", bytes(32))])
BOUND = Binding(UUID(int=1), UUID(int=2))


def sealed_by_another(text: bytes) -> Sealed:
    """The text in place of values, by somebody who knows the data key, as the writer of an organization's file does."""
    wrapped, data_key = VAULT.new_data_key(BOUND)
    return Sealed(wrapped.key_id, wrapped.wrapped_key, encrypt(AESGCM(data_key), text, BOUND.associated_data("value")))


def test_values_are_opened():
    assert VAULT.open(VAULT.seal({"token": "a", "name": "é"}, BOUND), BOUND) == {"token": "a", "name": "é"}
    assert VAULT.open(sealed_by_another(b'{"token": "a"}'), BOUND) == {"token": "a"}


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'"a"', b'{"token": 5}', b'{"token": null}', b'"\xff"', b"[" * 5000]
)
def test_what_are_no_values_is_an_error_for_the_log(text: bytes):
    with pytest.raises(InternalError, match="they are not names and texts"):
        VAULT.open(sealed_by_another(text), BOUND)


@pytest.mark.parametrize("length", [0, 5, 16, 33])
def test_a_data_key_of_another_length_is_none(length: int):
    wrapped = encrypt(AESGCM(bytes(32)), bytes(length), BOUND.associated_data("key"))

    with pytest.raises(InternalError, match="their data key is none"):
        VAULT.open(Sealed("k1", wrapped, b""), BOUND)
    with pytest.raises(ValueError, match="32 bytes"):
        VAULT.wrap(bytes(length), BOUND)
