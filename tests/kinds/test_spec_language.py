"""The page about the spec language, the schema for editors and the linter agree with each other and the models."""

import json
import re
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from pydantic import ValidationError

from gateway.contract.kinds import PagingStyle
from gateway.errors import InvalidParams, UnknownConnectorType
from gateway.kinds.editor_schema import editor_schema, editor_schema_text, members_at
from gateway.kinds.lint.kind import lint
from gateway.kinds.loading import load_catalog, load_kind, shipped_specs, spec_folders
from gateway.kinds.paging import Paging
from gateway.kinds.params import validated
from gateway.kinds.requests import ParamStyle
from gateway.kinds.rule_names import RULE_NAMES
from gateway.kinds.sources import read_yaml
from gateway.upstream.auth import StaticAuthorizer
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.rules import RULES
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.hostile_kinds import write_kind

PAGE = (shipped_specs() / "README.md").read_text("utf-8")
EXAMPLE = dict(re.findall(r"```yaml\n(?:# yaml-language-server.*\n)?# ([\w/.-]+\.yaml) .*\n((?:.*\n)*?)```", PAGE))
CONNECTOR, SHIPMENTS = "parcel-tracking/connector.yaml", "parcel-tracking/shipments.yaml"


@pytest.fixture
def example(tmp_path) -> Path:
    """The folder of the page's worked example."""
    for name, text in EXAMPLE.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path / "parcel-tracking"


def errors(folder: Path) -> list[str]:
    return [f"{each.path.name}:{each.line}: {each.message}" for each in lint(folder)]


def test_the_worked_example_is_sound(example):
    assert set(EXAMPLE) == {CONNECTOR, SHIPMENTS}
    assert lint(example) == []


def test_the_worked_example_joins_the_shipped_kinds(example):
    catalog = load_catalog([example.parent])

    assert {kind.name for kind in catalog} >= {"parcel-tracking", "support-desk"}
    assert catalog.kind("Parcel-Tracking").spec.title == "Parcel tracking"


def test_the_worked_example_makes_its_requests(example):
    kind = load_kind(example)
    scope = RateScope(id="parcel-tracking:c-1", kind="parcel-tracking")
    connector = Upstreams(Transport()).connector(kind, {"account": "acme"}, StaticAuthorizer({}), scope)

    [listed] = connector.dry_run("shipments", "list", {"reference": "order-4711"})
    [created] = connector.dry_run("shipments", "create", {"reference": "order-4711", "shop_id": "shop_9"})

    assert (
        listed["url"] == "https://acme.parcels.example.com/api/v2/shipments?limit=50&filter%5Breference%5D=order-4711"
    )
    assert listed["headers"]["Parcels-Version"] == "2026-01"
    assert (created["method"], created["body"]) == ("POST", {"reference": "order-4711", "shop_id": "shop_9"})


def test_the_worked_example_refuses_params_that_its_constraints_exclude(example):
    create = load_kind(example).operation("shipments", "create")

    with pytest.raises(InvalidParams, match="exactly one of address, shop_id must be given; given: reference"):
        validated(create, {"reference": "order-4711"})


@pytest.mark.parametrize("folder", spec_folders(), ids=lambda folder: folder.name)
def test_every_shipped_kind_is_sound(folder):
    assert errors(folder) == []


def test_an_upload_of_a_file_in_base64_is_sound_and_one_of_text_is_not(example):
    document = yaml.safe_load(EXAMPLE[SHIPMENTS])
    content = {"type": "string", "contentEncoding": "base64", "description": "the bytes"}
    label = {"type": "object", "description": "a label", "properties": {"content": content}}
    document["actions"]["create"] |= {"content_type": "multipart/form-data"}
    document["actions"]["create"]["params"]["label"] = label
    (example / "shipments.yaml").write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    sound = errors(example)
    content.pop("contentEncoding")
    (example / "shipments.yaml").write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")

    [found] = errors(example)

    assert sound == []
    assert "params.label.properties.content: is sent as bytes: write `contentEncoding: base64`" in found


