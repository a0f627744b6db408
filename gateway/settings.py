"""The settings of the gateway, read once from the environment (`GATEWAY_…`); secrets have no default."""

import os
import re
from collections.abc import Collection, Container, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from yarl import URL

from gateway.foundation.db.urls import ignored_parameters, normalized, postgres_url
from gateway.foundation.hosts import is_loopback
from gateway.foundation.vault.secret_references import SecretPlace
from gateway.kinds.suggestions import did_you_mean
from gateway.upstream.egress import parse_override

#: bind addresses that mean all addresses of the machine; clients cannot connect to them
_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared with only
_LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
MAX_PORT = 65_535


class SettingsError(ValueError):
    """An invalid setting; the text names its variable."""


def _from_json(value: object, example: str) -> object:
    """The decoded text of a variable, or the value that was given in code; raises ValueError with the example."""
    try:
        return msgspec.json.decode(value) if isinstance(value, str) else value
    except msgspec.DecodeError as error:
        raise ValueError(f"must be JSON such as {example}") from error


def _is_base_url(text: str, schemes: Container[str]) -> bool:
    """Whether the text is a URL with a host, and without a query and a fragment."""
    try:
        url = URL(text)
    except ValueError:
        return False
    return url.scheme in schemes and bool(url.host) and not url.query_string and not url.fragment


def require_port(bind: str) -> None:
    """Raise ValueError for a listen address without a port."""
    port = bind.rpartition(":")[2]
    if not (port.isascii() and port.isdigit() and int(port) <= MAX_PORT):
        raise ValueError(f"{bind!r} is not a valid listen address; write HOST:PORT, such as 127.0.0.1:8080")


