"""The first errors of a value that does not match its JSON Schema."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import jsonschema_rs

from gateway.errors import MAX_FAULTS

#: values in a value beyond which only the first error is computed, and errors that all of them may have
_MANY, _MAX_ERRORS = 2000, 10_000
#: characters that count as a value, because an error holds a copy of what it is about
_CHARACTERS = 4096


def first_errors(
    validator: jsonschema_rs.Draft202012Validator, value: Any, breadth: int = 1
) -> Iterator[jsonschema_rs.ValidationError]:
    """The first `MAX_FAULTS` errors. `iter_errors` computes all before it returns one, so a large value gets one.

    `breadth` is that of the schema, which may find so many errors of one value.
    """
    if has_more_values_than(min(_MANY, _MAX_ERRORS // breadth), [value], _CHARACTERS):
        try:
            validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            yield error
        return
    yield from islice(validator.iter_errors(value), MAX_FAULTS)


def has_more_values_than(limit: int, value: Any, characters: int | None = None) -> bool:
    """Whether a value has more members and items at all depths; counts no further than `limit`.

    A text counts as another value for each so many `characters`.
    """
    containers, count = [value], 0
    while containers:
        container = containers.pop()
        count += len(container)
        if count > limit:
            return True
        members = container.values() if isinstance(container, dict) else container
        if characters:
            count += sum(len(member) // characters for member in members if isinstance(member, str))
            if count > limit:
                return True
        containers += [member for member in members if isinstance(member, dict | list)]
    return False