def test_the_pages_examples_of_paging_and_graphql_are_sound(example):
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
    [paging] = [block["paging"] for block in blocks if list(block) == ["paging"]]
    [list_] = [block["list"] for block in blocks if list(block) == ["list"]]
    document = yaml.safe_load(EXAMPLE[CONNECTOR]) | {"paging": paging, "health_check": "issues.list"}
    issues = {"description": "An issue.", "actions": {"list": list_}}
    for path in example.glob("*.yaml"):
        path.unlink()
    (example / "connector.yaml").write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    (example / "issues.yaml").write_text(yaml.safe_dump(issues, sort_keys=False), "utf-8")

    found = [each for each in errors(example) if "no action uses this paging style" not in each]

    assert found == []
    assert set(paging) == {"linked", "after", "partitions", "offset", "page_info"}


def test_paths_beside_the_list_are_refused_for_lists_that_are_gathered(example):
    connector, shipments = example / "connector.yaml", example / "shipments.yaml"
    gathered = shipments.read_text("utf-8").replace("    records: shipments", "    records: boards.*.shipments", 1)
    shipments.write_text(gathered, "utf-8")
    sound = errors(example)
    connector.write_text(connector.read_text("utf-8").replace("paging.next", '"@.next"'), "utf-8")

    found = errors(example)

    assert sound == []
    assert "has paths beside the list (`@`), but `*` gathers lists" in " ".join(found)


def test_the_pages_example_of_a_long_operation_is_sound(example):
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
    [long_operation] = [block for block in blocks if list(block) == ["tag_many"]]
    path = example / "shipments.yaml"
    shipments = yaml.safe_load(path.read_text("utf-8"))
    shipments["actions"] |= long_operation
    path.write_text(yaml.safe_dump(shipments, sort_keys=False), "utf-8")

    assert errors(example) == []


def test_the_pages_example_of_a_bulk_request_is_sound(example):
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
    [get] = [block for block in blocks if list(block) == ["get"]]
    path = example / "shipments.yaml"
    shipments = yaml.safe_load(path.read_text("utf-8"))
    shipments["actions"] |= get
    path.write_text(yaml.safe_dump(shipments, sort_keys=False), "utf-8")

    assert errors(example) == []


def test_the_page_describes_every_member_of_the_language():
    definitions = editor_schema()["$defs"].values()
    members = {name for definition in definitions for name in definition.get("properties", {})}
    described = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", PAGE))))

    assert members - described == set()


def test_the_page_describes_every_rule_and_paging_style():
    described = set(re.findall(r"`(\w+)`", PAGE))

    assert {*RULES, *PagingStyle, *ParamStyle} <= described


def test_every_rule_that_specs_may_name_exists():
    assert set(RULE_NAMES) == set(RULES)


def test_the_editors_schema_is_generated_from_the_models():
    written = (shipped_specs() / "spec.schema.json").read_text("utf-8")

    assert written == editor_schema_text(), "write it again: gateway specs schema > specs/spec.schema.json"


@pytest.mark.parametrize(
    ("model", "member"), [("Action", "graphql"), ("Sync", "request_interval"), ("UploadSession", "url_header")]
)
def test_the_editors_schema_describes_a_member_that_its_model_inherits(model: str, member: str):
    assert editor_schema()["$defs"][model]["properties"][member]["description"]


def test_the_editors_schema_accepts_every_shipped_file():
    validator = jsonschema_rs.Draft202012Validator(json.loads(editor_schema_text()))
    files = [path for folder in spec_folders() for path in sorted(folder.glob("*.yaml"))]

    documents = {path.name: json.dumps(read_yaml(path), default=str) for path in files}
    refused = [name for name, text in documents.items() if not validator.is_valid(json.loads(text))]

    assert refused == []


@pytest.mark.parametrize("text", ["kind: x\ntitel: y\n", "description: x\nactions: {list: {request: FETCH /x}}\n"])
def test_the_editors_schema_refuses_specs_that_cannot_be_loaded(text):
    assert not jsonschema_rs.Draft202012Validator(editor_schema()).is_valid(yaml.safe_load(text))


def test_members_are_known_at_every_place():
    assert members_at(["entities", "tickets", "actions", "list", "download"])[:2] == ["url", "size"]
    assert members_at(["authentication", "oauth", "credentials"]) == []


