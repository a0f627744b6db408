"""Files of a run in the data directory: the encryption key, the first client, and the URL while it runs."""

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
#: for `source` in another shell
ENVIRONMENT = "env"

#: the key of AES-256
KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Credentials:
    """The first organization's client, as its token request needs it."""

    client_id: str
    client_secret: str
    organization_id: str


def ensure_keys(data_dir: Path, *, data_exists: bool) -> Path:
    """The file with the encryption keys (0600), created on the first run, and never replaced while it seals data."""
    path = data_dir / KEYS
    if path.exists():
        path.chmod(0o600)
        return path
    if data_exists:
        raise StartupError(
            f"{path} is missing, and without it the credentials stored in {data_dir} cannot be read. Put it back from "
            "your backup, or set GATEWAY_ENCRYPTION_KEYS, or choose another data directory (--data-dir)."
        )
    write_private(path, f"k1:{base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}\n")
    return path


def remember_client(data_dir: Path, database: str, credentials: Credentials) -> None:
    """Store the first client (0600), because a later start with a ready file has to name it."""
    write_private(data_dir / FIRST_CLIENT, json.dumps({"database": database, **asdict(credentials)}, indent=2) + "\n")


def recall_client(data_dir: Path, database: str) -> Credentials | None:
    """The first client of this database, None when it was not made from this data directory."""
    path = data_dir / FIRST_CLIENT
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    return Credentials(**kept) if kept.pop("database") == database else None


def database_label(database_url: str | None) -> str:
    """Which database a client belongs to, without secrets and the same after a move of the data directory."""
    if database_url is None:
        return "embedded"
    parts = urlsplit(database_url)
    return f"{parts.hostname or ''}:{parts.port or ''}{parts.path}?{parts.query}"
