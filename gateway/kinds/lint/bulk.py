"""Errors in a spec's bulk requests."""

import re
from collections.abc import Iterator

from gateway.contract.kinds import Effect
from gateway.kinds.bulk import ITEMS, Bulk
from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.lint.schemas import PlacedError, of_param
from gateway.kinds.suggestions import did_you_mean


def of_operation(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    """The errors of an action's `bulk`; places are relative to the action."""
    how = operation.action.bulk
    if how is None:
        return
    for check in (_call, _params, _match):
        for place, message in check(operation, how):
            yield ("bulk", *place), message


def _call(operation: Operation, how: Bulk) -> Iterator[PlacedError]:
    action = operation.action
    if action.record is None or action.long_running is not None:
        yield (), "is only for actions with `record` and without `long_running`; remove it"
    if action.write_if is not None:
        yield (), "is only for actions without `write_if`: all calls of a request must have the same effect; remove it"
    if how.rejects_all and action.effect is not Effect.WRITE:
        yield ("rejects_all",), "is only for `effect: write`, because other calls may always be sent again; remove it"


def _params(operation: Operation, how: Bulk) -> Iterator[PlacedError]:
    action = operation.action
    in_path = re.findall(r"{(\w+)}", how.request)
    known = set(action.params)
    for member, names in (("request", in_path), ("item", how.item_params), ("params", how.params)):
        for name in names:
            if name not in known:
                yield (member,), f"{name} is not among the params of the action; {did_you_mean(name, known)}"
    texts = [how.item] if isinstance(how.item, str) else how.item.values()
    if not all(re.fullmatch(r"{\w+}", text) for text in texts):
        yield ("item",), "may hold only params; write each as {name}"
    for name in how.required:
        if name not in how.params:
            yield ("required",), f"{name} is not among `params`; {did_you_mean(name, how.params)}"
    for name in {*how.params, *in_path} & set(how.item_params):
        yield ("item",), f"{name} is also sent once for all calls; remove it from one of them"
    if ITEMS in action.params:
        yield (), f"the action has a param {ITEMS}, which is the name of the list of items; give the param another name"
    for name, schema in {ITEMS: how.items, **how.params}.items():
        yield from of_param(operation.spec, (name,) if name == ITEMS else ("params", name), schema)


def _match(operation: Operation, how: Bulk) -> Iterator[PlacedError]:
    for name in how.match:
        if name not in how.item_params:
            yield ("match", name), f"is not among the params of `item`; {did_you_mean(name, how.item_params)}"
        elif name not in operation.action.required:
            yield ("match", name), "identifies the call, so it must be among `required` of the action"
