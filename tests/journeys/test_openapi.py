"""The served OpenAPI document, compared with the routes, and with the server by generated requests."""

import ast
import asyncio
import os
import shlex
import subprocess
import sys

import click
import pytest
from redis.asyncio import Redis

from gateway.cli import main
from gateway.client import Gateway
from gateway.errors import BY_CODE
from gateway.web.openapi.document import openapi_document
from gateway.web.routes import ROUTES
from tests.harness import contract
from tests.harness.catalog import shipped_catalog

#: what only browsers open
BROWSERS = {
    "beginConsent",
    "finishOauth",
    "authorize",
    "signIn",
    "leaveToSignIn",
    "chooseOrganization",
    "consent",
}
DOCUMENT = openapi_document(ROUTES, shipped_catalog(), "1", "http://localhost")


def test_every_route_but_pages_for_people_is_in_the_document_and_nothing_else():
    described = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in ROUTES if not route.is_page}


def test_every_reference_of_the_document_leads_somewhere():
    components = {f"#/components/{part}/{name}" for part, named in DOCUMENT["components"].items() for name in named}
    assert set(_references(DOCUMENT)) <= components


def test_the_document_is_valid_openapi():
    from openapi_spec_validator import validate  # takes seconds, and each process of the tests collects this file

    validate(DOCUMENT)


def test_every_operation_parameter_header_and_member_says_what_it_is():
    operations = operations_of(DOCUMENT)
    headers = [each for one in answers_of(DOCUMENT) for each in one.get("headers", {}).items()]
    members = [each for name, schema in DOCUMENT["components"]["schemas"].items() for each in members_of(name, schema)]
    assert len({one["operationId"] for one in operations}) == len(operations)
    assert [route.path for route in ROUTES if not route.is_page and not route.handler.__doc__] == []
    assert [each["name"] for one in operations for each in one["parameters"] if not each["description"]] == []
    assert [name for name, header in headers if not header["description"]] == []
    assert [name for name, member in members if "$ref" not in member and not member.get("description")] == []


def test_every_answer_with_a_json_body_has_a_schema_and_an_example():
    media = [
        (answer["description"], media)
        for answer in answers_of(DOCUMENT)
        for media_type, media in answer.get("content", {}).items()
        if "json" in media_type and "ndjson" not in media_type
    ]
    assert [told for told, each in media if "schema" not in each] == []
    shown = [(each["schema"], each.get("example") or each.get("examples")) for _, each in media]
    # The formats of two documents are defined elsewhere: OpenAPI, and the schema of policies in Cedar.
    of_others = {"type": "object", "additionalProperties": True}
    assert [schema for schema, example in shown if not example] == [of_others, of_others]


def test_every_array_says_what_its_items_are():
    arrays = [(place, schema) for place, schema in _schemas(DOCUMENT, "") if "array" in (schema.get("type") or ())]

    assert [place for place, schema in arrays if "items" not in schema] == []


def test_the_first_media_type_of_an_answer_with_json_is_json():
    media_types = [list(answer.get("content", {})) for answer in answers_of(DOCUMENT)]

    assert [each for each in media_types if "application/json" in each[1:]] == []


def _schemas(node, place):
    """Every object of the document with its place: schemas are among them; examples are left out."""
    if isinstance(node, dict):
        yield place, node
        for name, member in node.items():
            if name not in ("example", "examples"):
                yield from _schemas(member, f"{place}/{name}")
    elif isinstance(node, list):
        for number, member in enumerate(node):
            yield from _schemas(member, f"{place}/{number}")


def test_every_example_fits_its_schema():
    bodies = [one["requestBody"] for one in operations_of(DOCUMENT) if "requestBody" in one]
    media = [each for holder in [*answers_of(DOCUMENT), *bodies] for each in holder.get("content", {}).values()]
    shown = [(each["schema"], value) for each in media if "schema" in each for value in examples_of(each)]
    assert len(shown) > 100
    assert [fault for schema, value in shown for fault in contract.schema_faults(schema, value)] == []


def test_every_operation_for_programs_is_shown_in_every_language_and_on_the_command_line():
    by_label = {
        one["operationId"]: {each["label"] for each in one.get("x-codeSamples", ())} for one in operations_of(DOCUMENT)
    }
    without = {name for name, labels in by_label.items() if labels != {"curl", "Python", "TypeScript", "CLI"}}
    assert without == BROWSERS


