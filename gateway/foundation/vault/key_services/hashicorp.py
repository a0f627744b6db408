"""HashiCorp Vault: keys of its Transit engine, `vault://HOST[:PORT]/MOUNT/keys/NAME`; without a host VAULT_ADDR has it.

https://developer.hashicorp.com/vault/api-docs/secret/transit; fields of secrets of its key-value engine:
https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2
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
from gateway.foundation.vault.secret_references import SecretReference

#: where Kubernetes puts the token of a pod's service account
_POD_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"


class VaultTransit:
    """A key of the Transit engine; it needs `update` on MOUNT/decrypt/NAME, and on MOUNT/encrypt/NAME for new keys."""

    def __init__(self, http: Http, url: SplitResult, environ: Mapping[str, str]) -> None:
        self._url, self._client = url, VaultClient(http, url.netloc, environ)
        *mount, keys, name = url.path.strip("/").split("/") if url.path.count("/") >= 3 else ("", "", "")
        if not all(mount) or keys != "keys" or not name:
            raise KeyServiceRefused("a key of Vault Transit is written vault://HOST/transit/keys/NAME")
        self._mount, self._name = quote("/".join(mount)), quote(name, safe="")

    async def wrap(self, key: bytes) -> tuple[str, bytes]:
        answer = await self._client.post(f"{self._mount}/encrypt/{self._name}", {"plaintext": encoded(key)})
        return self._url.geturl(), member(answer, "data", "ciphertext").encode()

    async def unwrap(self, wrapped: bytes) -> bytes:
        ciphertext = wrapped.decode("ascii", "replace")
        answer = await self._client.post(f"{self._mount}/decrypt/{self._name}", {"ciphertext": ciphertext})
        return decoded(member(answer, "data", "plaintext"))


async def field_of_secret(http: Http, reference: SecretReference, environ: Mapping[str, str]) -> str:
    """The newest version's value of a field, which needs `read` on MOUNT/data/PATH; raises KeyServiceError."""
    mount, *path = reference.place.segments
    client = VaultClient(http, reference.place.netloc, environ)
    secret: Any = await client.get(f"{mount}/data/{'/'.join(path)}")
    for name in ("data", "data", reference.field):
        secret = secret.get(name) if isinstance(secret, Mapping) else None
    if not isinstance(secret, str) or not secret:
        raise KeyServiceRefused(f"{http.name}: the secret has no text in its field {reference.field}")
    return secret


async def look_up_token(http: Http, netloc: str, environ: Mapping[str, str]) -> None:
    """Sign in and have Vault look the token up, which the policy `default` allows; raises KeyServiceError.

    https://developer.hashicorp.com/vault/api-docs/auth/token#lookup-a-token-self
    """
    await VaultClient(http, netloc, environ).get("auth/token/lookup-self")


class VaultClient:
    """Requests to a server of Vault, with a token or a new sign-in for each (AppRole, Kubernetes)."""

    def __init__(self, http: Http, netloc: str, environ: Mapping[str, str]) -> None:
        scheme = "http" if is_loopback(urlsplit(f"//{netloc}").hostname or "") else "https"
        address = (
            f"{scheme}://{netloc}" if netloc else required(environ, "VAULT_ADDR", "the URL names no host of Vault")
        )
        self._base = f"{address.rstrip('/')}/v1"
        self._http, self._environ = http, environ

    async def post(self, path: str, document: Mapping[str, str]) -> dict[str, Any]:
        """The response to a request with a token; raises KeyServiceError."""
        return await self._send("POST", path, {"X-Vault-Token": await self._token()}, json=document)

    async def get(self, path: str) -> dict[str, Any]:
        """The response to a read with a token; raises KeyServiceError."""
        return await self._send("GET", path, {"X-Vault-Token": await self._token()})

    async def _send(self, method: str, path: str, headers: Mapping[str, str], **options: Any) -> dict[str, Any]:
        namespace = self._environ.get("VAULT_NAMESPACE")
        common = {"X-Vault-Request": "true", **({"X-Vault-Namespace": namespace} if namespace else {})}
        return await self._http.json(method, f"{self._base}/{path}", headers={**common, **headers}, **options)

    async def _token(self) -> str:
        """https://developer.hashicorp.com/vault/api-docs/auth/approle and …/auth/kubernetes"""
        environ = self._environ
        if token := environ.get("VAULT_TOKEN"):
            return token
        if environ.get("VAULT_ROLE_ID"):
            method = "approle"
            login = {
                "role_id": environ["VAULT_ROLE_ID"],
                "secret_id": required(environ, "VAULT_SECRET_ID", "AppRole needs it beside VAULT_ROLE_ID"),
            }
        elif role := environ.get("VAULT_KUBERNETES_ROLE"):
            method, login = (
                "kubernetes",
                {"role": role, "jwt": file_content(environ.get("VAULT_KUBERNETES_TOKEN_FILE") or _POD_TOKEN)},
            )
        else:
            raise KeyServiceRefused(
                "there are no credentials for Vault: set VAULT_TOKEN, VAULT_ROLE_ID and VAULT_SECRET_ID, or "
                "VAULT_KUBERNETES_ROLE"
            )
        mount = quote((environ.get("VAULT_AUTH_MOUNT") or method).strip("/"))
        return member(await self._send("POST", f"auth/{mount}/login", {}, json=login), "auth", "client_token")
