"""Imports point inwards: what each part may import, no circles, and what is light stays light."""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
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
#: a module that stands above the rest of its package: what a process tells Prometheus comes from the database too
APART = {"gateway.monitoring.statistics": "gateway.monitoring.prometheus"}
#: what everything may import: errors, and what knows nothing of the gateway
GROUND = {"gateway.errors", "gateway.telemetry", "gateway.aio"}
SPECS = GROUND | {"gateway.kinds"}
ENGINE = SPECS | {"gateway.upstream.http_ranges", "gateway.upstream"}
STORED = ENGINE | {"gateway.db"}
CREDENTIALS = STORED | {"gateway.identity", "gateway.upstream.oauth_tokens", "gateway.credentials"}
DOMAINS = CREDENTIALS | {
    "gateway.oauth_client",
    "gateway.limits",
    "gateway.jobs",
    "gateway.jobs.stored_files",
    "gateway.context_store",
    "gateway.operation_search",
}
CALLS = DOMAINS | {"gateway.upstream.field_selection", "gateway.operations.response_cache"}
USE_CASES = CALLS | {
    "gateway.operations.call",
    "gateway.operations.execution",
    "gateway.operations.copy_search",
    "gateway.operations.deletion",
    "gateway.connect_links",
    "gateway.console",
    "gateway.oauth_server",
    "gateway.sign_in",
    "gateway.settings",
}
PROCESSES = USE_CASES | {"gateway.services", "gateway.agents.mcp", "gateway.monitoring.prometheus"}
#: part → the other parts that it may import
ALLOWED: Mapping[str, set[str]] = {
    "gateway": {"gateway.errors", "gateway.in_process"},
    "gateway.__main__": {"gateway.aio", "gateway.cli"},
    "gateway.errors": set(),
    "gateway.telemetry": {"gateway.errors"},
    "gateway.aio": {"gateway.errors", "gateway.telemetry"},
    "gateway.db": GROUND,
    "gateway.monitoring.prometheus": GROUND | {"gateway.db"},
    "gateway.kinds": GROUND,
    "gateway.upstream.http_ranges": GROUND,
    "gateway.operation_search": SPECS,
    "gateway.upstream": SPECS | {"gateway.upstream.http_ranges"},
    "gateway.upstream.oauth_tokens": ENGINE,
    "gateway.settings": ENGINE,
    "gateway.upstream.field_selection": ENGINE,
    "gateway.limits": STORED,
    "gateway.jobs.stored_files": STORED,
    "gateway.identity": STORED,
    "gateway.operations.response_cache": STORED,
    "gateway.credentials": STORED | {"gateway.identity", "gateway.upstream.oauth_tokens"},
    "gateway.oauth_client": CREDENTIALS,
    "gateway.jobs": CREDENTIALS,
    "gateway.context_store": CREDENTIALS | {"gateway.jobs"},
    "gateway.oauth_server": CREDENTIALS,
    "gateway.sign_in": CREDENTIALS | {"gateway.oauth_client"},
    "gateway.console": CREDENTIALS,
    "gateway.connect_links": CREDENTIALS | {"gateway.oauth_client"},
    "gateway.operations.deletion": DOMAINS,
    "gateway.operations.call": CALLS,
    "gateway.operations.execution": CALLS | {"gateway.operations.call"},
    "gateway.operations.copy_search": CALLS | {"gateway.operations.call"},
    "gateway.key_rotation.sealed_tables": CREDENTIALS | {"gateway.jobs", "gateway.oauth_client"},
    "gateway.monitoring.health_checks": CREDENTIALS
    | {"gateway.settings", "gateway.key_rotation.sealed_tables", "gateway.monitoring.prometheus"},
    "gateway.agents.mcp": GROUND | {"gateway.credentials"},
    "gateway.services": USE_CASES | {"gateway.agents.mcp"},
    "gateway.saving": GROUND,
    "gateway.in_process": ENGINE
    | {"gateway.upstream.oauth_tokens", "gateway.upstream.field_selection", "gateway.saving"},
    "gateway.http.pages": SPECS | {"gateway.settings"},
    "gateway.agents.tools": PROCESSES | {"gateway.in_process"},
    "gateway.http": PROCESSES | {"gateway.agents.tools", "gateway.monitoring.health_checks", "gateway.http.pages"},
    "gateway.sandbox": SPECS,
    "gateway.client": {
        "gateway.errors",
        "gateway.aio",
        "gateway.operation_search",
        "gateway.agents.mcp",
        "gateway.saving",
    },
    "gateway.embedded": {"gateway.errors", "gateway.settings", "gateway.db"},
    "gateway.cli": PROCESSES
    | {
        "gateway",
        "gateway.agents.tools",
        "gateway.client",
        "gateway.embedded",
        "gateway.monitoring.health_checks",
        "gateway.key_rotation.sealed_tables",
        "gateway.http",
        "gateway.in_process",
        "gateway.sandbox",
        "workers",
    },
    "workers": PROCESSES,
}
#: libraries → the only modules or parts that name them
LIBRARIES = {
    "arq": {"gateway.jobs.wakeup"},
    "authlib": {"gateway.oauth_client", "gateway.upstream.oauth_tokens", "gateway.oauth_server", "gateway.sign_in"},
    "joserfc": {"gateway.sign_in"},
    "jinja2": {"gateway.http.pages", "gateway.oauth_server"},
    "mcp_types": {"gateway.agents.mcp", "gateway.agents.tools", "gateway.client"},
}


def part_of(module: str) -> str:
    module = APART.get(module, module)
    if module in ALLOWED:
        return module
    return ".".join(module.split(".")[:2]) if module.startswith("gateway.") else module.split(".")[0]


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


@pytest.mark.parametrize("part", sorted({part_of(module) for module in MODULES}))
def test_a_part_imports_only_what_it_may(part: str):
    outward = {
        f"{module} imports {name}"
        for module, names in imports().items()
        if part_of(module) == part
        for name in names & MODULES.keys()
        if part_of(name) not in ALLOWED[part] | {part}
    }

    assert outward == set()


def test_no_modules_import_each_other():
    try:
        TopologicalSorter({module: names & MODULES.keys() for module, names in imports().items()}).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_no_parts_may_import_each_other():
    try:
        TopologicalSorter(ALLOWED).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_a_class_name_stands_for_one_thing():
    #: the sandbox plays applications, which have words of their own
    ours = {module: path for module, path in MODULES.items() if part_of(module) != "gateway.sandbox"}
    defining: dict[str, list[str]] = {}
    for module, path in ours.items():
        for node in read(path):
            if isinstance(node, ast.ClassDef):
                defining.setdefault(node.name, []).append(module)

    assert {name: modules for name, modules in defining.items() if len(modules) > 1} == {}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_named_where_it_belongs(library: str):
    naming = {module for module, names in imports().items() if any(name.split(".")[0] == library for name in names)}

    assert {module for module in naming if not LIBRARIES[library] & {module, part_of(module)}} == set()


_SERVER_LIBRARIES = {"asyncpg", "redis", "arq", "aiohttp.web"}


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import gateway", _SERVER_LIBRARIES),
        ("from gateway import connect", _SERVER_LIBRARIES),
        ("from gateway.client import Gateway", _SERVER_LIBRARIES),
        ("import gateway.http.server.serve", {"mcp_types", "joserfc", "snowballstemmer", "gateway.http.openapi"}),
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
