"""Faults of a body or a query: plain sentences with the value that was sent."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import pytest
from pydantic import Field, ValidationError

from gateway.web.bodies import Body, Moment, QueryString
from gateway.web.faults import sentence


class Sent(Body):
    params: dict[str, Any] | None = None
    name: str = Field("a", min_length=1, max_length=3)
    names: list[str] | None = Field(None, max_length=1)
    is_full: bool | None = None
    count: int = Field(1, ge=1, le=3)
    credentials: dict[str, int] | None = None
    client_secret: str | None = None


class Other(Body):
    credentials: dict[str, int]


class Asked(QueryString):
    limit: int = Field(1, ge=1)
    since: Moment | None = None
    connector_id: UUID | None = None
    format: Literal["mcp", "openai"] = "mcp"
    full: bool = False


@pytest.mark.parametrize(
    ("model", "name", "value", "said"),
    [
        (Sent, "params", "x", 'params is "x"; expected an object'),
        (Sent, "params", [1], "params is an array of 1; expected an object"),
        (Sent, "name", 5, "name is 5; expected a string"),
        (Sent, "name", {"a": 1}, "name is an object; expected a string"),
        (Sent, "name", "", 'name is ""; at least 1 characters'),
        (Sent, "name", "é" * 90, f'name is "{"é" * 59}…; at most 3 characters'),
        (Sent, "names", "x", 'names is "x"; expected an array'),
        (Sent, "names", ["a", "b"], "names is an array of 2; at most 1 items"),
        (Sent, "is_full", 1, "is_full is 1; expected true or false"),
        (Sent, "count", "2", 'count is "2"; expected a whole number'),
        (Sent, "count", 0, "count is 0; at least 1"),
        (Sent, "count", 9, "count is 9; at most 3"),
        (Sent, "client_secret", 5, "client_secret is not a string; expected a string"),
        (Other, "credentials", None, "credentials is null; expected an object"),
        (Other, "credentials", 5, "credentials is not a string; expected an object"),
        (Sent, "credentials", {"pin": "s3cret"}, "credentials.pin is a string; expected a whole number"),
        (Asked, "limit", "x", 'limit is "x"; expected a whole number'),
        (Asked, "since", "x", 'since is "x"; expected a time such as 2026-01-31T09:00:00Z'),
        (Asked, "since", "2026", 'since is "2026"; expected a time such as 2026-01-31T09:00:00Z'),
        (Asked, "since", "-1.5", 'since is "-1.5"; expected a time such as 2026-01-31T09:00:00Z'),
        (Asked, "since", "0001-01-01T00:00:00+14:00", "since: it must be between the years 1 and 9999 in UTC"),
        (Asked, "connector_id", "z", 'connector_id is "z"; expected a UUID'),
        (Asked, "format", "x", "format is \"x\"; expected 'mcp' or 'openai'"),
        (Asked, "full", "s", 'full is "s"; expected true or false'),
    ],
)
def test_a_fault_is_a_sentence_with_the_value_that_was_sent(model, name, value, said):
    with pytest.raises(ValidationError) as caught:
        model.model_validate({name: value})

    [fault] = caught.value.errors(include_url=False)
    assert sentence(".".join(map(str, fault["loc"])), fault) == said


def test_the_error_of_a_time_without_a_zone_has_an_example_with_a_zone():
    with pytest.raises(ValidationError) as caught:
        Asked(since=datetime(2026, 1, 1))

    [fault] = caught.value.errors(include_url=False)
    assert "a time with its zone such as 2026-01-31T09:00:00Z" in sentence("since", fault)
