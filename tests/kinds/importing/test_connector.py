"""Servers, security schemes and error responses of a document become `connector.yaml`."""

import re

import pytest

from gateway.kinds.importing.mapping import Options, import_document
from gateway.kinds.importing.model import ImportFailed
from tests.kinds.importing.documents import RECORD, answer, document, imported, query, reasons


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
    scheme = oauth(tokenUrl="https://login.parcels.example.com/token", scopes={"read": "", "write": ""})
    connector = imported({}, components={"securitySchemes": {"o": scheme}}).connector

    assert connector["oauth"]["authorization_url"] == "https://api.parcels.example.com/authorize"
    assert connector["oauth"]["scopes"] == ["read", "write"]
    assert connector["hosts"] == ["api.parcels.example.com", "login.parcels.example.com"]


def test_a_document_without_schemes_needs_a_person():
    assert "the document has no security scheme; a bearer token is assumed" in reasons(imported({}))


SERVERS = [
    ([{"url": "https://{site}.parcels.example.com/v1", "variables": {"site": {"default": "acme"}}}],
     "https://{site}.parcels.example.com/v1", ["*.parcels.example.com"], {"site"}),
    ([{"url": "https://api.parcels.example.com"}, {"url": "https://api.eu.parcels.example.com"}],
     "{origin}", ["api.parcels.example.com", "api.eu.parcels.example.com"], {"origin"}),
    ([{"url": "http://api.parcels.example.com/{v}", "variables": {"v": {"default": "v2"}}}],
     "https://api.parcels.example.com/v2", ["api.parcels.example.com"], set()),
]  # fmt: skip


@pytest.mark.parametrize(("servers", "server", "hosts", "variables"), SERVERS)
def test_servers_become_server_hosts_and_environment(servers, server, hosts, variables):
    connector = imported({}, servers=servers).connector

    assert (connector["server"], connector["hosts"]) == (server, hosts)
    assert set(connector.get("environment", {})) == variables


def test_a_relative_server_is_at_the_documents_host():
    source = document({}, servers=[{"url": "/api"}])

    assert import_document(source, Options(base_url="https://docs.parcels.example.com/a/a.json")).connector[
        "server"
    ] == ("https://docs.parcels.example.com/api")
    assert import_document(source, Options()).connector["server"] == "{origin}/api"


@pytest.mark.parametrize("host", ["localhost", "10.0.0.1", "api.internal"])
def test_a_server_of_a_private_network_is_refused(host):
    with pytest.raises(ImportFailed, match="is not a public host"):
        imported({}, servers=[{"url": f"https://{host}/api"}])


def test_a_server_of_an_operation_is_kept_for_its_action():
    upload = {"servers": [{"url": "https://uploads.parcels.example.com"}], "responses": answer(RECORD)}
    made = imported({"/files": {"post": upload}})

    assert made.entities["files"]["actions"]["create"]["server"] == "https://uploads.parcels.example.com"
    assert "uploads.parcels.example.com" in made.connector["hosts"]


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
        "host": "api.parcels.example.com",
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
    assert (made.connector["kind"], made.connector["server"]) == ("things", "https://api.parcels.example.com/v1")
    assert made.connector["authentication"]["key"]["headers"] == {"X-Key": "{key}"}
    assert actions["list"]["params"]["ids"]["explode"] is False
    assert actions["create"]["required"] == ["name"]
    assert made.entities["thing_photo"]["actions"]["update"]["content_type"] == "multipart/form-data"


VARIABLES = [
    # written, the variables of the document; server, hosts, variables of the kind
    ("https://{shop}.parcels.example.com", {"shop": {"default": "shop"}},
     "https://{shop}.parcels.example.com", ["*.parcels.example.com"], {"shop": None}),
    ("https://api.{region}.parcels.example.com", {"region": {"enum": ["us", "eu"], "default": "eu"}},
     "https://api.{region}.parcels.example.com", ["*.parcels.example.com"], {"region": "eu"}),
    ("https://{host}", {"host": {"default": "parcels.test"}}, "{origin}", ["*"], {"origin": None}),
    ("{protocol}://{host}:{port}/api", {"protocol": {"enum": ["https"]}, "port": {"default": "9000"}},
     "{origin}/api", ["*"], {"origin": None}),
    ("https://{host}.parcels.example.com", {"host": {"enum": ["api"]}},
     "https://api.parcels.example.com", ["api.parcels.example.com"], {}),
    ("https://api.parcels.example.com/shops/{shop_id}/v3", {"shop_id": {"default": "shop_id"}},
     "https://api.parcels.example.com/shops/{shop_id}/v3", ["api.parcels.example.com"], {"shop_id": None}),
    ("https://api.parcels.example.com/{version}", {"version": {"default": "v2"}},
     "https://api.parcels.example.com/v2", ["api.parcels.example.com"], {}),
    ("/", {}, "{origin}", ["*"], {"origin": None}),
    ("https://test-api.parcels.example.com", {}, "{origin}",
     ["test-api.parcels.example.com", "*.parcels.example.com"], {"origin": None}),
]  # fmt: skip


