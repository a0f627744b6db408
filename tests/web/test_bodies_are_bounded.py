"""The work for one body is bounded before it is validated."""

from math import inf

from pydantic import BaseModel

from gateway.contract.batches import MAX_OPERATIONS
from gateway.web.bodies import Body, Form, QueryString
from gateway.web.routes import ROUTES


def test_every_list_of_a_body_or_query_has_a_maximum_length():
    """Without `max_length` pydantic makes a fault for each of half a million items."""
    assert ROUTES  # imports every model
    models = [model for base in (Body, QueryString, Form) for model in _subclasses(base)]
    unbounded = [
        f"{model.__name__}.{name}"
        for model in models
        for name, schema in model.model_json_schema().get("properties", {}).items()
        for each in (schema, *schema.get("anyOf", ()))
        if each.get("type") == "array" and not each.get("maxItems", inf) <= MAX_OPERATIONS
    ]

    assert models
    assert unbounded == []


def test_a_page_has_a_thousand_items_at_most():
    limits = {
        f"{route.method} {route.path}": route.query.model_json_schema()["properties"]["limit"]
        for route in ROUTES
        if route.query is not None and "limit" in route.query.model_fields
    }
    unbounded = [
        name
        for name, schema in limits.items()
        for each in schema.get("anyOf", [schema])
        if each["type"] == "integer" and not each.get("maximum", inf) <= 1000
    ]

    assert limits
    assert unbounded == []


def _subclasses(base: type[BaseModel]) -> list[type[BaseModel]]:
    return [each for child in base.__subclasses__() for each in (child, *_subclasses(child))]
