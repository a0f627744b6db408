"""The served contract: held to the routes, and to the server by requests that nobody thought of."""

import subprocess
import sys

from gateway.http.openapi import openapi_document
from gateway.http.routes import ROUTES
from gateway.kinds.catalog import load_catalog


def test_every_route_but_pages_for_people_is_in_the_document_and_nothing_else():
    document = openapi_document(load_catalog(), "1", "http://localhost")

    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in ROUTES if not route.is_page}


def test_every_reference_of_the_document_leads_somewhere():
    document = openapi_document(load_catalog(), "1", "http://localhost")

    schemas = document["components"]["schemas"]
    assert {reference.removeprefix("#/components/schemas/") for reference in _references(document)} <= set(schemas)


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
        *("--checks", "not_a_server_error", "--max-examples", "8", "--phases", "examples,coverage,fuzzing"),
        *("--exclude-path-regex", "/events$", "--seed", "7", "--no-color"),
    ]

    outcome = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-1000:]
