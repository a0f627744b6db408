"""Private keys that sign assertions, made once for all tests: a pair of RSA keys takes a tenth of a second."""

import json
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from joserfc import jwt
from joserfc.jwk import RSAKey

#: the service account of the key files
ACCOUNT = "reports@acme.iam.gserviceaccount.com"


def rsa_key(number: int = 1, bits: int = 2048) -> rsa.RSAPrivateKey:
    """The key with a number."""
    return _made(number, bits)


@cache
def _made(number: int, bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def pem(
    number: int = 1, form: PrivateFormat = PrivateFormat.PKCS8, passphrase: bytes | None = None, bits: int = 2048
) -> str:
    encryption = NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase)
    return rsa_key(number, bits).private_bytes(Encoding.PEM, form, encryption).decode()


def public_pem(number: int = 1) -> str:
    return rsa_key(number).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def key_file(number: int = 1, **members: Any) -> str:
    """The key file of a service account as Google writes it; a member that is None is left out."""
    content = {
        "type": "service_account",
        "project_id": "acme",
        "private_key_id": f"kid-{number}",
        "private_key": pem(number),
        "client_email": ACCOUNT,
        "token_uri": "https://oauth2.googleapis.com/token",
        **members,
    }
    return json.dumps({name: value for name, value in content.items() if value is not None}, indent=2)


def claims_in(assertion: str, number: int = 1, algorithm: str = "RS256") -> dict[str, Any]:
    """The claims of an assertion that the key with a number has signed."""
    return jwt.decode(assertion, RSAKey.import_key(public_pem(number)), algorithms=[algorithm]).claims


def parts_of(key: str) -> list[str]:
    """The lines with the content of a private key as PEM."""
    return [line for line in key.strip().splitlines()[1:-1] if len(line) > 8 and ":" not in line]
