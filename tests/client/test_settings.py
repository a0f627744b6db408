import json

import pytest

from gateway import errors
from gateway.client.settings import client_settings

SECRETS = {"GATEWAY_CLIENT_ID": "id", "GATEWAY_CLIENT_SECRET": "s3cret"}


def test_every_setting_comes_from_the_environment():
    environ = {**SECRETS, "GATEWAY_URL": "https://g.example/", "GATEWAY_WORKSPACE": "w", "GATEWAY_ORGANIZATION_ID": "o"}

    found = client_settings(environ=environ)

    assert (str(found.base_url), found.workspace_name, found.organization_id) == ("https://g.example", "w", "o")


def test_arguments_precede_the_environment():
    found = client_settings("https://mine.example", "me", "mine", environ={**SECRETS, "GATEWAY_URL": "https://g"})

    assert (str(found.base_url), found.client_id, found.client_secret) == ("https://mine.example", "me", "mine")


def test_the_settings_repr_has_no_secret():
    assert "s3cret" not in repr(client_settings(environ=SECRETS))


@pytest.mark.parametrize("url", ["g.example", "ftp://g.example", "https://", "http://[::1"])
def test_the_error_for_an_invalid_url_has_an_example(url):
    with pytest.raises(errors.MalformedRequest, match=r"it looks like https://gateway\.example\.com"):
        client_settings(url, environ=SECRETS)


def test_the_error_for_missing_credentials_names_the_variable(tmp_path):
    environ = {"GATEWAY_DATA_DIR": str(tmp_path)}

    with pytest.raises(errors.Unauthorized, match="GATEWAY_CLIENT_ID"):
        client_settings(environ=environ)
    with pytest.raises(errors.Unauthorized, match="GATEWAY_CLIENT_SECRET"):
        client_settings(client_id="id", environ=environ)


def test_the_first_client_of_a_gateway_on_this_machine_is_used(tmp_path):
    (tmp_path / "first-client.json").write_text(json.dumps({"client_id": "first", "client_secret": "own"}))

    found = client_settings(environ={"GATEWAY_DATA_DIR": str(tmp_path)})

    assert (found.client_id, found.client_secret) == ("first", "own")


def test_the_first_clients_secret_is_not_sent_to_another_machine(tmp_path):
    (tmp_path / "first-client.json").write_text(json.dumps({"client_id": "first", "client_secret": "own"}))

    with pytest.raises(errors.Unauthorized):
        client_settings("https://g.example", environ={"GATEWAY_DATA_DIR": str(tmp_path)})


def test_the_address_of_a_gateway_in_the_folder_precedes_the_default_and_follows_the_environment(tmp_path):
    (tmp_path / "address").write_text("http://127.0.0.1:45678\n")
    environ = {**SECRETS, "GATEWAY_DATA_DIR": str(tmp_path)}

    assert str(client_settings(environ=environ).base_url) == "http://127.0.0.1:45678"
    assert str(client_settings(environ={**environ, "GATEWAY_URL": "https://g"}).base_url) == "https://g"


def test_a_token_needs_no_client_and_comes_with_no_organization_of_the_environment():
    environ = {**SECRETS, "GATEWAY_URL": "https://g.example", "GATEWAY_ORGANIZATION_ID": "o"}

    found = client_settings(environ=environ, token="t0ken")

    assert (str(found.base_url), found.token, found.organization_id) == ("https://g.example", "t0ken", None)
    assert (found.client_id, found.client_secret) == ("", "")
    assert "t0ken" not in repr(found)
