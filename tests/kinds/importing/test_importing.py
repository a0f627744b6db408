"""Documents and their references are read, corrected by overlays, written as kinds, and compared."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from gateway.cli.specs import specs
from gateway.kinds.importing.mapping import Options, import_document
from gateway.kinds.importing.model import ImportFailed
from gateway.kinds.importing.overlay import apply_overlay
from gateway.kinds.importing.sources import load, parse
from gateway.kinds.lint.kind import lint
from gateway.kinds.loading import load_kind
from gateway.upstream.documents import fetching
from tests.harness.applications import Applications
from tests.kinds.importing.documents import RECORD, answer, document, listed, query

SCHEMES = {"components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}}
PATHS = {
    "/shipments": {
        "get": {"operationId": "listShipments", "parameters": [query("state")], "responses": listed()},
        "post": {"operationId": "createShipment", "responses": answer(RECORD)},
    },
    "/shipments/{id}": {"get": {"operationId": "getShipment", "responses": answer(RECORD)}},
    "/shipments/find": {"post": {"operationId": "lookupShipments", "responses": listed()}},
}
SEARCH = {"x-gateway": {"action": "api_search", "effect": "read"}}
OVERLAY = {
    "overlay": "1.0.0",
    "info": {"title": "Corrections", "version": "1"},
    "actions": [
        {
            "target": "$.paths['/shipments/find'].post",
            "update": {"x-gateway": {"action": "api_search", "effect": "read"}},
        },
        {"target": "$.paths['/status']..summary", "remove": True},
    ],
}


def run(*words: object):
    return CliRunner().invoke(specs, [str(word) for word in words])


@pytest.fixture
def source(tmp_path) -> Path:
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(document(PATHS, **SCHEMES)))
    return path


@pytest.fixture
def overlay(tmp_path) -> Path:
    path = tmp_path / "parcels.overlay.yaml"
    path.write_text(yaml.safe_dump(OVERLAY))
    return path


def test_an_import_writes_a_kind_without_lint_errors_and_a_report(source, tmp_path):
    done = run("import", source, "--into", tmp_path / "specs")

    folder = tmp_path / "specs/parcels"
    assert (done.exit_code, lint(folder)) == (0, [])
    assert "parcels: 5 of 5 operations mapped (100.0 %)" in done.stdout
    assert (folder / "import-report.txt").read_text() in done.stdout
    assert {str(operation) for operation in load_kind(folder).operations.values()} >= {"shipments.list", "status.get"}


def test_the_same_document_gives_the_same_files(source, tmp_path):
    for name in ("a", "b"):
        run("import", source, "--into", tmp_path / name)

    texts = [{path.name: path.read_text() for path in (tmp_path / name / "parcels").iterdir()} for name in ("a", "b")]
    assert texts[0] == texts[1]


def test_only_included_operations_are_imported(source, tmp_path):
    done = run("import", source, "--into", tmp_path, "--include", "/shipments/{id}", "--include", "getStatus")

    assert "parcels: 2 of 2 operations mapped" in done.stdout


def test_files_changed_by_hand_are_not_overwritten(source, tmp_path):
    run("import", source, "--into", tmp_path)
    edited = tmp_path / "parcels/shipments.yaml"
    edited.write_text(edited.read_text() + "# mine\n")

    refused = run("import", source, "--into", tmp_path)

    assert (refused.exit_code, edited.read_text()[-7:]) == (1, "# mine\n")
    assert "shipments.yaml" in refused.stderr
    assert "--overlay" in refused.stderr
    assert run("import", source, "--into", tmp_path, "--force").exit_code == 0


def test_a_newer_document_keeps_the_corrections_of_the_overlay_and_reports_the_changes(source, overlay, tmp_path):
    run("import", source, "--into", tmp_path, "--overlay", overlay)
    newer = {**PATHS, "/labels": {"get": {"operationId": "listLabels", "responses": listed()}}}
    del newer["/shipments/{id}"]
    source.write_text(json.dumps(document(newer, **SCHEMES)))

    compared = run("diff", tmp_path / "parcels", source, "--overlay", overlay, "--exit-code")
    done = run("import", source, "--into", tmp_path, "--overlay", overlay)

    assert compared.exit_code == 1
    assert "! shipments.get: removed (GET /shipments/{id})" in compared.stdout
    assert "  labels.list: added (GET /labels)" in compared.stdout
    assert compared.stdout in done.stdout
    assert load_kind(tmp_path / "parcels").operation("shipments", "api_search").action.effect == "read"


def test_nothing_differs_between_a_kind_and_itself(source, tmp_path):
    run("import", source, "--into", tmp_path)

    done = run("diff", tmp_path / "parcels", source)

    assert (done.exit_code, done.stdout) == (0, "")


DIFFERENCES = [
    ({"parameters": [query("state", type="string", enum=["open"])]}, "! shipments.list: state: enum none → [\"open\"]"),
    ({"parameters": []}, "! shipments.list: param state removed"),
    ({"parameters": [query("state"), {**query("site"), "required": True}]},
     "! shipments.list: required param site added"),
    ({"parameters": [query("state"), query("page")]}, "  shipments.list: paging none → unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "line"), DIFFERENCES)
def test_a_difference_is_marked_if_calls_may_fail(changed, line, source, tmp_path):
    run("import", source, "--into", tmp_path)
    listing = {**PATHS["/shipments"]["get"], **changed}
    source.write_text(json.dumps(document({**PATHS, "/shipments": {**PATHS["/shipments"], "get": listing}}, **SCHEMES)))

    assert line in run("diff", tmp_path / "parcels", source).stdout.splitlines()


def test_an_overlay_updates_appends_and_removes():
    target = {"a": {"b": 1, "list": [1]}, "c": [{"x": 1}, {"x": 2}]}
    actions = [
        {"target": "$.a", "update": {"b": 2, "d": {"e": 3}, "list": [2]}},
        {"target": "$.c[?@.x == 1]", "remove": True},
        {"target": "$.c", "update": {"x": 3}},
        {"target": "$.missing", "update": {}},
    ]

    findings = apply_overlay(target, {"overlay": "1.0.0", "actions": actions})

    assert target == {"a": {"b": 2, "list": [1, 2], "d": {"e": 3}}, "c": [{"x": 2}, {"x": 3}]}
    assert [finding.detail for finding in findings] == ["4: $.missing"]


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ({"openapi": "3.0.0"}, "not an overlay"),
        ({"overlay": "1.0.0", "actions": [{"update": {}}]}, "action 1 of the overlay has no `target`"),
        ({"overlay": "1.0.0", "actions": [{"target": "$["}]}, "has neither `update` nor `remove`"),
        ({"overlay": "1.0.0", "actions": [{"target": "$[", "remove": True}]}, "is not a JSONPath"),
    ],
)
def test_an_error_of_an_overlay_names_the_action(overlay, message):
    with pytest.raises(ImportFailed, match=message):
        apply_overlay({}, overlay)


def test_a_document_that_goes_too_deep_is_refused_with_the_limit():
    schema: dict[str, object] = {}
    for _ in range(10_000):
        schema = {"items": schema}

    with pytest.raises(ImportFailed, match="more than 400 levels"):
        import_document({"openapi": "3.1.0", "paths": {}, "components": {"schemas": {"a": schema}}}, Options())


async def test_references_are_followed_below_the_folder(tmp_path):
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/thing.yaml").write_text(
        "Thing: {$ref: '#/Other'}\nOther: {type: object, properties: {a: {}}}\n"
    )
    reference = {"$ref": "schemas/thing.yaml#/Thing"}
    body = {"content": {"application/json": {"schema": reference}}}
    (tmp_path / "post.json").write_text(json.dumps({"requestBody": body, "responses": answer(reference)}))
    things = {"/things": {"post": {"$ref": "post.json"}}}
    (tmp_path / "openapi.json").write_text(json.dumps(document(things)))

    made = import_document(await load(str(tmp_path / "openapi.json")), Options())

    assert set(made.entities["things"]["actions"]["create"]["params"]) == {"a"}


async def test_references_in_extensions_are_not_followed(tmp_path):
    samples = {"x-codeSamples": [{"lang": "Python", "source": {"$ref": "examples/none.py"}}]}
    things = {"/things": {"get": {**samples, "responses": answer({"type": "object"})}}}
    (tmp_path / "openapi.json").write_text(json.dumps(document(things)))

    made = import_document(await load(str(tmp_path / "openapi.json")), Options())

    assert "things" in made.entities


@pytest.mark.parametrize("reference", ["../outside.yaml", "/etc/hostname", "https://elsewhere.example.com/a.yaml"])
async def test_a_reference_that_leaves_the_folder_costs_the_operations_that_need_it(reference, tmp_path):
    (tmp_path / "outside.yaml").write_text("{}")
    (tmp_path / "inside").mkdir()
    things = {"get": {"parameters": [{"$ref": reference}], "responses": listed()}}
    (tmp_path / "inside/openapi.json").write_text(json.dumps(document({"/a": {"$ref": reference}, "/b": things})))

    made = import_document(await load(str(tmp_path / "inside/openapi.json")), Options())

    assert set(made.names) == {"GET /status"}
    assert any("leads outside the folder" in finding.detail for finding in made.findings)
    assert "a reference cannot be read" in {finding.reason for finding in made.findings if "/b" in finding.place}


async def test_what_only_looks_like_a_reference_is_not_read(tmp_path):
    thing = {"$ref": "#/components/schemas/thing"}
    nowhere = {"$ref": "nowhere.yaml"}
    schema = {"type": "object", "properties": {"example": thing, "id": {"type": "string"}}, "example": nowhere}
    things = {
        "get": {"responses": answer({"type": "object", "properties": {"$ref": "#/components/maps/beside"}})},
        "post": {
            "requestBody": {"content": {"$ref": "#/components/mediaTypes/of_thing"}},
            "responses": {"200": {"description": "", "content": {"$ref": "#/components/mediaTypes/of_thing"}}},
        },
    }
    components = {
        "schemas": {"thing": schema},
        "maps": {"beside": {"name": {"type": "string"}}},
        "mediaTypes": {"of_thing": {"application/json": {"schema": thing, "examples": {"a": nowhere}}}},
    }
    tags = [{"name": "things", "description": nowhere}]
    source = document({"/things": things}, components=components, tags=tags, **{"x-other": nowhere})
    (tmp_path / "openapi.json").write_text(json.dumps(source))

    made = import_document(await load(str(tmp_path / "openapi.json")), Options())

    actions = made.entities["things"]["actions"]
    assert set(actions["create"]["params"]) == {"example", "id"}
    assert set(actions["create"]["fields"]) == {"example", "id"}
    assert set(made.entities["things"]["fields"]) == {"name"}
    assert not [finding for finding in made.findings if "reference" in finding.reason or "read" in finding.reason]


async def test_a_document_at_a_url_may_refer_only_to_its_host():
    with Applications() as web:
        web.get("https://example.com/docs/openapi.json", body=json.dumps(document({"/a": {"$ref": "a.yaml"}})))
        web.get("https://example.com/docs/a.yaml", body="get: {responses: {200: {description: fine}}}")
        async with fetching() as fetch:
            found = await load("https://example.com/docs/openapi.json", fetch)

        web.get(
            "https://example.com/b.json", body=json.dumps(document({"/a": {"$ref": "https://other.example.com/a"}}))
        )
        async with fetching() as fetch:
            refused = import_document(await load("https://example.com/b.json", fetch), Options())

    assert import_document(found, Options()).names["GET /a"] == "a.get"
    assert "GET /a" not in refused.names
    assert any("only https URLs of example.com are allowed" in finding.detail for finding in refused.findings)


@pytest.mark.parametrize("url", ["http://example.com/a.json", "https://127.0.0.1/a.json", "https://localhost/a.json"])
async def test_a_document_is_fetched_only_by_https_and_from_public_hosts(url):
    async with fetching() as fetch:
        with pytest.raises(ImportFailed, match="address refused"):
            await load(url, fetch)


def test_yaml_is_read_as_openapi_requires():
    read = parse(b"enum: [on, no, 2026-01-31, true, 1]\n200: {a: 1}\n", "a.yaml")

    assert read == {"enum": ["on", "no", "2026-01-31", True, 1], "200": {"a": 1}}


@pytest.mark.parametrize("content", [b"{", b"a: [", b"\xff\xfe\x00"])
def test_an_invalid_document_is_an_error_without_a_traceback(content, tmp_path):
    (tmp_path / "broken.yaml").write_bytes(content)

    done = run("import", tmp_path / "broken.yaml", "--into", tmp_path)

    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")
    assert list(tmp_path.iterdir()) == [tmp_path / "broken.yaml"]


def test_a_trial_shows_a_list_that_cannot_be_continued(tmp_path):
    things = {"/things": {"get": {"parameters": [query("limit", type="integer")], "responses": listed()}}}
    (tmp_path / "openapi.json").write_text(json.dumps(document(things, **SCHEMES)))
    run("import", tmp_path / "openapi.json", "--into", tmp_path / "specs")

    done = run("try", tmp_path / "specs/parcels", "things", "list", "limit=3")

    assert done.exit_code == 0, done.output
    response = json.loads(done.stdout)["response"]
    assert len(response["result"]) == 3
    assert "more may follow" in response["incomplete"]
