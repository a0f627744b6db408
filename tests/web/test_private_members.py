"""The members of aiohttp that are not public and that the gateway uses: a new version is tried against this list."""

import ast
import inspect
from pathlib import Path

import pytest
from aiohttp import TCPConnector, web
from aiohttp.web_protocol import RequestHandler

ROOT = Path(__file__).parents[2]
#: module → class of aiohttp → the private members of it that the module uses
USED = {
    "gateway/web/server/connection_guard.py": {
        web.Server: {"_kwargs", "_loop"},
        web.AppRunner: {"_make_server"},
        RequestHandler: {
            *(
                "_close",
                "_current_request",
                "_force_close",
                "_loop",
                "_messages",
                "_next_keepalive_close_time",
                "_request_count",
            ),
            *("_task_handler", "_waiter"),
        },
    },
    "gateway/upstream/egress.py": {TCPConnector: {"_create_connection", "_loop", "_resolve_host"}},
}


def private_names(path: Path) -> set[str]:
    """The private names that a module reads of objects, without the functions and members that it defines itself."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    constructors = [node for function in functions if function.name == "__init__" for node in ast.walk(function)]
    read = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr[0] == "_" and node.attr[1] != "_"]
    own = {function.name for function in functions if not function.decorator_list} | {
        node.attr for node in constructors if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    of_super = {node.attr for node in read if ast.unparse(node.value) == "super()"}
    return {node.attr for node in read if node.attr not in own} | of_super


@pytest.mark.parametrize("module", USED)
def test_a_module_uses_only_the_private_members_that_are_listed(module: str):
    listed = set().union(*USED[module].values())

    assert private_names(ROOT / module) == listed


@pytest.mark.parametrize("module", USED)
def test_the_private_members_exist(module: str):
    missing = {
        f"{cls.__name__}.{name}"
        for cls, names in USED[module].items()
        for name in names
        if not hasattr(cls, name) and f"self.{name} = " not in inspect.getsource(inspect.getmodule(cls))
    }

    assert missing == set()
