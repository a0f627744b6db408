"""A stand-in for key services, which refuses requests that differ from the vendors' documents."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.harness.serving import served
from tests.harness.signing_keys import ACCOUNT, claims_in

AWS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "CANARY-aws", "AWS_REGION": "eu-central-1"}
VAULT_TOKEN = "CANARY-vault"
GOOGLE_TOKEN, AZURE_TOKEN = "CANARY-google", "CANARY-entra"


class Undocumented(Exception):
    """A request is not of the documented form; the text says what differs."""


class Refused(Exception):
    """A key is not used; the arguments are status and body of the answer."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Undocumented(what)


@dataclass
class KeyServices:
    """The services at one address; `faults` are requests that no vendor documents."""

    url: str = ""
    faults: list[str] = field(default_factory=list)
    #: method and path, with the action of AWS, of each request
    requests: list[str] = field(default_factory=list)
    #: status and body that every request gets instead
    refusal: tuple[int, Mapping[str, Any]] | None = None
    #: whether connections are cut without an answer
    is_away: bool = False
    #: requests are answered once it is set
    held: asyncio.Event | None = None
    #: part of the name of a key → status and body with which the service refuses to unwrap by it
    refused: dict[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    #: mount and path → the fields of the secret's newest version, in the key-value engine of Vault
    secrets: dict[str, dict[str, Any]] = field(default_factory=dict)
    _keys: dict[str, bytes] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        """The variables with which the services are found, and credentials for each."""
        return {
            **AWS,
            "AWS_ENDPOINT_URL": self.url,
            "VAULT_ADDR": self.url,
            "VAULT_TOKEN": VAULT_TOKEN,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS": f"{self.url}/",
            "GCE_METADATA_HOST": urlsplit(self.url).netloc,
            "AZURE_AUTHORITY_HOST": self.url,
            "AZURE_TENANT_ID": "tenant",
            "AZURE_CLIENT_ID": "client",
            "AZURE_CLIENT_SECRET": "CANARY-azure",
        }

    def wrapped(self, key: str, value: bytes) -> bytes:
        nonce = os.urandom(12)
        return nonce + AESGCM(self._key(key)).encrypt(nonce, value, None)

    def unwrapped(self, key: str, value: bytes) -> bytes:
        for name, answer in self.refused.items():
            if name in key:
                raise Refused(*answer)
        try:
            return AESGCM(self._key(key)).decrypt(value[:12], value[12:], None)
        except (InvalidTag, ValueError):
            raise Undocumented(f"{key} did not wrap this") from None

    def _key(self, name: str) -> bytes:
        return self._keys.setdefault(name, os.urandom(32))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["KeyServices"]:
        app = web.Application(middlewares=[self._checked])
        app.router.add_post("/", _aws)
        app.router.add_post("/v1/{mount:[a-z/]+}/{action:encrypt|decrypt}/{name}", _vault)
        app.router.add_get("/v1/{mount:[a-z]+}/data/{path:.+}", _vault_secret)
        app.router.add_post("/v1/auth/{method}/login", _vault_login)
        app.router.add_get("/v1/auth/token/lookup-self", _vault_token)
        app.router.add_get("/container", _aws_container)
        app.router.add_put("/latest/api/token", _aws_metadata_token)
        app.router.add_get("/latest/meta-data/iam/security-credentials/{role:.*}", _aws_metadata)
        app.router.add_post("/v1/projects/{key:.+}:{action:encrypt|decrypt}", _google)
        app.router.add_post("/google-token", _google_token)
        app.router.add_get("/computeMetadata/v1/instance/service-accounts/default/token", _google_metadata)
        app.router.add_post("/keys/{name}/{action:wrapkey}", _azure)
        app.router.add_post("/keys/{name}/{version:[0-9a-f]+}/{action:wrapkey|unwrapkey}", _azure)
        app.router.add_post("/tenant/oauth2/v2.0/token", _azure_token)
        app.router.add_get("/msi/token", _azure_managed_identity)
        app[SERVICES] = self
        async with served(app) as self.url:
            yield self

    @web.middleware
    async def _checked(self, request: web.Request, handler: Callable[..., Any]) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path} {request.headers.get('X-Amz-Target', '')}".strip())
        if self.is_away:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if self.held is not None:
            await self.held.wait()
        if self.refusal is not None:
            return web.json_response(self.refusal[1], status=self.refusal[0])
        try:
            return await handler(request)
        except Refused as refused:
            status, document = refused.args
            return web.json_response(document, status=status)
        except (Undocumented, web.HTTPNotFound, KeyError) as error:
            self.faults.append(f"{request.method} {request.path}: {error!r}")
            return web.json_response({"message": "not of the documented form"}, status=400)


