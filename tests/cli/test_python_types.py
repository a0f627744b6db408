"""The Python types of a kind, checked by mypy with a caller's program."""

import pytest

from gateway.cli.python_types import python_types
from gateway.kinds.describe import kind_view
from tests.harness.catalog import shipped_catalog
from tests.type_checking import mypy

PROGRAM = """
from gateway import connect
from gateway.client import Gateway
from support_desk import SupportDesk, SupportDeskGateway, TicketsListParams

async def main() -> None:
    async with connect("support-desk", {}) as connected:
        desk: SupportDesk = connected
        params: TicketsListParams = {"per_page": 2, "sort_order": "asc"}
        print((await desk.execute("tickets", "list", params, select=["id"])).records)
        await desk.execute("tickets", "create", {"ticket": {"subject": "Fire", "status": "open"}})
    async with Gateway() as gateway:
        calls: SupportDeskGateway = gateway
        await calls.execute("support-desk", "tickets", "context_store_search", {"query": {}})
"""
#: a wrong call, and the error code of mypy
WRONG = {
    'await desk.execute("tickets", "lst")': "call-overload",
    'await desk.execute("tikets", "list")': "call-overload",
    'await desk.execute("tickets", "list", {"per_pag": 2})': "call-overload",
    'await desk.execute("tickets", "list", {"sort_order": "up"})': "call-overload",
    'await desk.execute("tickets", "get")': "call-overload",
}


@pytest.fixture
def folder(tmp_path):
    for kind in shipped_catalog():
        (tmp_path / f"{kind.name.replace('-', '_')}.py").write_text(python_types(kind_view(kind)))
    return tmp_path


@pytest.mark.processes
def test_mypy_accepts_the_types_of_every_kind(folder):
    (folder / "program.py").write_text(PROGRAM + "".join(f"import {path.stem}\n" for path in folder.glob("*.py")))

    checked = mypy(folder / "program.py")

    assert checked.returncode == 0, checked.stdout


@pytest.mark.processes
def test_mypy_reports_wrong_names_and_values(folder):
    lines = "".join(f"    {call}\n" for call in WRONG)
    (folder / "program.py").write_text(
        f"from support_desk import SupportDesk\n\nasync def main(desk: SupportDesk) -> None:\n{lines}"
    )

    output = mypy(folder / "program.py").stdout

    errors = [line for line in output.splitlines() if ": error: " in line]
    assert [line.rpartition("[")[2].rstrip("]") for line in errors] == list(WRONG.values()), output


async def test_the_command_prints_one_kind_whole(command):
    printed = await command("types", "team-chat", "--python", "--offline")
    part = await command("types", "team-chat", "channels", "--python", "--offline")

    assert printed.out == python_types(kind_view(shipped_catalog().kind("team-chat")))
    assert part.code == 2
