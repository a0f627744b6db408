"""The encryption keys and the first client, which later runs use again."""

import base64
import stat

import pytest

from gateway.embedded import StartupError
from gateway.embedded.first_run import Credentials, database_label, ensure_keys, store_client, stored_client

CLIENT = Credentials(client_id="c", client_secret="s", organization_id="o")


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_run_creates_a_private_key_file(place):
    path = ensure_keys(place, data_exists=False)

    name, _, key = path.read_text().strip().partition(":")
    assert name == "k1"
    assert len(base64.b64decode(key, validate=True)) == 32
    assert mode_of(path) == 0o600


def test_a_later_run_uses_the_same_key_file_and_makes_it_private(place):
    first = ensure_keys(place, data_exists=False).read_text()
    (place / "encryption.keys").chmod(0o644)

    path = ensure_keys(place, data_exists=True)

    assert path.read_text() == first
    assert mode_of(path) == 0o600


def test_a_lost_key_file_is_not_replaced_if_there_are_data(place):
    with pytest.raises(StartupError, match="Restore it from your backup"):
        ensure_keys(place, data_exists=True)

    assert list(place.iterdir()) == []


def test_the_first_client_is_stored_in_a_private_file(place):
    store_client(place, "embedded", CLIENT)

    assert stored_client(place, "embedded") == CLIENT
    assert mode_of(place / "first-client.json") == 0o600


def test_the_first_client_of_another_database_is_not_used(place):
    store_client(place, "embedded", CLIENT)

    assert stored_client(place, database_label("postgresql://u:p@db/gateway")) is None


@pytest.mark.parametrize(
    ("url", "label"),
    [
        (None, "embedded"),
        ("postgresql://user:secret@db.internal:5432/gateway", "db.internal:5432/gateway?"),
        ("postgresql:///gateway?host=/run/pg", ":/gateway?host=/run/pg"),
    ],
)
def test_a_database_is_labelled_without_its_secrets(url, label):
    assert database_label(url) == label