SERVICES = web.AppKey("services", KeyServices)


async def _aws(request: web.Request) -> web.Response:
    """https://docs.aws.amazon.com/kms/latest/APIReference/API_Encrypt.html, API_Decrypt.html"""
    services, body = request.app[SERVICES], await request.read()
    if "X-Amz-Target" not in request.headers:
        return await _aws_web_identity(request)
    require(request.headers["Content-Type"] == "application/x-amz-json-1.1", "Content-Type")
    _require_signature(request, body)
    document, action = json.loads(body), request.headers["X-Amz-Target"].removeprefix("TrentService.")
    key = document["KeyId"]
    if action == "Encrypt":
        require(set(document) == {"KeyId", "Plaintext"}, f"members {set(document)}")
        wrapped = services.wrapped(key, base64.b64decode(document["Plaintext"], validate=True))
        answer = {"CiphertextBlob": base64.b64encode(wrapped).decode()}
    else:
        require(action == "Decrypt" and set(document) == {"KeyId", "CiphertextBlob"}, f"members {set(document)}")
        value = services.unwrapped(key, base64.b64decode(document["CiphertextBlob"], validate=True))
        answer = {"Plaintext": base64.b64encode(value).decode()}
    answer |= {"KeyId": key, "EncryptionAlgorithm": "SYMMETRIC_DEFAULT"}
    return web.json_response(answer, content_type="application/x-amz-json-1.1")


def _require_signature(request: web.Request, body: bytes) -> None:
    """Compare the signature with that of AWS's own library."""
    given = request.headers["Authorization"]
    scope = given.partition("Credential=")[2].partition(",")[0].split("/")
    names = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    require({"host", "x-amz-date", "content-type", "x-amz-target"} <= set(names), f"signed headers {names}")
    token = request.headers.get("X-Amz-Security-Token")
    signer = SigV4Auth(Credentials(AWS["AWS_ACCESS_KEY_ID"], AWS["AWS_SECRET_ACCESS_KEY"], token), scope[3], scope[2])
    headers = {name: request.headers[name] for name in names if name != "host"}
    again = AWSRequest("POST", str(request.url), headers, body)
    again.context["timestamp"] = request.headers["X-Amz-Date"]
    expected = signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)
    require(given.rpartition("Signature=")[2] == expected, "signature")
    require(scope[0] == AWS["AWS_ACCESS_KEY_ID"] and scope[3:] == ["kms", "aws4_request"], f"scope {scope}")


async def _aws_web_identity(request: web.Request) -> web.Response:
    """https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html"""
    form = dict(await request.post())
    expected = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": "arn:aws:iam::1:role/g",
        "RoleSessionName": "agent-connector-gateway",
        "WebIdentityToken": "CANARY-jwt",
    }
    require(form == expected, f"form {set(form)}")
    members = "".join(f"<{name}>{value}</{name}>" for name, value in _temporary("SessionToken").items())
    return web.Response(
        text=f"<AssumeRoleWithWebIdentityResponse><Credentials>{members}</Credentials></AssumeRoleWithWebIdentityResponse>",
        content_type="text/xml",
    )


async def _aws_container(request: web.Request) -> web.Response:
    """https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html"""
    require(request.headers["Authorization"] == "CANARY-jwt", "Authorization")
    return web.json_response(_temporary("Token"))


