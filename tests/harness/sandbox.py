"""The sandbox as a process, its faults, and the requests that it has received."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.harness.processes import Gateway, bare_environment, free_port


@asynccontextmanager
async def sandbox(directory: Path) -> AsyncIterator[str]:
    """The URL of a `gateway sandbox` that runs within the block."""
    port = free_port()
    program = Gateway(
        *("sandbox", "--bind", f"127.0.0.1:{port}"),
        environment=bare_environment(),
        log=directory / "sandbox.log",
    )
    await program.start()
    try:
        await program.answers(f"http://127.0.0.1:{port}/_sandbox/requests")
        yield f"http://127.0.0.1:{port}"
    finally:
        await program.kill()


async def received_requests(sandbox_url: str) -> list[dict[str, Any]]:
    """The requests that a sandbox has received, in order."""
    async with aiohttp.ClientSession(sandbox_url) as session, session.get("/_sandbox/requests") as response:
        requests: list[dict[str, Any]] = (await response.json())["requests"]
        return requests


@asynccontextmanager
async def fault(sandbox_url: str, **fault: Any) -> AsyncIterator[None]:
    """A fault of the sandbox within the block; the members are those of `POST /_sandbox/faults`."""
    async with aiohttp.ClientSession(sandbox_url) as session:
        async with session.post("/_sandbox/faults", json=fault) as response:
            assert response.status == 201
        try:
            yield
        finally:
            async with session.delete("/_sandbox/faults") as response:
                assert response.status == 204


@asynccontextmanager
async def faults(sandbox_url: str, **common: Any) -> AsyncIterator[Callable[..., Awaitable[None]]]:
    """`await arm(status=429)` adds a `fault` with the common members until the block ends."""
    async with AsyncExitStack() as stack:

        async def arm(**members: Any) -> None:
            await stack.enter_async_context(fault(sandbox_url, **common, **members))

        yield arm
