"""References to secrets, and the places below which the operator allows them."""

import pytest

from gateway.foundation.vault.secret_references import SecretPlace, SecretReference

ALLOWED = SecretPlace.read("vault://vault.example.com:8200/secret/acme")


def is_allowed(text: str) -> bool:
    return ALLOWED.contains(SecretReference.read(text).place)


@pytest.mark.parametrize(
    "reference",
    [
        "vault://vault.example.com:8200/secret/acme#api_token",
        "vault://vault.example.com:8200/secret/acme/zendesk/key#api_token",
        "vault://VAULT.example.com:8200/secret/acme/zendesk#api-token.2",
    ],
)
def test_a_reference_below_an_allowed_place_is_allowed(reference: str):
    assert is_allowed(reference)


@pytest.mark.parametrize(
    "reference",
    [
        "vault://vault.example.com:8200/secret/acme-other/zendesk#api_token",
        "vault://vault.example.com:8200/secret/acme2#api_token",
        "vault://vault.example.com:8200/secret/other/acme#api_token",
        "vault://vault.example.com:8200/Secret/acme/zendesk#api_token",
        "vault://vault.example.com:8200/other/secret/acme#api_token",
        "vault://vault.example.com/secret/acme/zendesk#api_token",
        "vault://vault.example.com:8201/secret/acme/zendesk#api_token",
        "vault://vault.example.com.evil.example:8200/secret/acme/zendesk#api_token",
        "vault://evil.example/secret/acme/zendesk#api_token",
    ],
)
def test_a_reference_to_another_place_is_not_allowed(reference: str):
    assert not is_allowed(reference)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "vault:///secret/acme#f",
        "vault://vault.example.com:8200/secret#f",
        "vault://vault.example.com:8200/secret/acme",
        "vault://vault.example.com:8200/secret/acme#",
        "vault://vault.example.com:8200/secret/acme#a#b",
        "vault://vault.example.com:8200/secret/acme#a/b",
        "vault://vault.example.com:8200/secret/acme/../other#f",
        "vault://vault.example.com:8200/secret/acme/./x#f",
        "vault://vault.example.com:8200/secret/acme/..#f",
        "vault://vault.example.com:8200/secret/acme/%2e%2e/other#f",
        "vault://vault.example.com:8200/secret/acme%2Fother#f",
        "vault://vault.example.com:8200/secret/acme\\..\\other#f",
        "vault://vault.example.com:8200/secret//acme#f",
        "vault://vault.example.com:8200/secret/acme/#f",
        "vault://vault.example.com:8200/secret/acme?version=1#f",
        "vault://vault.example.com:8200@evil.example/secret/acme#f",
        "vault://user:pass@vault.example.com:8200/secret/acme#f",
        "vault://vault.example.com:08200/secret/acme#f",
        "vault://vault.example.com:/secret/acme#f",
        "vault://vault.example.com:8200/secret/acme#f\n",
        " vault://vault.example.com:8200/secret/acme#f",
        "https://vault.example.com:8200/secret/acme#f",
        "awssecretsmanager://secret/acme#f",
        f"vault://vault.example.com:8200/secret/{'a' * 1000}#f",
        "vault://vault.example.com:8200/secret/acm\u00e9#f",
    ],
)
def test_a_text_that_servers_could_read_in_another_way_is_no_reference(text: str):
    with pytest.raises(ValueError, match="must be written vault://"):
        SecretReference.read(text)