MISTAKES = [
    # variables with values of their own
    (
        CONNECTOR,
        "example: acme}",
        "example: acme, enum: [a, b]}",
        8,
        "acme is not among the values of `enum`: a, b",
    ),
    (
        CONNECTOR,
        "https://{account}.parcels.example.com/api",
        "https://api.parcels.{account}/api",
        5,
        "api.parcels.x is not among the hosts",
    ),
    # what cannot be loaded
    (CONNECTOR, "kind: parcel-tracking", "kind: [", 3, "not YAML"),
    (CONNECTOR, "title: Parcel tracking\n", "", 1, "title: is missing; add it"),
    (CONNECTOR, "scheme: bearer", "scheme: token", 12, "'bearer', 'basic', 'api_key' or 'none'"),
    (CONNECTOR, "server: https", "sever: https", 5, "sever: is not a known member; did you mean server?"),
    (SHIPMENTS, "    effect: write\n", "", 28, "is missing; say what running it twice would do"),
    (SHIPMENTS, "effect: write", "effect: writes", 30, "'read', 'idempotent' or 'write'"),
    (SHIPMENTS, "    find_by", "    request_body: refrence\n    find_by", 33, "refrence is not among the params"),
    (
        SHIPMENTS,
        "    find_by",
        "    request_body: reference\n    find_by",
        33,
        "so address, shop_id, weight_grams has no",
    ),
    (SHIPMENTS, "    find_by", "    content_type: text/xml\n    find_by", 33, "name the param that is the body"),
    (
        SHIPMENTS,
        "    find_by",
        "    server: https://x.example.com\n    find_by",
        33,
        "x.example.com is not among the hosts",
    ),
    (SHIPMENTS, "    record: shipment\n    find_by", "    record: a.*\n    find_by", 32, "a record has one place"),
    (SHIPMENTS, "    find_by", "    unwrap: node\n    find_by", 33, "is only for actions with `records`"),
    (SHIPMENTS, "    find_by", "    single: true\n    find_by", 33, "is only for actions with `records`"),
    (
        SHIPMENTS,
        "    paging: cursor\n    params",
        "    paging: cursor\n    single: true\n    params",
        15,
        "which has no `paging`",
    ),
    *(
        (SHIPMENTS, "    paging: cursor\n    params", f"    {columns}\n    paging: cursor\n    params", line, said)
        for columns, line, said in (
            ("columns: {names: c.*.name, param: names}", 14, "names is not among the params"),
            ("columns: {names: c.*.name, param: reference}", 14, "is not among what cursor carries to further pages"),
            ("columns: {names: c.*.name, param: reference}", 19, "write `in: text`"),
            ("columns: {names: $}", 14, "is no path of a list of names"),
            ("unwrap: node\n    columns: {names: c.*.name}", 15, "which have no `unwrap`"),
        )
    ),
    (
        SHIPMENTS,
        "{type: string, maxLength: 40,",
        "{type: string, default_time: {days: 7},",
        28,
        "such as {days_ago: 7}, with its `format`",
    ),
    (
        SHIPMENTS,
        "{type: string, maxLength: 40,",
        "{type: string, default: a, default_time: {days_ago: 7},",
        28,
        "has `default` and `default_time`; drop one of them",
    ),
    (
        SHIPMENTS,
        "{type: string, maxLength: 40,",
        '{type: string, format: date, default_time: {format: "%Y%m%d"},',
        35,
        "'20260131' is not a value that the param accepts",
    ),
    (SHIPMENTS, "    find_by", "    graphql: 'query { a }'\n    find_by", 30, "is a query, but the effect is write"),
    (
        SHIPMENTS,
        "    find_by",
        "    graphql: 'mutation M($x: ID!) { a }'\n    find_by",
        33,
        "needs $x, but no required param",
    ),
    (SHIPMENTS, "    find_by", "    graphql: 'mutation { a'\n    find_by", 33, "close every brace"),
    (
        SHIPMENTS,
        "{type: string, maxLength: 40,",
        "{type: string, explode: true,",
        35,
        "for lists and objects in the query",
    ),
    (SHIPMENTS, "{type: string, maxLength: 40,", "{type: string, style: forms,", 28, "`style` must be one of form"),
    (SHIPMENTS, "    shop_id: {", "    shop_id: {as: address.shop, ", 37, "is a member of address, which address sets"),
    (SHIPMENTS, "    shop_id: {", "    shop_id: {as: shops.1.id, ", 37, "one item here: write shops.0"),
    (
        SHIPMENTS,
        "    weight_grams: {type: integer, minimum: 1,",
        "    shop: {type: string, as: shops.0.id, description: d}\n"
        + "      weight_grams: {type: integer, as: shops.weight,",
        39,
        "makes shops an object, which it is not for other params",
    ),
    (SHIPMENTS, "    shop_id: {", "    shop_id: {in: text, ", 37, "is in no text"),
    (SHIPMENTS, "    shop_id: {", "    shop_id: {style: restli, ", 37, "for lists and objects in the query"),
    (SHIPMENTS, "    shop_id: {", "    shop_id: {text: '{nothing}', ", 37, "nothing is not among the params"),
    (
        SHIPMENTS,
        "    shop_id: {",
        "    shop_id: {text: '{address}-{shop_id}', ",
        37,
        "{address}, which may be left out",
    ),
    (SHIPMENTS, "    shop_id: {", "    shop_id: {in: fragment, ", 37, "but this action has none"),
    (SHIPMENTS, "    find_by", "    content_type: multipart/form-data\n    find_by", 33, "an upload has no file"),
    (SHIPMENTS, "POST /v2", "SEND /v2", 29, "a request must be a method and a path"),
    (
        SHIPMENTS,
        "    find_by",
        "    rule: any_page\n    find_by",
        33,
        "there is no rule any_page; did you mean query_page?",
    ),
    # kinds
    (
        CONNECTOR,
        "title: Parcel tracking\n",
        "title: Parcel tracking\nsynonyms: [post, Post]\n",
        3,
        "'Post' appears twice",
    ),
    (CONNECTOR, "health_check: shipments.list", "health_check: shipment.list", 29, "did you mean shipments.list?"),
    (CONNECTOR, "health_check: shipments.list", "health_check: shipments.get", 29, "requires shipment_id"),
    (CONNECTOR, "health_check: shipments.list", "health_check: shipments.create", 29, "must be a read"),
    (CONNECTOR, "health_check: shipments.list", "health_check_params: {limit: 1}", 29, "without `health_check`"),
    (
        CONNECTOR,
        "health_check: shipments.list",
        "health_check: shipments.list\nhealth_check_params: {limit: 0}",
        30,
        "would be refused",
    ),
    (CONNECTOR, "    token: api_key", "    token: key", 10, "uses key, which is not among its credentials"),
    (CONNECTOR, "    token: api_key\n", "", 10, "is missing; name the credential that is sent"),
    (CONNECTOR, '"2026-01"', '"{versoin}"', 16, "needs {versoin}, which is not in the environment"),
    (CONNECTOR, ", secret: true", "", 14, "mark each secret field with `secret: true`"),
    (CONNECTOR, "https://{account}", "https://{acount}", 5, "did you mean account?"),
    (CONNECTOR, '"*.parcels.example.com"', "api.example.com", 5, "add it to `hosts`"),
    (CONNECTOR, "server: https", "server: http", 5, "must be an https URL"),
    (CONNECTOR, "hosts:", "server_with: {acount: https://x.parcels.example.com}\nhosts:", 6, "did you mean account?"),
    (CONNECTOR, "hosts:", "server_with: {account: https://x.parcels.example.com}\nhosts:", 6, "`required: false`"),
    (CONNECTOR, "meta: {next_cursor:", "meta: {following:", 26, "next_cursor is not a member of `meta`"),
    (
        CONNECTOR,
        "  message: [error.message]",
        "  codes: {upstream_notfound: [gone]}",
        19,
        "did you mean upstream_not_found?",
    ),
    (
        CONNECTOR,
        "health_check:",
        "definitions: {unit: {type: string}}\nhealth_check:",
        29,
        "nothing refers to it; remove it",
    ),
    (
        CONNECTOR,
        "health_check:",
        "oauth: {authorization_url: 'https://x', token_url: 'https://a.parcels.example.com'}\nhealth_check:",
        29,
        "no authentication method has `oauth: true`",
    ),
    (
        CONNECTOR,
        "health_check:",
        "oauth: {authorization_url: 'https://{acount}.x', token_url: 'https://a.parcels.example.com'}\nhealth_check:",
        29,
        "needs {acount}, which is not in the environment; did you mean account?",
    ),
    (
        CONNECTOR,
        "health_check:",
        "oauth: {authorization_url: 'https://{account}.x', token_url: 'https://a.parcels.example.com', "
        "outputs: {account: a}}\nhealth_check:",
        29,
        "needs {account}, which is known only after the first token",
    ),
    (
        CONNECTOR,
        "scheme: bearer",
        "scheme: bearer\n    sunset: 2027-01-01\n    replacement: key",
        14,
        "no other authentication method",
    ),
    (
        CONNECTOR,
        "health_check:",
        "deprecations: [{path: /v1, sunset: 2027-01-01}]\nhealth_check:",
        29,
        "no request's path begins with /v1",
    ),
    (
        CONNECTOR,
        "health_check:",
        "deprecations: [{deprecated: 2027-01-01}]\nhealth_check:",
        29,
        "is about either a `path` or `operations`",
    ),
    (
        CONNECTOR,
        "health_check:",
        "deprecations: [{operations: [parcel.list]}]\nhealth_check:",
        29,
        "parcel.list is no operation",
    ),
    (
        CONNECTOR,
        "scheme: bearer",
        "scheme: bearer\n    oauth: true\n    grant_type: client_credentials",
        16,
        "the grant needs client_id",
    ),
    (CONNECTOR, "scheme: bearer", "scheme: bearer\n    client_id: app_id", 13, "app_id is not among the credentials"),
    (CONNECTOR, "scheme: bearer\n    token: api_key", "scheme: api_key", 12, "write `headers` or `query` with {field}"),
    (CONNECTOR, "scheme: bearer\n    token: api_key", "scheme: basic", 12, "write `username` and `password`"),
    (CONNECTOR, "scheme: bearer", "scheme: bearer\n    query: {key: '{api_key}'}", 13, "belongs to the scheme api_key"),
    (
        CONNECTOR,
        "scheme: bearer\n    token: api_key",
        "scheme: api_key\n    headers: {'Api Key': '{api_key}'}",
        13,
        "is not the name of a header",
    ),
    (CONNECTOR, "    next: next_cursor\n", "", 21, "the style cursor needs `next`"),
    (CONNECTOR, "next_cursor: paging.next}", "next_cursor: $head.x}", 27, "is not a path in a response"),
    (CONNECTOR, "    style: cursor\n", "    style: cursor\n    first: 1\n", 23, "belongs to page and offset"),
    (CONNECTOR, "order: stable", "order: sorted", 25, "must be `stable`, `unknown` or `{by_time: …}`"),
    (CONNECTOR, "order: stable", "order: {by_name: x}", 25, "by_time: is missing; add it"),
    (CONNECTOR, "order: stable", "max_pages: 9", 25, "it belongs to page and link"),
    (CONNECTOR, "order: stable", "beyond: use the export", 25, "has no effect without `max_pages` or `max_records`"),
    (CONNECTOR, "order: stable", "has_more: more", 25, "more is not a member of `meta`"),
    (CONNECTOR, "order: stable", "carried: {reference: more}", 25, "more is not a member of `meta`"),
    (CONNECTOR, "    param: cursor\n", "", 21, "the style cursor needs `param`"),
    (CONNECTOR, "    order", "    short_page: in the guide\n    order", 25, "short_page"),
    (CONNECTOR, "title: API key", "title: API key\n    title: Key", 12, "title appears twice"),
    # entities
    (SHIPMENTS, "description: One shipment by id.", "description: '~'", 22, "has no words; write one sentence"),
    (SHIPMENTS, "  get:\n", "  fetch:\n", 19, "is not an action; did you mean get?"),
    (SHIPMENTS, "  fields: {id: string, ", "  fields: {", 45, "id is not among the search fields"),
    (SHIPMENTS, "delivered: boolean\n", "delivered: bool\n", 6, "'bool' is not a type"),
    # operations
    (SHIPMENTS, "effect: write", "effect: read", 30, "it changes something"),
    (SHIPMENTS, "effect: read", "effect: idempotent", 11, "a GET changes nothing"),
    (SHIPMENTS, "records: shipments\n    paging: cursor", "record: shipments", 9, "a list returns records"),
    (SHIPMENTS, "    required: [shipment_id]\n", "", 25, "must be among `required`"),
    (SHIPMENTS, "reference: {type: string, as", "reference: {type: string, in: path, as", 18, "has no {reference}"),
    (SHIPMENTS, "reference: {type: string, as", "reference: {type: string, in: body, as", 18, "a GET has no body"),
    (SHIPMENTS, 'as: "filter[reference]"', "as: limit", 18, "goes to the same place as limit"),
    (SHIPMENTS, "cursor: {type: string,", "curser: {type: string,", 14, "did you mean curser?"),
    (SHIPMENTS, "find_by: shipments.list", "find_by: shipments.lst", 33, "did you mean shipments.list?"),
    (SHIPMENTS, "    example: {shipment_id: sh_123}\n", "", 19, "is missing; show the params of a call"),
    (
        SHIPMENTS,
        "{shipment_id: sh_123}",
        "{shipment_id: 123}",
        27,
        "would be refused: shipments.get: shipment_id is 123",
    ),
    (SHIPMENTS, ", shop_id: shop_9}", "}", 44, "exactly one of address, shop_id must be given"),
    # schemas
    (SHIPMENTS, "- {required: [address]}", "- true", 41, "must be a list of schemas"),
    (
        SHIPMENTS,
        'as: "filter[reference]"',
        "as: [reference]",
        9,
        "`as` must be text, the application's name of the param",
    ),
    (SHIPMENTS, "maxLength: 40", "maxLenght: 40", 35, "did you mean maxLength?"),
    (SHIPMENTS, "maxLength: 40", "maxLength: forty", 35, "is not JSON Schema"),
    (SHIPMENTS, "maxLength: 40", "description: at most 40, no more", 35, "a comma ends the text before it"),
    (SHIPMENTS, "maxLength: 40", "enum: [yes, no]", 35, "True is not a string"),
    (SHIPMENTS, "default: 50", "default: 500", 17, "500 is not a value that the param accepts"),
    (SHIPMENTS, "shop_id: {type: string", 'shop_id: {$ref: "#/$defs/shop"', 37, "there is no #/$defs/shop"),
    (
        SHIPMENTS,
        ", description: your own name for it",
        "",
        35,
        "has no description; write in a few words what it means",
    ),
    (
        SHIPMENTS,
        '{type: integer, minimum: 1, description: "how heavy it is, in grams"}',
        "{type: object, description: how heavy, properties: {grams: {type: integer}}}",
        38,
        "weight_grams.properties.grams: has no description",
    ),
]


