"""The gateway with exactly the settings that the image and compose give it, on a real PostgreSQL and Redis."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.databases import created_database, url_of
from tests.harness.processes import Gateway, bare_environment, free_port
from tests.harness.waiting import eventually

DEPLOY = Path(__file__).parents[2] / "deploy"
SERVICES = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
#: what deploy/README.md has written to deploy/.env
SECRETS = {
    "GATEWAY_POSTGRES_PASSWORD": "0123456789abcdef",
    "GATEWAY_REDIS_PASSWORD": "fedcba9876543210",
    "GATEWAY_MINIO_PASSWORD": "0f1e2d3c4b5a6978",
    "GATEWAY_ENCRYPTION_KEYS": "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
}

pytestmark = pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server")


def interpolated(text: str) -> str:
    """Compose's own interpolation, as far as the file uses it: ${NAME:-default}, ${NAME:?why} and $$."""

    def value(match: "re.Match[str]") -> str:
        return "$" if match[0] == "$$" else SECRETS.get(match["name"], match["default"] or "")

    return re.sub(r"\$\$|\$\{(?P<name>\w+)(?::-(?P<default>[^}]*)|:\?[^}]*)?\}", value, text)


def image_settings() -> dict[str, str]:
    """The ENV of the image that is run."""
    text = (DEPLOY / "Dockerfile").read_text("utf-8").rpartition("FROM ")[2].replace("\\\n", " ")
    [line] = [line for line in text.splitlines() if line.startswith("ENV ")]
    return dict(word.split("=", 1) for word in line.split()[1:])


@pytest.fixture
def redis_port(tmp_path: Path) -> Iterator[int]:
    """Redis as compose runs it."""
    service, port = SERVICES["redis"], free_port()
    command = [interpolated(word) for word in service["command"]]
    command[-1] = f"{command[-1]} --port {port} --bind 127.0.0.1 --dir {tmp_path}".replace("/data/", f"{tmp_path}/")
    environment = {name: interpolated(value) for name, value in service["environment"].items()}
    with subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL) as process:
        yield port
        process.terminate()


@pytest.fixture
async def settings(
    tmp_path: Path, postgres_url: str, migrated_database: str, redis_port: int
) -> AsyncIterator[dict[str, str]]:
    """The settings of compose's services, the stores' addresses and the ports being this machine's."""
    async with created_database(postgres_url, migrated_database) as name:
        given = {key: interpolated(value) for key, value in SERVICES["front-end"]["environment"].items()}
        assert given["GATEWAY_REDIS_URL"].endswith("@redis:6379/0")
        yield {
            **bare_environment(),
            **image_settings(),
            **given,
            "GATEWAY_DATABASE_URL": url_of(postgres_url, name),
            "GATEWAY_REDIS_URL": given["GATEWAY_REDIS_URL"].replace("redis:6379", f"127.0.0.1:{redis_port}"),
            "GATEWAY_BIND": f"0.0.0.0:{free_port()}",
            "GATEWAY_DATA_DIR": str(tmp_path),
            "PATH": os.environ["PATH"],
        }


@asynccontextmanager
async def running(service: str, settings: dict[str, str]) -> AsyncIterator[None]:
    """A service's own command, with a port of its own for its metrics."""
    environment = {**settings, "GATEWAY_METRICS_BIND": f"127.0.0.1:{free_port()}"}
    program = Gateway(*SERVICES[service]["command"], environment=environment)
    await program.start()
    try:
        yield
    finally:
        await program.stop()


async def _healthy(settings: dict[str, str]) -> bool:
    """What compose's own check of the front end says."""
    test: list[Any] = SERVICES["front-end"]["healthcheck"]["test"]
    port = settings["GATEWAY_BIND"].rpartition(":")[2]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *(word.replace(":8080", f":{port}") for word in test[2:]), stderr=asyncio.subprocess.DEVNULL
    )
    return await process.wait() == 0


async def test_the_front_end_becomes_healthy_when_a_worker_is_there(settings: dict[str, str]) -> None:
    migrate = Gateway(*SERVICES["migrate"]["command"], environment=settings)
    await migrate.start()
    assert await migrate.ended() == 0

    async with running("front-end", settings), running("worker", settings):
        await eventually(lambda: _healthy(settings))


def test_every_secret_that_compose_requests_is_one_that_the_readme_makes() -> None:
    asked = set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text("utf-8")))
    made = set(re.findall(r"^(GATEWAY_\w+)=\$\(", (DEPLOY / "README.md").read_text("utf-8"), re.MULTILINE))

    assert asked == made == set(SECRETS)
