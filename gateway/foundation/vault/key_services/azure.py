"""Azure Key Vault: `azurekeyvault://NAME.vault.azure.net/keys/KEY[/VERSION]`, an RSA key.

https://learn.microsoft.com/en-us/rest/api/keyvault/keys/wrap-key/wrap-key and …/unwrap-key/unwrap-key
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from gateway.foundation.hosts import is_loopback
from gateway.foundation.vault.key_services.service import (
    Http,
    KeyServiceRefused,
    decoded,
    encoded,
    file_content,
    member,
    required,
)

_API_VERSION = {"api-version": "7.4"}
_ALGORITHM = "RSA-OAEP-256"
_AUTHORITY = "https://login.microsoftonline.com"
#: for emulators, which have no domain
_PUBLIC = "vault.azure.net"
_MACHINE = "http://169.254.169.254/metadata/identity/oauth2/token"
_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class AzureKeyVault:
    """A key of Azure Key Vault; it needs the permission "unwrap key", and "wrap key" for new keys."""

    def __init__(self, http: Http, url: SplitResult, environ: Mapping[str, str]) -> None:
        self._http, self._environ, self._host = http, environ, url.netloc
        keys, name, version, *rest = [*url.path.strip("/").split("/"), "", ""][:4] if url.netloc else ["", "", ""]
        if keys != "keys" or not name or any(rest):
            raise KeyServiceRefused("a key of Azure is written azurekeyvault://NAME.vault.azure.net/keys/KEY[/VERSION]")
        self._name, self._version = name, version

    async def wrap(self, key: bytes) -> tuple[str, bytes]:
        answer = await self._post("wrapkey", encoded(key, is_for_urls=True))
        # The version that has wrapped the key unwraps it.
        version = urlsplit(member(answer, "kid")).path.rpartition("/")[2]
        return f"azurekeyvault://{self._host}/keys/{self._name}/{version}", decoded(member(answer, "value"))

    async def unwrap(self, wrapped: bytes) -> bytes:
        return decoded(member(await self._post("unwrapkey", encoded(wrapped, is_for_urls=True)), "value"))

    async def _post(self, action: str, value: str) -> dict[str, Any]:
        scheme = "http" if is_loopback(_hostname(self._host)) else "https"
        path = "/".join(quote(part, safe="") for part in ("keys", self._name, self._version, action) if part)
        token = await azure_token(self._http, _audience(self._host), self._environ)
        return await self._http.json(
            "POST",
            f"{scheme}://{self._host}/{path}",
            params=_API_VERSION,
            headers={"Authorization": f"Bearer {token}"},
            json={"alg": _ALGORITHM, "value": value},
        )


async def azure_token(http: Http, audience: str, environ: Mapping[str, str]) -> str:
    """An access token of the application in AZURE_CLIENT_ID, or of the managed identity; raises KeyServiceError.

    https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow
    """
    if environ.get("AZURE_CLIENT_SECRET"):
        proof = {"client_secret": environ["AZURE_CLIENT_SECRET"]}
    elif path := environ.get("AZURE_FEDERATED_TOKEN_FILE"):
        proof = {"client_assertion_type": _ASSERTION_TYPE, "client_assertion": file_content(path)}
    else:
        return await _managed_identity_token(http, audience, environ)
    needs = "an application of Azure needs it"
    authority = (environ.get("AZURE_AUTHORITY_HOST") or _AUTHORITY).rstrip("/")
    form = {
        "grant_type": "client_credentials",
        "client_id": required(environ, "AZURE_CLIENT_ID", needs),
        "scope": f"{audience}/.default",
        **proof,
    }
    url = f"{authority}/{quote(required(environ, 'AZURE_TENANT_ID', needs), safe='')}/oauth2/v2.0/token"
    return member(await http.json("POST", url, data=form), "access_token")


async def _managed_identity_token(http: Http, audience: str, environ: Mapping[str, str]) -> str:
    """https://learn.microsoft.com/en-us/entra/identity/managed-identities-azure-resources/how-to-use-vm-token and
    https://learn.microsoft.com/en-us/azure/app-service/overview-managed-identity
    """
    query = {"resource": audience}
    if environ.get("AZURE_CLIENT_ID"):
        query["client_id"] = environ["AZURE_CLIENT_ID"]
    if endpoint := environ.get("IDENTITY_ENDPOINT"):
        headers, query["api-version"] = {"X-IDENTITY-HEADER": environ.get("IDENTITY_HEADER", "")}, "2019-08-01"
    else:
        endpoint, headers, query["api-version"] = _MACHINE, {"Metadata": "true"}, "2018-02-01"
    return member(await http.json("GET", endpoint, headers=headers, params=query), "access_token")


def _hostname(netloc: str) -> str:
    return urlsplit(f"//{netloc}").hostname or ""


def _audience(netloc: str) -> str:
    """The audience of tokens: the domain of the vaults of its cloud."""
    host = _hostname(netloc)
    return f"https://{_PUBLIC if is_loopback(host) else host.partition('.')[2]}"
