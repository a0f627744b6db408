"""Signatures of Standard Webhooks (standardwebhooks.com): `webhook-id`, `webhook-timestamp`, `webhook-signature`."""

import base64
import secrets
from collections.abc import Sequence
from datetime import datetime

from standardwebhooks.webhooks import Webhook

#: bytes of a secret; Standard Webhooks allows 24 to 64
_SECRET_BYTES = 32
#: the header of the signatures, with spaces between them
SIGNATURES = "webhook-signature"


def new_secret() -> str:
    """A new signing secret: `whsec_` and base64."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"


def signed_headers(message_id: str, at: datetime, signing_secrets: Sequence[str], body: bytes) -> dict[str, str]:
    """The headers of a delivery, with a signature for each secret; `at` is in UTC."""
    text = body.decode()
    signatures = [Webhook(secret).sign(message_id, at, text) for secret in signing_secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        SIGNATURES: " ".join(signatures),
    }
