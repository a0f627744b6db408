"""Profiles: how they are stored, who can read them, and when a client uses them."""

import stat
from datetime import timedelta

import pytest

from gateway import errors
from gateway.client.browser_sign_in import SignInRequest, is_usable
from gateway.client.profiles import Profile, Profiles
from gateway.client.settings import client_settings
from gateway.foundation.aio.clock import CLOCK

STAGING = Profile(base_url="https://staging.example", client_id="id", client_secret="s3cret", workspace_name="acme")
PERSON = Profile(base_url="https://gateway.example", client_id="gateway-cli", refresh_token="refresh")


@pytest.fixture
def environ(tmp_path):
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "GATEWAY_DATA_DIR": str(tmp_path)}


@pytest.fixture
def profiles(environ):
    profiles = Profiles(environ)
    profiles.save("staging", STAGING)
    profiles.save("production", PERSON)
    return profiles


def test_no_other_user_can_read_the_file(profiles):
    profiles.remove("production")

    assert stat.S_IMODE(profiles.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(profiles.folder.stat().st_mode) == 0o700


def test_a_file_that_others_can_read_is_not_used(profiles, environ):
    profiles.path.chmod(0o644)

    with pytest.raises(errors.MalformedRequest, match="chmod 600"):
        client_settings(environ=environ)


def test_a_damaged_file_is_named(profiles):
    profiles.path.write_text("{")

    with pytest.raises(errors.MalformedRequest, match="correct or remove it"):
        profiles.all()


def test_the_last_sign_in_is_the_current_profile_until_another_is_chosen(profiles):
    before = profiles.current()
    profiles.use("staging")
    after = profiles.current()
    profiles.remove("staging")

    assert (before, after, profiles.current()) == ("production", "staging", None)
    assert list(profiles.all()) == ["production"]


def test_the_error_for_an_unknown_profile_names_the_nearest(profiles):
    with pytest.raises(errors.NotFound, match="did you mean staging"):
        profiles.get("stagin")


def test_a_profiles_repr_has_no_secrets():
    assert "s3cret" not in repr(STAGING)
    assert "refresh" not in repr(PERSON)


@pytest.mark.parametrize(
    ("arguments", "variables", "url"),
    [
        ({}, {}, "https://gateway.example"),
        ({"profile": "staging"}, {}, "https://staging.example"),
        ({}, {"GATEWAY_PROFILE": "staging"}, "https://staging.example"),
        (
            {"profile": "staging"},
            {"GATEWAY_URL": "https://other.example", "GATEWAY_CLIENT_ID": "a", "GATEWAY_CLIENT_SECRET": "b"},
            "https://staging.example",
        ),
        (
            {},
            {"GATEWAY_URL": "https://other.example", "GATEWAY_CLIENT_ID": "a", "GATEWAY_CLIENT_SECRET": "b"},
            "https://other.example",
        ),
    ],
)
@pytest.mark.usefixtures("profiles")
def test_a_named_profile_precedes_the_environment_which_precedes_the_current_profile(
    environ, arguments, variables, url
):
    found = client_settings(environ={**environ, **variables}, **arguments)

    assert str(found.base_url) == url


@pytest.mark.usefixtures("profiles")
def test_a_profile_has_a_workspace_which_an_argument_overrides(environ):
    stored = client_settings(environ=environ, profile="staging")
    given = client_settings(workspace_name="mine", environ=environ, profile="staging")

    assert (stored.workspace_name, given.workspace_name) == ("acme", "mine")
    assert (stored.client_secret, stored.tokens_of) == ("s3cret", None)


@pytest.mark.usefixtures("profiles")
def test_the_secret_of_a_profile_is_not_sent_to_another_gateway(environ):
    with pytest.raises(errors.MalformedRequest, match=r"not for https://evil\.example"):
        client_settings("https://evil.example", environ=environ, profile="staging")


@pytest.mark.usefixtures("profiles")
def test_a_gateway_that_runs_in_the_folder_precedes_the_current_profile(environ, tmp_path):
    (tmp_path / "address").write_text("http://127.0.0.1:45678\n")
    (tmp_path / "first-client.json").write_text('{"client_id": "first", "client_secret": "own"}')

    assert client_settings(environ=environ).client_id == "first"


@pytest.mark.parametrize(
    ("seconds", "refused", "usable"), [(600, None, True), (600, "token", False), (10, None, False), (-5, None, False)]
)
def test_a_stored_access_token_is_used_until_it_expires_or_is_refused(seconds, refused, usable):
    ends_at = CLOCK.now() + timedelta(seconds=seconds)
    profile = Profile(
        base_url="https://g.example", client_id="gateway-cli", access_token="token", access_token_ends_at=ends_at
    )

    assert is_usable(profile, refused) is usable


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"code": "c", "state": "another", "iss": "https://g.example"}, "another sign-in"),
        ({"code": "c", "state": "state", "iss": "https://evil.example"}, "another sign-in"),
        ({"code": "c"}, "another sign-in"),
        ({"error": "access_denied", "state": "state", "iss": "https://g.example"}, "refused: access_denied"),
    ],
)
def test_the_response_to_another_sign_in_and_a_refusal_are_errors(answer, message):
    request = SignInRequest(
        issuer="https://g.example",
        authorization_endpoint="https://g.example/oauth/authorize",
        redirect_uri="http://127.0.0.1:1/",
        state="state",
    )

    with pytest.raises(errors.Unauthorized, match=message):
        request.code_form(answer)
