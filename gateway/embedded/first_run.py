"""Files in the data directory: the encryption keys, the first client, and the URL of a gateway that runs."""

import base64
import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gateway.embedded import StartupError
from gateway.embedded.directory import write_private

KEYS = "encryption.keys"
FIRST_CLIENT = "first-client.json"
#: read by `gateway.client.settings`
ADDRESS = "address"
#: a script for `source` in another shell
ENVIRONMENT = "env"

#: length of a key of AES-256
KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Credentials:
    """The first client, with its secret and its organization."""

    client_id: str
    client_secret: str
    organization_id: str


def ensure_keys(data_dir: Path, *, data_exists: bool) -> Path:
    """The file with the encryption keys (0600). It is created on the first run; raises StartupError if it was lost."""
    path = data_dir / KEYS
    if path.exists():
        path.chmod(0o600)
        return path
    if data_exists:
        raise StartupError(
            f"{path} is missing; without it the credentials stored in {data_dir} cannot be decrypted. Restore it from "
            "your backup, or set GATEWAY_ENCRYPTION_KEYS, or choose another data directory (--data-dir)."
        )
    write_private(path, f"k1:{base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}\n")
    return path


def store_client(data_dir: Path, database: str, credentials: Credentials) -> None:
    """Store the first client (0600): later runs print it and write it to the ready file."""
    write_private(data_dir / FIRST_CLIENT, json.dumps({"database": database, **asdict(credentials)}, indent=2) + "\n")


def stored_client(data_dir: Path, database: str) -> Credentials | None:
    """The first client of this database; None if it was not created from this data directory."""
    path = data_dir / FIRST_CLIENT
    if not path.exists():
        return None
    stored = json.loads(path.read_text())
    return Credentials(**stored) if stored.pop("database") == database else None


def database_label(database_url: str | None) -> str:
    """Identifies the database of a client, without secrets; unchanged if the data directory is moved."""
    if database_url is None:
        return "embedded"
    parts = urlsplit(database_url)
    return f"{parts.hostname or ''}:{parts.port or ''}{parts.path}?{parts.query}"
