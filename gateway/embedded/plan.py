"""The programs that `gateway up` starts, and their environment, from the operator's options. Pure."""

import os
import sys
from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

from gateway.embedded import UNUSABLE_SETTINGS, StartupError
from gateway.embedded.address import Address, accepts
from gateway.embedded.program import Program
from gateway.sandbox.app import OWN_PATH
from gateway.sandbox.kinds import APPLICATIONS
from gateway.settings import MAX_PORT, Settings, name_in_variables

#: seconds added to the grace of a front end or worker, for stores that do not respond while it closes them
_EXTRA_GRACE = 10.0
_METRICS = "GATEWAY_METRICS_BIND"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The operator's options; if the URL of a store is None, an embedded server is started."""

    data_dir: Path
    bind: str = "127.0.0.1:8080"
    #: whether any free port will do if that of `bind` is in use
    takes_another_port: bool = False
    database_url: str | None = field(default=None, repr=False)
    redis_url: str | None = field(default=None, repr=False)
    public_url: str | None = None
    ready_file: Path | None = None
    front_ends: int = 1
    workers: int = 1
    sandbox: bool = False
    #: the log format of front ends and workers
    log_format: str = "auto"
    #: the operator's folders of specs, and whether changes restart front ends, workers and sandbox
    specs: tuple[Path, ...] = ()
    reload: bool = False
    #: the kinds whose requests go to the sandbox, if there is one
    kinds: tuple[str, ...] = ()
    #: the command to which `serve`, `worker` and `sandbox` are appended
    command: tuple[str, ...] = (sys.executable, "-m", "gateway")
    #: the environment that children inherit
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)

    @property
    def environment_of_upstreams(self) -> dict[str, str]:
        """The operator's overrides of kinds, and the settings of their OAuth apps."""
        prefixes = ("GATEWAY_UPSTREAM_", "GATEWAY_OAUTH_")
        return {name: value for name, value in self.environment.items() if name.startswith(prefixes)}

    @property
    def has_external_keys(self) -> bool:
        """Whether the operator's settings have the encryption keys, so that the data directory needs none."""
        return any(self.environment.get(f"GATEWAY_ENCRYPTION_KEYS{form}") for form in ("", "_FILE"))


def child_environment(
    options: UpOptions,
    address: Address,
    *,
    database_url: str,
    redis_url: str,
    keys: Path | None,
    sandbox: Address | None,
) -> dict[str, str]:
    """The settings of front ends and workers. The operator's own overrides replace those for the sandbox."""
    return {
        **(sandbox_settings(options.kinds, sandbox) if sandbox else {}),
        **options.environment,
        **({"GATEWAY_ENCRYPTION_KEYS_FILE": str(keys)} if keys else {}),
        **({"GATEWAY_SANDBOX_URL": sandbox.base_url} if sandbox else {}),
        "GATEWAY_EMBEDDED": "1",
        "GATEWAY_BIND": str(address),
        "GATEWAY_PUBLIC_URL": options.public_url or address.base_url,
        "GATEWAY_DATA_DIR": str(options.data_dir.expanduser().absolute()),
        "GATEWAY_LOG_FORMAT": options.log_format,
        "GATEWAY_DATABASE_URL": database_url,
        "GATEWAY_REDIS_URL": redis_url,
    }


def sandbox_settings(kinds: Iterable[str], sandbox: Address) -> dict[str, str]:
    """The settings that send the requests of every kind to the sandbox, which accepts any OAuth app."""
    settings = {}
    for kind in kinds:
        name = name_in_variables(kind)
        # Two kinds may have the same paths; only those of the built-in applications are known to differ.
        own = "" if kind in APPLICATIONS else f"{OWN_PATH}/{kind}"
        settings[f"GATEWAY_UPSTREAM_{name}"] = f"{sandbox.base_url}{own}"
        settings[f"GATEWAY_OAUTH_{name}_CLIENT_ID"] = settings[f"GATEWAY_OAUTH_{name}_CLIENT_SECRET"] = "sandbox"
    return settings


def front_ends(options: UpOptions, environment: Mapping[str, str]) -> list[Program]:
    """The front ends; several share one port, and the system distributes the connections."""
    arguments = ("serve", "--reuse-port") if options.front_ends > 1 else ("serve",)
    return _numbered("gateway", options.front_ends, (*options.command, *arguments), environment, 0)


def workers(options: UpOptions, environment: Mapping[str, str]) -> list[Program]:
    """The workers."""
    return _numbered("worker", options.workers, (*options.command, "worker"), environment, options.front_ends)


def sandbox_program(options: UpOptions, sandbox: Address) -> Program:
    """The stand-in for all kinds. Its only setting is `GATEWAY_SPECS`, so that it gets no secrets."""
    return Program(
        name="sandbox",
        role="sandbox",
        argv=(*options.command, "sandbox", "--bind", str(sandbox)),
        env={
            name: value
            for name, value in options.environment.items()
            if not name.startswith("GATEWAY_") or name == "GATEWAY_SPECS"
        },
        is_ready=lambda _pid: accepts(sandbox),
    )


def require_metrics_ports(bind: str | None, processes: int) -> None:
    """Raise StartupError if the ports after that of `GATEWAY_METRICS_BIND` do not suffice for the processes."""
    if bind and int(bind.rpartition(":")[2]) + processes - 1 > MAX_PORT:
        raise StartupError(
            f"GATEWAY_METRICS_BIND is {bind}, but {processes} processes need a port each. Choose a lower port."
        )


def _numbered(
    role: str, count: int, argv: tuple[str, ...], environment: Mapping[str, str], earlier: int
) -> list[Program]:
    """`count` programs, after `earlier` ones of another role."""
    grace = (
        float(environment.get("GATEWAY_SHUTDOWN_GRACE", Settings.model_fields["shutdown_grace"].default)) + _EXTRA_GRACE
    )
    program = partial(Program, role=role, argv=argv, grace=grace, unusable_status=UNUSABLE_SETTINGS)
    return [
        program(name=f"{role}-{number}", env=_with_metrics_port(environment, earlier + number - 1))
        for number in range(1, count + 1)
    ]


def _with_metrics_port(environment: Mapping[str, str], index: int) -> Mapping[str, str]:
    """The environment of a process: each has another port for metrics, counted up from `GATEWAY_METRICS_BIND`."""
    host, _, port = environment.get(_METRICS, "").rpartition(":")
    if index == 0 or not port.isdecimal() or int(port) == 0:
        return environment
    # Changes of the shared environment stay visible.
    return ChainMap({_METRICS: f"{host}:{int(port) + index}"}, cast(dict[str, str], environment))
