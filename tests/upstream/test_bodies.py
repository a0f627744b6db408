"""A request's body in the encoding that the application reads."""

from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import msgspec
import pytest

from gateway.errors import InvalidParams
from gateway.upstream.encoding import form_of
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.requests import UpstreamRequest, base_address
from tests.kinds.small_kind import small_operation

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("members", "form"),
    [
        ({}, b""),
        ({"a": "x y&z", "b": 1, "c": True, "d": None}, b"a=x+y%26z&b=1&c=true&d="),
        ({"a": {"b": {"c": "ü"}}}, b"a%5Bb%5D%5Bc%5D=%C3%BC"),
        ({"a": [1, 2]}, b"a%5B%5D=1&a%5B%5D=2"),
        ({"a": [{"b": 1}, {"b": 2}]}, b"a%5B0%5D%5Bb%5D=1&a%5B1%5D%5Bb%5D=2"),
    ],
)
def test_a_form_spells_nested_members_with_brackets(members, form):
    assert form_of(members, (), {}) == form


def test_a_kind_of_forms_sends_forms():
    operation = small_operation(
        {"request": "POST /things", "effect": "write", "params": {"thing": {"type": "object"}}}, content_type=FORM
    )

    request = PreparedCall.of(operation, {"thing": {"name": "x"}}).request(base_address(operation.spec, {}))

    assert request.body == b"thing%5Bname%5D=x"
    assert request.headers["Content-Type"] == FORM


def test_what_is_no_media_type_is_no_spec():
    with pytest.raises(ValueError, match="must be a media type, such as application/json"):
        small_operation(content_type="json")


def sent(action: dict[str, Any], given: dict[str, Any], **spec: Any) -> UpstreamRequest:
    """The request of an action with these params; a param that the action does not describe may be anything."""
    params = {name: {} for name in given} | action.get("params", {})
    operation = small_operation({"request": "POST /things", "effect": "write", **action, "params": params}, **spec)
    return PreparedCall.of(operation, given).request(base_address(operation.spec, {}))


@pytest.mark.parametrize(
    ("style", "value", "query"),
    [
        ({}, ["a", "b"], "q=a&q=b"),
        ({"explode": False}, ["a", "b,c"], "q=a%2Cb%2Cc"),
        ({"style": "spaceDelimited"}, ["a", "b"], "q=a%20b"),
        ({"style": "pipeDelimited"}, ["a", "b"], "q=a%7Cb"),
        ({"as": "q[]"}, ["a", "b"], "q%5B%5D=a&q%5B%5D=b"),
        ({"style": "deepObject"}, {"a": {"gte": 1}, "b": True}, "q%5Ba%5D%5Bgte%5D=1&q%5Bb%5D=true"),
        ({"style": "deepObject"}, ["a", "b"], "q%5B%5D=a&q%5B%5D=b"),
        ({"style": "indexed"}, ["a", "b"], "q%5B0%5D=a&q%5B1%5D=b"),
        ({}, {"a": 1}, "q=%7B%22a%22%3A1%7D"),
        ({"style": "restli"}, ["urn:li:a:1", "b,c"], "q=List(urn%3Ali%3Aa%3A1,b%2Cc)"),
        ({"style": "restli"}, {"start": {"year": 2026}, "is": True}, "q=(start:(year:2026),is:true)"),
        ({"style": "restli"}, "(of:urn:li:a:1,n:List(2,3%2C))", "q=(of:urn%3Ali%3Aa%3A1,n:List(2,3%2C))"),
        ({"style": "restli"}, "a&b=#", "q=a%26b%3D%23"),
        ({}, [], ""),
    ],
)
def test_lists_and_objects_are_written_in_the_query_as_openapi_says(style, value, query):
    request = sent({"request": "GET /things", "effect": "read", "params": {"q": style}}, {"q": value})

    assert request.url.raw_query_string == query


@pytest.mark.parametrize(
    ("style", "value", "form"),
    [
        ({}, ["a", "b"], b"f%5B%5D=a&f%5B%5D=b"),
        ({"style": "indexed"}, ["a", {"b": 1}], b"f%5B0%5D=a&f%5B1%5D%5Bb%5D=1"),
        ({"style": "form"}, ["a", "b"], b"f=a&f=b"),
        ({"style": "form", "explode": False}, ["a", "b"], b"f=a%2Cb"),
        ({}, [], b"f="),
        ({}, None, b"f="),
    ],
)
def test_lists_are_written_in_a_form_as_the_param_says(style, value, form):
    assert sent({"params": {"f": style}}, {"f": value}, content_type=FORM).body == form


