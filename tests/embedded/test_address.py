"""The address to listen on: valid and invalid ones, and the errors for ports in use."""

import socket

import pytest

from gateway.embedded import StartupError
from gateway.embedded.address import Address, accepts, free_address, parse_address


@pytest.mark.parametrize(
    ("text", "address", "base_url"),
    [
        ("127.0.0.1:8080", Address("127.0.0.1", 8080), "http://127.0.0.1:8080"),
        ("0.0.0.0:80", Address("0.0.0.0", 80), "http://127.0.0.1:80"),
        ("[::1]:8080", Address("::1", 8080), "http://[::1]:8080"),
        ("[::]:8080", Address("::", 8080), "http://[::1]:8080"),
        ("localhost:0", Address("localhost", 0), "http://localhost:0"),
    ],
)
def test_an_address_is_host_and_port(text, address, base_url):
    assert parse_address(text) == address
    assert str(address) == text
    assert address.base_url == base_url


@pytest.mark.parametrize("text", ["", "8080", ":8080", "host:", "host:http", "host:65536", "host:-1", "host:²"])
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(StartupError, match=r"is not host:port; for example 127\.0\.0\.1:8080"):
        parse_address(text)


def test_port_0_becomes_a_free_port():
    address = free_address(Address("127.0.0.1", 0))

    assert address.port > 0
    assert not accepts(address)


def test_a_port_in_use_is_an_error_that_names_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(StartupError, match=rf"Port {port} on 127\.0\.0\.1 is in use .* --bind 127\.0\.0\.1:0"):
            free_address(Address("127.0.0.1", port))

        assert accepts(Address("127.0.0.1", port))


def test_another_port_is_taken_in_place_of_one_in_use_if_that_will_do():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        address = free_address(Address("127.0.0.1", port), or_another=True)

    assert (address.host, address.port != port) == ("127.0.0.1", True)


def test_an_address_of_another_machine_is_an_error_that_names_it():
    with pytest.raises(StartupError, match=r"Cannot listen on 192\.0\.2\.1:8080"):
        free_address(Address("192.0.2.1", 8080))
