"""Pages of agents' hosts in a browser: CORS (Fetch §3.2), and metadata that does not exist (RFC 8414 §3.1)."""

import aiohttp
import pytest

from tests.harness.in_process import front_end

HOST = "https://agents.example.com"
METADATA = ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"]
ENDPOINTS = ["/mcp", "/mcp/support-desk", "/oauth/token", "/oauth/revoke", "/oauth/register"]


@pytest.fixture(scope="module")
async def front(tmp_path_factory, database_url, redis_url):
    folder = tmp_path_factory.mktemp("front-end")
    async with front_end(folder, database_url, redis_url, mcp_origins=(HOST,)) as opened:
        yield opened


@pytest.fixture
async def browser(front):
    async with aiohttp.ClientSession(front.base_url) as session:
        yield session


def preflight(origin):
    return {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,mcp-protocol-version",
    }


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_a_page_of_an_allowed_origin_may_send_and_read(browser, path):
    async with (
        browser.options(path, headers=preflight(HOST)) as asked,
        browser.post(path, headers={"Origin": HOST}, json={}) as answered,
    ):
        assert asked.status == 204
        assert asked.headers["Access-Control-Allow-Origin"] == answered.headers["Access-Control-Allow-Origin"] == HOST
        assert asked.headers["Access-Control-Allow-Methods"] == "GET, POST"
        assert asked.headers["Access-Control-Allow-Headers"] == "authorization,content-type,mcp-protocol-version"
        assert answered.headers["Vary"] == "Origin"
        assert "Access-Control-Allow-Credentials" not in answered.headers


async def test_a_page_reads_where_to_get_a_token(browser):
    async with browser.post("/mcp", headers={"Origin": HOST}, json={}) as answered:
        assert answered.status == 401
        assert "WWW-Authenticate" in answered.headers["Access-Control-Expose-Headers"].split(", ")


@pytest.mark.parametrize("path", ENDPOINTS)
@pytest.mark.parametrize("origin", ["https://other.example.com", "null", f"{HOST}.evil.example"])
async def test_a_page_of_another_origin_may_not(browser, path, origin):
    async with (
        browser.options(path, headers=preflight(origin)) as asked,
        browser.post(path, headers={"Origin": origin}, json={}) as answered,
    ):
        assert asked.status == 405
        assert "Access-Control-Allow-Origin" not in {*asked.headers, *answered.headers}


@pytest.mark.parametrize("path", METADATA)
async def test_a_page_of_any_origin_reads_metadata(browser, path):
    origin = "https://other.example.com"

    async with (
        browser.options(path, headers=preflight(origin)) as asked,
        browser.get(path, headers={"Origin": origin}) as answered,
    ):
        assert (asked.status, answered.status) == (204, 200)
        assert asked.headers["Access-Control-Allow-Origin"] == answered.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/oauth/authorize", "/console", "/mcpx"])
async def test_other_paths_are_for_no_other_origin(browser, path):
    async with (
        browser.options(path, headers=preflight(HOST)) as asked,
        browser.get(path, headers={"Origin": HOST}, allow_redirects=False) as answered,
    ):
        assert asked.status in (401, 405)
        assert "Access-Control-Allow-Origin" not in {*asked.headers, *answered.headers}


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/oauth-protected-resource/mcp/no-such-kind",
        "/mcp/.well-known/oauth-protected-resource",
        "/mcp/.well-known/oauth-authorization-server",
        "/mcp/support-desk/.well-known/openid-configuration",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_metadata_that_does_not_exist_is_not_found_without_a_token(browser, method, path):
    async with browser.request(method, path) as answered:
        assert answered.status == 404
        assert "WWW-Authenticate" not in answered.headers
