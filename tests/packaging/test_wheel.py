"""The built packages: their content, and the installed programs in new environments."""

import asyncio
import json
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from gateway.web.docs_site.documents import documents
from tests.client.stub import Stub
from tests.harness.caller import Api
from tests.harness.processes import bare_environment
from tests.harness.up import brought_up

#: the one file below tests/ that is a document
REPORT = "tests/benchmarks/REPORT.md"
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {name: value for name, value in bare_environment().items() if not name.startswith("PYTHON")}
#: uses the parts that need no extra: the client's types, and the engine
PROGRAM = """
import gateway, gateway.client, gateway.errors
from gateway import connect_sync

credentials = {"subdomain": "acme", "email": "a@example.com", "api_token": "t"}
with connect_sync("support-desk", credentials) as desk:
    print(desk.dry_run("tickets", "list", {"per_page": 2})[0]["url"])
"""


@pytest.fixture(scope="module")
def place(short_directory):
    """A folder that every user may enter: under root the local servers run as another user."""
    short_directory.chmod(0o755)
    place = short_directory / "installed"
    place.mkdir()
    return place


@pytest.fixture(scope="module")
def packages(place):
    """The sdist, and the wheel that is built from it."""
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(place), str(ROOT)], check=True, capture_output=True)
    [sdist], [wheel] = place.glob("*.tar.gz"), place.glob("*.whl")
    return sdist, wheel


def environment(folder: Path, requirement: str) -> Path:
    """The bin folder of a new environment with only the requirement and its dependencies."""
    venv.create(folder)
    subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pip",
                "--python",
                str(folder),
                "--disable-pip-version-check",
                "install",
                "--quiet",
            ),
            *("--no-compile", "--constraint", str(ROOT / "constraints.txt"), requirement),
        ],
        check=True,
        capture_output=True,
    )
    return folder / "bin"


@pytest.fixture(scope="module")
def installed(packages, place):
    """An environment with the wheel and all extras."""
    return environment(place / "venv", f"{packages[1]}[all]")


@pytest.fixture(scope="module")
def base(packages, place):
    """An environment with the sdist, without extras."""
    return environment(place / "base", str(packages[0]))


def run(program: Path, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(program), *words], env={**ENVIRONMENT, **variables}, cwd="/", capture_output=True, text=True
    )


def test_the_packages_have_the_right_files_and_no_others(packages):
    with tarfile.open(packages[0]) as archive:
        source = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(packages[1]) as archive:
        built = set(archive.namelist())

    assert {"gateway/py.typed", "gateway/specs/support-desk/tickets.yaml", "workers/main.py"} <= built
    assert {"gateway/py.typed", "specs/support-desk/tickets.yaml", "CHANGELOG.md"} <= source
    assert {name.partition("/")[0] for name in built if ".dist-info/" not in name} == {"gateway", "workers"}
    assert not [
        name for name in built | source if "__pycache__" in name or (name.startswith("tests/") and name != REPORT)
    ]


def test_the_wheel_has_every_document_of_the_site(packages):
    with zipfile.ZipFile(packages[1]) as archive:
        built = set(archive.namelist())

    assert [source for source in documents() if f"gateway/documents/{source}" not in built] == []
    assert not [name for name in built if name.startswith("gateway/documents/") and not name.endswith(".md")]


def test_the_command_and_the_packages_have_the_same_version(base, packages):
    output = run(base / "gateway", "--version").stdout

    assert output.split()[-1] in packages[1].name
    assert output.split()[-1] in packages[0].name


def test_the_base_install_has_engine_client_and_help(base):
    engine = run(base / "python", "-c", PROGRAM)
    helped = run(base / "gateway", "--help")
    kinds = run(base / "gateway", "types", "--offline", "--json")

    assert engine.stdout.startswith("https://acme.zendesk.com/api/v2/tickets.json"), engine.stderr
    assert "Run the gateway" in helped.stdout
    assert "support-desk" in [kind["kind"] for kind in json.loads(kinds.stdout)]


@pytest.mark.parametrize("environment_of", ["base", "installed"])
def test_operations_are_found_with_and_without_the_vectors_of_words(environment_of, request):
    program = request.getfixturevalue(environment_of) / "gateway"

    found = run(program, "find", "close a zendesk ticket", "--offline", "-o", "json")

    assert json.loads(found.stdout)["data"][0]["operation"] == "support-desk.tickets.update", found.stderr


async def test_the_base_install_calls_a_gateway(base):
    async with TestServer(Stub().application()) as server:
        settings = {
            "GATEWAY_URL": str(server.make_url("")),
            "GATEWAY_CLIENT_ID": "id",
            "GATEWAY_CLIENT_SECRET": "s3cret",
        }
        called = await asyncio.to_thread(run, base / "gateway", "call", "support-desk", "tickets", "list", **settings)

    assert [ticket["id"] for ticket in json.loads(called.stdout)] == [1, 2], called.stderr


@pytest.mark.parametrize("command", ["serve", "worker", "migrate", "doctor", "up", "demo", "admin client list"])
def test_the_base_install_says_what_running_a_gateway_needs(base, command):
    ended = run(base / "gateway", *command.split())

    # The gateway that a demo starts ends with 2; the demo is a step that failed.
    assert ended.returncode == (1 if command == "demo" else 2)
    assert "Traceback" not in ended.stderr
    assert 'install "agent-connector-gateway[' in ended.stderr


def test_the_shipped_kinds_are_installed(installed, tmp_path):
    output = subprocess.run(
        [str(installed / "gateway"), "types", "-o", "json"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout

    assert "support-desk" in output


async def test_the_wheel_runs_the_whole_gateway_where_no_other_program_is_installed(installed, short_directory):
    folder = short_directory / "wheel"
    (folder / "no-programs").mkdir(parents=True)
    bare = {**ENVIRONMENT, "PATH": str(folder / "no-programs")}

    async with (
        brought_up(folder, bare, command=[str(installed / "agent-connector-gateway")]) as ready,
        Api.of(ready["base_url"], ready["client_id"], ready["client_secret"]) as api,
    ):
        is_ready = await api.get("/readyz")
        document = await api.get("/docs/how-to/call")
        checks = await api.get("/api/v1/health/checks")

    assert (is_ready.status, document.status) == (200, 200)
    assert [each for each in checks.json()["data"] if each["status"] == "failed"] == []
    assert {"PostgreSQL", "Redis", "workers"} <= {each["what"] for each in checks.json()["data"]}
