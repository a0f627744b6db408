"""The names of the protocol that the gateway's server and its calls to other servers have in common."""

import mcp_types as types
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

from gateway.foundation import mcp


def test_the_names_of_the_protocol_are_those_of_its_package():
    assert mcp.VERSIONS[0] == LATEST_MODERN_VERSION
    assert set(mcp.HANDSHAKE_VERSIONS).isdisjoint(MODERN_PROTOCOL_VERSIONS)
    assert (mcp.VERSION_KEY, mcp.CLIENT_KEY, mcp.CAPABILITIES_KEY) == (
        types.PROTOCOL_VERSION_META_KEY,
        types.CLIENT_INFO_META_KEY,
        types.CLIENT_CAPABILITIES_META_KEY,
    )