async def _aws_metadata_token(request: web.Request) -> web.Response:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html"""
    require(1 <= int(request.headers["X-aws-ec2-metadata-token-ttl-seconds"]) <= 21600, "seconds")
    return web.Response(text="CANARY-metadata")


async def _aws_metadata(request: web.Request) -> web.Response:
    require(request.headers["X-aws-ec2-metadata-token"] == "CANARY-metadata", "token")
    if not request.match_info["role"]:
        return web.Response(text="gateway-role")
    require(request.match_info["role"] == "gateway-role", "role")
    return web.json_response({"Code": "Success", **_temporary("Token")})


def _temporary(token: str) -> dict[str, str]:
    """Temporary credentials of a role; the session token is in the member `token`."""
    return {
        "AccessKeyId": AWS["AWS_ACCESS_KEY_ID"],
        "SecretAccessKey": AWS["AWS_SECRET_ACCESS_KEY"],
        token: "CANARY-session",
    }


async def _vault(request: web.Request) -> web.Response:
    """https://developer.hashicorp.com/vault/api-docs/secret/transit"""
    services, document = request.app[SERVICES], await request.json()
    if request.headers.get("X-Vault-Token") != VAULT_TOKEN:
        return web.json_response({"errors": ["permission denied"]}, status=403)
    key = f"{request.match_info['mount']}/{request.match_info['name']}"
    if request.match_info["action"] == "encrypt":
        require(set(document) == {"plaintext"}, f"members {set(document)}")
        wrapped = services.wrapped(key, base64.b64decode(document["plaintext"], validate=True))
        return web.json_response({"data": {"ciphertext": f"vault:v1:{base64.b64encode(wrapped).decode()}"}})
    require(set(document) == {"ciphertext"}, f"members {set(document)}")
    require(document["ciphertext"].startswith("vault:v1:"), "ciphertext")
    value = services.unwrapped(key, base64.b64decode(document["ciphertext"].removeprefix("vault:v1:"), validate=True))
    return web.json_response({"data": {"plaintext": base64.b64encode(value).decode()}})


async def _vault_secret(request: web.Request) -> web.Response:
    """https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2#read-secret-version"""
    services = request.app[SERVICES]
    require(request.headers.get("X-Vault-Request") == "true", "X-Vault-Request")
    require(not request.query_string, "query")
    if request.headers.get("X-Vault-Token") != VAULT_TOKEN:
        return web.json_response({"errors": ["permission denied"]}, status=403)
    fields = services.secrets.get(f"{request.match_info['mount']}/{request.match_info['path']}")
    if fields is None:
        return web.json_response({"errors": []}, status=404)
    return web.json_response({"data": {"data": fields, "metadata": {"version": 1}}})


async def _vault_login(request: web.Request) -> web.Response:
    """https://developer.hashicorp.com/vault/api-docs/auth/approle, …/auth/kubernetes"""
    document = await request.json()
    expected = {
        "approle": {"role_id": "role", "secret_id": "CANARY-secret-id"},
        "kubernetes": {"role": "gateway", "jwt": "CANARY-jwt"},
    }
    require(document == expected[request.match_info["method"]], f"members {set(document)}")
    return web.json_response({"auth": {"client_token": VAULT_TOKEN, "lease_duration": 3600}})


async def _vault_token(request: web.Request) -> web.Response:
    """https://developer.hashicorp.com/vault/api-docs/auth/token#lookup-a-token-self"""
    if request.headers.get("X-Vault-Token") != VAULT_TOKEN:
        return web.json_response({"errors": ["permission denied"]}, status=403)
    return web.json_response({"data": {"ttl": 3600, "policies": ["default", "gateway"], "type": "service"}})


async def _google(request: web.Request) -> web.Response:
    """https://cloud.google.com/kms/docs/reference/rest/v1/projects.locations.keyRings.cryptoKeys/encrypt, …/decrypt"""
    services, document = request.app[SERVICES], await request.json()
    require(request.headers["Authorization"] == f"Bearer {GOOGLE_TOKEN}", "Authorization")
    key = f"projects/{request.match_info['key']}"
    require(key.startswith("projects/p/locations/global/keyRings/r/cryptoKeys/gateway"), f"name {key}")
    if request.match_info["action"] == "encrypt":
        require(set(document) == {"plaintext"}, f"members {set(document)}")
        wrapped = services.wrapped(key, base64.b64decode(document["plaintext"], validate=True))
        version = f"{key}/cryptoKeyVersions/1"
        return web.json_response({"name": version, "ciphertext": base64.b64encode(wrapped).decode()})
    require(set(document) == {"ciphertext"}, f"members {set(document)}")
    value = services.unwrapped(key, base64.b64decode(document["ciphertext"], validate=True))
    return web.json_response({"plaintext": base64.b64encode(value).decode()})


