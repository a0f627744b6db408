"""Trusted issuers, through the API of a gateway whose operator allows public ones only."""

import pytest

from tests.harness.caller import Api

ISSUERS = "/api/v1/issuers"


@pytest.mark.parametrize(
    "issuer",
    [
        "https://127.0.0.1:8443",
        "https://[::1]/",
        "https://localhost/realms/acme",
        "https://10.0.0.8/",
        "https://sso.acme.internal",
        "http://login.example.com",
    ],
)
async def test_an_issuer_in_a_private_network_is_refused(api: Api, issuer: str):
    problem = (await api.post(ISSUERS, {"issuer": issuer, "audience": "acme"})).document(422)

    assert [each["field"] for each in problem["errors"]] == ["issuer"]
    assert (await api.get(ISSUERS)).document()["data"] == []


async def test_a_public_issuer_is_trusted_until_it_is_deleted(api: Api):
    created = await api.post(ISSUERS, {"issuer": "https://login.example.com/acme", "audience": "acme"})
    added = created.document(201)

    assert [each["id"] for each in (await api.get(ISSUERS)).document()["data"]] == [added["id"]]
    assert (await api.call("DELETE", f"{ISSUERS}/{added['id']}")).status == 204
    assert (await api.get(ISSUERS)).document()["data"] == []
