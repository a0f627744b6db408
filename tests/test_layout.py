"""Imports point downwards: packages import lower layers only, modules form no cycle, light imports stay light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in ("gateway", "workers")
    for path in (ROOT / folder).rglob("*.py")
}
#: packages from the ground up: each may import those of the rows above its own, and no others of its row
LAYERS = (
    {"errors", "telemetry"},
    {"aio", "contract", "payloads", "saving"},
    {"db", "kinds", "vault"},
    {"audit", "key_rotation", "operation_search", "sandbox", "upstream"},
    {"identity", "request_log", "spec_import"},
    {"connectors", "events", "in_process", "jobs", "limits", "oauth_server", "settings"},
    {"context_store", "embedded", "gateway", "oauth_client"},
    {"connect_links", "inbound_webhooks", "operations", "sign_in"},
    {"batches", "exports", "uploads"},
    {"schedules"},
    {"services"},
    {"monitoring"},
    {"agents", "workers"},
    {"client", "http"},
    {"cli"},
    {"__main__"},
)
#: capabilities whose use cases take and return shapes of the contract: handlers reach them by `Services` alone
CAPABILITIES = {
    *("batches", "connect_links", "connectors", "context_store", "events", "exports", "inbound_webhooks"),
    *("oauth_client", "oauth_server", "request_log", "schedules", "sign_in", "uploads"),
}
#: package → what it never imports, although it stands below
FORBIDDEN = {
    "http": CAPABILITIES | {"db", "vault", "limits", "key_rotation"},
    "upstream": {"db", "vault"},
    "in_process": {"db", "vault", "identity"},
    "client": {"services", "db", "jobs", "connectors", "operations"},
    "workers": {"http", "agents"},
    "sandbox": {"upstream", "db"},
}
#: library → the only packages that import it
LIBRARIES = {
    "arq": {"gateway.jobs.wakeup"},
    "authlib": {"gateway.oauth_client", "gateway.upstream.oauth_tokens", "gateway.oauth_server", "gateway.sign_in"},
    "cronsim": {"gateway.schedules.cron"},
    "joserfc": {"gateway.sign_in"},
    "markdown_it": {"gateway.http.docs_site"},
    "pygments": {"gateway.http.docs_site"},
    "jinja2": {"gateway.http.pages", "gateway.oauth_server"},
    "mcp_types": {"gateway.agents.mcp", "gateway.agents.tools", "gateway.client"},
}


def package_of(module: str) -> str:
    """The package below `gateway`, or the module itself where it stands alone: `workers`, `gateway`, `errors`."""
    return module.removeprefix("gateway.").split(".")[0]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements within a node."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(node, block, ()):
            yield statement
            yield from statements(statement)


@cache
def read(path: Path) -> list[ast.AST]:
    """Where a file imports or defines a class; to parse all of them takes a second, so it is done once."""
    found = statements(ast.parse(path.read_text("utf-8")))
    return [node for node in found if isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef)]


def imported(path: Path) -> Iterator[str]:
    """Every module that a file names, our own by the module itself and not by its package."""
    for node in read(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


@cache
def imports() -> dict[str, set[str]]:
    """What each module of ours imports."""
    return {module: set(imported(path)) for module, path in MODULES.items()}


def test_every_package_has_a_layer():
    assert {package_of(module) for module in MODULES} == set().union(*LAYERS)


@pytest.mark.parametrize("package", sorted(set().union(*LAYERS)))
def test_a_package_imports_only_what_stands_below_it(package: str):
    layer = next(number for number, packages in enumerate(LAYERS) if package in packages)
    below = set().union(*LAYERS[:layer]) - FORBIDDEN.get(package, set())

    upward = {
        f"{module} imports {name}"
        for module, names in imports().items()
        if package_of(module) == package
        for name in names & MODULES.keys()
        if package_of(name) not in below | {package}
    }

    assert upward == set()


def test_no_modules_import_each_other():
    try:
        TopologicalSorter({module: names & MODULES.keys() for module, names in imports().items()}).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_a_class_name_stands_for_one_thing():
    #: the sandbox plays applications, which have words of their own
    ours = {module: path for module, path in MODULES.items() if package_of(module) != "sandbox"}
    defining: dict[str, list[str]] = {}
    for module, path in ours.items():
        for node in read(path):
            if isinstance(node, ast.ClassDef):
                defining.setdefault(node.name, []).append(module)

    assert {name: modules for name, modules in defining.items() if len(modules) > 1} == {}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_named_where_it_belongs(library: str):
    naming = {module for module, names in imports().items() if any(name.split(".")[0] == library for name in names)}

    assert {module for module in naming if not module.startswith(tuple(LIBRARIES[library]))} == set()


#: where requests of callers come in: they translate, and call use cases
SURFACES = ("gateway.http.api", "gateway.http.console", "gateway.agents.tools")
#: members of `Services` that are stores
STORES = {"connector_store", "job_store", "schedule_store", "store"}


@pytest.mark.parametrize("module", sorted(module for module in MODULES if module.startswith(SURFACES)))
def test_surfaces_call_use_cases_and_no_store(module: str):
    tree = ast.parse(MODULES[module].read_text("utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}

    assert used & STORES == set()
    assert {name for name in imports()[module] if name.endswith(".store") or name == "gateway.db.pool"} == set()


_SERVER_LIBRARIES = {"asyncpg", "redis", "arq", "aiohttp.web"}


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import gateway", _SERVER_LIBRARIES),
        ("from gateway import connect", _SERVER_LIBRARIES),
        ("from gateway.client import Gateway", _SERVER_LIBRARIES),
        (
            "import gateway.http.server.serve",
            {"mcp_types", "joserfc", "snowballstemmer", "gateway.http.openapi", "pygments"},
        ),
        ("import workers.main", {"mcp_types", "joserfc", "snowballstemmer", "jinja2"}),
    ],
)
@pytest.mark.processes
def test_nobody_loads_what_only_others_or_few_requests_need(statement, absent):
    loaded = subprocess.run(
        [sys.executable, "-c", f"{statement}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert absent & set(loaded) == set()
