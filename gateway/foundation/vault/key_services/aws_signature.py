"""Signature Version 4 of AWS, of a POST to the root of a service. Pure.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class AwsCredentials:
    """An access key; temporary ones have a session token."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


def signed_headers(
    headers: Mapping[str, str],
    body: bytes,
    *,
    host: str,
    region: str,
    service: str,
    credentials: AwsCredentials,
    moment: datetime,
) -> dict[str, str]:
    """The headers with those of the signature; `moment` is in UTC, and `host` has the port if it is not the default."""
    time = moment.strftime("%Y%m%dT%H%M%SZ")
    complete = {**{name.lower(): value.strip() for name, value in headers.items()}, "host": host, "x-amz-date": time}
    if credentials.session_token:
        complete["x-amz-security-token"] = credentials.session_token
    names = ";".join(sorted(complete))
    canonical_headers = "".join(f"{name}:{complete[name]}\n" for name in sorted(complete))
    canonical = f"POST\n/\n\n{canonical_headers}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    to_sign = f"{_ALGORITHM}\n{time}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_access_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    authorization = (
        f"{_ALGORITHM} Credential={credentials.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return {**complete, "authorization": authorization}
