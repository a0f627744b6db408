"""Checks the result of an MCP server's tool against the output schema that was accepted with the tool. Pure.

The schema has a bounded number of parts, and content is checked up to a bounded number of values, because a check holds
the interpreter. A write whose result does not match has been done: its result has a warning in place of an error.
"""

from itertools import islice, pairwise
from typing import Any

import jsonschema_rs
import msgspec

from gateway.contract.kinds import Effect
from gateway.errors import UpstreamInvalidResponse
from gateway.foundation import payloads
from gateway.kinds.breadth import breadth_of
from gateway.kinds.catalog import Operation
from gateway.kinds.params import MAX_VALUES
from gateway.kinds.schema_errors import first_errors, has_more_values_than
from gateway.upstream.responses import OperationResult

#: bytes of a result that is checked in a thread
LARGE_CONTENT = 32 << 10
#: bytes, and objects and arrays, of content that is checked
_MAX_BYTES, _MAX_CONTAINERS = 2 << 20, 100_000
#: values of the content times parts of the schema up to which it is checked
_MAX_CHECKS = 1_000_000
#: places that an error names, and the maximum characters of a name in one
_PLACES, _MAX_NAME = 3, 60
_ABSENT = msgspec.Raw(b"")


class _ResultOfTool(msgspec.Struct):
    structuredContent: msgspec.Raw = _ABSENT  # noqa: N815


def checked(operation: Operation, effect: Effect, answer: OperationResult) -> OperationResult:
    """The answer, with a warning if it was not checked, or is that of a write and does not match.

    Raises UpstreamInvalidResponse if the answer to a read does not match.
    """
    if operation.action.output_schema is None:
        return answer
    content = payloads.typed(answer.result, _ResultOfTool).structuredContent
    if content is not _ABSENT and _is_large(content):
        return _with_warning(answer, operation, "structuredContent is too large to be checked")
    value = None if content is _ABSENT else payloads.value(content)
    limit = min(MAX_VALUES, _MAX_CHECKS // _parts(operation))
    if _has_more_than(limit, value):
        return _with_warning(answer, operation, "structuredContent has too many values to be checked")
    if content is _ABSENT:
        fault = "the result has no structuredContent"
    elif not operation.output_validator.is_valid(value):
        fault = f"the result does not match it at {', '.join(_places(operation, value))}"
    else:
        return answer
    if effect is Effect.READ:
        raise UpstreamInvalidResponse(f"{operation}: the tool states an output schema, and {fault}")
    return _with_warning(answer, operation, f"{fault}; the call was carried out, do not repeat it for that")


def _with_warning(answer: OperationResult, operation: Operation, fault: str) -> OperationResult:
    words = f"{operation}: the tool states an output schema, and {fault}"
    return msgspec.structs.replace(answer, warning=words)


def _is_large(content: msgspec.Raw) -> bool:
    text = bytes(content)
    return len(text) > _MAX_BYTES or text.count(b"{") + text.count(b"[") > _MAX_CONTAINERS


def _has_more_than(limit: int, value: Any) -> bool:
    return isinstance(value, dict | list) and has_more_values_than(limit, value)


def _parts(operation: Operation) -> int:
    """A number that the schema has at most as many parts as; an object within it may be no part."""
    return max(1, msgspec.json.encode(operation.action.output_schema).count(b"{"))


def _places(operation: Operation, value: Any) -> list[str]:
    """The first places where a value does not match, each with the keyword that it violates."""
    # Every part may find errors of a value, and a part as many as names that it requires.
    breadth = max(breadth_of(operation.action.output_schema or {}, {}), _parts(operation))
    errors = first_errors(operation.output_validator, value, breadth)
    return [f"{_place(each)} ({each.kind.name})" for each in islice(errors, _PLACES)]


def _place(error: jsonschema_rs.ValidationError) -> str:
    """The place of an error, by positions and by the names that the schema has; `*` for a name of the content alone."""
    keywords = list(error.schema_path)
    stated = {name for keyword, name in pairwise(keywords) if keyword == "properties"}
    parts = [str(each) if isinstance(each, int) or each in stated else "*" for each in error.instance_path]
    if error.kind.name == "required":
        parts.append(str(error.kind.value))
    return ".".join(["structuredContent", *(ascii(each)[1:-1][:_MAX_NAME] for each in parts)])
