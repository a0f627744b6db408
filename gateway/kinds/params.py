"""Checks params against their schema: one error names every fault, before anything is sent."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import jsonschema_rs
import msgspec

from gateway.errors import MAX_FAULTS, FieldError, InvalidParams
from gateway.foundation.aio.clock import CLOCK
from gateway.kinds.breadth import MAX_CHECKS
from gateway.kinds.catalog import Operation
from gateway.kinds.patterns import MAX_WORK, weight_of
from gateway.kinds.schema_errors import first_errors, has_more_values_than
from gateway.kinds.suggestions import Suggestions

#: maximum characters of a caller's value in an error
_SHOWN_CHARACTERS = 60
#: maximum nesting of params; no application accepts more
_DEPTH = 64
#: maximum members and items of params at all depths, because each takes time here and in the validator
MAX_VALUES = 50_000
#: maximum schemas that are looked at for patterns, and of them that lead from one to the other at the same value
_MAX_VISITS, _MAX_STEPS = 100_000, 50
#: the `format` of a comma-separated text; callers may send an array instead
COMMA_SEPARATED = "comma-separated"
#: numbers in text, and the maximum characters of one
_INTEGER, _DECIMAL, _MAX_DIGITS = re.compile(r"[0-9]+"), re.compile(r"-?[0-9]+\.[0-9]+"), 19
#: types of values that `_read` converts; a union such as `str | list` would be created again for each check
_TEXTS_AND_NESTED, _NESTED = (str, list, dict), (list, dict)
#: an example of each format
_FORMATS = {"date-time": " such as 2026-01-31T09:00:00Z", "date": " such as 2026-01-31"}


def validated(operation: Operation, params: Mapping[str, Any]) -> dict[str, Any]:
    """The params with `limit` mapped and defaults filled in; raises InvalidParams with every fault."""
    most = min(MAX_VALUES, MAX_CHECKS // operation.breadth)
    if has_more_values_than(most, params):
        text = f"params have more than {most:,} values; split the call"
        raise invalid(operation, [_field_error(operation, [], "maxItems", text)])
    if operation.plain_names:
        params = {operation.plain_names.get(name, name): value for name, value in params.items()}
    values = dict(params)
    for name, value in params.items():
        if isinstance(value, _TEXTS_AND_NESTED):
            values[name] = _read(operation, operation.action.params.get(name, {}), value)
    if "limit" in values and operation.is_list:
        values = _with_limit_mapped(operation, values)
    errors = list(islice(_unsafe_values(operation, values), MAX_FAULTS)) or _schema_errors(operation, values)
    if errors:
        raise invalid(operation, errors)
    completed = {**_defaults(operation, values), **values}
    for name, defaults in operation.member_defaults.items():
        if isinstance(completed.get(name), dict):
            completed[name] = {**defaults, **completed[name]}
    for name, value in completed.items():
        if isinstance(value, float) and value.is_integer():
            completed[name] = int(value)  # JSON Schema counts 2.0 as an integer; applications read `2`
    return completed


def _defaults(operation: Operation, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults of params; for a further page, only those of the params that its request repeats."""
    defaults = operation.defaults
    if operation.default_times:
        now = CLOCK.now()
        defaults = {**defaults, **{name: time.at(now) for name, time in operation.default_times.items()}}
    if not defaults:
        return {}
    paging = operation.instead(values).paging
    if paging is None or paging.repeat_params is None or paging.param not in values:
        return defaults
    return {name: value for name, value in defaults.items() if name in paging.repeat_params}


def invalid(operation: Operation, faults: Iterable[FieldError]) -> InvalidParams:
    """The error for these faults of a call, with an example of a valid call."""
    return InvalidParams(faults=faults, extra={"example": operation.example})