@pytest.mark.parametrize(("file", "right", "wrong", "line", "said"), MISTAKES)
def test_an_error_has_its_line_and_correction(example, file, right, wrong, line, said):
    path = example.parent / file
    path.write_text(EXAMPLE[file].replace(right, wrong, 1), "utf-8")

    found = errors(example)

    assert right in EXAMPLE[file]
    assert [each for each in found if each.startswith(f"{path.name}:{line}: ") and said in each], found


def test_an_undefined_paging_style_is_an_error_at_each_line_that_names_it(example):
    text = EXAMPLE[SHIPMENTS].replace("paging: cursor", "paging: page")
    (example / "shipments.yaml").write_text(text, "utf-8")

    assert errors(example) == [
        "connector.yaml:21: paging.cursor: no action uses this paging style; remove it",
        "shipments.yaml:14: actions.list.paging: connector.yaml defines no paging 'page'; known: cursor",
        "shipments.yaml:51: search.sync.paging: connector.yaml defines no paging 'page'; known: cursor",
    ]


def test_a_name_with_a_prefix_needs_one_on_both_sides(example):
    text = EXAMPLE[CONNECTOR] + "property_names: {'crm_*': hs_}\n"
    (example / "connector.yaml").write_text(text, "utf-8")

    assert errors(example) == ["connector.yaml:30: property_names.crm_*: crm_* and hs_ must both end with * or neither"]


