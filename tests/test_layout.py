"""Imports point upwards in the list of rooms: rooms and parts form no cycle, and light imports stay light."""

import ast
import re
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
#: the rooms in reading order: each may import those above it, and no others
ROOMS = (
    *("errors", "contract", "foundation", "kinds", "upstream", "settings", "in_process", "gateway", "access"),
    *("connectors", "events", "jobs", "context_store", "operations", "run", "workers", "agents", "web"),
    *("sandbox", "embedded", "client", "cli", "__main__"),
)
#: capabilities whose use cases take and return shapes of the contract: handlers reach them by `Services` alone
CAPABILITIES = (
    *(
        "access.oauth_server",
        "access.policy",
        "access.provisioning",
        "access.request_log",
        "access.sign_in",
        "connectors",
        "context_store",
        "events",
    ),
    *("operations.batches", "operations.exports", "operations.schedules", "operations.uploads"),
)
_STORAGE = ("foundation.db", "foundation.vault")
#: package → what it never imports, although it stands above
FORBIDDEN = {
    "web": (*CAPABILITIES, *_STORAGE, "upstream.limits"),
    "upstream": _STORAGE,
    "in_process": (*_STORAGE, "access.identity"),
    "client": ("run", "foundation.db", "jobs", "connectors", "operations"),
    "workers": ("web", "agents"),
    "sandbox": ("upstream", "foundation.db"),
}
#: the part of the engine that shares its state by PostgreSQL: only processes that have one use it
SHARED = "upstream.limits"
#: library → the only packages that import it
LIBRARIES = {
    "arq": {"gateway.jobs.wakeup"},
    "authlib": {
        "gateway.connectors.consent",
        "gateway.upstream.oauth_tokens",
        "gateway.access.oauth_server",
        "gateway.access.sign_in",
    },
    "cedarpy": {"gateway.access.policy"},
    "cronsim": {"gateway.operations.schedules.cron"},
    "joserfc": {
        "gateway.access.sign_in",
        "gateway.foundation.vault.key_services.google",
        "gateway.sandbox.signed_grants",
        "gateway.upstream.oauth_tokens",
    },
    "markdown_it": {"gateway.web.docs_site"},
    "pygments": {"gateway.web.docs_site"},
    "jinja2": {"gateway.web.pages", "gateway.access.oauth_server"},
    "scim2_models": {"gateway.access.provisioning"},
    "mcp_types": {"gateway.agents.mcp", "gateway.agents.tools", "gateway.client"},
}


#: modules between applications and callers that decode other JSON: requests of the gateway, a query, a checkpoint
OWN_JSON = {
    "gateway.upstream.connector",
    "gateway.upstream.upload",
    "gateway.context_store.sync.checkpoint",
    "gateway.upstream.import_process",
}


def room_of(module: str) -> str:
    """The room below `gateway`, or the module itself if it stands alone: `workers`, `gateway`, `errors`."""
    return module.removeprefix("gateway.").split(".")[0]


def is_within(module: str, package: str) -> bool:
    """Whether a module is a package below `gateway`, such as `access.audit`, or inside it."""
    name = module.removeprefix("gateway.")
    return name == package or name.startswith(f"{package}.")


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


def test_every_room_has_its_place():
    assert {room_of(module) for module in MODULES} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_stands_above_it(room: str):
    above = {*ROOMS[: ROOMS.index(room)], room}

    others = {
        f"{module} imports {name}"
        for module, names in imports().items()
        if room_of(module) == room
        for name in names & MODULES.keys()
        if room_of(name) not in above
    }

    assert others == set()


@pytest.mark.parametrize("room", FORBIDDEN)
def test_a_room_imports_nothing_that_is_forbidden_to_it(room: str):
    forbidden = {
        f"{module} imports {name}"
        for module, names in imports().items()
        if room_of(module) == room and not is_within(module, SHARED)
        for name in names & MODULES.keys()
        if any(is_within(name, package) for package in FORBIDDEN[room])
    }

    assert forbidden == set()


def test_the_parts_of_every_package_have_an_order():
    cycles = {}
    for package in {module.rpartition(".")[0] for module in MODULES if module.count(".") > 1}:
        parts: dict[str, set[str]] = {}
        for module, names in imports().items():
            if module.startswith(f"{package}."):
                inside = {name for name in names & MODULES.keys() if name.startswith(f"{package}.")}
                part, *_ = module.removeprefix(f"{package}.").split(".")
                others = {name.removeprefix(f"{package}.").split(".")[0] for name in inside}
                parts[part] = parts.get(part, set()) | others - {part}
        try:
            TopologicalSorter(parts).prepare()
        except CycleError as error:
            cycles[package] = error.args[1]

    assert cycles == {}


def test_no_modules_import_each_other():
    try:
        TopologicalSorter({module: names & MODULES.keys() for module, names in imports().items()}).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_a_class_name_stands_for_one_thing():
    #: the sandbox plays applications, which have words of their own
    ours = {module: path for module, path in MODULES.items() if room_of(module) != "sandbox"}
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
SURFACES = ("gateway.web.api", "gateway.web.console", "gateway.agents.tools")
#: members of `Services` that are stores
STORES = {"connector_store", "job_store", "schedule_store", "store"}


@pytest.mark.parametrize("module", sorted(module for module in MODULES if module.startswith(SURFACES)))
def test_surfaces_call_use_cases_and_no_store(module: str):
    tree = ast.parse(MODULES[module].read_text("utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}

    assert used & STORES == set()
    assert {
        name for name in imports()[module] if name.endswith(".store") or name == "gateway.foundation.db.pool"
    } == set()


_SERVER_LIBRARIES = {"asyncpg", "redis", "arq", "aiohttp.web"}


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import gateway", _SERVER_LIBRARIES),
        ("from gateway import connect", _SERVER_LIBRARIES),
        ("from gateway.client import Gateway", _SERVER_LIBRARIES),
        (
            "import gateway.web.server.serve",
            {"mcp_types", "joserfc", "snowballstemmer", "gateway.web.openapi", "pygments"},
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


def test_what_applications_send_is_decoded_in_one_module():
    """msgspec and the standard library refuse JSON that RFC 8259 allows; `gateway.foundation.payloads` does not."""
    between = {
        name: path.read_text("utf-8")
        for name, path in MODULES.items()
        if name.startswith(("gateway.upstream.", "gateway.context_store.sync.")) and name not in OWN_JSON
    }
    decoding = [name for name, text in between.items() if re.search(r"\bjson\.(decode|loads|Decoder)\b", text)]

    assert len(between) > 50
    assert decoding == []