def _with_limit_mapped(operation: Operation, params: Mapping[str, Any]) -> dict[str, Any]:
    """The params with `limit` under the application's name for it; a list without paging is cut to it afterwards."""
    values = dict(params)
    paging = operation.instead(params).paging
    size = paging.size if paging else None
    is_own_param = size == "limit" or (size is None and "limit" in operation.action.params)
    if is_own_param:
        return values
    limit = _whole_number(values.pop("limit"))
    if limit is None or limit < 1:
        text = f"limit is {_shown(params['limit'])}; at least 1"
        raise invalid(operation, [_field_error(operation, ["limit"], "minimum", text)])
    if size is None:
        return values
    if values.setdefault(size, limit) != limit:
        text = f"limit is {limit} and {size} is {_shown(values[size])}; send one of them"
        raise invalid(operation, [_field_error(operation, ["limit"], "conflict", text)])
    return values


def unpaged_limit(operation: Operation, params: Mapping[str, Any]) -> int | None:
    """The `limit` of a list without paging, to which the gateway cuts the response; else None."""
    is_sized = operation.paging is not None and operation.paging.size is not None
    if not operation.is_list or is_sized or "limit" in operation.action.params:
        return None
    return _whole_number(params.get("limit"))


def _read(operation: Operation, schema: Mapping[str, Any], value: Any) -> Any:
    """A value converted for its schema: callers and models send numbers as text, and several ids as an array.

    `"35436"` names the same ticket as 35436; if the application takes a comma-separated text, `[1, 2]` is `"1,2"`.
    """
    if not isinstance(value, _TEXTS_AND_NESTED):
        return value
    if "$ref" in schema:
        schema = operation.resolved(schema)
    types = _types(schema)
    if isinstance(value, str):
        return _number(value, types)
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {
            name: _read(operation, properties[name], inner) if name in properties else inner
            for name, inner in value.items()
        }
    if schema.get("format") == COMMA_SEPARATED and value and all(isinstance(item, str | int) for item in value):
        return ",".join(map(str, value))
    return [_read(operation, schema["items"], item) for item in value] if "items" in schema else value


def _number(text: str, types: Sequence[str]) -> Any:
    """The text as a number, if it is one and the schema allows a number but no string; else the text."""
    if "string" in types or len(text) > _MAX_DIGITS:
        return text
    if ("integer" in types or "number" in types) and _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if "number" in types and _DECIMAL.fullmatch(text) else text


def _types(schema: Mapping[str, Any]) -> Sequence[str]:
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else types


def _schema_errors(operation: Operation, params: Mapping[str, Any]) -> list[FieldError]:
    """The faults that the schema finds, at most `MAX_FAULTS`, each with a complete sentence."""
    suggestions = Suggestions()
    if _is_long_to_match(operation, params):
        text = "the texts that must match patterns are too long together; shorten them, or split the call"
        return [_field_error(operation, [], "maxLength", text)]
    try:
        if operation.validator.is_valid(params):
            return []
        errors = (
            field_error
            for error in first_errors(operation.validator, params, operation.breadth)
            for field_error in _errors_of(operation, error, suggestions)
        )
        return list(islice(errors, MAX_FAULTS))
    except ValueError as error:
        return [_field_error(operation, [], "type", f"params are not JSON: {error}")]


def _is_long_to_match(operation: Operation, params: Mapping[str, Any]) -> bool:
    """Whether matching the texts of a call with patterns takes long: the bytes of each with the weights of its own."""
    work = 0
    if operation.patterns_elsewhere:
        work = operation.patterns_elsewhere * len(msgspec.json.encode(params, enc_hook=repr))
    visits = 0
    # Schemas with a value of theirs, and how many schemas lead there at the same value.
    patterned = operation.patterned_params.items()
    left: list[tuple[Any, Any, int]] = [(schema, params[name], 0) for name, schema in patterned if name in params]
    while left and work <= MAX_WORK and visits <= _MAX_VISITS:
        schema, value, steps = left.pop()
        if not isinstance(schema, Mapping):
            continue
        visits += 1 if steps < _MAX_STEPS else _MAX_VISITS
        beside = [each for name in ("allOf", "anyOf", "oneOf") for each in schema.get(name, ())]
        if "$ref" in schema:
            beside.append(operation.spec.definitions.get(schema["$ref"].removeprefix("#/$defs/")))
        left += [(each, value, steps + 1) for each in beside]
        if isinstance(value, str):
            pattern = schema.get("pattern")
            work += len(value.encode()) * weight_of(pattern) if isinstance(pattern, str) else 0
        elif isinstance(value, dict):
            properties, others = schema.get("properties", {}), schema.get("additionalProperties")
            members = ((properties.get(name, others), each) for name, each in value.items())
            left += [(inner, each, 0) for inner, each in members if isinstance(each, _TEXTS_AND_NESTED)]
        elif isinstance(value, list):
            left += [(schema.get("items"), each, 0) for each in value if isinstance(each, _TEXTS_AND_NESTED)]
    return work > MAX_WORK or visits > _MAX_VISITS


