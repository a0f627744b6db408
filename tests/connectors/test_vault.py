"""Sealing: what was sealed for one place opens nowhere else, and keys can be replaced under way."""

import base64
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import SecretStr

from gateway.errors import InternalError
from gateway.foundation.vault.vault import Binding, KeyListError, Vault, new_key, parse_keys, read_keys

OLD, NEW = ("old", bytes(range(32))), ("new", bytes(range(32, 64)))
OURS = Binding(UUID(int=1), UUID(int=2), context="here")
VALUES = {"api_token": "CANARY-sealed", "email": "agent@example.com"}


def encoded(key: bytes) -> str:
    return base64.b64encode(key).decode()


def test_sealed_values_open_again():
    vault = Vault([NEW])

    sealed = vault.seal(VALUES, OURS)

    assert vault.open(sealed, OURS) == VALUES
    assert sealed.key_id == "new"
    assert b"CANARY" not in sealed.sealed + sealed.wrapped_key


def test_sealing_twice_never_makes_the_same_bytes():
    vault = Vault([NEW])

    first, second = vault.seal(VALUES, OURS), vault.seal(VALUES, OURS)

    assert first.sealed != second.sealed
    assert first.wrapped_key != second.wrapped_key


@pytest.mark.parametrize(
    "elsewhere",
    [
        pytest.param(replace(OURS, organization_id=UUID(int=9)), id="another organization"),
        pytest.param(replace(OURS, owner_id=UUID(int=9)), id="another connector"),
        pytest.param(replace(OURS, field="client_secret"), id="another field"),
        pytest.param(replace(OURS, context="elsewhere"), id="another context"),
        pytest.param(replace(OURS, context=""), id="no context"),
    ],
)
def test_a_row_that_was_swapped_refuses_to_open(elsewhere: Binding):
    vault = Vault([NEW])
    sealed = vault.seal(VALUES, OURS)

    with pytest.raises(InternalError):
        vault.open(sealed, elsewhere)


@pytest.mark.parametrize("part", ["wrapped_key", "sealed"])
@pytest.mark.parametrize("position", [0, 12, -1])
def test_a_row_that_was_altered_refuses_to_open(part: str, position: int):
    vault = Vault([NEW])
    sealed = vault.seal(VALUES, OURS)
    altered = bytearray(getattr(sealed, part))
    altered[position] ^= 1

    with pytest.raises(InternalError):
        vault.open(replace(sealed, **{part: bytes(altered)}), OURS)


def test_a_value_put_beside_another_rows_key_refuses_to_open():
    vault = Vault([NEW])
    first, second = vault.seal(VALUES, OURS), vault.seal(VALUES, OURS)

    with pytest.raises(InternalError):
        vault.open(replace(first, wrapped_key=second.wrapped_key), OURS)


def test_every_key_of_the_list_opens_and_the_newest_seals():
    sealed_before = Vault([OLD]).seal(VALUES, OURS)

    vault = Vault([NEW, OLD])

    assert vault.open(sealed_before, OURS) == VALUES
    assert vault.seal(VALUES, OURS).key_id == "new"


def test_rotation_wraps_the_key_anew_and_leaves_the_value_as_it_is():
    sealed_before = Vault([OLD]).seal(VALUES, OURS)

    rewrapped = Vault([NEW, OLD]).rewrapped(sealed_before, OURS)

    assert rewrapped.sealed == sealed_before.sealed
    assert rewrapped.key_id == "new"
    assert Vault([NEW]).open(rewrapped, OURS) == VALUES


def test_a_value_under_a_key_that_was_taken_away_names_the_key_and_no_secret():
    sealed = Vault([OLD]).seal(VALUES, OURS)

    with pytest.raises(InternalError, match="the key old, which is not in the key list") as refused:
        Vault([NEW]).open(sealed, OURS)

    assert "CANARY" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (f"a:{encoded(OLD[1])}", ["a"]),
        (f"a:{encoded(OLD[1])},b:{encoded(NEW[1])}", ["a", "b"]),
        (f" a:{encoded(OLD[1])} ,\n\n b:{encoded(NEW[1])}\n", ["a", "b"]),
    ],
)
def test_a_key_list_is_read_with_the_newest_first(text: str, ids: list[str]):
    assert [key_id for key_id, _ in parse_keys(text)] == ids


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no encryption keys"),
        (" , \n", "no encryption keys"),
        ("CANARY", "id:base64 of 32 bytes"),
        (f":{encoded(OLD[1])}", "id:base64 of 32 bytes"),
        ("a:CANARY", "id:base64 of 32 bytes"),
        ("a:CANARY–copied", "id:base64 of 32 bytes"),
        (f"a:{encoded(b'too short')}", "id:base64 of 32 bytes"),
        (f"a:{encoded(OLD[1])},a:{encoded(NEW[1])}", "same id"),
    ],
)
def test_a_key_list_that_cannot_be_used_says_how_to_mend_it_and_shows_no_key(text: str, said: str):
    with pytest.raises(KeyListError, match=said) as refused:
        parse_keys(text)

    assert "CANARY" not in str(refused.value)


def test_keys_come_from_the_setting_before_they_come_from_the_file(tmp_path: Path):
    path = tmp_path / "keys"
    path.write_text(f"file:{encoded(OLD[1])}\n")

    assert read_keys(SecretStr(f"setting:{encoded(NEW[1])}"), path) == [("setting", NEW[1])]
    assert read_keys(None, path) == [("file", OLD[1])]


def test_a_key_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(KeyListError, match=r"keys cannot be read: No such file"):
        read_keys(None, tmp_path / "keys")


def test_a_key_file_that_is_not_text_is_named(tmp_path: Path):
    (tmp_path / "keys").write_bytes(bytes(range(128, 160)))

    with pytest.raises(KeyListError, match=r"keys cannot be read: it is not text in UTF-8"):
        read_keys(None, tmp_path / "keys")


def test_no_keys_at_all_is_an_error_that_says_how_to_make_one():
    with pytest.raises(KeyListError, match="gateway keys new"):
        read_keys(None, None)


def test_a_new_key_can_be_used_as_it_is_printed():
    [(key_id, key)] = parse_keys(new_key())

    assert key_id.startswith("k")
    assert len(key) == 32
