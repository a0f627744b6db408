"""The linter of assertions: what a JWT is signed with, and what it may say."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.kinds.catalog import Kind
from gateway.kinds.lint.kind import lint_kind
from gateway.kinds.spec import ConnectorSpec

PAGE = (Path(__file__).parents[2] / "specs" / "README.md").read_text("utf-8")
[METHOD] = [
    block["authentication"]["service_account"]
    for block in (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
    if "service_account" in (block.get("authentication") or {})
]


def errors(method: dict[str, Any]) -> list[str]:
    """The errors about the authentication of a kind with one method."""
    spec = {
        "kind": "reports",
        "title": "Reports",
        "description": "Reports.",
        "server": "https://api.example.com",
        "hosts": ["api.example.com"],
        "environment": {
            "tenant": {"description": "tenant", "example": "a"},
            "region": {"description": "region", "required": False, "example": "a"},
        },
        "oauth": {"token_url": "https://api.example.com/{tenant}/token"},
        "authentication": {"way": method},
    }
    found = lint_kind(Kind(ConnectorSpec.model_validate(spec)))
    return [f"{'.'.join(place[2:])} {message}" for place, message in found if place[:2] == ("authentication", "way")]


def test_the_pages_example_of_a_service_account_is_sound():
    assert errors(METHOD) == []


def test_a_grant_without_an_assertion_and_one_without_the_grant_are_errors():
    without = {name: value for name, value in METHOD.items() if name != "assertion"}
    other = {name: value for name, value in METHOD.items() if name != "grant_type"}

    assert errors(without) == ["assertion is missing: the grant jwt_bearer sends a signed JWT"]
    assert "assertion has no effect without `oauth: true` and `grant_type: jwt_bearer`" in errors(other)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"key": "pem"}, "assertion.key pem is not among the required and secret credentials"),
        ({"key": "access_token"}, "assertion.key access_token is not among the required and secret credentials"),
        ({"claims": {"aud": "x"}}, "assertion.claims.aud is set by the gateway; it comes from `audience`"),
        ({"claims": {"iat": "x"}}, "assertion.claims.iat is set by the gateway"),
        ({"header": {"alg": "x"}}, "assertion.header.alg is set by the gateway; it comes from `algorithm`"),
        ({"claims": {"iss": "{credentials_json}"}}, "assertion.claims.iss credentials_json is a secret"),
        ({"claims": {"iss": "{private_key}"}}, "assertion.claims.iss private_key is a secret"),
        ({"header": {"kid": "{access_token}"}}, "assertion.header.kid access_token is a secret"),
        ({"key_member": None, "claims": {"iss": "{email}"}}, "needs {email}, which is neither a credential nor"),
        ({"audience": "https://{region}.example.com"}, "needs {region}, which is no variable that every connector has"),
        ({"audience": "https://{client_email}"}, "needs {client_email}, which is no variable"),
    ],
)
def test_an_assertion_that_cannot_be_signed_or_shows_a_secret_is_an_error(change: dict[str, Any], said: str):
    found = errors({**METHOD, "assertion": {**METHOD["assertion"], **change}})

    assert [each for each in found if said in each], found


def test_what_an_assertion_may_say():
    claims = {"iss": "{client_email}", "sub": "{tenant}", "box_sub_type": "enterprise"}
    assertion = {**METHOD["assertion"], "claims": claims, "header": {"kid": "{private_key_id}"}, "has_id": True}

    assert errors({**METHOD, "assertion": {**assertion, "audience": "https://{tenant}.example.com"}}) == []


@pytest.mark.parametrize("lifetime", [29, 3601])
def test_an_assertion_lasts_half_a_minute_to_an_hour(lifetime: int):
    with pytest.raises(ValueError, match="lifetime"):
        errors({**METHOD, "assertion": {**METHOD["assertion"], "lifetime": lifetime}})
