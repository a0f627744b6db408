"""Connectors by a private key over HTTP: wrong keys say what is wrong, and no part of a key is seen again."""

import json
import logging
import re
from uuid import uuid4

import pytest

from tests.harness.caller import Api
from tests.harness.databases import rows_as_text
from tests.harness.in_process import FrontEnd
from tests.harness.signing_keys import key_file, parts_of, pem, public_pem
from tests.web.test_connect_links import made, opened, sent

CONNECTORS = "/api/v1/integrations/connectors"
SALESFORCE = {"client_id": "app", "username": "agent@acme.example"}
PARTS = [line[:24] for line in parts_of(pem())]
SHORT, ENCRYPTED = pem(bits=1024), pem(passphrase=b"secret")


def parts_in(*texts: str) -> list[str]:
    return [part for part in PARTS for text in texts if part in text]


@pytest.mark.parametrize(
    ("kind", "credentials", "field", "reason"),
    [
        ("Google-Analytics-Data-Api", {"credentials_json": "key.json"}, "credentials_json", "is not valid JSON"),
        ("Google-Analytics-Data-Api", {"credentials_json": {"a": 1}}, "credentials_json", "must be a text of at most"),
        ("Google-Analytics-Data-Api", {"credentials_json": pem()}, "credentials_json", "is PEM: give the whole text"),
        (
            "Google-Analytics-Data-Api",
            {"credentials_json": key_file(client_email=None)},
            "credentials_json",
            "has no client_email",
        ),
        ("Crm-Query", {**SALESFORCE, "private_key": "hello"}, "private_key", "is not PEM"),
        ("Crm-Query", {**SALESFORCE, "private_key": ENCRYPTED}, "private_key", "is encrypted with a passphrase"),
        ("Crm-Query", {**SALESFORCE, "private_key": public_pem()}, "private_key", "is PEM of a different kind"),
        ("Crm-Query", {**SALESFORCE, "private_key": SHORT}, "private_key", "has 1024 bits"),
        ("Crm-Query", {**SALESFORCE, "private_key": "x" * 40_000}, "private_key", "must be a text of at most"),
    ],
)
async def test_a_key_that_cannot_sign_is_refused_before_anything_is_sent(
    api: Api, kind: str, credentials: dict[str, object], field: str, reason: str
):
    body = {"workspace_name": f"w-{uuid4().hex[:8]}", "connector_type": kind, "credentials": credentials}

    answers = [await api.post(CONNECTORS, {**body, "validate": validate}) for validate in (True, False)]

    for answer in answers:
        [fault] = answer.document(422)["errors"]
        assert (fault["field"], fault["code"], fault["pointer"]) == (field, "format", f"/credentials/{field}")
        assert reason in fault["message"]


async def test_no_part_of_a_key_is_stored_in_clear_logged_or_shown(
    api: Api, front: FrontEnd, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    connector = await api.connector(
        "Google-Analytics-Data-Api", {"credentials_json": key_file()}, name=f"GA {uuid4()}", validate=False
    )
    answers = [await api.get(connector.path)]
    # The key again where it does not belong, in each form in which JSON may have it.
    for wrong in ({"credentials_json": key_file(), "key": pem()}, {pem(): "x"}, {"credentials_json": [key_file()]}):
        answers.append(await api.call("PATCH", connector.path, json={"credentials": wrong}))
    answers += [await api.get(f"/api/v1/{path}?limit=1000") for path in ("audit", "events", "requests")]
    rows = [row for _, row in await rows_as_text(front.services.database)]

    assert [answer.status for answer in answers] == [200, 422, 422, 422, 200, 200, 200]
    assert parts_in(caplog.text, *rows, *(answer.body.decode() for answer in answers)) == []


async def test_the_form_has_a_field_with_lines_whose_content_is_not_shown_again(api: Api):
    _, path = await made(api, connector_types=["Google-Analytics-Data-Api"])
    page = await opened(api, path)

    refused = await sent(
        api,
        path,
        kind="google-analytics-data-api",
        method="service_account",
        credentials_json=key_file(private_key=public_pem()),
    )

    form = page.body.decode()
    assert re.search(r'<textarea id="service_account-credentials_json" name="credentials_json"[^>]*required', form)
    assert re.search(r'<input id="service_account-access_token"[^>]*type="password"', form)
    assert refused.status == 422
    assert "is PEM of a different kind (PUBLIC KEY)" in refused.body.decode()
    assert parts_of(public_pem())[0] not in refused.body.decode()


async def test_callers_see_which_credential_is_the_text_of_a_file(api: Api):
    google, salesforce = [
        (await api.get(f"/api/v1/integrations/connector-types/{kind}")).json()
        for kind in ("google-analytics-data-api", "crm-query")
    ]

    methods = {each["id"]: each for each in [*google["auth_methods"], *salesforce["auth_methods"]]}
    fields = {name: methods[name]["fields"] for name in ("service_account", "jwt_bearer")}
    assert (methods["jwt_bearer"]["oauth"], methods["jwt_bearer"]["grant_type"]) == (False, "jwt_bearer")
    assert fields["service_account"]["credentials_json"]["format"] == "key_file"
    assert {name: field["format"] for name, field in fields["jwt_bearer"].items() if field["format"]} == {
        "private_key": "private_key"
    }
    assert json.dumps(methods["service_account"]).count("PRIVATE KEY") == 0