@pytest.mark.parametrize(("url", "variables", "server", "hosts", "defaults"), VARIABLES)
def test_a_variable_without_values_is_filled_by_the_person_who_connects(url, variables, server, hosts, defaults):
    connector = imported({}, servers=[{"url": url, "variables": variables}]).connector

    assert (connector["server"], connector["hosts"]) == (server, hosts)
    assert {name: each.get("default") for name, each in connector.get("environment", {}).items()} == defaults


PLACEHOLDERS = [
    "https://your-domain.parcels.io", "https://example.com", "https://api.example.com/v1", "https://yourcompany.com",
    "https://<shop>.parcels.io", "https://ACCOUNT_ID.parcels.io", "https://tenant.parcels.io", "https://api.parcels.test",
    "http://localhost:8080", "https://{account}.io",
]  # fmt: skip


@pytest.mark.parametrize("url", PLACEHOLDERS)
def test_a_placeholder_in_a_host_is_an_error_until_it_is_answered(url):
    source = document({}, servers=[{"url": url}])

    with pytest.raises(ImportFailed, match=r"--server|--variable"):
        import_document(source, Options())
    answered = import_document(source, Options(server="https://api.parcels.example.com"))

    assert answered.connector["server"] == "https://api.parcels.example.com"


def test_an_answer_fills_a_variable_of_the_server():
    source = document({}, servers=[{"url": "https://{account}.{domain}.io"}])

    made = import_document(source, Options(variables={"domain": "parcels"}))

    assert (made.connector["server"], made.connector["hosts"]) == ("https://{account}.parcels.io", ["*.parcels.io"])


LIVE, TRIAL = {"url": "https://api.parcels.example.com"}, {"url": "https://sandbox.parcels.example.com"}
REGIONS = {"url": "https://{region}.parcels.example.com", "variables": {"region": {"enum": ["us", "eu"]}}}
TOKEN_URLS = [
    ([TRIAL, LIVE], "https://sandbox.parcels.example.com/token", "{origin}/token"),
    ([TRIAL, LIVE], "/token", "{origin}/token"),
    ([REGIONS], "https://us.login.parcels.example.com/token", "https://{region}.login.parcels.example.com/token"),
    ([LIVE], "https://login.sandbox.parcels.example.com/token", "{token_origin}/token"),
    ([LIVE], "https://{tenant}.login.parcels.example.com/token", "https://{tenant}.login.parcels.example.com/token"),
    ([LIVE], "https://login.parcels.example.com/token", "https://login.parcels.example.com/token"),
]


@pytest.mark.parametrize(("servers", "written", "token_url"), TOKEN_URLS)
def test_a_live_secret_is_not_sent_to_the_token_url_of_another_server(servers, written, token_url):
    connector = imported({}, servers=servers, components={"securitySchemes": {"o": oauth(tokenUrl=written)}}).connector

    assert connector["oauth"]["token_url"] == token_url
    variables = set(re.findall(r"{(\w+)}", token_url))
    assert variables <= set(connector.get("environment", {}))
    assert connector.get("environment", {}).get("origin", {}).get("default") in (None, LIVE["url"])


def test_a_placeholder_in_a_token_url_is_an_error():
    scheme = oauth(tokenUrl="https://your-domain.parcels.io/token")

    with pytest.raises(ImportFailed, match="overlay"):
        imported({}, components={"securitySchemes": {"o": scheme}})


def test_client_credentials_have_a_token_and_an_access_token_is_accepted_too():
    flows = {"clientCredentials": {"tokenUrl": "/token", "scopes": {}}}
    connector = imported({}, components={"securitySchemes": {"o": {"type": "oauth2", "flows": flows}}}).connector

    assert connector["authentication"]["o"]["token"] == "access_token"
    assert connector["authentication"]["access_token"]["token"] == "access_token"
    assert "authorization_url" not in connector["oauth"]


@pytest.mark.parametrize("scheme", [
    {"type": "oauth2", "flows": {"implicit": {"authorizationUrl": "/a", "scopes": {}}}},
    {"type": "openIdConnect", "openIdConnectUrl": "/.well-known"},
])  # fmt: skip
def test_other_ways_of_oauth_take_an_access_token(scheme):
    assert methods(o=scheme)["o"]["token"] == "access_token"


