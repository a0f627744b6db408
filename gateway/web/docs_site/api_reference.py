"""The OpenAPI document for pages: operations by group, and the members of requests and responses. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.kinds.param_rows import ParamRow, param_rows, type_name
from gateway.web.docs_site.code import code_html, sample_html
from gateway.web.docs_site.markdown import inline_html, tabs_html

ROOT = "/docs/api"
_COMPONENTS = "#/components/schemas/"
_DEFINITIONS = "#/$defs/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A variable of the path, a member of the query or a header."""

    name: str
    place: str
    type: str
    is_required: bool
    meaning: str
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedBody:
    """A request body, or a response with its status."""

    status: str
    meaning: str
    media_types: tuple[str, ...]
    #: the name of its schema in the components; None if the schema is inline
    schema: str | None
    rows: tuple[ParamRow, ...]
    example: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOperation:
    """A method of a path."""

    id: str
    method: str
    path: str
    address: str
    summary: str
    description: str
    is_open: bool
    parameters: tuple[Parameter, ...]
    request: DescribedBody | None
    responses: tuple[DescribedBody, ...]
    #: status → what it means
    errors: tuple[tuple[str, str], ...]
    samples: str


@dataclass(frozen=True, slots=True)
class Group:
    """The operations of a tag."""

    name: str
    address: str
    description: str
    operations: tuple[ApiOperation, ...]


@dataclass(frozen=True, slots=True)
class ApiReference:
    """The groups of operations, the common headers and the schemas."""

    groups: tuple[Group, ...]
    #: headers that every operation reads
    headers: tuple[Parameter, ...]
    #: component → its description and members
    schemas: Mapping[str, tuple[str, tuple[ParamRow, ...]]]


def api_reference(document: Mapping[str, Any]) -> ApiReference:
    """The reference of an OpenAPI document."""
    definitions = {name: _local(schema) for name, schema in document["components"]["schemas"].items()}
    found = [
        (operation["tags"][0], method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    common = set.intersection(*({_key(each) for each in operation["parameters"]} for *_, operation in found))
    groups = tuple(
        Group(
            tag["name"],
            f"{ROOT}/{slug_of(tag['name'])}",
            tag["description"],
            tuple(
                _operation(method, path, operation, common, definitions)
                for name, method, path, operation in found
                if name == tag["name"]
            ),
        )
        for tag in document["tags"]
    )
    headers = tuple(_parameter(each) for each in found[0][3]["parameters"] if _key(each) in common)
    schemas = {
        name: (str(schema.get("description", "")), _rows(schema, definitions)) for name, schema in definitions.items()
    }
    return ApiReference(groups, headers, schemas)


def slug_of(name: str) -> str:
    """A group's name in a URL."""
    return re.sub(r"\W+", "-", name.lower())


def _key(parameter: Mapping[str, Any]) -> tuple[str, str]:
    return parameter["in"], parameter["name"]


def _operation(
    method: str,
    path: str,
    operation: Mapping[str, Any],
    common: set[tuple[str, str]],
    definitions: Mapping[str, Any],
) -> ApiOperation:
    samples = [
        (each["label"], sample_html(each["label"], each["source"])) for each in operation.get("x-codeSamples", ())
    ]
    answers = operation["responses"]
    request = operation.get("requestBody")
    return ApiOperation(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        address=f"{ROOT}/{slug_of(operation['tags'][0])}#{operation['operationId']}",
        summary=operation["summary"],
        description=inline_html(operation["description"]),
        is_open=operation.get("security") == [],
        parameters=tuple(_parameter(each) for each in operation["parameters"] if _key(each) not in common),
        request=None if request is None else _body("", request, definitions),
        responses=tuple(_body(status, each, definitions) for status, each in answers.items() if status < "400"),
        errors=tuple((status, each["description"]) for status, each in answers.items() if status >= "400"),
        samples=tabs_html(samples) if samples else "",
    )


def _parameter(parameter: Mapping[str, Any]) -> Parameter:
    example = parameter.get("example", "")
    return Parameter(
        name=parameter["name"],
        place=parameter["in"],
        type=type_name(_local(parameter["schema"])),
        is_required=parameter.get("required", False),
        meaning=parameter["description"],
        example=example if isinstance(example, str) else json.dumps(example),
    )


def _body(status: str, body: Mapping[str, Any], definitions: Mapping[str, Any]) -> DescribedBody:
    content = body.get("content", {})
    first: Mapping[str, Any] = next(iter(content.values()), {})
    schema = _local(first.get("schema", {}))
    reference = str(schema.get("$ref", "")).removeprefix(_DEFINITIONS) or None
    example = next(_examples(first), None)
    if example is not None and not isinstance(example, str):
        example = json.dumps(example, indent=2, ensure_ascii=False)
    rows = () if reference else _rows(schema, definitions)
    return DescribedBody(
        status=status,
        meaning=body.get("description", ""),
        media_types=tuple(content),
        schema=reference,
        rows=rows,
        example=example,
    )


def _examples(media: Mapping[str, Any]) -> Iterator[Any]:
    if "example" in media:
        yield media["example"]
    yield from (each["value"] for each in media.get("examples", {}).values())


def _rows(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> tuple[ParamRow, ...]:
    """The members of a schema; the members of another component are shown at that component."""
    named = {name: {"type": f"<{name}>"} for name in definitions}
    return tuple(param_rows({**schema, "$defs": named}))


def _local(schema: Any) -> Any:
    """A schema in the form of params' schemas: with references to `$defs`, and `X or null` as one type."""
    if isinstance(schema, list):
        return [_local(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    if isinstance(schema.get("$ref"), str):
        return {**schema, "$ref": schema["$ref"].replace(_COMPONENTS, _DEFINITIONS)}
    converted = {name: _local(each) for name, each in schema.items()}
    others = [each for each in converted.get("anyOf", ()) if each.get("type") != "null"]
    if len(others) == 1 and len(others) < len(converted["anyOf"]):
        return {**others[0], **{name: each for name, each in converted.items() if name != "anyOf"}}
    return converted


def example_html(example: str) -> str:
    """An example of a body."""
    return code_html(example, "json" if example.lstrip()[:1] in ("{", "[") else "text")
