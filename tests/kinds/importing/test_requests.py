"""Parameters and bodies become params that make the same request."""

import pytest

from tests.kinds.importing.documents import RECORD, action, answer, imported, query, reasons

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"

COOKIE = {"name": "session", "in": "cookie", "required": True}


def body(schema, content_type="application/json", **media):
    return {"content": {content_type: {"schema": schema, **media}}, "required": True}


def members(**properties):
    return {"type": "object", "properties": properties}


QUERIES = [
    (query("state", type="string", enum=["open", "closed"]), "state", {"type": "string", "enum": ["open", "closed"]}),
    (query("n", type="integer", minimum=1, exclusiveMinimum=True), "n", {"type": "integer", "exclusiveMinimum": 1}),
    (query("ids[]", type="array", items={"type": "string"}), "ids", {"as": "ids[]"}),
    ({**query("ids", type="array", items={}), "explode": False}, "ids", {"explode": False}),
    ({**query("ids", type="array", items={}), "style": "pipeDelimited"}, "ids", {"style": "pipeDelimited"}),
    ({**query("filter", **members(a={"type": "string"})), "style": "deepObject"}, "filter", {"style": "deepObject"}),
    (query("page[size]", type="integer"), "page_size", {"as": "page[size]"}),
    (query("when", type="string", nullable=True), "when", {"type": ["string", "null"]}),
    (
        query("sort", default="name", type="string", description="Order."),
        "sort",
        {"description": "Order; default: name"},
    ),
    (query("due-date", type="string", format="date"), "due_date", {"as": "due-date", "description": "due date"}),
]


@pytest.mark.parametrize(("parameter", "name", "expected"), QUERIES, ids=lambda value: str(value)[:30])
def test_a_parameter_of_the_query(parameter, name, expected):
    param = action("get", "/things", parameters=[parameter])["params"][name]

    assert {key: param.get(key) for key in expected} == expected
    assert param["description"]


def test_the_members_of_an_object_in_the_query_become_params():
    parameter = query("range", **members(since={"type": "string"}, until={"type": "string"}))

    assert set(action("get", "/things", parameters=[parameter])["params"]) == {"since", "until"}


def test_a_part_of_an_object_does_not_clash_with_a_parameter_of_its_name():
    deep = {**query("created", **members(after={"type": "string"})), "style": "deepObject"}
    sort = query("sort", **members(created={"type": "string"}, name={"type": "string"}))
    params = action("get", "/things", parameters=[sort, deep, query("created[after]")])["params"]

    assert {name: schema.get("style") for name, schema in params.items()} == {
        "name": None, "created": "deepObject", "created_after": None,
    }  # fmt: skip


def test_a_default_is_described_and_not_sent_unless_it_is_the_page_size():
    parameters = [query("sort", type="string", default="name"), query("page", type="integer", default=1)]
    listing = action(
        "get",
        "/things",
        parameters=[*parameters, query("per_page", type="integer", default=30)],
        responses=answer({"type": "array", "items": RECORD}),
    )

    assert {name: param.get("default") for name, param in listing["params"].items()} == {
        "sort": None, "page": None, "per_page": 30,
    }  # fmt: skip


def test_members_of_a_json_body_become_params_and_a_taken_name_gets_a_prefix():
    made = action(
        "put", "/things/{id}", parameters=[{"name": "id", "in": "path", "required": True}],
        requestBody=body({**members(id={"type": "string"}, name={"type": "string"}), "required": ["name"]}),
    )  # fmt: skip

    assert made["required"] == ["id", "name"]
    assert made["params"]["body_id"]["as"] == "id"
    assert made["example"] == {"id": "example", "name": "example"}


def test_read_only_members_are_not_sent():
    made = action("post", "/things", requestBody=body(members(id={"type": "string", "readOnly": True}, name={})))

    assert set(made["params"]) == {"name"}


@pytest.mark.parametrize("schema", [{"type": "array", "items": RECORD}, members(**{"a.b": {}}), {"type": "object"}])
def test_a_body_without_plain_members_is_one_param(schema):
    assert action("post", "/things", requestBody=body(schema))["request_body"] == "body"


