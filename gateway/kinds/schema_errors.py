"""The first errors of a value that does not match its JSON Schema."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import jsonschema_rs

from gateway.errors import MAX_FAULTS

#: values in a value beyond which only the first error is computed
_MANY = 2000


def first_errors(validator: jsonschema_rs.Draft202012Validator, value: Any) -> Iterator[jsonschema_rs.ValidationError]:
    """The first `MAX_FAULTS` errors. `iter_errors` computes all before it returns one, so a large value gets one."""
    if has_more_values_than(_MANY, value):
        try:
            validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            yield error
        return
    yield from islice(validator.iter_errors(value), MAX_FAULTS)


def has_more_values_than(limit: int, value: Any) -> bool:
    """Whether a value has more members and items at all depths; counts no further than `limit`."""
    containers, count = [value], 0
    while containers:
        container = containers.pop()
        count += len(container)
        if count > limit:
            return True
        members = container.values() if isinstance(container, dict) else container
        containers += [member for member in members if isinstance(member, dict | list)]
    return False