async def _google_token(request: web.Request) -> web.Response:
    """https://developers.google.com/identity/protocols/oauth2/service-account#httprest"""
    form, services = await request.post(), request.app[SERVICES]
    require(set(form) == {"grant_type", "assertion"}, f"form {set(form)}")
    require(form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer", "grant_type")
    claims = claims_in(str(form["assertion"]))
    expected = {
        "iss": ACCOUNT,
        "scope": "https://www.googleapis.com/auth/cloudkms",
        "aud": f"{services.url}/google-token",
    }
    require({name: claims[name] for name in expected} == expected, f"claims {claims}")
    require(0 < claims["exp"] - claims["iat"] <= 3600, "lifetime")
    return web.json_response({"access_token": GOOGLE_TOKEN, "expires_in": 3599, "token_type": "Bearer"})


async def _google_metadata(request: web.Request) -> web.Response:
    """https://cloud.google.com/compute/docs/access/authenticate-workloads"""
    require(request.headers["Metadata-Flavor"] == "Google", "Metadata-Flavor")
    return web.json_response({"access_token": GOOGLE_TOKEN, "expires_in": 3599, "token_type": "Bearer"})


async def _azure(request: web.Request) -> web.Response:
    """https://learn.microsoft.com/en-us/rest/api/keyvault/keys/wrap-key/wrap-key, …/unwrap-key/unwrap-key"""
    services, document = request.app[SERVICES], await request.json()
    require(request.headers["Authorization"] == f"Bearer {AZURE_TOKEN}", "Authorization")
    require(dict(request.query) == {"api-version": "7.4"}, "api-version")
    require(set(document) == {"alg", "value"} and document["alg"] == "RSA-OAEP-256", f"members {document}")
    require(not set("+/=") & set(document["value"]), "value is not in the alphabet for URLs")
    value = base64.urlsafe_b64decode(document["value"] + "=" * (-len(document["value"]) % 4))
    version = request.match_info.get("version") or "0698c2156c1a4e1da5b6bab6f6422fd6"
    key = f"{request.match_info['name']}/{version}"
    wraps = request.match_info["action"] == "wrapkey"
    ended = services.wrapped(key, value) if wraps else services.unwrapped(key, value)
    text = base64.urlsafe_b64encode(ended).decode().rstrip("=")
    return web.json_response({"kid": f"{services.url}/keys/{key}", "value": text})


async def _azure_token(request: web.Request) -> web.Response:
    """https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow"""
    form = dict(await request.post())
    proofs = (
        {"client_secret": "CANARY-azure"},
        {
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": "CANARY-jwt",
        },
    )
    common = {"grant_type": "client_credentials", "client_id": "client", "scope": "https://vault.azure.net/.default"}
    require(form in [{**common, **proof} for proof in proofs], f"form {set(form)}")
    return web.json_response({"token_type": "Bearer", "expires_in": 3599, "access_token": AZURE_TOKEN})


async def _azure_managed_identity(request: web.Request) -> web.Response:
    """https://learn.microsoft.com/en-us/azure/app-service/overview-managed-identity#rest-endpoint-reference"""
    require(request.headers["X-IDENTITY-HEADER"] == "CANARY-identity", "X-IDENTITY-HEADER")
    expected = {"api-version": "2019-08-01", "resource": "https://vault.azure.net", "client_id": "client"}
    require(dict(request.query) == expected, f"query {dict(request.query)}")
    return web.json_response({"access_token": AZURE_TOKEN, "token_type": "Bearer"})


def service_urls(services: KeyServices) -> dict[str, str]:
    """A URL of a key for each service."""
    return {
        "aws": "awskms://alias/gateway?region=eu-central-1",
        "azure": f"azurekeyvault://{urlsplit(services.url).netloc}/keys/gateway",
        "google": "gcpkms://projects/p/locations/global/keyRings/r/cryptoKeys/gateway",
        "vault": f"vault://{urlsplit(services.url).netloc}/transit/keys/gateway",
    }
