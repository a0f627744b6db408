"""The settings of operators' commands, completed from the `gateway up` in the data directory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.embedded import StartupError
from gateway.embedded.first_run import ADDRESS, KEYS
from gateway.embedded.server import LocalServer
from gateway.settings import Settings, settings_of


def local_settings(**overrides: Any) -> Settings:
    """The settings; stores, keys and listen address that are not set are those of the data directory's gateway."""
    settings = settings_of(**overrides)
    directory = settings.data_dir.expanduser().absolute()
    keys, address = directory / KEYS, directory / ADDRESS
    updates: dict[str, Any] = {}
    if settings.encryption_keys is None and settings.encryption_keys_file is None and keys.exists():
        updates["encryption_keys_file"] = keys
    if "bind" not in settings.model_fields_set and address.exists():
        updates["bind"] = address.read_text("utf-8").strip().removeprefix("http://")
    for name, store, server_in in (("database_url", "postgres", _postgres_in), ("redis_url", "redis", _redis_in)):
        if name not in settings.model_fields_set and (url := _url_of(directory / store, server_in)) is not None:
            updates[name] = url
    return settings.model_copy(update=updates)


def _postgres_in(directory: Path) -> LocalServer:
    from gateway.embedded.postgres import EmbeddedPostgres

    return EmbeddedPostgres(directory)


def _redis_in(directory: Path) -> LocalServer:
    from gateway.embedded.redis import EmbeddedRedis

    return EmbeddedRedis(directory)


def _url_of(directory: Path, server_in: Callable[[Path], LocalServer]) -> str | None:
    """The URL of the embedded server in this directory; None if there is none."""
    if not (directory / "run").exists():
        return None
    try:
        server = server_in(directory)
    except (ImportError, StartupError):
        return None
    server.sockets = (directory / "run").resolve()
    return server.url
