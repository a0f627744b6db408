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


def _subclasses(base: type[BaseModel]) -> list[type[BaseModel]]:
    return [each for child in base.__subclasses__() for each in (child, *_subclasses(child))]
