"""Google Cloud KMS: `gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K`.

https://cloud.google.com/kms/docs/reference/rest/v1/projects.locations.keyRings.cryptoKeys/encrypt and …/decrypt
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult

import msgspec

from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.vault.key_services.service import (
    Http,
    KeyServiceRefused,
    decoded,
    encoded,
    file_content,
    member,
)

_API = "https://cloudkms.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/cloudkms"
_METADATA = "metadata.google.internal"
_NAME = re.compile(r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+")
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
#: seconds for which an assertion is valid
_ASSERTION_SECONDS = 600


class GoogleKms:
    """A symmetric key of Cloud KMS; it needs the role of a decrypter, and of an encrypter for new keys."""

    def __init__(self, http: Http, url: SplitResult, environ: Mapping[str, str]) -> None:
        self._http, self._url, self._environ = http, url, environ
        self._name = f"{url.netloc}{url.path}"
        if not _NAME.fullmatch(self._name):
            raise KeyServiceRefused(
                "a key of Google Cloud KMS is written gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K"
            )

    async def wrap(self, key: bytes) -> tuple[str, bytes]:
        answer = await self._post("encrypt", {"plaintext": encoded(key)})
        return self._url.geturl(), decoded(member(answer, "ciphertext"))

    async def unwrap(self, wrapped: bytes) -> bytes:
        answer = await self._post("decrypt", {"ciphertext": encoded(wrapped)})
        return decoded(member(answer, "plaintext"))

    async def _post(self, action: str, document: Mapping[str, str]) -> dict[str, Any]:
        base = self._environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS") or _API
        headers = {"Authorization": f"Bearer {await google_token(self._http, _SCOPE, self._environ)}"}
        url = f"{base.rstrip('/')}/v1/{self._name}:{action}"
        return await self._http.json("POST", url, headers=headers, json=document)


async def google_token(http: Http, scope: str, environ: Mapping[str, str]) -> str:
    """An access token of the service account in GOOGLE_APPLICATION_CREDENTIALS, else of the machine's account.

    https://developers.google.com/identity/protocols/oauth2/service-account#httprest and
    https://cloud.google.com/compute/docs/access/authenticate-workloads; raises KeyServiceError.
    """
    path = environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    if path:
        account = _service_account(file_content(path))
        form = {"grant_type": _GRANT, "assertion": _assertion(account, scope)}
        return member(await http.json("POST", account["token_uri"], data=form), "access_token")
    host = environ.get("GCE_METADATA_HOST") or _METADATA
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    return member(await http.json("GET", url, headers={"Metadata-Flavor": "Google"}), "access_token")


def _service_account(text: str) -> dict[str, str]:
    """The key file of a service account; raises KeyServiceRefused."""
    try:
        account = msgspec.json.decode(text)
    except ValueError:
        account = None
    needed = ("client_email", "private_key", "token_uri")
    if not isinstance(account, dict) or not all(isinstance(account.get(name), str) for name in needed):
        raise KeyServiceRefused(
            "GOOGLE_APPLICATION_CREDENTIALS is not the key file of a service account (client_email, private_key, "
            "token_uri); without it the account of the machine or the pod is used"
        )
    return account


def _assertion(account: Mapping[str, str], scope: str) -> str:
    """A JWT for the account's access token (RFC 7523)."""
    from joserfc import jwt  # only this service needs it
    from joserfc.errors import JoseError
    from joserfc.jwk import RSAKey

    now = int(CLOCK.unix_time())
    claims = {
        "iss": account["client_email"],
        "scope": scope,
        "aud": account["token_uri"],
        "iat": now,
        "exp": now + _ASSERTION_SECONDS,
    }
    header = {"alg": "RS256", "typ": "JWT"}
    if account.get("private_key_id"):
        header["kid"] = account["private_key_id"]
    try:
        return jwt.encode(header, claims, RSAKey.import_key(account["private_key"]))
    except (JoseError, ValueError, TypeError):
        raise KeyServiceRefused("GOOGLE_APPLICATION_CREDENTIALS: its private_key is damaged") from None
