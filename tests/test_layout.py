"""Imports point inwards, and what is light stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: what each part must not import
FORBIDDEN = {
    "gateway/connectors": ("gateway.http", "gateway.execution", "gateway.services", "gateway.identity",
                           "gateway.credentials", "gateway.oauth", "gateway.jobs", "gateway.context_store",
                           "gateway.db", "gateway.settings", "asyncpg", "arq", "redis"),
    "gateway/identity": ("gateway.http", "gateway.execution", "gateway.services"),
    "gateway/credentials": ("gateway.http", "gateway.execution", "gateway.services", "gateway.jobs", "gateway.oauth"),
    "gateway/oauth": ("gateway.http", "gateway.execution", "gateway.services", "gateway.jobs"),
    "gateway/oauth_tokens": ("gateway.http", "gateway.execution", "gateway.services", "gateway.identity",
                             "gateway.credentials", "gateway.oauth", "gateway.jobs", "gateway.context_store",
                             "gateway.db", "gateway.settings", "asyncpg", "arq", "redis"),
    "gateway/jobs": ("gateway.http", "gateway.execution", "gateway.services", "workers"),
    "gateway/context_store": ("gateway.http", "gateway.execution", "gateway.services"),
    "gateway/kinds": ("gateway.http", "gateway.execution", "gateway.services", "gateway.jobs", "gateway.db"),
    "gateway/operations": ("gateway.http", "gateway.execution", "gateway.services", "gateway.jobs", "gateway.db",
                           "gateway.connectors", "gateway.credentials", "gateway.context_store", "aiohttp"),
    "gateway/http_ranges": ("gateway.http", "gateway.services", "gateway.connectors", "gateway.db"),
    "gateway/stored_files": ("gateway.http", "gateway.services", "gateway.connectors"),
    "gateway/db": ("gateway.http", "gateway.execution", "gateway.services", "gateway.connectors"),
    "gateway/sandbox": ("gateway.http", "gateway.services", "gateway.jobs", "asyncpg"),
    "gateway/client": ("gateway.http", "gateway.services", "gateway.jobs", "asyncpg", "arq", "redis"),
    "gateway/agent_tools": ("gateway.http",),
    "gateway/authorization": ("gateway.http", "gateway.execution", "gateway.services", "gateway.agent_tools"),
    "gateway/mcp": ("gateway.http", "gateway.execution", "gateway.services", "gateway.connectors", "gateway.jobs",
                    "gateway.errors", "asyncpg", "mcp"),
    "workers": ("gateway.http", "gateway.cli"),
}  # fmt: skip


def imports_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    found = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    return found | {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}


@pytest.mark.parametrize("part", FORBIDDEN)
def test_imports_point_inwards(part):
    outward = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / part).rglob("*.py")
        for name in imports_of(path)
        if any(name == outer or name.startswith(f"{outer}.") for outer in FORBIDDEN[part])
    }

    assert outward == set()


def test_only_the_bell_names_arq():
    naming = {
        str(path.relative_to(ROOT))
        for folder in ("gateway", "workers")
        for path in (ROOT / folder).rglob("*.py")
        if any(name.split(".")[0] == "arq" for name in imports_of(path))
    }

    assert naming == {"gateway/jobs/wakeup.py"}


@pytest.mark.parametrize(
    "statement", ["import gateway", "from gateway import connect", "from gateway.client import Gateway"]
)
def test_callers_load_no_server_database_or_queue(statement):
    loaded = subprocess.run(
        [sys.executable, "-c", f"{statement}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert {"asyncpg", "redis", "arq", "aiohttp.web"} & set(loaded) == set()


def test_tools_for_one_application_load_no_server():
    statement = "import gateway.agent_tools.local, gateway.agent_tools.server, gateway.mcp.stdio"
    loaded = subprocess.run(
        [sys.executable, "-c", f"{statement}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert {"asyncpg", "redis", "arq", "aiohttp.web", "authlib", "cryptography"} & set(loaded) == set()


def unsupervised_loops(path: Path) -> set[str]:
    """The functions with an endless loop that sleeps between its rounds."""
    return {
        function.name
        for function in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(function, ast.AsyncFunctionDef)
        for loop in ast.walk(function)
        if isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)
        if "asyncio.sleep(" in ast.unparse(loop)
    }


def test_background_loops_are_supervised():
    """An error of any class ends a loop that is not run by `every`.

    Those of `connectors` and OAuth are tries of one request, which its caller awaits; so is the one named here.
    """
    elsewhere = ("aio", "cli", "client", "connectors", "embedded", "oauth", "oauth_tokens", "sandbox")
    found = {
        loop
        for folder in ("gateway", "workers")
        for path in (ROOT / folder).rglob("*.py")
        if path.parts[len(ROOT.parts) + 1] not in elsewhere
        for loop in unsupervised_loops(path)
    }

    assert found == {"retry_until_available"}