def test_lists_in_a_form_have_the_style_of_its_encoding():
    schema = members(to={"type": "array", "items": {}}, expand={"type": "array", "items": {}})
    encoding = {"expand": {"style": "deepObject"}}
    made = action("post", "/things", requestBody=body(schema, FORM, encoding=encoding))

    assert made["content_type"] == FORM
    assert [made["params"][name]["style"] for name in ("to", "expand")] == ["form", "deepObject"]


def test_binary_members_of_a_multipart_body_become_files():
    schema = members(file={"type": "string", "format": "binary"}, title={"type": "string"})
    made = action("post", "/things", requestBody=body(schema, MULTIPART))

    assert made["params"]["file"]["required"] == ["content"]
    assert made["params"]["title"]["type"] == "string"


def test_a_binary_body_becomes_a_param_in_base64():
    made = action("post", "/things", requestBody=body({"type": "string", "format": "binary"}, "image/png"))

    assert (made["request_body"], made["content_type"]) == ("content", "image/png")
    assert made["params"]["content"]["contentEncoding"] == "base64"


def test_params_from_the_body_of_a_delete_are_sent_in_the_body():
    made = action("delete", "/things", requestBody=body(members(ids={"type": "array", "items": {}})))

    assert made["params"]["ids"]["in"] == "body"


def test_an_undeclared_path_param_is_a_string_and_is_reported():
    made = imported({"/things/{thing-id}": {"get": {"responses": answer(RECORD)}}})

    assert made.entities["things"]["actions"]["get"]["request"] == "GET /things/{thing_id}"
    assert "an undeclared param of the path is mapped as a string" in reasons(made)


def test_a_version_header_of_most_operations_becomes_a_header_of_the_kind():
    header = {"name": "X-Version", "in": "header", "schema": {"type": "string", "default": "2026-01"}}
    operation = {"parameters": [header], "responses": answer(RECORD)}
    made = imported({f"/things{number}": {"get": operation} for number in range(3)})

    assert made.connector["headers"] == {"X-Version": "2026-01"}


def test_cyclic_references_are_cut():
    node = {"type": "object", "properties": {"name": {}, "children": {"type": "array", "items": {"$ref": "#/N"}}}}
    loop = {"$ref": "#/L"}
    things = {"post": {"requestBody": body({"$ref": "#/N"}), "responses": answer({"$ref": "#/N"})}}
    made = imported(
        {"/things": things, "/loops": {"post": {"requestBody": body(loop), "responses": {}}}}, N=node, L=loop
    )

    assert set(made.entities["things"]["actions"]["create"]["params"]) == {"name", "children"}
    assert made.mapped == made.total


def test_one_of_accepts_the_members_of_each_schema():
    choices = {"oneOf": [members(a={"type": "string"}, k={"type": "string", "enum": ["x"]}),
                         members(b={"type": "integer"}, k={"type": "string", "enum": ["y"]})]}  # fmt: skip
    params = action("post", "/things", requestBody=body(choices))["params"]

    assert set(params) == {"a", "b", "k"}
    assert params["k"]["enum"] == ["x", "y"]


def test_all_of_is_merged():
    both = {"allOf": [members(a={}), {**members(b={}), "required": ["b"]}]}
    made = action("post", "/things", requestBody=body(both))

    assert (set(made["params"]), made["required"]) == ({"a", "b"}, ["b"])


@pytest.mark.parametrize(
    ("method", "operation", "reason"),
    [
        ("head", {}, "the spec language has no HEAD"),
        ("get", {"requestBody": body(RECORD)}, "a GET with a required body"),
        ("get", {"parameters": [COOKIE]}, "the spec language has no params in cookies"),
        ("put", {"responses": {"200": {"content": {"text/html": {}}}}}, "a write whose response is not JSON"),
    ],
)  # fmt: skip
def test_an_operation_that_the_spec_language_cannot_express_needs_a_person(method, operation, reason):
    made = imported({"/odd": {method: {"responses": answer(RECORD), **operation}}})

    assert (made.mapped, made.total) == (1, 2)
    assert reason in reasons(made)


