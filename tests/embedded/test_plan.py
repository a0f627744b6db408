"""The programs that `gateway up` starts, and their settings."""

from pathlib import Path

import pytest

from gateway.embedded import StartupError, plan
from gateway.embedded.address import Address
from gateway.embedded.plan import UpOptions

HERE = Address("127.0.0.1", 8080)
SANDBOX = Address("127.0.0.1", 9001)
STORES = {"database_url": "postgresql://p@/gateway", "redis_url": "unix:///r.sock"}


def options(**members):
    return UpOptions(data_dir=Path("/data"), command=("gateway",), **{"environment": {"PATH": "/bin"}, **members})


def test_children_get_their_settings():
    up_options = options(log_format="text")
    environment = plan.child_environment(up_options, HERE, **STORES, keys=Path("/data/encryption.keys"), sandbox=None)

    assert environment == {
        "PATH": "/bin",
        "GATEWAY_EMBEDDED": "1",
        "GATEWAY_BIND": "127.0.0.1:8080",
        "GATEWAY_PUBLIC_URL": "http://127.0.0.1:8080",
        "GATEWAY_DATA_DIR": "/data",
        "GATEWAY_LOG_FORMAT": "text",
        "GATEWAY_DATABASE_URL": "postgresql://p@/gateway",
        "GATEWAY_REDIS_URL": "unix:///r.sock",
        "GATEWAY_ENCRYPTION_KEYS_FILE": "/data/encryption.keys",
    }


def test_the_public_url_of_the_operator_is_used():
    up_options = options(public_url="https://gateway.example")

    environment = plan.child_environment(up_options, HERE, **STORES, keys=None, sandbox=None)

    assert environment["GATEWAY_PUBLIC_URL"] == "https://gateway.example"


def test_requests_go_to_the_sandbox_unless_the_operator_overrides_the_kind():
    own = {"GATEWAY_UPSTREAM_CHAT": "http://127.0.0.1:7", "GATEWAY_OAUTH_CHAT_CLIENT_ID": "own"}
    up_options = options(kinds=("support-desk", "chat"), environment=own)

    environment = plan.child_environment(up_options, HERE, **STORES, keys=None, sandbox=SANDBOX)

    assert environment["GATEWAY_UPSTREAM_SUPPORT_DESK"] == "http://127.0.0.1:9001"
    assert environment["GATEWAY_UPSTREAM_CHAT"] == "http://127.0.0.1:7"
    assert environment["GATEWAY_OAUTH_SUPPORT_DESK_CLIENT_ID"] == "sandbox"
    assert environment["GATEWAY_OAUTH_CHAT_CLIENT_ID"] == "own"


@pytest.mark.parametrize(
    ("environment", "is_external"),
    [
        ({}, False),
        ({"GATEWAY_ENCRYPTION_KEYS": ""}, False),
        ({"GATEWAY_ENCRYPTION_KEYS": "k1:…"}, True),
        ({"GATEWAY_ENCRYPTION_KEYS_FILE": "/keys"}, True),
    ],
)
def test_the_keys_may_be_in_the_operators_settings(environment, is_external):
    assert options(environment=environment).has_external_keys is is_external


@pytest.mark.parametrize(("count", "argv"), [(1, ("gateway", "serve")), (2, ("gateway", "serve", "--reuse-port"))])
def test_several_front_ends_share_the_port(count, argv):
    programs = plan.front_ends(options(front_ends=count), {})

    assert [program.argv for program in programs] == [argv] * count


def test_front_ends_and_workers_have_a_grace_period():
    programs = [*plan.front_ends(options(), {}), *plan.workers(options(workers=2), {})]

    assert [program.name for program in programs] == ["gateway-1", "worker-1", "worker-2"]
    assert {program.grace for program in programs} == {40.0}


@pytest.mark.parametrize(
    ("bind", "ports"),
    [
        ("127.0.0.1:9464", ["127.0.0.1:9464", "127.0.0.1:9465", "127.0.0.1:9466", "127.0.0.1:9467"]),
        ("[::1]:9464", ["[::1]:9464", "[::1]:9465", "[::1]:9466", "[::1]:9467"]),
        ("127.0.0.1:0", ["127.0.0.1:0"] * 4),
        ("", [""] * 4),
        (None, [None] * 4),
    ],
)
def test_each_process_has_a_port_of_its_own_for_metrics(bind, ports):
    environment = {} if bind is None else {"GATEWAY_METRICS_BIND": bind}
    up_options = options(front_ends=2, workers=2)

    programs = [*plan.front_ends(up_options, environment), *plan.workers(up_options, environment)]
    environment["GATEWAY_UPSTREAM_CHAT"] = "http://127.0.0.1:7"

    assert [program.env.get("GATEWAY_METRICS_BIND") for program in programs] == ports
    assert {program.env["GATEWAY_UPSTREAM_CHAT"] for program in programs} == {"http://127.0.0.1:7"}


def test_too_few_ports_for_metrics_are_refused():
    plan.require_metrics_ports("127.0.0.1:65533", 3)
    plan.require_metrics_ports(None, 3)

    with pytest.raises(StartupError, match="but 3 processes need a port each"):
        plan.require_metrics_ports("127.0.0.1:65534", 3)


def test_the_sandbox_gets_no_settings_of_the_gateway():
    program = plan.sandbox_program(options(environment={"PATH": "/bin", "GATEWAY_ENCRYPTION_KEYS": "k1:…"}), SANDBOX)

    assert program.argv == ("gateway", "sandbox", "--bind", "127.0.0.1:9001")
    assert program.env == {"PATH": "/bin"}


def test_the_repr_of_options_has_no_secrets():
    up_options = options(
        database_url="postgresql://u:sesame@db/gateway", environment={"GATEWAY_ENCRYPTION_KEYS": "sesame"}
    )

    assert "sesame" not in repr(up_options)
