"""The settings of operators' commands, completed from the `gateway up` in the data directory."""

from typing import Any

from gateway.embedded import StartupError
from gateway.embedded.first_run import ADDRESS, KEYS
from gateway.settings import Settings, settings_of


def local_settings(**overrides: Any) -> Settings:
    """The settings; stores, keys and listen address that are not set are those of the data directory's gateway."""
    settings = settings_of(**overrides)
    updates: dict[str, Any] = {}
    keys = settings.data_dir / KEYS
    if settings.encryption_keys is None and settings.encryption_keys_file is None and keys.exists():
        updates["encryption_keys_file"] = keys
    address = settings.data_dir.expanduser() / ADDRESS
    if "bind" not in settings.model_fields_set and address.exists():
        updates["bind"] = address.read_text("utf-8").strip().removeprefix("http://")
    for name, url in (("database_url", _postgres_url), ("redis_url", _redis_url)):
        if name not in settings.model_fields_set and (local := url(settings)) is not None:
            updates[name] = local
    return settings.model_copy(update=updates)


def _postgres_url(settings: Settings) -> str | None:
    directory = settings.data_dir.expanduser().absolute() / "postgres"
    if not (directory / "run").exists():
        return None
    try:
        from gateway.embedded.postgres import EmbeddedPostgres

        server = EmbeddedPostgres(directory)
    except (ImportError, StartupError):
        return None
    server.sockets = (directory / "run").resolve()
    return server.url


def _redis_url(settings: Settings) -> str | None:
    directory = settings.data_dir.expanduser().absolute() / "redis"
    if not (directory / "run").exists():
        return None
    try:
        from gateway.embedded.redis import EmbeddedRedis

        server = EmbeddedRedis(directory)
    except (ImportError, StartupError):
        return None
    server.sockets = (directory / "run").resolve()
    return server.url