def test_a_folder_without_a_connector_is_an_error(tmp_path):
    assert "a kind is a folder with a connector.yaml" in errors(tmp_path)[0]


#: mistakes of every sort in both files: the file, the right text, the wrong text, and the error
ALL_AT_ONCE = [
    (
        CONNECTOR,
        "title: Parcel tracking\n",
        "titel: Parcel tracking\n",
        "titel: is not a known member; did you mean title?",
    ),
    (CONNECTOR, "scheme: bearer", "scheme: berer", "scheme: is 'berer'; write 'bearer', 'basic', 'api_key' or 'none'"),
    (CONNECTOR, "required: true", "required: perhaps", "required: is 'perhaps'; write true or false"),
    (CONNECTOR, "    size: limit\n", "    size: [limit]\n", "size: is ['limit']; write text; put it between quotes"),
    (CONNECTOR, "requests: 600", "requests: many", "requests: is 'many'; write a whole number, such as 10"),
    (
        CONNECTOR,
        "description: Read shipments of a parcel service and announce new ones.\n",
        "",
        "description: is missing; add it",
    ),
    (
        SHIPMENTS,
        "    effect: read\n",
        "    effect: reads\n",
        "list.effect: is 'reads'; write 'read', 'idempotent' or 'write'",
    ),
    (SHIPMENTS, "maximum: 100", "maximun: 100", "maximun: is not a JSON Schema keyword; did you mean maximum?"),
    (SHIPMENTS, "GET /v2/shipments/{shipment_id}", "GET /v2/shipments/{id}", "the request needs {id}"),
    (SHIPMENTS, "description: your own name for it", "title: name", "reference: has no description"),
    (SHIPMENTS, "find_by: shipments.list", "find_by: shipments.lst", "there is no shipments.lst; did you mean"),
    (SHIPMENTS, "style: modified,", "style: modfied,", "incremental.style: is 'modfied'; write 'modified'"),
]