@pytest.mark.parametrize(
    ("action", "given", "body"),
    [
        ({"request_body": "items"}, {"items": [{"a": 1}]}, b'[{"a":1}]'),
        ({"constant_body": {"type": "x"}}, {"a": None}, b'{"type":"x","a":null}'),
        ({"params": {"t": {"as": "body.storage.value"}}}, {"t": "x"}, b'{"body":{"storage":{"value":"x"}}}'),
        (
            {"constant_body": {"body": {"format": "x"}}, "params": {"t": {"as": "body.value"}}},
            {"t": "y"},
            b'{"body":{"format":"x","value":"y"}}',
        ),
        (
            {"params": {"n": {"as": "orders.0.name"}, "t": {"as": "orders.0.to.0"}}},
            {"n": "x", "t": "y"},
            b'{"orders":[{"name":"x","to":["y"]}]}',
        ),
        (
            {
                "request": "POST /things/{id}",
                "constant_body": {"orders": [{"of": "{id}", "n": 1, "as": "{x}"}, "last"]},
                "params": {"t": {"as": "orders.0.t"}, "x": {}},
                "required": ["id"],
            },
            {"id": "7", "t": "y"},
            b'{"orders":[{"of":"7","n":1,"t":"y"},"last"]}',
        ),
        ({"request_body": "items"}, {}, None),
        ({"request_body": "items", "content_type": "text/plain"}, {}, None),
        ({"request_body": "on", "params": {"on": {"type": "boolean"}}}, {"on": False}, b"false"),
        ({"request_body": "n", "content_type": "text/json", "params": {"n": {"type": "number"}}}, {"n": 1.5}, b"1.5"),
        ({"request_body": "list", "content_type": "text/json", "params": {"list": {}}}, {"list": ["a"]}, b'["a"]'),
        ({"content_type": "text/json; charset=utf-8", "params": {"a": {}}}, {"a": [True]}, b'{"a":[true]}'),
        ({"content_type": "model/gltf+json", "params": {"a": {}}}, {"a": None}, b'{"a":null}'),
        ({"request_body": "text", "content_type": "text/plain"}, {"text": "ü"}, "ü".encode()),
        (
            {
                "request_body": "raw",
                "content_type": "message/rfc822",
                "params": {"raw": {"contentEncoding": "base64"}},
            },
            {"raw": "AAH/"},
            b"\x00\x01\xff",
        ),
        ({"request": "DELETE /things", "params": {"ids": {"in": "body"}}}, {"ids": [1]}, b'{"ids":[1]}'),
        ({"request": "DELETE /things"}, {}, None),
    ],
)
def test_a_body_is_what_the_spec_says(action, given, body):
    request = sent(action, given)

    assert request.body == body
    assert ("Content-Type" in request.headers) is (body is not None)


def test_a_constant_of_a_spec_is_the_same_for_every_call():
    constants = {"body": {"format": "x"}, "items": [{"n": 1}]}
    params = {"t": {"as": "body.value"}, "i": {"as": "items.0.i"}}
    action = {"request": "POST /things", "effect": "write", "constant_body": constants, "params": params}
    operation = small_operation(action)

    bodies = [PreparedCall.of(operation, given).request("https://a.example").body for given in ({"t": 1, "i": 2}, {})]

    assert bodies == [
        b'{"body":{"format":"x","value":1},"items":[{"n":1,"i":2}]}',
        b'{"body":{"format":"x"},"items":[{"n":1}]}',
    ]


FILE = {"filename": 'a "1".txt', "content_type": "text/plain", "content": "aGVsbG8="}


def parts_of(request: UpstreamRequest) -> list[tuple[str | None, str | None, str, bytes]]:
    """Name, file name, type and content of each part, as a MIME parser reads them."""
    head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + (request.body or b""))
    return [
        (
            part.get_param("name", header="content-disposition"),
            part.get_filename(),
            part.get_content_type(),
            part.get_payload(decode=True),
        )
        for part in message.iter_parts()
    ]


def test_a_multipart_form_has_a_part_for_each_member_and_file():
    request = sent({"content_type": "multipart/form-data"}, {"message": "x", "n": [1, 2], "file": FILE})

    assert parts_of(request) == [
        ("message", None, "text/plain", b"x"),
        ("n", None, "text/plain", b"1"),
        ("n", None, "text/plain", b"2"),
        ("file", "a %221%22.txt", "text/plain", b"hello"),
    ]


def test_a_related_upload_has_its_metadata_in_json_first():
    request = sent({"content_type": "multipart/related"}, {"name": "a", "media": FILE})

    assert parts_of(request) == [
        (None, None, "application/json", b'{"name":"a"}'),
        (None, None, "text/plain", b"hello"),
    ]