def test_every_sample_is_a_command_that_there_is_or_python_that_compiles(tmp_path, monkeypatch):
    (tmp_path / "report.pdf").touch()  # the file that the sample of an upload names
    monkeypatch.chdir(tmp_path)
    samples = [each for one in operations_of(DOCUMENT) for each in one.get("x-codeSamples", ())]

    for source in (each["source"] for each in samples if each["label"] == "CLI"):
        parse_command(shlex.split(source)[1:])
    for source in (each["source"] for each in samples if each["label"] == "Python"):
        tree = compile(source, "sample", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        assert [name for name in client_calls(tree) if not has_member(Gateway("http://x", "a", "b"), name)] == []


def parse_command(words: list[str]) -> None:
    """Raises what click has to say of a command line, without running it."""
    command, context = main, click.Context(main, info_name="gateway")
    while isinstance(command, click.Group):
        _, found, words = command.resolve_command(context, words)
        command, context = found, click.Context(found, context, info_name=found.name)
    command.parse_args(context, words)


def client_calls(tree: ast.AST) -> list[str]:
    """The dotted names below `gateway` that are called."""
    calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [name.removeprefix("gateway.") for name in calls if name.startswith("gateway.")]


def has_member(value: object, name: str) -> bool:
    for part in name.split("."):
        value = getattr(value, part, None)
    return value is not None


def operations_of(document):
    return [operation for methods in document["paths"].values() for operation in methods.values()]


def answers_of(document):
    """Every answer that is told, each once."""
    holders = [document["components"], *operations_of(document)]
    return [answer for one in holders for answer in one["responses"].values() if "$ref" not in answer]


def members_of(place, schema):
    """Every member that a schema names, with its place."""
    for name, member in schema.get("properties", {}).items():
        yield f"{place}.{name}", member
        yield from members_of(f"{place}.{name}", member)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from members_of(place, schema[keyword])


def examples_of(media):
    return [
        *([media["example"]] if "example" in media else []),
        *(each["value"] for each in media.get("examples", {}).values()),
    ]


def test_every_error_code_has_an_example():
    operations = [operation for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    answers = [answer for one in [DOCUMENT["components"], *operations] for answer in one["responses"].values()]
    problems = [answer.get("content", {}).get("application/problem+json", {}) for answer in answers]
    assert {code for each in problems for code in each.get("examples", {})} == {*BY_CODE, "method_not_allowed"}


def _references(node):
    if isinstance(node, dict):
        found = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return found + [each for member in node.values() for each in _references(member)]
    if isinstance(node, list):
        return [each for member in node for each in _references(member)]
    return []


async def test_the_document_is_served_with_a_page_that_needs_nothing_else(api):
    document = await api.get("/openapi.json")
    page = await api.get("/docs")

    assert document.json()["openapi"] == "3.1.0"
    assert b"http" not in page.body


@pytest.fixture
async def attempts(redis_url):
    """Guessed secrets count against the address of all tests; they are forgotten afterwards."""
    yield
    async with Redis.from_url(redis_url) as redis:
        await redis.delete(*[key async for key in redis.scan_iter("gateway:attempts:*")] or ["none"])


@pytest.mark.usefixtures("attempts")
async def test_no_request_that_the_document_allows_makes_a_5xx(running, stranger):
    """schemathesis sends what it likes; any 5xx fails.

    In an organization of its own, where no job has an application's failure for its result. An organization that is
    exported answers 503.
    """
    await stranger.connector()
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{running.base_url}/openapi.json"),
        *("--header", f"Authorization: {stranger.headers['Authorization']}"),
        *("--checks", "not_a_server_error", "--max-examples", "1", "--phases", "examples,coverage,fuzzing"),
        *("--exclude-path-regex", "/(events|organization/export)$", "--seed", "7", "--no-color"),
    ]

    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.harness.schemathesis_hooks"}
    outcome = await asyncio.to_thread(
        subprocess.run, command, env=environment, capture_output=True, text=True, timeout=600, check=False
    )

    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-1000:]
