"""Names of hosts: which are public, and which a spec declares. Pure."""

import re
from collections.abc import Iterable
from ipaddress import ip_address

_LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
# The last label starts with a letter: many parsers read a name that ends in a number as an IPv4 address (127.1).
_DNS_NAME = re.compile(rf"(?=.{{1,253}}$)(?:{_LABEL}\.)+[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?", re.ASCII)
# Never public: names below them exist only in private networks.
_INNER_SUFFIXES = (
    "arpa",
    "corp",
    "home",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "private",
)


def is_forbidden_host(host: str) -> bool:
    """Whether a host is not a public DNS name: addresses in any notation and private names are forbidden."""
    name = host.lower()
    return _DNS_NAME.fullmatch(name) is None or name.rpartition(".")[2] in _INNER_SUFFIXES


def host_matches(host: str, patterns: Iterable[str]) -> bool:
    """Whether a public name matches a pattern: a name, `*.suffix` for all names below it, or `*` for any name."""
    if is_forbidden_host(host):
        return False
    name = host.lower()
    return any(
        pattern == "*" or (name.endswith(pattern[1:].lower()) if pattern.startswith("*.") else name == pattern.lower())
        for pattern in patterns
    )


def is_loopback(host: str) -> bool:
    """Whether a host of a URL is this machine: `localhost`, or an address such as 127.0.0.1 and ::1."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