def _errors_of(
    operation: Operation, error: jsonschema_rs.ValidationError, suggestions: Suggestions
) -> Iterator[FieldError]:
    place = [str(part) for part in error.instance_path]
    kind, name = error.kind, ".".join(place)
    subject = f"{name or 'params'} is {_shown(error.instance)}"
    match kind.name:
        case "required":
            missing = [*place, kind.value]
            yield _field_error(
                operation, missing, "required", f"{'.'.join(missing)} is missing; {_what(operation, missing)}"
            )
        case "additionalProperties":
            properties = _schema_at(operation, place).get("properties", {})
            for unexpected in kind.value:
                named = [*place, unexpected]
                hint = operation.action.unsupported_params.get(unexpected) if not place else None
                hint = hint or _within(operation, place, unexpected)
                hint = hint or suggestions.did_you_mean(unexpected, properties)
                yield _field_error(operation, named, "unknown", f"{'.'.join(named)} is not a param; {hint}")
        case "enum":
            yield _field_error(operation, place, "enum", f"{subject}; allowed: {', '.join(map(str, kind.value))}")
        case "oneOf" | "anyOf" | "not":
            yield _field_error(operation, place, kind.name, f"{name or 'params'}: {_combination(operation, error)}")
        case "pattern":
            text = f"{subject}; must match {kind.value}{_described(_schema_at(operation, place))}"
            yield _field_error(operation, place, "pattern", text)
        case "type":
            yield _field_error(operation, place, "type", f"{subject}; expected {_what(operation, place)}")
        case _:
            expectation = f"{_expectation(kind.name, kind.value)}{_condition(error)}"
            yield _field_error(operation, place, kind.name, f"{subject}; {expectation}")


def _within(operation: Operation, place: list[str], name: str) -> str | None:
    """A hint for a member that belongs in an object beside it: `ticket.subject` for `subject`."""
    for outer in _schema_at(operation, place).get("properties", {}):
        if name in _schema_at(operation, [*place, outer]).get("properties", {}):
            return f"did you mean {'.'.join([*place, outer, name])}?"
    return None


def _condition(error: jsonschema_rs.ValidationError) -> str:
    """The param on which the violated rule depends: ` with NAME`."""
    path = list(error.schema_path)
    return f" with {path[path.index('dependentSchemas') + 1]}" if "dependentSchemas" in path else ""


def _expectation(keyword: str, value: Any) -> str:
    sentences = {
        "minimum": f"at least {value}",
        "maximum": f"at most {value}",
        "minLength": f"at least {value} characters",
        "maxLength": f"at most {value} characters",
        "minItems": f"at least {value} items",
        "maxItems": f"at most {value} items",
        "minProperties": f"at least {value} members",
        "format": f"must be a {value}{_FORMATS.get(value, '')}",
        "const": f"must be {_shown(value)}",
    }
    return sentences.get(keyword, f"must satisfy {keyword} {value}")


def _combination(operation: Operation, error: jsonschema_rs.ValidationError) -> str:
    """The sentence for `oneOf`, `anyOf` and `not` with `required`, the only form in which specs use them."""
    if error.kind.name == "not":
        excluded = error.kind.value.get("required", ["these params"])
        return f"{' and '.join(excluded)} exclude each other; send one of them"
    path = list(error.schema_path)
    choices = [" with ".join(choice.get("required", ["something else"])) for choice in _subschema(operation, path)]
    present = sorted(error.instance) if isinstance(error.instance, dict) else []
    requirement = f"{'exactly' if error.kind.name == 'oneOf' else 'at least'} one of {', '.join(choices)}"
    if "dependentSchemas" in path:
        return f"{path[path.index('dependentSchemas') + 1]} needs {requirement}; given: {', '.join(present)}"
    return f"{requirement} must be given; given: {', '.join(present) or 'none'}"


