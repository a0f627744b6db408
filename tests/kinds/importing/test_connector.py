"""Servers, security schemes and error responses of a document become `connector.yaml`."""

import pytest

from gateway.kinds.importing.mapping import Options, import_document
from gateway.kinds.importing.model import ImportFailed
from tests.kinds.importing.documents import RECORD, answer, document, imported, reasons


def methods(**schemes):
    return imported({}, components={"securitySchemes": schemes}).connector["authentication"]


def oauth(**flow):
    urls = {"authorizationUrl": "/authorize", "tokenUrl": "/token"}
    return {"type": "oauth2", "flows": {"authorizationCode": {**urls, **flow}}}


def test_a_bearer_token():
    assert methods(a={"type": "http", "scheme": "bearer"})["a"]["scheme"] == "bearer"


def test_user_name_and_password():
    method = methods(a={"type": "http", "scheme": "basic"})["a"]

    assert (method["username"], method["password"]) == ("{username}", "{password}")


KEYS = [
    ({"in": "header", "name": "X-Key"}, {"headers": {"X-Key": "{key}"}}),
    ({"in": "query", "name": "api_key"}, {"query": {"api_key": "{key}"}}),
    ({"in": "header", "name": "Authorization", "description": "Format `Token token=<KEY>`"},
     {"headers": {"Authorization": "Token token={key}"}}),
]  # fmt: skip


@pytest.mark.parametrize(("scheme", "placed"), KEYS)
def test_a_key_in_a_header_or_the_query(scheme, placed):
    method = methods(key={"type": "apiKey", **scheme})["key"]

    assert {name: method[name] for name in placed} == placed


def test_keys_that_are_needed_together_are_one_method():
    schemes = {name: {"type": "apiKey", "in": "header", "name": f"X-{name}"} for name in ("api", "app")}
    made = imported({}, components={"securitySchemes": schemes}, security=[{"api": [], "app": []}])

    assert made.connector["authentication"]["api_and_app"]["headers"] == {"X-api": "{api}", "X-app": "{app}"}


def test_oauth_has_endpoints_scopes_and_hosts():
    scheme = oauth(tokenUrl="https://login.example.com/token", scopes={"read": "", "write": ""})
    connector = imported({}, components={"securitySchemes": {"o": scheme}}).connector

    assert connector["oauth"]["authorization_url"] == "https://api.parcels.example.com/authorize"
    assert connector["oauth"]["scopes"] == ["read", "write"]
    assert connector["hosts"] == ["api.parcels.example.com", "login.example.com"]


def test_a_document_without_schemes_needs_a_person():
    assert "the document has no security scheme; a bearer token is assumed" in reasons(imported({}))


SERVERS = [
    ([{"url": "https://{site}.example.com/v1", "variables": {"site": {"default": "acme"}}}],
     "https://{site}.example.com/v1", ["*.example.com"], {"site"}),
    ([{"url": "https://api.example.com"}, {"url": "https://api.eu.example.com"}],
     "{origin}", ["api.example.com", "api.eu.example.com"], {"origin"}),
    ([{"url": "http://api.example.com/{v}", "variables": {"v": {"default": "v2"}}}],
     "https://api.example.com/v2", ["api.example.com"], set()),
]  # fmt: skip


@pytest.mark.parametrize(("servers", "server", "hosts", "variables"), SERVERS)
def test_servers_become_server_hosts_and_environment(servers, server, hosts, variables):
    connector = imported({}, servers=servers).connector

    assert (connector["server"], connector["hosts"]) == (server, hosts)
    assert set(connector.get("environment", {})) == variables


def test_a_relative_server_is_at_the_documents_host():
    source = document({}, servers=[{"url": "/api"}])

    assert import_document(source, Options(base_url="https://example.com/docs/a.json")).connector["server"] == (
        "https://example.com/api"
    )
    with pytest.raises(ImportFailed, match="--server"):
        import_document(source, Options())


@pytest.mark.parametrize("host", ["localhost", "10.0.0.1", "api.internal"])
def test_a_server_of_a_private_network_is_refused(host):
    with pytest.raises(ImportFailed, match="is not a public host"):
        imported({}, servers=[{"url": f"https://{host}/api"}])


def test_a_server_of_an_operation_is_kept_for_its_action():
    upload = {"servers": [{"url": "https://uploads.example.com"}], "responses": answer(RECORD)}
    made = imported({"/files": {"post": upload}})

    assert made.entities["files"]["actions"]["create"]["server"] == "https://uploads.example.com"
    assert "uploads.example.com" in made.connector["hosts"]


def test_the_paths_of_error_responses_are_those_of_most_operations():
    error = {"type": "object", "properties": {"error": {"type": "object", "properties": {"code": {}, "message": {}}}}}
    failing = {"responses": {**answer(RECORD), "400": answer(error)["200"]}}

    assert imported({"/things/{id}": {"get": failing}}).connector["failure"] == {
        "code": ["error.code"], "message": ["error.message"],
    }  # fmt: skip


def test_corrections_at_the_root_of_the_document_are_members_of_the_kind():
    made = imported({}, **{"x-gateway": {"rate_limit": {"requests": 5, "seconds": 1}}})

    assert made.connector["rate_limit"] == {"requests": 5, "seconds": 1}


@pytest.mark.parametrize("source", [{}, {"openapi": "3.0.0", "paths": {}}, {"openapi": "4.0"}, {"swagger": "1.2"}])
def test_a_document_that_is_not_openapi_is_refused(source):
    with pytest.raises(ImportFailed):
        import_document(source, Options())


def test_a_swagger_2_document():
    parameters = [
        {"name": "ids", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "csv"},
        {"name": "body", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Thing"}},
    ]
    answered = {"200": {"schema": {"$ref": "#/definitions/Thing"}}}
    source = {
        "swagger": "2.0",
        "info": {"title": "Things API"},
        "host": "api.example.com",
        "basePath": "/v1",
        "schemes": ["https"],
        "definitions": {"Thing": {**RECORD, "required": ["name"]}},
        "securityDefinitions": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        "paths": {
            "/things": {
                "get": {"parameters": parameters[:1], "responses": {"200": {"schema": {"type": "array", "items": {}}}}},
                "post": {"parameters": parameters[1:], "responses": answered},
            },
            "/things/{id}/photo": {
                "put": {"parameters": [{"name": "photo", "in": "formData", "type": "file"}], "responses": {}}
            },
        },
    }
    made = import_document(source, Options())

    actions = made.entities["things"]["actions"]
    assert (made.connector["kind"], made.connector["server"]) == ("things", "https://api.example.com/v1")
    assert made.connector["authentication"]["key"]["headers"] == {"X-Key": "{key}"}
    assert actions["list"]["params"]["ids"]["explode"] is False
    assert actions["create"]["required"] == ["name"]
    assert made.entities["thing_photo"]["actions"]["update"]["content_type"] == "multipart/form-data"
