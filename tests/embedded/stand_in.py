"""A substitute for `python -m gateway`: `serve` and `sandbox` answer with 200, `worker` only runs. Run as a child."""

import os
import signal
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Ready(BaseHTTPRequestHandler):
    """Answers every GET with 200."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        """Log nothing."""


class SharedServer(ThreadingHTTPServer):
    """An HTTP server that shares its port with other such servers."""

    allow_reuse_port = True

    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()


def serve(bind, server=ThreadingHTTPServer):
    host, _, port = bind.rpartition(":")
    server((host, int(port)), Ready).serve_forever()


def main(role, *arguments):
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    notes = os.environ.get("STAND_IN_NOTES")
    if notes:
        settings = "\n".join(f"{name}={value}" for name, value in os.environ.items() if name.startswith("GATEWAY_"))
        Path(notes, f"{role}-{os.getpid()}").write_text(settings)
    print(f"{role} is running", flush=True)
    if role == "serve":
        serve(os.environ["GATEWAY_BIND"], SharedServer if "--reuse-port" in arguments else ThreadingHTTPServer)
    elif role == "sandbox":
        serve(arguments[arguments.index("--bind") + 1])
    elif role == "broken":
        sys.exit("the disk is full")
    elif role == "invalid":
        print("Error: GATEWAY_X: is not a number", flush=True)
        sys.exit(2)
    else:
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
