"""Key services over HTTP: requests as the vendors document them, and what a service that is away or refuses does."""

import asyncio
import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from gateway.foundation.vault.key_services.opening import (
    new_wrapped_key,
    unwrapped,
    unwrapped_at_start,
)
from gateway.foundation.vault.key_services.service import Http, KeyServiceAway, KeyServiceRefused
from gateway.foundation.vault.vault import KeyListError, WrappedKey, parse_keys
from tests.harness.applications import Applications
from tests.harness.key_services import AWS, KeyServices, service_urls
from tests.harness.serving import served
from tests.harness.signing_keys import key_file
from tests.harness.waiting import eventually

_TOKENS = URL("https://login.microsoftonline.com/t/oauth2/v2.0/token")
NAMES = ("aws", "azure", "google", "vault")


@pytest.fixture
async def services():
    async with KeyServices().serving() as opened:
        yield opened


def written(entry: tuple[str, WrappedKey]) -> str:
    return f"{entry[0]}:{entry[1].text}"


@pytest.mark.parametrize("name", NAMES)
async def test_a_new_key_is_wrapped_and_unwrapped_by_documented_requests(services: KeyServices, name: str):
    entry = await new_wrapped_key(service_urls(services)[name], services.environ)
    plain = ("k1", bytes(range(32)))

    keys = await unwrapped([plain, *parse_keys(written(entry))], services.environ)

    assert services.faults == []
    assert keys[0] == plain
    assert (keys[1][0], len(keys[1][1])) == (entry[0], 32)
    assert base64.urlsafe_b64encode(keys[1][1]).decode()[:40] not in written(entry)


@pytest.mark.parametrize("name", NAMES)
async def test_a_key_that_another_key_wrapped_is_refused(services: KeyServices, name: str):
    key_id, entry = await new_wrapped_key(service_urls(services)[name], services.environ)
    other = (f"{key_id}x", entry)

    with pytest.raises(KeyServiceRefused, match="unwraps another key than the one that was wrapped"):
        await unwrapped([other], services.environ)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ((403, {"__type": "com.amazon#AccessDeniedException", "message": "no"}), KeyServiceRefused, "AccessDenied"),
        ((400, {"errors": ["permission denied"]}), KeyServiceRefused, "answered 400: permission denied"),
        ((403, {"error": {"code": "Forbidden", "message": "Caller lacks it"}}), KeyServiceRefused, "Forbidden: Caller"),
        ((503, {"errors": ["Vault is sealed"]}), KeyServiceAway, "answered 503: Vault is sealed"),
        ((429, {}), KeyServiceAway, "answered 429"),
        ((400, {"__type": "ThrottlingException"}), KeyServiceAway, "ThrottlingException"),
        ((302, {}), KeyServiceRefused, "answered 302"),
        ((200, {}), KeyServiceAway, "has no "),
    ],
)
async def test_a_refusal_is_told_from_an_outage(
    services: KeyServices, name: str, answer: Any, error: type[Exception], said: str
):
    entry = await new_wrapped_key(service_urls(services)[name], services.environ)
    services.refusal = answer

    with pytest.raises(error, match=said) as raised:
        await unwrapped([entry], services.environ)

    assert entry[0] in str(raised.value)
    assert "CANARY" not in str(raised.value)


@pytest.mark.parametrize("name", NAMES)
async def test_a_start_waits_for_a_service_that_is_away_and_ends_if_it_refuses(services: KeyServices, name: str):
    entry = await new_wrapped_key(service_urls(services)[name], services.environ)
    services.is_away = True
    asked = len(services.requests)

    starting = asyncio.create_task(unwrapped_at_start([entry], services.environ))
    await eventually(lambda: len(services.requests) > asked)
    services.is_away = False
    keys = await starting
    services.refusal = (403, {"message": "no"})

    assert keys[0][0] == entry[0]
    with pytest.raises(KeyListError, match="answered 403: no"):
        await unwrapped_at_start([entry], services.environ)


