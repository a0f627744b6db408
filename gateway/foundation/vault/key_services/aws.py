"""AWS KMS: `awskms://KEY?region=REGION`, `awskms://alias/NAME?region=REGION`, or `awskms:///ARN`.

https://docs.aws.amazon.com/kms/latest/APIReference/API_Encrypt.html and API_Decrypt.html
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qs

import msgspec
from yarl import URL

from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.vault.key_services.aws_credentials import aws_credentials, aws_host
from gateway.foundation.vault.key_services.aws_signature import signed_headers
from gateway.foundation.vault.key_services.service import Http, KeyServiceRefused, decoded, encoded, member

_CONTENT_TYPE = "application/x-amz-json-1.1"


class AwsKms:
    """A symmetric key of AWS KMS; it needs the permissions `kms:Decrypt`, and `kms:Encrypt` for new keys."""

    def __init__(self, http: Http, url: SplitResult, environ: Mapping[str, str]) -> None:
        self._http, self._url, self._environ = http, url, environ
        self._key_id = (url.netloc + url.path).lstrip("/")
        self._region = _region_of(url, self._key_id, environ)
        if not self._key_id or not self._region:
            raise KeyServiceRefused(
                "a key of AWS KMS is written awskms://KEY?region=REGION, awskms://alias/NAME?region=REGION or "
                "awskms:///ARN; the region may be in AWS_REGION"
            )

    async def wrap(self, key: bytes) -> tuple[str, bytes]:
        answer = await self._post("Encrypt", {"KeyId": self._key_id, "Plaintext": encoded(key)})
        return self._url.geturl(), decoded(member(answer, "CiphertextBlob"))

    async def unwrap(self, wrapped: bytes) -> bytes:
        answer = await self._post("Decrypt", {"KeyId": self._key_id, "CiphertextBlob": encoded(wrapped)})
        return decoded(member(answer, "Plaintext"))

    async def _post(self, action: str, document: Mapping[str, str]) -> dict[str, Any]:
        environ, body = self._environ, msgspec.json.encode(document)
        endpoint = environ.get("AWS_ENDPOINT_URL_KMS") or environ.get("AWS_ENDPOINT_URL")
        url = URL(endpoint or f"https://{aws_host('kms', self._region)}").with_path("/")
        headers = signed_headers(
            {"Content-Type": _CONTENT_TYPE, "X-Amz-Target": f"TrentService.{action}"},
            body,
            host=url.host_port_subcomponent or "",
            region=self._region,
            service="kms",
            credentials=await aws_credentials(self._http, self._region, environ),
            moment=CLOCK.now(),
        )
        return await self._http.json("POST", str(url), headers=headers, data=body)


def _region_of(url: SplitResult, key_id: str, environ: Mapping[str, str]) -> str:
    """The region in the URL's query, in the ARN, or in a variable; empty if none has it."""
    given = parse_qs(url.query).get("region")
    if given:
        return given[0]
    parts = key_id.split(":")
    if parts[0] == "arn" and len(parts) > 3:
        return parts[3]
    return environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or ""
