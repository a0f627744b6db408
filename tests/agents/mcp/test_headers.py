"""The headers that repeat members of the body. Pure."""

import pytest

from gateway.agents.mcp.headers import check_names, check_params, decoded, version_of
from gateway.agents.mcp.messages import Message, RpcError
from gateway.foundation.mcp import encoded

MISMATCH, UNSUPPORTED, INVALID = -32020, -32022, -32602
META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
FUTURE = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}}


@pytest.mark.parametrize(
    ("method", "params", "header", "version"),
    [
        ("tools/list", META, "2026-07-28", "2026-07-28"),
        ("tools/list", {}, "2025-11-25", "2025-11-25"),
        ("tools/list", {}, "2025-06-18", "2025-06-18"),
        ("tools/list", {}, "2025-03-26", "2025-03-26"),
        ("tools/list", {}, None, "2025-03-26"),
        ("initialize", {}, None, "2025-11-25"),
    ],
)
def test_the_version_of_a_request_is_that_of_header_and_body(method, params, header, version):
    headers = {} if header is None else {"MCP-Protocol-Version": header}

    assert version_of(Message(1, method, params), headers) == version


@pytest.mark.parametrize(
    ("params", "header", "code"),
    [
        (META, None, MISMATCH),
        (META, "2025-11-25", MISMATCH),
        (FUTURE, "2026-07-28", MISMATCH),
        (FUTURE, "2030-01-01", UNSUPPORTED),
        ({}, "2024-11-05", UNSUPPORTED),
        ({}, "2026-07-28", INVALID),
    ],
)
def test_a_version_that_is_not_supported_or_differs_is_refused(params, header, code):
    headers = {} if header is None else {"MCP-Protocol-Version": header}

    with pytest.raises(RpcError) as refusal:
        version_of(Message(1, "tools/list", params), headers)

    assert refusal.value.code == code


@pytest.mark.parametrize("name", ["read", "café", " padded ", "=?base64?literal?=", "line\nbreak"])
def test_a_name_with_any_characters_can_be_sent_in_a_header(name):
    message = Message(1, "tools/call", {"name": name})

    check_names(message, {"Mcp-Method": "tools/call", "Mcp-Name": encoded(name)})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Mcp-Method": "tools/list", "Mcp-Name": "read"},
        {"Mcp-Method": "tools/call"},
        {"Mcp-Method": "tools/call", "Mcp-Name": "write"},
        {"Mcp-Method": "tools/call", "Mcp-Name": "=?base64?!?="},
    ],
)
def test_a_name_that_differs_is_refused(headers):
    with pytest.raises(RpcError) as refusal:
        check_names(Message(1, "tools/call", {"name": "read"}), headers)

    assert refusal.value.code == MISMATCH


SCHEMA = {
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "page": {"type": "object", "properties": {"size": {"type": "integer", "x-mcp-header": "Size"}}},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
    }
}


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"region": None}, {}),
        ({"region": "eu"}, {"Mcp-Param-Region": "eu"}),
        ({"page": {"size": 42}}, {"Mcp-Param-Size": "42.0"}),
        ({"dry": True}, {"Mcp-Param-Dry": "true"}),
    ],
)
def test_a_param_agrees_with_its_header(arguments, headers):
    check_params(SCHEMA, arguments, headers)


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {}),
        ({}, {"Mcp-Param-Region": "eu"}),
        ({"region": "eu"}, {"Mcp-Param-Region": "us"}),
        ({"page": {"size": 42}}, {"Mcp-Param-Size": "x"}),
        ({"dry": True}, {"Mcp-Param-Dry": "True"}),
    ],
)
def test_a_param_that_differs_from_its_header_is_refused(arguments, headers):
    with pytest.raises(RpcError) as refusal:
        check_params(SCHEMA, arguments, headers)

    assert refusal.value.code == MISMATCH


def test_a_header_that_is_not_visible_ascii_is_refused():
    with pytest.raises(RpcError):
        decoded("caf\x00")
