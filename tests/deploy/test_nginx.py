"""`deploy/proxy/nginx.conf` in front of two front ends, which restart one after the other under load."""

import asyncio
import re
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.embedded.address import Address, accepts
from tests.harness.caller import Api
from tests.harness.databases import created_database, url_of
from tests.harness.deployment import deployed
from tests.harness.processes import Program, free_port
from tests.harness.waiting import eventually

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed"),
]

SITE = (Path(__file__).parents[2] / "deploy" / "proxy" / "nginx.conf").read_text("utf-8")
CALLERS = 6


def configured(folder: Path, port: int, upstreams: list[int]) -> str:
    """A whole configuration with the site, without TLS, on free ports."""
    site = re.sub(r"listen 443 ssl;", f"listen 127.0.0.1:{port};", re.sub(r"ssl_\w+ [^;]*;", "", SITE))
    for documented, actual in zip((8080, 8081), upstreams, strict=True):
        site = site.replace(f"127.0.0.1:{documented}", f"127.0.0.1:{actual}")
    folders = "".join(f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return (
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ access_log off; {folders}\n{site}\n}}\n"
    )


@asynccontextmanager
async def nginx(folder: Path, upstreams: list[int]) -> AsyncIterator[str]:
    port = free_port()
    folder.mkdir()
    (folder / "nginx.conf").write_text(configured(folder, port, upstreams))
    process = await asyncio.create_subprocess_exec("nginx", "-p", folder, "-e", "error.log", "-c", "nginx.conf")
    try:
        await eventually(lambda: asyncio.to_thread(accepts, Address("127.0.0.1", port)))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


def port_of(front_end: Program) -> int:
    return int(front_end.command[front_end.command.index("--bind") + 1].rpartition(":")[2])


async def test_a_rolling_restart_behind_nginx_fails_no_call(
    tmp_path: Path, postgres_url: str, redis_url: str, migrated_database: str
):
    async with (
        created_database(postgres_url, migrated_database) as name,
        deployed(tmp_path, url_of(postgres_url, name), redis_url, front_ends=0) as deployment,
    ):
        front_ends = [await deployment.front_end_apart() for _ in range(2)]
        client = await deployment.client()
        async with (
            nginx(tmp_path / "nginx", [port_of(each) for each in front_ends]) as base_url,
            Api.of(base_url, client.id, client.secret) as api,
        ):
            desk = await api.connector()
            answers: Counter[int] = Counter()
            is_over = asyncio.Event()

            async def call() -> None:
                while not is_over.is_set():
                    ticket = {"ticket": {"subject": "s", "comment": {"body": "b"}}}
                    for action, params in (("list", {"per_page": 1}), ("create", ticket)):
                        answers[(await desk.send("tickets", action, params)).status] += 1

            callers = [asyncio.create_task(call()) for _ in range(CALLERS)]
            for front_end in front_ends:
                await front_end.stop()
                await front_end.start()
            is_over.set()
            await asyncio.gather(*callers)

    assert answers.keys() == {200}
    assert answers.total() > 50
