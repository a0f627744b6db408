"""The baselines of downloads: an application with files of any size, and relays that only forward them.

python -m tests.benchmarks.file_relays application|aiohttp|starlette PORT [APPLICATION_URL]
"""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

from aiohttp import ClientSession, ClientTimeout, web

from tests.benchmarks.relays import SMALL, answer

MIB = 1 << 20
_PIECE = bytes(MIB)
_NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log /dev/null;
events {{ worker_connections 1024; }}
http {{
    access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass {upstream}; proxy_http_version 1.1; proxy_max_temp_file_size 0; }}
    }}
}}
"""


class Application(asyncio.Protocol):
    """`/files/N` is N MiB of zeros as fast as they are taken; a record of it and a list of tickets beside it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(MIB)
        self._left, self._is_paused = 0, False

    def data_received(self, data: bytes) -> None:
        path = data.split(b" ", 2)[1].decode()
        number = re.search(r"/(?:files|attachments)/(\d+)", path)
        if number is None:
            self._answer(answer(SMALL))
        elif path.startswith("/files/"):
            self._left = int(number[1])
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (self._left * MIB))
            self._send()
        else:
            port = self._transport.get_extra_info("sockname")[1]
            record = {"content_url": f"http://127.0.0.1:{port}/files/{number[1]}", "size": int(number[1]) * MIB}
            self._answer(json.dumps({"attachment": record}).encode())

    def _answer(self, body: bytes) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def _send(self) -> None:
        while self._left and not self._is_paused and not self._transport.is_closing():
            self._left -= 1
            self._transport.write(_PIECE)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._send()


def aiohttp_relay(upstream: str) -> web.Application:
    """The least that an aiohttp server can do, with the settings that measured best."""
    session = web.AppKey("session", ClientSession)

    async def relay(request: web.Request) -> web.StreamResponse:
        async with request.app[session].get(upstream + request.path) as answer:
            response = web.StreamResponse(headers={"Content-Length": answer.headers["Content-Length"]})
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
        return response

    async def opened(app: web.Application) -> AsyncIterator[None]:
        async with ClientSession(read_bufsize=64 << 10, auto_decompress=False, timeout=ClientTimeout()) as app[session]:
            yield

    app = web.Application()
    app.cleanup_ctx.append(opened)
    app.router.add_get("/{path:.*}", relay)
    return app


def starlette_relay(upstream: str, port: int) -> None:
    """The same with starlette, httpx and uvicorn."""
    import httpx
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    client = httpx.AsyncClient(timeout=None)

    async def relay(request: Request) -> StreamingResponse:
        answer = await client.send(client.build_request("GET", upstream + request.url.path), stream=True)
        headers = {"Content-Length": answer.headers["Content-Length"]}
        return StreamingResponse(answer.aiter_raw(), headers=headers)

    app = Starlette(routes=[Route("/{path:path}", relay)])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


def nginx_settings(folder: Path, port: int, upstream: str) -> Path:
    """A file of settings for one nginx process that passes everything on."""
    path = folder / "nginx.conf"
    path.write_text(_NGINX.format(folder=folder, port=port, upstream=upstream))
    return path


async def _serve(app: web.Application, port: int) -> None:
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    await asyncio.Event().wait()


async def _serve_files(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Application, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


def main(what: str, port: str, upstream: str = "") -> None:
    if what == "starlette":
        starlette_relay(upstream, int(port))
        return
    import uvloop

    uvloop.run(_serve_files(int(port)) if what == "application" else _serve(aiohttp_relay(upstream), int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
