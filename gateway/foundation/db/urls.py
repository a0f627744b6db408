"""URLs of PostgreSQL and Redis as operators write them, and as the libraries read them. No error repeats the value."""

import re
from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl, quote, unquote

#: one host with its port
_HOST = re.compile(r"(?:\[[^]]*\]|[^:@#]*)(?::\d+)?")
#: parameters of libpq that asyncpg lacks and would send to PostgreSQL as settings → why they have no effect
_NOT_OBEYED: Mapping[str, str] = {
    **dict.fromkeys(
        ("connect_timeout", "tcp_user_timeout"), "the gateway has its own timeouts for connections and statements"
    ),
    **dict.fromkeys(
        ("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
        "the gateway itself checks that PostgreSQL responds",
    ),
    **dict.fromkeys(("client_encoding",), "the gateway uses UTF-8"),
    **dict.fromkeys(
        (
            *("channel_binding", "fallback_application_name", "gssdelegation", "gssencmode", "hostaddr"),
            *("load_balance_hosts", "replication", "require_auth", "requirepeer", "requiressl", "scram_client_key"),
            *("scram_server_key", "sslcertmode", "sslcompression", "sslcrldir", "sslkeylogfile", "sslsni"),
        ),
        "asyncpg, the gateway's library for PostgreSQL, does not support it",
    ),
}
_VALUES: Mapping[str, Collection[str]] = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "sslnegotiation": ("postgres", "direct"),
    "target_session_attrs": ("any", "primary", "standby", "read-write", "read-only", "prefer-standby"),
}


def normalized(url: str, schemes: Collection[str], example: str) -> str:
    """The URL with a percent-encoded user and password; raises ValueError for an invalid one.

    The user and the password end at the last `@` before the first `/`, as for libpq. So they may contain `#`, `?`,
    `@` and `%`; only `/` must be written as %2F.
    """
    scheme, has_scheme, rest = url.partition("://")
    authority, slash, after = rest.partition("/")
    credentials, has_credentials, hosts = authority.rpartition("@")
    if not slash:
        hosts, question, query = hosts.partition("?")
        path = ""
    else:
        path, question, query = after.partition("?")
    if "@" in path or ("@" in query and "=" not in query):
        raise ValueError(f"has an @ after the host. If the password contains /, write %2F in its place; {example}")
    if not has_scheme or scheme not in schemes or not all(map(_HOST.fullmatch, hosts.split(","))):
        raise ValueError(f"must be a URL such as {example}")
    if "#" in path + query:
        raise ValueError("has a # after the host; write %23 in its place")
    if has_credentials:
        parts = [quote(unquote(part), safe="") for part in credentials.split(":", 1)]
        hosts = f"{':'.join(parts)}@{hosts}"
    return f"{scheme}://{hosts}{slash}{path}{question}{query}"


def postgres_url(url: str) -> str:
    """The URL as asyncpg reads it, without the parameters that it would not obey; raises ValueError."""
    url = normalized(url, ("postgresql", "postgres"), "postgresql://user:password@host:5432/database")
    base, _, query = url.partition("?")
    for name, value in _params(query):
        if name in _VALUES and value not in _VALUES[name]:
            raise ValueError(f"its parameter {name} must be one of {', '.join(_VALUES[name])}")
    obeyed = [param for param in query.split("&") if param.partition("=")[0] not in _NOT_OBEYED]
    return f"{base}?{'&'.join(obeyed)}" if any(obeyed) else base


def urls_of_hosts(url: str) -> list[str]:
    """A URL for each of the hosts that a valid URL of PostgreSQL names, in their order."""
    scheme, _, rest = url.partition("://")
    authority, slash, after = rest.partition("/")
    credentials, at, hosts = authority.rpartition("@")
    hosts, question, query = hosts.partition("?")
    return [f"{scheme}://{credentials}{at}{host}{question}{query}{slash}{after}" for host in hosts.split(",")]


def ignored_parameters(url: str) -> list[str]:
    """A sentence for each parameter of a PostgreSQL URL that the gateway does not obey."""
    return [
        f"the parameter {name} has no effect: {_NOT_OBEYED[name]}"
        for name, _ in _params(url.partition("?")[2])
        if name in _NOT_OBEYED
    ]


def _params(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, strict_parsing=True) if query else []
    except ValueError:
        raise ValueError("its parameters after ? must be written as name=value&name=value") from None
