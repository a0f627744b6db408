"""The address that the front ends listen on, checked before anything is started."""

import errno
import socket
import time
from dataclasses import dataclass, replace

from gateway.embedded import StartupError

#: seconds to wait until front ends of a killed run have released their port
TIMEOUT = 1.0

#: the loopback address at which a listener on all addresses is reached
REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared with, not listened on


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port; an IPv6 host has no brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def base_url(self) -> str:
        """The URL of the address for programs on this machine."""
        return f"http://{replace(self, host=REACHABLE.get(self.host, self.host))}"


def parse_address(text: str) -> Address:
    """Parse `host:port` or `[host]:port`; port 0 means any free port. Raises StartupError."""
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise StartupError(f"--bind is '{text}', which is not host:port; for example 127.0.0.1:8080 or [::1]:8080.")
    return Address(host, int(port))


def free_address(address: Address, *, or_another: bool = False) -> Address:
    """The address, with a free port in place of port 0, and with `or_another` in place of a port in use; raises
    StartupError if it cannot be listened on.
    """
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return Address(address.host, _try_to_listen(address))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                message = f"Cannot listen on {address} ({error}). Choose another address with --bind."
                raise StartupError(message) from error
            if time.monotonic() > deadline and or_another:
                return free_address(replace(address, port=0))
            if time.monotonic() > deadline:
                raise StartupError(
                    f"Port {address.port} on {address.host} is in use by another program. Stop that program, or choose "
                    f"another port with --bind, for example --bind {replace(address, port=0)} for any free port."
                ) from error
            time.sleep(0.05)


def _try_to_listen(address: Address) -> int:
    family, kind, protocol, _, target = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        attempt.bind(target)
        attempt.listen(1)
        port: int = attempt.getsockname()[1]
        return port


def accepts(address: Address) -> bool:
    """Whether the address accepts connections."""
    try:
        with socket.create_connection((address.host, address.port), timeout=1.0):
            return True
    except OSError:
        return False