class Settings(BaseSettings):
    """The settings of a process; frozen, so that they cannot change while it runs."""

    model_config = SettingsConfigDict(env_prefix="GATEWAY_", frozen=True, extra="ignore")

    database_url: str = Field("postgresql:///gateway", description="URL of PostgreSQL.")
    database_pooler: bool = Field(
        False, description="Set if a pooler in transaction mode, such as PgBouncer, is in front of PostgreSQL."
    )
    database_direct_url: str | None = Field(
        None,
        description="PostgreSQL without the pooler, for notifications and migrations; without it processes poll for "
        "changes every second.",
    )
    database_read_url: str | None = Field(
        None,
        description="URL of a replica of PostgreSQL (a hot standby) for searches of the copy and lists. Without it the "
        "primary answers them.",
    )
    database_read_lag: float = Field(
        30,
        gt=0,
        description="Maximum seconds that the replica may be behind; beyond that the primary answers.",
    )
    redis_url: str = Field(
        "redis://127.0.0.1:6379/0", description="URL of Redis, which wakes workers and shares rate limits."
    )
    bind: str = Field("127.0.0.1:8080", description="Host and port that the front end listens on.")
    public_url: str | None = Field(
        None, description="URL by which callers reach the front end, used in links and OAuth callbacks; without a path."
    )
    data_dir: Path = Field(Path(".gateway"), description="Folder for stored files and for the data of `gateway up`.")
    encryption_keys: SecretStr | None = Field(
        None,
        description="Encryption keys: `id:base64 of 32 bytes`, or `id:URL#…` of a key service as `gateway keys new "
        "--url URL` prints it; comma-separated, newest first.",
    )
    encryption_keys_file: Path | None = Field(None, description="File with the encryption keys, one per line.")
    encryption_keys_seconds: float = Field(
        7200,
        ge=10,
        description="Seconds for which a process holds keys that a key service has unwrapped; it asks the service "
        "again after an eighth of them.",
    )
    secret_references: Annotated[dict[UUID, tuple[str, ...]], NoDecode] = Field(
        default_factory=dict,
        description="References to secrets that organizations may give as credentials, as JSON of URL prefixes by the "
        'organization\'s id: {"…": ["vault://vault.example.com/secret/acme"]}. All are at one Vault, which the '
        "operator trusts: it receives the gateway's own sign-in. None unless set.",
    )
    specs: Annotated[tuple[Path, ...], NoDecode] = Field(
        (), description="Additional folders of kinds, separated like PATH."
    )
    mcp_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Origins of web pages that may call /mcp and the endpoints of OAuth beside PUBLIC_URL's own, "
        "separated by commas.",
    )
    mcp_registration: bool | None = Field(
        None,
        description="Whether agents' hosts may register themselves (RFC 7591), such as Cursor; true by default if the "
        "gateway's address is a loopback address. Hosts with a client ID metadata document need no registration.",
    )
    oidc_private: bool = Field(
        False,
        description="Whether the sign-in provider and trusted issuers may be at private addresses and use plain HTTP.",
    )
    oidc_issuer: str | None = Field(
        None,
        description="Issuer URL of the OpenID Connect provider with which people sign in to the console and give "
        "agents access. The redirect URI is PUBLIC_URL/sign-in/callback.",
    )
    oidc_client_id: str = Field("", description="Client id of the gateway at the provider.", validate_default=True)
    oidc_client_secret: SecretStr = Field(
        SecretStr(""), description="Client secret of the gateway at the provider; empty for a public client."
    )
    oidc_scopes: str = Field("openid email", description="Scopes requested from the provider, separated by spaces.")
    oidc_claim: str = Field(
        "email",
        description="The claim of the ID token that identifies a person to `gateway admin person add`; an `email` must "
        "be verified.",
    )
    oidc_name: str = Field("single sign-on", description="Name of the provider on the sign-in button.")
    secret_sign_in: bool = Field(
        True,
        description="Whether people may also sign in to the console, and give agents access, with a client's id and "
        "secret.",
        validate_default=True,
    )
    sandbox_url: str | None = Field(
        None,
        description="URL of a sandbox that takes the place of all applications, set by `gateway up --sandbox`. The "
        "console then has a page with its requests and faults.",
    )
    embedded: bool = Field(False, description="Set by `gateway up`: loopback redirects are allowed for any port.")

    max_body_bytes: int = Field(1 << 20, description="Maximum size of a request body in bytes; larger bodies get 413.")
    import_organizations: Annotated[tuple[UUID, ...], NoDecode] = Field(
        (),
        description="Ids of organizations whose administrators may import OpenAPI documents in the console, separated "
        "by commas; every organization can connect the imported applications. Off unless set.",
    )
    max_notice_bytes: int = Field(
        1 << 20,
        ge=1,
        le=64 << 20,
        description="Maximum size of a notice that an application sends to a hook, in bytes; larger notices get 413. A "
        "front end holds each notice in memory until its signature is verified.",
    )
    max_upload_bytes: int = Field(
        1 << 30, ge=1, description="Maximum size of an uploaded file in bytes; larger files get 413."
    )
    inline_budget: float = Field(20.0, description="Seconds after which a call of a long operation becomes a job.")
    token_seconds: int = Field(900, description="Lifetime of a bearer token in seconds.")
    approval_seconds: int = Field(
        86400, ge=60, description="Seconds after which a request for approval expires, unless the policy says it."
    )
    job_retention: int = Field(7 * 86400, description="Seconds for which the result of a finished job is kept.")
    audit_retention: int = Field(
        365 * 86400, ge=86400, description="Seconds for which audit entries are kept; at least a day."
    )
    request_log_retention: int = Field(
        86400,
        ge=0,
        description="Seconds for which the request log keeps requests, up to an eighth longer; 0 turns it off.",
    )
    request_log_rows: int = Field(
        1_000_000, ge=1000, description="Maximum number of requests in the request log; the oldest are deleted first."
    )
    seal_jobs: bool = Field(True, description="Whether params and results of jobs are encrypted like credentials.")
    event_retention: int = Field(7 * 86400, ge=60, description="Seconds for which events are kept.")
    organization_events: int = Field(
        1_000_000, ge=1_000, description="Maximum number of events per organization; the oldest are deleted first."
    )
    webhook_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Origins that webhooks may be delivered to beside public addresses over https, such as "
        "http://10.0.0.7:9000, separated by commas.",
    )
    webhook_retry_seconds: int = Field(
        3 * 86400,
        ge=1,
        description="Seconds for which a failed delivery is retried, and a webhook without a success stays active.",
    )
    idempotency_seconds: int = Field(86400, description="Seconds for which an Idempotency-Key is remembered.")
    worker_jobs: int = Field(100, description="Maximum number of jobs that one worker runs concurrently.")
    files_url: str | None = Field(
        None,
        description="Where stored files are kept: a folder that all processes share (DATA_DIR/blobs unless set), or "
        "s3://bucket/prefix with the AWS_… variables and the extra `s3`.",
    )
    max_file_bytes: int = Field(
        10 << 30, description="Maximum size of a stored download in bytes; larger files can only be streamed."
    )
    synchronize: bool = Field(
        True,
        description="Whether records are synchronized automatically; if false, only on request, and notices that "
        "applications send to hooks have no effect.",
    )
    sync_every: Annotated[dict[str, Annotated[float, Field(gt=0)]], NoDecode] = Field(
        default_factory=dict,
        description="Seconds between synchronizations, in place of the spec's, as JSON by kind or "
        'by kind and entity: {"support-desk": 600, "support-desk.tickets": 60}.',
    )
    brand_name: str = Field("Agent connector gateway", description="Name of the operator on pages for people.")
    brand_color: str = Field("#1d4ed8", description="Colour of buttons on pages for people, behind white text.")
    brand_logo: Path | None = Field(None, description="Logo on pages for people: an svg, png, jpg or webp file.")
    shutdown_grace: float = Field(
        30.0,
        gt=0,
        description="Seconds for a graceful shutdown; work that has not finished by then returns to the queue.",
    )
    database_pool: int = Field(10, ge=3, description="Maximum number of PostgreSQL connections per process.")
    client_rate: float = Field(0, ge=0, description="Rate limit of one client in requests per second; 0 is unlimited.")
    organization_rate: float = Field(
        0, ge=0, description="Rate limit of all clients of one organization in requests per second; 0 is unlimited."
    )
    organization_jobs: int = Field(
        10_000, ge=1, description="Maximum number of queued jobs per organization; further jobs get 429."
    )
    max_requests: int = Field(
        10_000,
        ge=1,
        description="Maximum number of requests in progress in one front end, for one organization half of what the "
        "others leave; more get 503. It has as many streams of events again.",
    )
    max_bodies_bytes: int = Field(
        32 << 20,
        ge=1,
        description="Memory in bytes for the request bodies that one front end reads at a time, shared like "
        "GATEWAY_MAX_REQUESTS; requests beyond it get 503. Pieces of uploaded files have as much again.",
    )
    max_answers_bytes: int = Field(
        128 << 20,
        ge=1,
        description="Memory in bytes for the responses of more than 64 KiB that callers of one front end have not yet "
        "read, shared like GATEWAY_MAX_REQUESTS; reads beyond it get 503.",
    )
    max_connections: int = Field(
        10_000, ge=1, description="Maximum number of connections to one front end; further connections are closed."
    )
    max_downloads: int = Field(
        400,
        ge=1,
        description="Maximum number of files that one front end streams concurrently, shared like "
        "GATEWAY_MAX_REQUESTS; more get 503.",
    )
    max_load: float = Field(
        0.95,
        gt=0,
        le=1,
        description="Load from 0 to 1 above which a front end refuses requests; 1 turns this off.",
    )
    max_upstream_connections: int = Field(
        10_000,
        ge=1,
        description="Maximum number of connections to applications per process, shared like GATEWAY_MAX_REQUESTS; "
        "calls without one get 503.",
    )
    cache_bytes: int = Field(
        64 << 20,
        ge=0,
        description="Memory in bytes for cached responses per process (Cache-Control: max-age). With 0 nothing is "
        "cached, and writes send no notifications; set it to 0 for all processes or for none.",
    )
    metrics_bind: str | None = Field(
        None,
        description="Host and port on which each process serves /metrics and /healthz; workers listen on no other "
        "port. With `gateway up` each further process takes the next port.",
    )
    tracing: bool = Field(
        False, description="Send OpenTelemetry spans to OTEL_EXPORTER_OTLP_ENDPOINT; needs the extra `otel`."
    )
    log_format: Literal["json", "text", "auto"] = Field(
        "auto", description="`json`, `text`, or `auto`: text on a terminal and JSON when piped."
    )
    log_level: str = Field("info", description="Lowest severity that is logged.")
    access_log: bool = Field(True, description="Whether each request is logged as an event `request` of severity info.")
    access_log_share: float = Field(
        1,
        ge=0,
        le=1,
        description="Share from 0 to 1 of the successful requests that the access log has, chosen at random; it has "
        "all requests with a status from 400 on.",
    )

    @field_validator("specs", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(Path(part) for part in value.split(os.pathsep) if part) if isinstance(value, str) else value

    @field_validator("mcp_origins", "webhook_origins", "import_organizations", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("mcp_origins", "webhook_origins")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            parse_override(each)
        return value

    @field_validator("sync_every", mode="before")
    @classmethod
    def _intervals(cls, value: object) -> object:
        return _from_json(value, '{"support-desk": 600, "support-desk.tickets": 60}')

    @field_validator("secret_references", mode="before")
    @classmethod
    def _prefixes(cls, value: object) -> object:
        return _from_json(value, '{"organization id": ["vault://HOST/secret/acme"]}')

    @field_validator("secret_references")
    @classmethod
    def _places(cls, value: dict[UUID, tuple[str, ...]]) -> dict[UUID, tuple[str, ...]]:
        servers = set()
        for prefix in (each for prefixes in value.values() for each in prefixes):
            try:
                servers.add(SecretPlace.read(prefix).netloc)
            except ValueError as error:
                raise ValueError(f"{prefix}: {error}") from error
        if len(servers) > 1:
            raise ValueError(
                f"must name one host and port, but names {', '.join(sorted(servers))}: the gateway reads the secrets "
                "of all organizations with its one sign-in to Vault, which no other server may receive"
            )
        return value

    @field_validator("public_url")
    @classmethod
    def _public(cls, value: str | None) -> str | None:
        if value and not _is_base_url(value, ("https", "http")):
            raise ValueError("must be a URL such as https://gateway.example.com")
        # Cookies with the prefix `__Host-` are sent to every path of the host, and metadata of OAuth is at its root.
        if value and (URL(value).path != "/" or URL(value).user is not None):
            raise ValueError(
                "must have no path and no user; give the gateway a host name of its own, such as "
                "https://gateway.example.com, because another application of the same host would get its cookies"
            )
        return value or None

    @field_validator("sandbox_url")
    @classmethod
    def _is_the_address_of_a_sandbox(cls, url: str | None) -> str | None:
        if url is not None and not _is_base_url(url, ("http", "https")):
            raise ValueError(f"{url!r} is not the URL of a sandbox, such as http://127.0.0.1:9001")
        return url

    @field_validator("files_url")
    @classmethod
    def _files(cls, value: str | None) -> str | None:
        if value and value.startswith("s3:") and not re.match(r"s3://[^/]", value):
            raise ValueError("must be a folder, or a URL such as s3://bucket/prefix")
        return value

    @field_validator("database_url", "database_direct_url", "database_read_url")
    @classmethod
    def _postgres(cls, value: str | None) -> str | None:
        return None if value is None else postgres_url(value)

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, value: str) -> str:
        return normalized(value, ("redis", "rediss", "unix"), "redis://:password@host:6379/0")

    @field_validator("log_level")
    @classmethod
    def _level(cls, value: str) -> str:
        if value.lower() not in _LOG_LEVELS:
            raise ValueError(f"must be one of {', '.join(_LOG_LEVELS)}")
        return value

    @field_validator("oidc_issuer")
    @classmethod
    def _provider(cls, value: str | None, others: ValidationInfo) -> str | None:
        if not value:
            return None
        schemes = ("https", "http") if others.data.get("oidc_private") else ("https",)
        if not _is_base_url(value, schemes) or URL(value).user:
            raise ValueError(
                "must be a URL such as https://login.example.com; plain HTTP also needs GATEWAY_OIDC_PRIVATE=true"
            )
        return value

    @field_validator("oidc_client_id")
    @classmethod
    def _registered(cls, value: str, others: ValidationInfo) -> str:
        if others.data.get("oidc_issuer") and not value:
            raise ValueError("is required if GATEWAY_OIDC_ISSUER is set")
        return value

    @field_validator("oidc_scopes")
    @classmethod
    def _openid(cls, value: str) -> str:
        if "openid" not in value.split():
            raise ValueError("must contain the scope openid")
        return value

    @field_validator("secret_sign_in")
    @classmethod
    def _some_sign_in(cls, value: bool, others: ValidationInfo) -> bool:
        if not value and not others.data.get("oidc_issuer"):
            raise ValueError("may be false only if GATEWAY_OIDC_ISSUER is set; else nobody could sign in")
        return value

    @field_validator("bind", "metrics_bind")
    @classmethod
    def _host_and_port(cls, value: str | None) -> str | None:
        if value:
            require_port(value)
        return value

    @property
    def base_url(self) -> str:
        """The address of the front end without a trailing slash."""
        return (self.public_url or f"http://{self.bind}").rstrip("/")

    @property
    def registers_hosts(self) -> bool:
        """Whether agents' hosts may register themselves: by default only those of this machine can."""
        if self.mcp_registration is not None:
            return self.mcp_registration
        return is_loopback(URL(self.base_url).host or "")

    @property
    def has_pooler(self) -> bool:
        """Whether `database_url` is that of a pooler."""
        return self.database_pooler or self.database_direct_url is not None

    @property
    def session_url(self) -> str | None:
        """The URL of PostgreSQL for work that needs a session; None if there is only a pooler."""
        return self.database_direct_url or (None if self.database_pooler else self.database_url)

    @property
    def link_base(self) -> str:
        """The base of links: `base_url`, or empty for relative links if the bind address is that of all interfaces.

        The caller's `Host` header is never used.
        """
        is_known = self.public_url is not None or self.address[0] not in _EVERY_ADDRESS
        return self.base_url if is_known else ""

    @cached_property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bind.rpartition(":")
        return host.strip("[]") or "127.0.0.1", int(port)


def upstream_overrides(environ: Mapping[str, str] = os.environ) -> dict[str, URL]:
    """`GATEWAY_UPSTREAM_<KIND>`: kind → the override of its URLs; raises SettingsError."""
    prefix, overrides = "GATEWAY_UPSTREAM_", {}
    for name, value in environ.items():
        if name.startswith(prefix) and value:
            try:
                overrides[name.removeprefix(prefix).lower().replace("_", "-")] = parse_override(value)
            except ValueError as error:
                raise SettingsError(f"{name}: {error}") from error
    return overrides


def platform_apps(environ: Mapping[str, str] = os.environ) -> dict[str, tuple[str, SecretStr]]:
    """`GATEWAY_OAUTH_<KIND>_CLIENT_ID` and `…_CLIENT_SECRET`: kind → the platform's own OAuth app."""
    prefix, suffix = "GATEWAY_OAUTH_", "_CLIENT_ID"
    apps = {}
    for name, client_id in environ.items():
        if name.startswith(prefix) and name.endswith(suffix) and client_id:
            stem = name.removesuffix(suffix)
            kind = stem.removeprefix(prefix).lower().replace("_", "-")
            apps[kind] = (client_id, SecretStr(environ.get(f"{stem}_CLIENT_SECRET", "")))
    return apps


def ignored_variables(kinds: Collection[str], environ: Mapping[str, str] = os.environ) -> list[str]:
    """A sentence for each override and OAuth app of a kind that is not among `kinds`, with the nearest known name.

    Parameters of PostgreSQL's URLs that have no effect are named too.
    """
    variables = {
        **{f"GATEWAY_UPSTREAM_{name_in_variables(kind)}": kind for kind in upstream_overrides(environ)},
        **{f"GATEWAY_OAUTH_{name_in_variables(kind)}_CLIENT_ID": kind for kind in platform_apps(environ)},
    }
    return [
        *(
            f"{variable} has no effect: there is no kind {kind!r}; {did_you_mean(kind, kinds)}"
            for variable, kind in variables.items()
            if kind not in kinds
        ),
        *(
            f"{variable}: {sentence}"
            for variable in ("GATEWAY_DATABASE_URL", "GATEWAY_DATABASE_DIRECT_URL", "GATEWAY_DATABASE_READ_URL")
            for sentence in ignored_parameters(environ.get(variable, ""))
        ),
    ]


def name_in_variables(kind: str) -> str:
    """A kind as it is written in the names of variables: `SUPPORT_DESK`."""
    return kind.upper().replace("-", "_")


def settings_of(**overrides: Any) -> Settings:
    """Settings from the environment, replaced by `overrides` that are not None; raises SettingsError."""
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        # The values are left out, because they may be secrets.
        faults = [
            f"GATEWAY_{str(each['loc'][0]).upper()}: {each['msg'].removeprefix('Value error, ')}"
            for each in error.errors(include_input=False)
        ]
        raise SettingsError("; ".join(faults)) from None