def test_a_key_in_authorization_is_asked_for_in_the_form_that_is_sent():
    known = methods(key={"type": "apiKey", "in": "header", "name": "Authorization", "description": "`Bearer <KEY>`"})
    unknown = methods(key={"type": "apiKey", "in": "header", "name": "Authorization"})

    assert known["key"]["headers"] == {"Authorization": "Bearer {key}"}
    assert "without Bearer" in known["key"]["credentials"]["key"]["description"]
    assert "whole value of Authorization" in unknown["key"]["credentials"]["key"]["description"]


def header(name, **schema):
    return {"name": name, "in": "header", "required": True, "schema": {"type": "string", **schema}}


def test_secret_headers_are_the_credentials_of_a_document_without_schemes():
    operation = {"parameters": [header("Api-Key"), header("Api-User")], "responses": answer(RECORD)}
    made = imported({f"/things{number}": {"get": operation} for number in range(20)})

    assert made.connector["authentication"]["api_key"]["headers"] == {"Api-Key": "{api_key}"}
    assert made.connector["headers"] == {"Api-User": "{api_user}"}
    assert "params" not in made.entities["things1"]["actions"]["get"]


def test_what_nearly_all_operations_require_is_a_header_or_a_variable_of_the_kind():
    required = [
        header("X-Region", default="eu"),
        {"name": "org_id", "in": "query", "required": True, "schema": {"type": "string"}},
    ]  # fmt: skip
    operation = {"parameters": required, "responses": answer(RECORD)}
    made = imported({f"/things{number}": {"get": operation} for number in range(20)})

    action = made.entities["things1"]["actions"]["get"]
    assert made.connector["headers"] == {"X-Region": "eu"}
    assert action["constant_query"] == {"org_id": "{org_id}"}
    assert "params" not in action
    assert made.connector["environment"]["org_id"]["type"] == "text"


def test_a_param_with_which_every_path_begins_is_a_variable_of_the_server():
    paths = {f"/{{account_id}}/things{number}": {"get": {"responses": answer(RECORD)}} for number in range(4)}
    made = import_document({**document({}), "paths": paths}, Options())

    assert made.connector["server"] == "https://api.parcels.example.com/{account_id}"
    assert made.entities["things1"]["actions"]["get"]["request"] == "GET /things1"


OPEN, CLOSED = {"security": []}, {"security": [{"token": []}]}


@pytest.mark.parametrize(
    ("paths", "check", "params"),
    [
        ({"/a": OPEN, "/things": CLOSED}, "things.get", None),
        ({"/ping": {}, "/things": {}}, "things.get", None),
        ({"/things": {"parameters": [{**query("region", enum=["eu", "us"]), "required": True}]}}, "things.get",
         {"region": "eu"}),
        ({"/things": {"parameters": [{**query("email"), "required": True}]}}, None, None),
        ({"/a": OPEN}, None, None),
    ],
)  # fmt: skip
def test_the_health_check_is_a_read_that_only_credentials_open(paths, check, params):
    items = {path: {"get": {"responses": answer(RECORD), **operation}} for path, operation in paths.items()}
    connector = import_document({**document({}), "paths": items}, Options()).connector

    assert (connector.get("health_check"), connector.get("health_check_params")) == (check, params)


TEXT = {"type": "string"}
ERRORS = [
    ({"user_message": TEXT, "code": TEXT}, {"message": ["user_message"], "code": ["code"]}),
    ({"status": TEXT, "msg": TEXT}, {"message": ["msg"], "code": ["status"]}),
    ({"fault": {"type": "object", "properties": {"reason": TEXT, "type": TEXT}}},
     {"message": ["fault.reason"], "code": ["fault.type"]}),
    ({"errors": {"type": "array", "items": TEXT}}, {"message": ["errors.0"]}),
    ({"detail": {"type": "array", "items": {"type": "object", "properties": {"msg": TEXT, "type": TEXT}}}},
     {"message": ["detail.0.msg"], "code": ["detail.0.type"]}),
    ({"title": TEXT, "detail": TEXT, "fields": {"type": "array", "items": {"type": "object", "properties": {
        "message": TEXT}}}}, {"message": ["detail"], "details": ["fields.*.message"]}),
    ({"debug_message": TEXT, "message_url": TEXT}, None),
]  # fmt: skip


@pytest.mark.parametrize(("members", "failure"), ERRORS)
def test_errors_keep_their_reason(members, failure):
    failing = {"responses": {**answer(RECORD), "400": answer({"type": "object", "properties": members})["200"]}}

    assert imported({"/things/{id}": {"get": failing}}).connector.get("failure") == failure
