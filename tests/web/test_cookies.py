"""The cookies of the gateway: which values it accepts, and under which name."""

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gateway.access.identity.tokens import new_secret
from gateway.web.cookies import HostCookie
from gateway.web.keys import IS_HTTPS

COOKIE = HostCookie("gateway-test", 60)


def _secret(header: str, *, is_https: bool) -> str | None:
    app = web.Application()
    app[IS_HTTPS] = is_https
    return COOKIE.secret(make_mocked_request("GET", "/", {"Cookie": header}, app=app))


@pytest.mark.parametrize("value", ["a" * 42, "a" * 44, "ä" * 43, "٣" * 43, "a" * 42 + ".", ""])
def test_a_value_that_is_not_in_the_format_of_the_gateway_is_ignored(value: str) -> None:
    assert _secret(f"gateway-test={value}", is_https=False) is None


@pytest.mark.parametrize(("name", "is_https"), [("gateway-test", False), ("__Host-gateway-test", True)])
def test_a_secret_is_read_from_the_cookie_of_the_gateways_own_scheme(name: str, is_https: bool) -> None:
    secret = new_secret()

    assert _secret(f"{name}={secret}", is_https=is_https) == secret
    assert _secret(f"{name}={secret}", is_https=not is_https) is None
