"""The served contract: held to the routes, and to the server by requests that nobody thought of."""

import subprocess
import sys

from gateway.errors import BY_CODE
from gateway.http.openapi import openapi_document
from gateway.http.openapi_answers import ANSWERS
from gateway.http.openapi_headers import READ_HEADERS, SENT_HEADERS
from gateway.http.routes import ROUTES
from gateway.kinds.catalog import load_catalog


def test_every_route_but_pages_for_people_is_in_the_document_and_nothing_else():
    document = openapi_document(load_catalog(), "1", "http://localhost")

    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in ROUTES if not route.is_page}


def test_every_reference_of_the_document_leads_somewhere():
    document = openapi_document(load_catalog(), "1", "http://localhost")

    components = {f"#/components/{part}/{name}" for part, named in document["components"].items() for name in named}
    assert set(_references(document)) <= components


def test_every_operation_and_parameter_says_what_it_is():
    document = openapi_document(load_catalog(), "1", "http://localhost")

    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    headers = [each for one in operations for each in one["parameters"] if each["in"] == "header"]
    assert [one["operationId"] for one in operations if not one["summary"] or not one["description"]] == []
    assert [each["name"] for each in headers if not each["description"]] == []


def test_every_error_code_has_an_example():
    document = openapi_document(load_catalog(), "1", "http://localhost")

    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    answers = [answer for one in [document["components"], *operations] for answer in one["responses"].values()]
    problems = [answer.get("content", {}).get("application/problem+json", {}) for answer in answers]
    assert {code for each in problems for code in each.get("examples", {})} == {*BY_CODE, "method_not_allowed"}


def test_what_the_tables_of_headers_and_answers_name_is_an_operation():
    routes = {(route.method, route.path) for route in ROUTES}

    assert READ_HEADERS.keys() | SENT_HEADERS.keys() <= routes
    assert {(method, path) for method, path, _ in ANSWERS} <= routes


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
    assert b"http" not in page.body.replace(b"/openapi.json", b"")


def test_no_request_that_the_document_allows_makes_a_5xx(running, api):
    """schemathesis sends what it likes; any 5xx fails."""
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{running.base_url}/openapi.json"),
        *("--header", f"Authorization: {api.headers['Authorization']}"),
        *("--header", f"X-Organization-Id: {running.organization_id}"),
        *("--checks", "not_a_server_error", "--max-examples", "8", "--phases", "examples,coverage,fuzzing"),
        *("--exclude-path-regex", "/events$", "--seed", "7", "--no-color"),
    ]

    outcome = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-1000:]
