"""Errors in a spec's long operations, which the application runs in the background."""

import re
from collections.abc import Iterator

from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.lint.schemas import PlacedError, resolved
from gateway.kinds.long_running import RUN_ID, LongRunning, ResultRequest
from gateway.kinds.suggestions import did_you_mean


def of_operation(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    """The errors of an action's `long_running`; places are relative to the action."""
    how = operation.action.long_running
    if how is None:
        return
    if operation.action.runs != "job":
        yield ("runs",), "an operation with `long_running` runs as a job; write `runs: job`"
    for check in (_requests, _input, _results):
        for place, message in check(kind, operation, how):
            yield ("long_running", *place), message


def _requests(kind: Kind, operation: Operation, how: LongRunning) -> Iterator[PlacedError]:
    params = operation.action.params
    lines = {f"{member}.request": each.request for member, each in how.follow_ups.items()}
    for member, line in lines.items():
        for name in re.findall(r"{(\w+)}", line):
            if name not in (*params, RUN_ID):
                hint = did_you_mean(name, [*params, RUN_ID])
                yield tuple(member.split(".")), f"needs {{{name}}}, which is neither a param nor {{{RUN_ID}}}; {hint}"
    if how.start is not None and how.start.request is not None:
        for name in re.findall(r"{(\w+)}", how.start.request):
            if name not in params:
                yield (
                    ("start", "request"),
                    f"needs {{{name}}}, which is not among the params; {did_you_mean(name, params)}",
                )
    for member, each in how.follow_ups.items():
        if (each.task is None) != (operation.action.tool is None):
            yield (*member.split("."), "task"), "says what is asked of the task of a tool, and of nothing else"
        if each.request_body is not None and each.request_body not in params:
            hint = did_you_mean(each.request_body, params)
            yield (*member.split("."), "request_body"), f"{each.request_body} is not among the params; {hint}"
        if isinstance(each, ResultRequest) and each.paging is not None and each.paging not in kind.spec.paging:
            hint = did_you_mean(each.paging, kind.spec.paging)
            yield (*member.split("."), "paging"), f"there is no paging style {each.paging}; {hint}"


def _input(kind: Kind, operation: Operation, how: LongRunning) -> Iterator[PlacedError]:
    split, action = how.split, operation.action
    if split is None:
        return
    if split.param not in action.params:
        hint = did_you_mean(split.param, action.params)
        yield ("split", "param"), f"{split.param} is not among the params; {hint}"
        return
    schema = resolved(operation.spec, action.params[split.param])
    if schema.get("type") != "array" and schema.get("format") != "comma-separated":
        yield ("split", "param"), "is split into items; give it `type: array` or `format: comma-separated`"
    if split.param not in action.required:
        yield ("split", "param"), "has the items, so it must be among `required`"


def _results(kind: Kind, operation: Operation, how: LongRunning) -> Iterator[PlacedError]:
    items, action = how.results.items, operation.action
    if items is not None and how.split is None:
        yield ("results", "items"), "need `split`, which names the param with the items"
    if items is not None and action.record is None:
        yield ("results", "items"), "need one record for all items; write `record` in the action instead of `records`"
    if items is None and action.record is not None and how.split is not None:
        yield ("results",), "has no `items`: each portion would return a record of its own; describe the items"
    if items is None and action.record is not None and how.results.requests:
        yield ("results", "requests"), "return a list; write `records` in the action, or `items` here"
    if how.results.request is not None and (action.record is None or items is not None):
        yield ("results", "request"), "reads one record; write `record` in the action, and no `items` here"
    if items is not None and (items.trace is None) is not (not items.trace_path):
        yield (
            ("results", "items"),
            "trace and trace_path need each other: the number's member, and the paths at which entries repeat it",
        )