def test_a_query_in_the_path_is_constant_and_a_fragment_is_not_sent():
    made = action("get", "/things?view=all#all_things")

    assert (made["request"], made["constant_query"]) == ("GET /things", {"view": "all"})


@pytest.mark.parametrize("schema", [{"type": "boolean"}, {"type": "integer"}])
@pytest.mark.parametrize("content_type", ["application/json", "text/json", "application/vnd.parcels+json"])
def test_a_body_may_be_a_json_boolean_or_number(schema, content_type):
    made = action("put", "/things/{id}/state", requestBody=body(schema, content_type))

    assert made["request_body"] == "body"
    assert made["params"]["body"]["type"] == schema["type"]


def test_a_required_param_with_a_default_is_sent_without_being_asked_for():
    made = action("get", "/things", parameters=[{**query("version", type="string", default="2"), "required": True}])

    assert "required" not in made
    assert made["params"]["version"]["default"] == "2"


@pytest.mark.parametrize(
    "pattern", [r"(a|aa)+\1$", "(?=.*z)x", r"^\p{L}{1,90}i$", "(?i)^a$", "a" * 501, "("], ids=lambda text: text[:20]
)
def test_a_pattern_that_is_not_linear_small_and_of_json_schema_is_left_out(pattern):
    assert (
        "pattern"
        not in action("get", "/things", parameters=[query("a", type="string", pattern=pattern)])["params"]["a"]
    )


def test_a_pattern_is_kept_unless_its_text_is_a_file():
    parameters = [
        query("a", type="string", pattern="^[a-z0-9-]{1,64}$"),
        query("b", type="string", pattern="^[A-Za-z0-9+/=]*$", format="byte"),
    ]
    params = action("get", "/things", parameters=parameters)["params"]

    assert params["a"]["pattern"] == "^[a-z0-9-]{1,64}$"
    assert "pattern" not in params["b"]


def test_patterns_that_are_left_out_are_told():
    unused = ["(?=.*z)x", "^.{1,255}$"]
    parameters = [
        query(f"p{place}", type="string", pattern=each) for place, each in enumerate([*unused, "^a$", "^.{1,255}$"])
    ]

    found = [each for each in imported(with_parameters(parameters)).findings if "patterns" in each.reason]

    assert [each.detail for each in found] == unused[:1]
    assert found[0].reason.startswith("2 patterns are left out")
    assert "patterns" not in " ".join(reasons(imported(with_parameters(parameters[2:3]))))


@pytest.mark.parametrize(
    ("number", "is_kept"), [(5, True), (2.0, True), (0.01, False), (1e-300, False), (float("inf"), False)]
)
def test_multiples_of_a_fraction_are_left_out(number, is_kept):
    params = action("get", "/things", parameters=[query("a", type="number", multipleOf=number)])["params"]

    assert ("multipleOf" in params["a"]) == is_kept


@pytest.mark.parametrize("count", [float("inf"), float("nan"), 1.5, -1])
def test_a_count_that_is_no_whole_number_is_left_out(count):
    params = action("get", "/things", parameters=[query("a", type="string", minLength=count)])["params"]

    assert "minLength" not in params["a"]


def test_an_operation_whose_references_multiply_is_left_out():
    twice = {f"d{place}": {"description": "d", "allOf": [{"$ref": f"#/$defs/d{place + 1}"}] * 2} for place in range(40)}
    definitions = {**twice, "d40": {"type": "string", "description": "d"}}
    corrections = {"params": {"a": {"$ref": "#/$defs/d0", "description": "a"}}}
    paths = {
        "/things": {"get": {"responses": answer(RECORD), "x-gateway": corrections}},
        "/others": {"get": {"responses": answer(RECORD)}},
    }

    made = imported(paths, **{"x-gateway": {"definitions": definitions}})

    assert "GET /things" not in made.names
    assert "GET /others" in made.names
    assert any("more than 10,000 schemas" in each.detail for each in made.findings)


def with_parameters(parameters):
    return {"/things": {"get": {"responses": answer(RECORD), "parameters": parameters}}}