def _subschema(operation: Operation, path: Sequence[str | int]) -> Any:
    """The part of the operation's schema that a path of keywords leads to, through its definitions."""
    schema: Any = operation.schema
    for part in path:
        schema = operation.spec.definitions[schema["$ref"].removeprefix("#/$defs/")] if part == "$ref" else schema[part]
    return schema


def _field_error(operation: Operation, place: list[str], code: str, text: str) -> FieldError:
    pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in ["params", *place])
    return FieldError(
        pointer=_encodable(pointer),
        field=_encodable(".".join(place)),
        code=code,
        message=_encodable(f"{operation}: {text}"),
    )


def _encodable(text: str) -> str:
    """The text with lone surrogates escaped, so that it can be encoded in UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def _schema_at(operation: Operation, place: list[str]) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = operation.schema
    for part in place:
        inner = schema.get("items", {}) if part.isdigit() else schema.get("properties", {}).get(part)
        # The members of a map have one schema, or none.
        inner = schema.get("additionalProperties") if inner is None else inner
        schema = operation.resolved(inner if isinstance(inner, Mapping) else {})
    return schema


def _what(operation: Operation, place: list[str]) -> str:
    schema = _schema_at(operation, place)
    expected = schema.get("type", "a value")
    name = " or ".join(expected) if isinstance(expected, list) else expected
    return f"{name}{_described(schema)}"


def _described(schema: Mapping[str, Any]) -> str:
    return f" ({schema['description']})" if "description" in schema else ""


def _unsafe_values(operation: Operation, values: Mapping[str, Any]) -> Iterator[FieldError]:
    """Faults of values that cannot be sent: NUL and lone surrogates in text, numbers that JSON lacks, deep nesting."""
    # The members that are left at each depth, with the names that led there.
    left: list[Iterator[tuple[Any, Any]]] = [iter(values.items())]
    names: list[Any] = [""]
    while left:
        for key, member in left[-1]:
            names[-1] = key
            if isinstance(key, str) and not _is_plain(key):
                yield from _faults_of_text(operation, names, key)
            if isinstance(member, str):
                if not _is_plain(member):
                    yield from _faults_of_text(operation, names, member)
            elif isinstance(member, float):
                if not math.isfinite(member):
                    place = _shown_place(names)
                    yield _field_error(operation, place, "number", f"{'.'.join(place)} is not a finite number")
            elif member and isinstance(member, _NESTED):
                if len(names) > _DEPTH:
                    text = f"{names[0]} is nested more than {_DEPTH} levels deep"
                    yield _field_error(operation, _shown_place(names[:3]), "depth", text)
                    continue
                names.append("")
                left.append(iter(member.items() if isinstance(member, dict) else enumerate(member)))
                break
        else:
            left.pop()
            names.pop()


def _is_plain(text: str) -> bool:
    return text.isascii() and "\x00" not in text


def _faults_of_text(operation: Operation, names: Sequence[Any], text: str) -> Iterator[FieldError]:
    if "\x00" in text or _has_lone_surrogate(text):
        place = _shown_place(names)
        yield _field_error(operation, place, "text", f"{'.'.join(place)} contains NUL or a lone surrogate; remove it")


def _shown_place(names: Sequence[Any]) -> list[str]:
    return [str(name) for name in names]


def _has_lone_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _whole_number(value: object) -> int | None:
    """The whole number in a value such as 2, 2.0 or "2"; None for any other value."""
    if isinstance(value, str):
        value = _number(value, ("integer",))
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _shown(value: object) -> str:
    """The value as its caller wrote it: text in quotes, anything else as JSON."""
    text = repr(value) if isinstance(value, str) else msgspec.json.encode(value, enc_hook=repr).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