def test_all_errors_are_reported_at_once(example):
    for file in EXAMPLE:
        text = EXAMPLE[file]
        for path, right, wrong, _ in ALL_AT_ONCE:
            assert path != file or right in text, right
            text = text.replace(right, wrong, 1) if path == file else text
        (example.parent / file).write_text(text, "utf-8")

    found = errors(example)

    assert [words for *_, words in ALL_AT_ONCE if not any(words in each for each in found)] == []
    assert len(found) == len(ALL_AT_ONCE), found


def test_a_file_that_is_not_yaml_does_not_hide_the_errors_of_another(example):
    (example / "connector.yaml").write_text("kind: [\n", "utf-8")
    (example / "parcels.yaml").write_text("description: x\nactions: {\n", "utf-8")
    text = EXAMPLE[SHIPMENTS].replace("effect: write", "effect: writes").replace("find_by:", "findby:")
    (example / "shipments.yaml").write_text(text, "utf-8")

    found = errors(example)

    assert [each.split(": ")[0] for each in found] == [
        *("connector.yaml:2", "parcels.yaml:3", "shipments.yaml:30", "shipments.yaml:33")
    ]


def test_a_file_that_cannot_be_read_is_an_error_of_its_kind_alone(example):
    (example / "parcels.yaml").mkdir()

    catalog = load_catalog([example.parent])

    assert errors(example) == ["parcels.yaml:1: the file cannot be read: Is a directory"]
    assert catalog.refused.keys() == {"parcel-tracking"}


