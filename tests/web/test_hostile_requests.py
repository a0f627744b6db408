"""Requests that are meant to cost the gateway time or memory: refused early, with short errors."""

import gzip
import json
import logging
import time
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest
from multidict import CIMultiDict

from gateway.access.identity.model import id_of
from gateway.agents.mcp.context import Context
from gateway.agents.mcp.features import ServerTool
from gateway.agents.mcp.results import Result
from gateway.errors import MAX_FAULTS, Forbidden
from gateway.foundation.telemetry.logs import without_secrets
from gateway.upstream.redaction import Secrets
from gateway.web.errors import problem_response

TOKEN = "/api/v1/account/applications/token"
#: maximum bytes of a problem document
MOST = 64 << 10
#: processor seconds for a request, far more than it takes; work that is not linear in the input would take minutes
SOON = 5.0


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "identity", "made-up", ""])
@pytest.mark.parametrize("path", [TOKEN, "/api/v1/integrations/connectors", "/oauth/token"])
async def test_an_encoded_body_is_refused_without_decoding(api, path, encoding):
    bomb = gzip.compress(b" " * 50_000_000)
    started = time.process_time()

    response = await api.call("POST", path, data=bomb, headers={"Content-Encoding": encoding})

    assert (response.status, response.json()["code"]) == (415, "unsupported_encoding")
    assert response.headers["Accept-Encoding"] == "identity"
    assert time.process_time() - started < SOON


@pytest.mark.parametrize("path", [TOKEN, "/api/v1/jobs", "/nowhere", "/console", "/"])
async def test_headers_that_are_long_together_are_refused(api, path):
    headers = CIMultiDict([*api.headers.items(), *[("Accept", "a," * 4000)] * 8])

    async with api.session.get(path, headers=headers, allow_redirects=False) as response:
        assert response.status == 431


def unknown_members():
    return {f"member_{number}": 1 for number in range(40_000)}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (TOKEN, unknown_members()),
        ("/api/v1/integrations/connectors", unknown_members()),
        (
            "/api/v1/integrations/connectors",
            {"workspace_name": "w", "connector_type": "support-desk", "credentials": unknown_members()},
        ),
        (
            "/api/v1/integrations/connectors",
            {
                "workspace_name": "w",
                "connector_type": "support-desk",
                "credentials": {"email": "a@b.c", "api_token": "t"},
                "environment": unknown_members(),
            },
        ),
    ],
    ids=["token", "connector", "credentials", "environment"],
)
async def test_of_many_faults_the_first_are_named(api, path, body):
    started = time.process_time()

    response = await api.post(path, body)

    assert response.status == 422
    assert len(response.json()["errors"]) <= MAX_FAULTS
    assert len(response.body) <= MOST
    assert time.process_time() - started < SOON


@pytest.mark.parametrize(
    ("action", "params"),
    [
        ("list", unknown_members()),
        ("list", {"page": {"a": ["\x00"] * 40_000}}),
        ("update", {"ticket_id": 1, "ticket": {"tags": [1] * 300_000}}),
        ("context_store_search", {"query": {"filter": {"eq": unknown_members()}}}),
        ("context_store_search", {"query": {"filter": {"or": [{"nope": {}}] * 40_000}}}),
        ("context_store_search", unknown_members()),
        ("list", {"x" * 900_000: 1}),
        ("context_store_search", {"query": {"filter": {"eq": {"x" * 900_000: 1}}}}),
    ],
    ids=["params", "texts", "items", "fields", "operators", "search params", "a long name", "a long field"],
)
async def test_of_many_faulty_params_the_first_are_named(support_desk, action, params):
    started = time.process_time()

    response = await support_desk.send("tickets", action, params)

    assert response.status == 422
    assert len(response.json()["errors"]) <= MAX_FAULTS
    assert len(response.body) <= MOST
    assert time.process_time() - started < SOON


async def test_the_first_faults_are_in_the_detail(support_desk):
    response = await support_desk.send("tickets", "list", {"colour": 1, "shape": 2, "size": 3, "weight": 4})

    document = response.json()
    told = "; ".join([*(fault["message"] for fault in document["errors"][:3]), "and 1 more"])
    assert document["detail"] == document["message"] == told


@pytest.mark.parametrize(("path", "status"), [("/api/v1/workspaces", 200), ("/nowhere", 417)])
async def test_an_unknown_expectation_is_no_internal_error(api, caplog, path, status):
    response = await api.call("GET", path, headers={"Expect": "the-unexpected"})

    assert response.status == status
    assert response.headers["X-Request-Id"]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_an_unknown_charset_is_no_internal_error_and_causes_no_delay(api, caplog):
    started = time.process_time()

    with caplog.at_level(logging.ERROR):
        response = await api.call(
            "POST",
            "/oauth/token",
            data=b"grant_type=client_credentials",
            headers={"Content-Type": f"application/x-www-form-urlencoded; charset=x{'a-' * 3500}"},
        )

    assert (response.status, response.json()["error"]) == (401, "invalid_client")
    assert caplog.records == []
    assert time.process_time() - started < SOON


@pytest.mark.parametrize("pump", ["a-", "token", "token ", "bearer ", "://", "://a:", "secret=", "-"])
def test_masking_takes_time_linear_in_the_text(pump):
    started = time.process_time()

    without_secrets(pump * 1_000_000)

    assert time.process_time() - started < SOON


def test_masking_the_beginnings_of_a_secret_takes_time_linear_in_the_text():
    secrets, beginning = Secrets(["abcdefghijklmnopqrstuvwxyz0123456789"]), "abcdefghijklmnop"
    started = time.process_time()

    masked = secrets.masked(f"{beginning}-" * 200_000)

    assert masked == "***-" * 200_000
    assert time.process_time() - started < SOON


def test_long_texts_that_are_no_ids_are_not_kept():
    tracemalloc.start()
    try:
        for number in range(100):
            assert id_of(f"{number}{'x' * 1_000_000}") is None
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 10_000_000


def test_an_agent_is_told_the_first_faults_of_its_arguments():
    tool = ServerTool(
        name="t", description="", call=_never, input_schema={"properties": {"each": {"items": {"type": "object"}}}}
    )
    started = time.process_time()

    assert len(tool.faults({"each": [1] * 1000})) == MAX_FAULTS
    assert len(tool.faults({"each": [1] * 400_000})) == 1
    assert time.process_time() - started < SOON


async def _never(context: Context, arguments: Mapping[str, Any]) -> Result:
    raise AssertionError


def test_masking_keeps_the_last_lines_of_a_long_text():
    text = "first\n" + "x" * 100_000 + "\nValueError: token=hidden-value"

    masked = without_secrets(text)

    assert masked.startswith("first\n")
    assert masked.endswith("ValueError: token=***")
    assert len(masked) < 40_000


def test_masking_removes_a_credential_that_the_cut_would_split():
    text = "x" * 100_000 + "token=" + "s" * 60_000

    assert json.dumps(without_secrets(text)).count("s") == 0


def test_an_error_can_quote_a_header_that_is_not_utf_8():
    response = problem_response(Forbidden("pages of \udcff\udcfe may not call"), "r-1")

    assert json.loads(response.body)["detail"] == "pages of ?? may not call"
