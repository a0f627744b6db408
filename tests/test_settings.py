"""Settings: read once from the environment; secrets are hidden, and errors name the variable."""

import os
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError
from yarl import URL

from gateway.settings import Settings, SettingsError, ignored_variables, platform_apps, settings_of, upstream_overrides


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in os.environ if name.startswith("GATEWAY_")]:
        monkeypatch.delenv(name)


def test_every_setting_has_a_description():
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_secrets_have_no_default_and_never_show(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GATEWAY_ENCRYPTION_KEYS", "k1:CANARY")

    settings = Settings()

    assert Settings.model_fields["encryption_keys"].default is None
    assert "CANARY" not in repr(settings)
    assert "CANARY" not in settings.model_dump_json()


def test_settings_cannot_change():
    with pytest.raises(ValidationError):
        Settings().bind = "0.0.0.0:1"  # type: ignore[misc]


def test_the_command_line_overrides_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GATEWAY_BIND", "127.0.0.1:1")

    assert settings_of(bind=None).bind == "127.0.0.1:1"
    assert settings_of(bind="127.0.0.1:2").bind == "127.0.0.1:2"


@pytest.mark.parametrize(
    ("bind", "address"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("[::1]:8080", ("::1", 8080)),
        (":8080", ("127.0.0.1", 8080)),
        ("gateway.internal:80", ("gateway.internal", 80)),
    ],
)
def test_an_address_is_a_host_and_a_port(bind: str, address: tuple[str, int]):
    assert Settings(bind=bind).address == address


@pytest.mark.parametrize(
    ("public_url", "base_url"), [(None, "http://127.0.0.1:8080"), ("https://gw.example/", "https://gw.example")]
)
def test_the_base_url_is_the_public_url_if_there_is_one(public_url: str | None, base_url: str):
    assert Settings(public_url=public_url).base_url == base_url


@pytest.mark.parametrize("public_url", ["https://gw.example/gateway", "https://gw.example//", "https://u@gw.example"])
def test_a_public_url_with_a_path_or_a_user_is_refused(public_url: str):
    with pytest.raises(SettingsError, match="GATEWAY_PUBLIC_URL: must have no path and no user; give the gateway a ho"):
        settings_of(public_url=public_url)


def test_folders_of_specs_are_separated_like_a_path(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GATEWAY_SPECS", os.pathsep.join(["/a", "", "/b"]))

    assert Settings().specs == (Path("/a"), Path("/b"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("CLIENT_RATE", "-1.5"), ("ORGANIZATION_JOBS", "-7"), ("MAX_LOAD", "CANARY"), ("WORKER_JOBS", "many")],
)
def test_the_error_of_an_invalid_value_names_the_variable_and_not_the_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
):
    monkeypatch.setenv(f"GATEWAY_{name}", value)

    with pytest.raises(SettingsError, match=f"^GATEWAY_{name}: ") as refused:
        settings_of()

    assert value not in str(refused.value)


def test_the_override_of_an_upstream_is_read_by_kind():
    environ = {"GATEWAY_UPSTREAM_SUPPORT_DESK": "http://127.0.0.1:9001", "GATEWAY_UPSTREAM_EMPTY": "", "OTHER": "x"}

    assert upstream_overrides(environ) == {"support-desk": URL("http://127.0.0.1:9001")}


def test_an_override_that_is_not_an_origin_is_refused():
    with pytest.raises(SettingsError, match="GATEWAY_UPSTREAM_TEAM_CHAT: the address must be scheme, host and port"):
        upstream_overrides({"GATEWAY_UPSTREAM_TEAM_CHAT": "localhost"})


def test_an_override_and_an_oauth_app_of_an_unknown_kind_are_named_with_the_nearest_kind():
    environ = {
        "GATEWAY_UPSTREAM_SUPPORT_DESK": "http://127.0.0.1:9001",
        "GATEWAY_UPSTREAM_SUPORT_DESK": "http://127.0.0.1:9001",
        "GATEWAY_OAUTH_TEM_CHAT_CLIENT_ID": "app",
    }

    assert ignored_variables({"support-desk", "team-chat"}, environ) == [
        "GATEWAY_UPSTREAM_SUPORT_DESK has no effect: there is no kind 'suport-desk'; did you mean support-desk?",
        "GATEWAY_OAUTH_TEM_CHAT_CLIENT_ID has no effect: there is no kind 'tem-chat'; did you mean team-chat?",
    ]


@pytest.mark.parametrize("name", ["DATABASE_URL", "DATABASE_DIRECT_URL"])
def test_parameters_of_libpq_that_have_no_effect_are_named_and_left_out(monkeypatch: pytest.MonkeyPatch, name: str):
    url = "postgresql://u:hunter2@h/db?sslmode=require&channel_binding=require&connect_timeout=5"
    monkeypatch.setenv(f"GATEWAY_{name}", url)

    assert getattr(settings_of(), name.lower()) == "postgresql://u:hunter2@h/db?sslmode=require"
    assert ignored_variables([], os.environ) == [
        f"GATEWAY_{name}: the parameter channel_binding has no effect: asyncpg, the gateway's library for PostgreSQL, "
        "does not support it",
        f"GATEWAY_{name}: the parameter connect_timeout has no effect: the gateway has its own timeouts for "
        "connections and statements",
    ]


def test_the_platforms_apps_are_pairs_of_id_and_secret():
    environ = {
        "GATEWAY_OAUTH_CRM_RECORDS_CLIENT_ID": "id",
        "GATEWAY_OAUTH_CRM_RECORDS_CLIENT_SECRET": "CANARY",
        "GATEWAY_OAUTH_TEAM_CHAT_CLIENT_ID": "",
    }

    apps = platform_apps(environ)

    assert apps == {"crm-records": ("id", SecretStr("CANARY"))}
    assert "CANARY" not in repr(apps)