@pytest.mark.parametrize("text", ["description: &a [*a]\n", "description: x\nfields: &f {a: *f}\nactions: {}\n"])
def test_a_file_that_refers_to_itself_is_refused(example, text):
    (example / "loops.yaml").write_text(text, "utf-8")

    assert any(each.startswith("loops.yaml:") for each in errors(example))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("address: https://api.parcels.example.com", None),  # `headers` is the nearest name, and holds no text
        ("header: {X-Version: one}", "headers"),
        ("sinonyms: [parcels]", "synonyms"),
        ("sinonyms: {a: b}", None),
    ],
)
def test_an_unknown_member_is_one_error_whose_guess_fits_its_value(tmp_path, written, meant):
    connector = write_kind(tmp_path, "parcels") / "connector.yaml"
    connector.write_text(re.sub(r"synonyms:\n- .*", written, connector.read_text("utf-8")), "utf-8")
    expected = f"did you mean {meant}?" if meant else "known: application, authentication, "

    [found] = errors(connector.parent)

    assert f"{written.partition(':')[0]}: is not a known member; {expected}" in found


def test_a_kind_with_errors_is_not_served_and_the_others_are(example):
    text = EXAMPLE[SHIPMENTS].replace("effect: read", "effect: reads", 1)
    (example / "shipments.yaml").write_text(text, "utf-8")

    catalog = load_catalog([example.parent])

    assert [str(each) for each in catalog.refused["parcel-tracking"].errors] == [
        f"{example}/shipments.yaml:11: actions.list.effect: is 'reads'; write 'read', 'idempotent' or 'write'"
    ]
    assert catalog.kind("support-desk").name == "support-desk"
    with pytest.raises(UnknownConnectorType, match="'Parcel-Tracking' is not served: its spec has 1 error;"):
        catalog.kind("Parcel-Tracking")


