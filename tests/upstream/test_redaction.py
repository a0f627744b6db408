"""An application's words without the secrets of the call, in whatever form it echoes them."""

from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import pytest

from gateway.errors import document
from gateway.kinds.failures import Failure
from gateway.upstream import responses
from gateway.upstream.redaction import Secrets
from gateway.upstream.responses import UpstreamResponse

TOKEN = "xoxb-1234/5678+canary-7b1e4f9a52d0"
PASSWORD = "canary-3f6a\u00fc"
BASIC = b64encode(f"a@b.c/token:{PASSWORD}".encode()).decode()
SECRETS = Secrets.of_headers((f"Bearer {TOKEN}", f"Basic {BASIC}"))


@pytest.mark.parametrize(
    "echo",
    [
        TOKEN,
        f"Bearer {TOKEN}",
        quote(TOKEN, safe=""),
        TOKEN.replace("/", "\\/"),
        b64encode(TOKEN.encode()).decode(),
        urlsafe_b64encode(TOKEN.encode()).decode(),
        BASIC,
        BASIC.rstrip("="),
        f"a@b.c/token:{PASSWORD}",
        PASSWORD,
        b64encode(PASSWORD.encode()).decode(),
        TOKEN[:20],
        f"token={TOKEN}&again={TOKEN}",
    ],
)
def test_every_form_of_a_secret_is_masked_and_the_rest_stays(echo):
    masked = SECRETS.masked(f"refused {echo}, sorry")

    assert masked.startswith("refused ")
    assert masked.endswith(", sorry")
    assert "***" in masked
    assert "canary" not in masked
    assert b64encode(b"canary")[1:-1].decode() not in masked


@pytest.mark.parametrize("offset", range(3))
def test_a_secret_within_something_encoded_is_masked_at_any_place(offset):
    encoded = b64encode(b"x" * offset + f"Bearer {TOKEN} and more".encode()).decode()

    masked = SECRETS.masked(encoded)

    assert len(masked) < len(encoded) - len(TOKEN)


def test_what_is_no_secret_stays_as_it_is():
    text = "Subject is too long (maximum is 255 characters): Bearer of bad news"

    assert SECRETS.masked(text) == text


@pytest.mark.parametrize("status", [200, 401, 404, 422, 429, 500])
def test_no_member_of_an_error_holds_a_secret(status):
    spec = Failure(code=(("error",),), message=(("message",),), request_id=(("id",),), ok="ok")
    body = f'{{"ok": false, "error": "{TOKEN}", "message": "{BASIC} {PASSWORD}", "id": "{TOKEN}"}}'.encode()

    error = responses.failure(spec, UpstreamResponse(status, {"x-request-id": TOKEN}, body, secrets=SECRETS))

    assert "canary" not in str(document(error))
    assert BASIC not in str(document(error))
    assert document(error)["upstream"]["request_id"] == "***"


def test_a_secret_at_the_cut_of_a_long_message_is_masked_before_the_cut():
    spec = Failure(message=(("message",),))
    body = f'{{"message": "{"x" * 490}{TOKEN}"}}'.encode()

    error = responses.failure(spec, UpstreamResponse(422, {}, body, secrets=SECRETS))

    assert error.upstream.message == "x" * 490 + "***"
