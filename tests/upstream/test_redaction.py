"""An application's words without the secrets of the call, in whatever form it echoes them."""

import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import pytest

from gateway.errors import document
from gateway.kinds.failures import Failure
from gateway.upstream import failures
from gateway.upstream.redaction import Secrets, secrets_in_body
from gateway.upstream.responses import UpstreamResponse
from tests.harness.blocked_loop import LIMIT
from tests.harness.signing_keys import key_file, parts_of, pem
from tests.harness.work import seconds_at_most

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

    error = failures.failure(spec, UpstreamResponse(status, {"x-request-id": TOKEN}, body, secrets=SECRETS))

    assert "canary" not in str(document(error))
    assert BASIC not in str(document(error))
    assert document(error)["upstream"]["request_id"] == "***"


def test_a_secret_at_the_cut_of_a_long_message_is_masked_before_the_cut():
    spec = Failure(message=(("message",),))
    body = f'{{"message": "{"x" * 490}{TOKEN}"}}'.encode()

    error = failures.failure(spec, UpstreamResponse(422, {}, body, secrets=SECRETS))

    assert error.upstream.message == "x" * 490 + "***"


def test_a_value_that_the_gateway_uses_is_changed_only_by_a_whole_long_secret():
    jwt = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
    secrets = Secrets([f"{jwt}.token.canary", "1234"])

    assert secrets.masked_value(f"{jwt}.cursor.51234") == f"{jwt}.cursor.51234"
    assert secrets.masked_value(f"?key={jwt}.token.canary&page=2") == "?key=***&page=2"


def test_headers_are_masked_a_validator_is_left_out_and_an_address_stays():
    headers = {
        "x-request-id": f"r {TOKEN}",
        "etag": f'"{TOKEN}"',
        "last-modified": "yesterday",
        "location": f"/?key={TOKEN}",
        "content-length": "12",
    }

    masked = SECRETS.masked_headers(headers)

    assert masked == {
        "x-request-id": "r ***",
        "last-modified": "yesterday",
        "location": f"/?key={TOKEN}",
        "content-length": "12",
    }


def test_a_key_that_is_the_user_of_basic_authentication_is_masked():
    key = "key-9f8e7d6c"

    masked = Secrets.of_headers([f"Basic {b64encode(f'{key}:X'.encode()).decode()}"]).masked(f"no {key}")

    assert masked == "no ***"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"user": {"password": "p\\u00e4ss-word"}}', ["p\u00e4ss-word"]),
        (b'[{"webhook_secret" : "whsec\\"12345", "API_KEY":"k-1234567"}]', ['whsec"12345', "k-1234567"]),
        (b'{"password": "short", "page_token": "123456789", "secret": 123456789, "secrets": "123456789"}', []),
        (b'{"password": "cut off' + b" " * 100, []),
        (b" " * (64 << 10) + b'{"password": "123456789"}', []),
    ],
)
def test_members_of_a_body_that_are_named_as_secrets_are_found(body, found):
    assert list(secrets_in_body(body)) == found


KEY_FILE = key_file()


@pytest.mark.parametrize(
    "echo",
    [
        pem(),
        pem().replace("\n", "\r\n"),
        pem().replace("\n", "\\n"),
        pem().replace("\n", "\\\\n"),
        pem().replace("\n", " "),
        "".join(parts_of(pem())),
        quote(pem(), safe=""),
        pem().replace("/", "\\/").replace("\n", "\\n"),
        b64encode(pem().encode()).decode(),
        "\n".join(parts_of(pem())[3:7]),
        parts_of(pem())[5],
        parts_of(pem())[5][:30],
        KEY_FILE,
        json.dumps({"credentials_json": KEY_FILE}),
    ],
    ids=range(14),  # the key is another in each process
)
@pytest.mark.parametrize("given", [pem(), KEY_FILE], ids=["PEM", "key file"])
def test_a_private_key_is_masked_in_every_form_and_in_parts(given, echo):
    masked = Secrets([given]).masked(f"refused {echo}, sorry")

    assert masked.startswith("refused ")
    assert masked.endswith(", sorry")
    assert "***" in masked
    encoded = b64encode(pem().encode()).decode()
    pieces = [*(line[at : at + 16] for line in parts_of(pem()) for at in (0, 24, 48)), encoded[1200:1216]]
    assert [piece for piece in pieces if len(piece) == 16 and piece in masked] == []


def test_a_private_key_in_a_body_is_a_secret_of_its_request():
    body = json.dumps({"account": {"private_key": pem()}}).encode()

    assert list(secrets_in_body(body)) == [pem()]


def test_the_lines_of_a_hostile_key_are_bounded():
    hostile = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(f"line{number:08}" for number in range(5000))

    masked = Secrets([hostile]).masked("line00000007 line00004000")

    assert masked == "*** line00004000"


def test_a_text_that_takes_long_to_search_for_the_lines_of_a_key_is_masked_as_a_whole():
    key = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(f"{number:064}" for number in range(200))
    secrets, text = Secrets([key]), "abc " * (1 << 20)
    assert secrets.masked("abc") == "abc"

    with seconds_at_most(LIMIT):
        assert secrets.masked(text) == "***"
    assert Secrets([TOKEN]).masked(f"{text}{TOKEN}") == f"{text}***"