def test_a_later_folder_replaces_a_kind_even_if_it_has_errors(example):
    sound = EXAMPLE[CONNECTOR].replace("kind: parcel-tracking", "kind: support-desk", 1)
    (example / "connector.yaml").write_text(sound, "utf-8")
    replaced = load_catalog([example.parent])
    (example / "connector.yaml").write_text(sound.replace("title: Parcel", "titel: Parcel", 1), "utf-8")
    refused = load_catalog([example.parent])

    assert list(replaced.kind("support-desk").spec.entities) == ["shipments"]
    assert "support-desk" in refused.refused
    assert "support-desk" not in refused.kinds


def test_every_list_with_pages_declares_its_order(example):
    text = EXAMPLE[CONNECTOR].replace("    order: stable\n", "")
    (example / "connector.yaml").write_text(text, "utf-8")

    missing = "paging: declares no `order`; write `stable`, `unknown` or {by_time: …} here or in cursor"
    assert errors(example) == [
        f"shipments.yaml:14: actions.list.{missing}",
        f"shipments.yaml:51: search.sync.{missing}",
    ]

    listed = EXAMPLE[SHIPMENTS].replace("paging: cursor", "paging: cursor\n    order: {by_time: at, since: since}")
    (example / "shipments.yaml").write_text(listed, "utf-8")

    [found] = errors(example)
    assert found.startswith("shipments.yaml:15: actions.list.order.since: since is not among the params")


@pytest.mark.parametrize(("type_", "is_counted"), [("integer", True), ("[integer, 'null']", True), ("string", False)])
@pytest.mark.parametrize("style", ["page", "offset"])
def test_a_counted_param_takes_integers(example, style, type_, is_counted):
    connector = EXAMPLE[CONNECTOR].replace("style: cursor", f"style: {style}")
    connector = connector.replace("    next: next_cursor\n    meta: {next_cursor: paging.next}\n", "")
    (example / "connector.yaml").write_text(connector, "utf-8")
    shipments = EXAMPLE[SHIPMENTS].replace("cursor: {type: string,", f"cursor: {{type: {type_},")
    (example / "shipments.yaml").write_text(shipments, "utf-8")

    expected = [] if is_counted else [f"the style {style} counts it; write `type: integer`"]
    assert [each for each in errors(example) if not any(words in each for words in expected)] == []
    assert len(errors(example)) == len(expected)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({}, "needs what looks like paging"),
        ({"param": "page"}, None),
        ({"next": "more", "meta": {"more": "more"}}, None),
    ],
)
def test_a_list_whose_paging_is_unknown_names_what_looks_like_it(members, said):
    if said is None:
        assert not Paging.model_validate({"style": "unknown", **members}).is_counted
        return
    with pytest.raises(ValidationError, match=said):
        Paging.model_validate({"style": "unknown", **members})