def test_no_name_of_a_file_can_add_a_header():
    file = {**FILE, "filename": 'a"\r\nX-Evil: 1', "content_type": "text/plain\r\nX-Evil: 1"}

    request = sent({"content_type": "multipart/form-data"}, {"file": file})

    assert b"\r\nX-Evil" not in (request.body or b"")


def test_a_file_that_is_not_base64_is_refused():
    with pytest.raises(InvalidParams, match="content of file is not base64"):
        sent({"content_type": "multipart/form-data"}, {"file": {**FILE, "content": "!"}})


def test_a_graphql_document_is_sent_with_its_variables():
    document = "mutation Create($input: IssueCreateInput!, $dry: Boolean) { issueCreate(input: $input) { success } }"
    action = {"graphql": document, "params": {"title": {"as": "input.title"}, "team": {"as": "input.teamId"}}}

    request = sent(action, {"title": 'a"b', "team": None})

    variables = {"input": {"title": 'a"b', "teamId": None}}
    assert msgspec.json.decode(request.body or b"") == {"query": document, "variables": variables}


DOCUMENT = "query Issues($x: Int) { issues { ...Chosen } } fragment Chosen on Issue { id author { login } }"
CHOOSING = {"fields": {"in": "fragment", "as": "Chosen"}}


@pytest.mark.parametrize(
    ("fields", "selection"),
    [(["title"], "title"), (["id", "author.company.name"], "id author { company { name } }")],
)
def test_callers_choose_the_fields_of_a_fragment(fields, selection):
    request = sent({"graphql": DOCUMENT, "params": CHOOSING}, {"fields": fields})

    chosen = DOCUMENT.replace("id author { login }", selection)
    assert msgspec.json.decode(request.body or b"") == {"query": chosen, "variables": {}}


@pytest.mark.parametrize("given", [{}, {"fields": []}, {"fields": None}])
def test_a_document_without_a_choice_of_fields_is_sent_as_it_is(given):
    request = sent({"graphql": DOCUMENT, "params": CHOOSING}, given)

    assert msgspec.json.decode(request.body or b"")["query"] == DOCUMENT


@pytest.mark.parametrize(
    ("given", "body"),
    [
        ({"ref": "main", "path": "docs/a:b"}, {"expression": "main:docs/a:b"}),
        ({"ref": "main"}, {}),
        ({"ref": 7, "path": "{ref}"}, {"expression": "7:{ref}"}),
    ],
)
def test_a_text_holds_params_that_are_not_sent_themselves(given, body):
    params = {"ref": {"in": "text"}, "path": {"as": "expression", "text": "{ref}:{path}"}}

    assert msgspec.json.decode(sent({"params": params}, given).body or b"") == body


def test_a_constant_in_braces_is_the_param_of_the_path():
    action = {"request": "PUT /things/{id}", "constant_body": {"id": "{id}", "kind": "thing", "note": "{other}"}}

    request = sent(action, {"id": "7", "name": "a"})

    assert request.body == b'{"id":"7","kind":"thing","note":"{other}","name":"a"}'


def test_an_upload_has_the_type_that_another_param_names():
    content = {"type": "string", "contentEncoding": "base64", "contentMediaType": "{type}"}
    action = {
        "request": "POST /files",
        "content_type": "multipart/related",
        "params": {"name": {}, "type": {}, "bytes": content},
    }
    operation = small_operation(action)

    request = PreparedCall.of(operation, {"name": "a", "type": "text/csv", "bytes": "aGk="}).request(
        "https://x.example.com"
    )

    assert b'{"name":"a"}' in (request.body or b"")
    assert b"Content-Type: text/csv\r\n\r\nhi" in (request.body or b"")


def test_a_connector_with_an_optional_variable_has_the_server_of_the_variable():
    spec = small_operation({}).spec.model_copy(update={"server_with": {"cloud": "https://api.example.com/{cloud}"}})

    assert base_address(spec, {}) == spec.server
    assert base_address(spec, {"cloud": "c1"}) == "https://api.example.com/c1"


def test_a_request_has_the_server_and_headers_of_its_operation():
    operation = small_operation({"server": "https://uploads.example.com/api", "headers": {"Accept": "text/csv"}})
    server = operation.action.server

    request = PreparedCall.of(operation, {}).request(base_address(operation.spec, {}, None, server))

    assert str(request.url) == "https://uploads.example.com/api/things"
    assert request.headers["Accept"] == "text/csv"


def test_a_param_may_be_an_item_of_a_list_in_the_body():
    action = {"params": {"size": {"as": "data.0.size"}, "name": {"as": "data.0.name"}, "second": {"as": "data.1"}}}

    request = sent(action, {"size": 1, "name": "x", "second": {"size": 2}})

    assert msgspec.json.decode(request.body) == {"data": [{"size": 1, "name": "x"}, {"size": 2}]}