async def test_a_slow_service_is_one_that_is_away():
    over = asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        await over.wait()
        return web.Response()

    app = web.Application()
    app.router.add_get("/", slow)
    async with served(app) as url, aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=0.05)) as session:
        with pytest.raises(KeyServiceAway, match="does not respond within"):
            await Http(session, "it").json("GET", url)
        over.set()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("aws", {"AWS_WEB_IDENTITY_TOKEN_FILE": "FILE", "AWS_ROLE_ARN": "arn:aws:iam::1:role/g"}),
        (
            "aws",
            {
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": "URL/container",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "FILE",
            },
        ),
        ("aws", {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "URL"}),
        ("azure", {"AZURE_CLIENT_SECRET": "", "AZURE_FEDERATED_TOKEN_FILE": "FILE"}),
        (
            "azure",
            {"AZURE_CLIENT_SECRET": "", "IDENTITY_ENDPOINT": "URL/msi/token", "IDENTITY_HEADER": "CANARY-identity"},
        ),
        ("google", {"GOOGLE_APPLICATION_CREDENTIALS": "ACCOUNT"}),
        ("vault", {"VAULT_TOKEN": "", "VAULT_ROLE_ID": "role", "VAULT_SECRET_ID": "CANARY-secret-id"}),
        ("vault", {"VAULT_TOKEN": "", "VAULT_KUBERNETES_ROLE": "gateway", "VAULT_KUBERNETES_TOKEN_FILE": "FILE"}),
    ],
)
async def test_credentials_come_from_where_the_process_runs(
    services: KeyServices, tmp_path: Path, name: str, changes: Mapping[str, str]
):
    (tmp_path / "token").write_text("CANARY-jwt\n")
    (tmp_path / "account").write_text(key_file(token_uri=f"{services.url}/google-token"))
    places = {"FILE": str(tmp_path / "token"), "ACCOUNT": str(tmp_path / "account")}
    given = {key: places.get(value, value.replace("URL", services.url)) for key, value in changes.items()}
    static = AWS.keys() - {"AWS_REGION"} if name == "aws" else set()
    environ = {key: value for key, value in services.environ.items() if key not in static} | given

    entry = await new_wrapped_key(service_urls(services)[name], environ)

    assert services.faults == []
    assert "CANARY" not in written(entry)


@pytest.mark.parametrize(
    ("url", "requested"),
    [
        ("awskms://1234abcd?region=cn-north-1", "https://kms.cn-north-1.amazonaws.com.cn/"),
        ("awskms:///arn:aws:kms:us-east-1:1:key/1234abcd", "https://kms.us-east-1.amazonaws.com/"),
        (
            "azurekeyvault://acme.vault.usgovcloudapi.net/keys/k/0f",
            "https://acme.vault.usgovcloudapi.net/keys/k/0f/wrapkey?api-version=7.4",
        ),
        (
            "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k",
            "https://cloudkms.googleapis.com/v1/projects/p/locations/l/keyRings/r/cryptoKeys/k:encrypt",
        ),
        ("vault://vault.example.com:8200/a/transit/keys/k", "https://vault.example.com:8200/v1/a/transit/encrypt/k"),
    ],
)
async def test_requests_go_to_the_vendors_addresses(url: str, requested: str):
    environ = {**AWS, "VAULT_TOKEN": "t", "AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s"}

    with Applications() as faked:
        faked.get(re.compile("http://metadata.google.internal/.*"), payload={"access_token": "t"})
        faked.post("https://login.microsoftonline.com/t/oauth2/v2.0/token", payload={"access_token": "t"})
        faked.post(requested, status=503)
        with pytest.raises(KeyServiceAway, match="answered 503"):
            await new_wrapped_key(url, environ)
        sent = [(call, str(address)) for (call, address), _ in faked.requests.items()]
        scopes = [each.kwargs["data"]["scope"] for each in faked.requests.get(("POST", _TOKENS), [])]

    assert sent[-1] == ("POST", requested)
    assert scopes == (["https://vault.usgovcloudapi.net/.default"] if url.startswith("azure") else [])


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("kms://key", "begins with one of awskms://"),
        ("awskms://key", "the region may be in AWS_REGION"),
        ("vault://host/transit/gateway", "is written vault://HOST/transit/keys/NAME"),
        ("vault://token@host/transit/keys/gateway", "is not the URL"),
        ("gcpkms://projects/p/cryptoKeys/k", "is written gcpkms://projects/P/locations"),
        ("azurekeyvault://acme.vault.azure.net/secrets/k", "is written azurekeyvault://NAME"),
        ("vault:///transit/keys/gateway", "VAULT_ADDR is not set"),
        ("vault://127.0.0.1:1/transit/keys/gateway", "there are no credentials for Vault"),
    ],
)
async def test_a_url_that_cannot_be_used_says_what_to_write(url: str, said: str):
    with pytest.raises(KeyServiceRefused, match=said):
        await new_wrapped_key(url, {})


def test_aws_kms_of_another_make_wraps_and_unwraps_by_an_alias_and_by_an_arn():
    moto = pytest.importorskip("moto.server", reason="moto, a stand-in for AWS, is not installed")
    boto3 = pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        url = "http://{}:{}".format(*server.get_host_and_port())
        own = {"endpoint_url": url, "region_name": "eu-central-1"}
        client = boto3.client("kms", aws_access_key_id="a", aws_secret_access_key="s", **own)
        arn = client.create_key()["KeyMetadata"]["Arn"]
        client.create_alias(AliasName="alias/gateway", TargetKeyId=arn)
        environ = {**AWS, "AWS_ENDPOINT_URL_KMS": url}

        async def ends() -> list[int]:
            entries = [
                await new_wrapped_key(key, environ)
                for key in ("awskms://alias/gateway?region=eu-central-1", f"awskms:///{arn}")
            ]
            return [len(key) for _, key in await unwrapped(entries, environ)]

        assert asyncio.run(ends()) == [32, 32]
        with pytest.raises(KeyServiceRefused, match="NotFoundException"):
            asyncio.run(new_wrapped_key("awskms://alias/missing", environ))
    finally:
        server.stop()
