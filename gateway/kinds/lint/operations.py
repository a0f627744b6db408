"""Errors in single operations of a spec."""

import re
from collections.abc import Callable, Iterator, Sequence

from gateway.contract.kinds import Effect, PagingStyle
from gateway.errors import InvalidParams
from gateway.kinds import params as checks
from gateway.kinds.breadth import MAX_BREADTH
from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.graphql_documents import FIELD_NAMES, has_fragment
from gateway.kinds.lint import bulk, long_running
from gateway.kinds.lint.schemas import PlacedError, of_param, of_schema, resolved, undescribed
from gateway.kinds.members import EVERY, FORM, MULTIPART, is_json, media_type
from gateway.kinds.paging import BESIDE_RECORDS, Paging, TimeOrder
from gateway.kinds.placements import FIRST_ITEM, Placement
from gateway.kinds.requests import Action, Columns, ParamStyle
from gateway.kinds.rule_names import known_rules
from gateway.kinds.suggestions import did_you_mean

#: actions that must not claim to change nothing
_WRITES = ("create", "update", "delete")


def of_operation(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    """The errors of one operation; places are relative to its action."""
    schemas = [
        error
        for name, schema in operation.action.params.items()
        for error in of_param(operation.spec, ("params", name), schema)
    ]
    schemas += of_schema(operation.spec, ("constraints",), operation.action.constraints)
    yield from schemas
    for name, schema in operation.action.params.items():
        yield from undescribed(operation.spec, ("params", name), schema)
    for check in _CHECKS:
        yield from check(kind, operation)
    if not schemas and operation.breadth > MAX_BREADTH:
        yield ("params",), f"one value is checked with more than {MAX_BREADTH:,} schemas; choose among fewer"
    elif not schemas and pagings(operation.action) <= kind.spec.paging.keys():
        yield from _example(operation)


def pagings(action: Action) -> set[str]:
    """The paging styles that an action uses."""
    return {name for name in (action.paging, *(each.paging for each in action.alternatives)) if name}


def _effect(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    action = operation.action
    if operation.method == "GET" and action.effect is Effect.IDEMPOTENT:
        yield ("effect",), "a GET changes nothing; write `effect: read`, or `write` if this one does"
    if operation.action_id in _WRITES and action.effect is Effect.READ:
        yield ("effect",), "it changes something: write `idempotent` when twice is the same as once, else `write`"
    if action.write_if is not None:
        if action.effect is not Effect.IDEMPOTENT:
            yield ("write_if",), "only an `idempotent` operation can become a write"
        if not action.write_if or action.write_if[0] not in action.params:
            named = ".".join(action.write_if)
            yield ("write_if",), f"{named} does not begin with a param; {did_you_mean(named, action.params)}"


def _result(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    action = operation.action
    if operation.action_id == "list" and action.records is None:
        yield ("records",), "a list returns records; write their path in the response"
    if (operation.action_id == "download") != (action.download is not None):
        yield ("download",), "is needed in the action `download` and allowed in no other"
    for member in ("paging", "map_key", "unwrap", "single"):
        if getattr(action, member) and not operation.is_list:
            yield (member,), "is only for actions with `records`"
    for member in ("paging", "map_key", "unwrap"):
        if action.single and getattr(action, member):
            yield ("single",), f"is for one object in place of the list, which has no `{member}`; drop one of them"
    if action.columns is not None:
        yield from _columns(operation, action.columns)
    if EVERY in (action.record or ()):
        yield ("record",), "`*` gathers the lists of `records`; a record has one place"
    if EVERY in (action.records or ()) and (action.map_key or action.single or action.long_running):
        yield ("records",), "`*` gathers lists; `map_key`, `single` and `long_running` need one place"


def _columns(operation: Operation, how: Columns) -> Iterator[PlacedError]:
    """Rows that are lists of values; the names of their columns come from the response or with the request."""
    action = operation.action
    for member in ("map_key", "unwrap", "single"):
        if getattr(action, member):
            yield ("columns",), f"is for rows that are lists of values, which have no `{member}`; drop one of them"
    if not how.names:
        yield ("columns", "names"), "is no path of a list of names; write for example meta.columns.*.name"
    if how.param is None:
        return
    if how.param not in action.params:
        yield ("columns", "param"), f"{how.param} is not among the params; {did_you_mean(how.param, action.params)}"
    elif action.params[how.param].get("in") != "text":
        yield ("params", how.param), "names columns, which the application is not told: write `in: text`"


def _placements(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    in_path = re.findall(r"{(\w+)}", operation.action.request)
    seen: dict[tuple[str, str], str] = {
        ("query", name): f"constant_query {name}" for name in operation.action.constant_query
    }
    left_out = {alternative.without for alternative in operation.action.alternatives}
    for placement in operation.placements:
        name, schema = placement.name, operation.action.params[placement.name]
        place = ("params", name)
        if schema.get("in") == "path" and name not in in_path:
            yield place, f"goes into the path, which has no {{{name}}}; write it into the request or drop `in: path`"
        if name in in_path and "as" in schema:
            yield (*place, "as"), "a param of the path cannot have another name; drop `as`"
        if name in in_path and name not in operation.action.required and name not in left_out:
            yield place, "is part of the path, so it must be among `required`"
        if placement.where == "body" and operation.method == "GET":
            yield (*place, "in"), "a GET has no body; drop `in: body`"
        if {"style", "explode"} & set(schema) and not _is_written_by_style(operation, placement):
            yield place, "`style` and `explode` are for lists and objects in the query or a form; drop them"
        taken = seen.setdefault((placement.where, placement.wire), name)
        if taken != name:
            yield place, f"goes to the same place as {taken}: {placement.wire} of the {placement.where}"


def _is_written_by_style(operation: Operation, placement: Placement) -> bool:
    is_form = operation.media_type == FORM and placement.style is not ParamStyle.RESTLI
    return placement.where == "query" or (placement.where == "body" and is_form)


def _body(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    action, kind_of_body = operation.action, media_type(operation.content_type)
    in_body = [placement for placement in operation.placements if placement.where == "body"]
    if action.request_body is not None:
        if action.request_body not in action.params:
            hint = did_you_mean(action.request_body, action.params)
            yield ("request_body",), f"{action.request_body} is not among the params; {hint}"
        others = [placement.name for placement in in_body if placement.name != action.request_body]
        if others or action.constant_body:
            named = ", ".join(others) or "constant_body"
            yield ("request_body",), f"is the whole body, so {named} has no place in it; move it or drop `request_body`"
    elif in_body and not is_json(kind_of_body) and kind_of_body not in (FORM, *MULTIPART):
        yield ("content_type",), f"{kind_of_body} has no members: name the param that is the body in `request_body`"
    if not operation.has_body:
        for member in ("constant_body", "request_body", "graphql", "content_type"):
            if getattr(action, member):
                yield (member,), f"a {operation.method} has no body; drop it"
    if kind_of_body in MULTIPART:
        yield from _files(operation, in_body)
    outer = {placement.wire: placement.name for placement in in_body} | dict.fromkeys(
        action.constant_body, "a constant"
    )
    lists: dict[str, bool] = {}
    for placement in in_body:
        place, parts = ("params", placement.name, "as"), placement.wire.split(".")
        for end in range(1, len(parts)):
            above, is_list = ".".join(parts[:end]), parts[end] == FIRST_ITEM
            constant = action.constant_body.get(above)
            if above in outer and not isinstance(constant, list if is_list else dict):
                yield place, f"is a member of {above}, which {outer[above]} sets already"
            elif lists.setdefault(above, is_list) is not is_list:
                yield place, f"makes {above} {'a list' if is_list else 'an object'}, which it is not for other params"
            if parts[end].isdigit() and not is_list:
                yield place, f"a list in a body has one item here: write {above}.{FIRST_ITEM}"


def _files(operation: Operation, in_body: Sequence[Placement]) -> Iterator[PlacedError]:
    """An upload has a file, whose `content` is base64 by its schema."""
    schemas = {
        placement.name: resolved(operation.spec, operation.action.params[placement.name]) for placement in in_body
    }
    contents = {
        name: resolved(operation.spec, schema["properties"]["content"])
        for name, schema in schemas.items()
        if "content" in schema.get("properties", {})
    }
    if not contents and not any("contentEncoding" in schema for schema in schemas.values()):
        yield (
            ("content_type",),
            "an upload has no file: write a param that is an object with `content` and `filename`, or a text in base64",
        )
    for name, content in contents.items():
        if content.get("contentEncoding") != "base64":
            yield ("params", name, "properties", "content"), "is sent as bytes: write `contentEncoding: base64`"


def _tool(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    action = operation.action
    if (action.tool is None) != (kind.spec.mcp is None):
        yield ("tool",), "the operations of an MCP server, and no others, name their tools; `mcp` says which it is"
    elif action.task is not None:
        yield ("task",), "is only for further requests; write it in a member of `long_running`"
    elif action.tool is not None and (operation.method != "POST" or operation.is_list or action.graphql):
        yield ("request",), "a tool is called by POST, and its result is a record"
    elif action.output_schema is not None and action.tool is None:
        yield ("output_schema",), "is the schema of the results of a tool; name the `tool`, or drop it"
    elif action.output_schema is not None:
        yield from of_schema(kind.spec, ("output_schema",), action.output_schema)


def _graphql(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    action = operation.action
    if action.graphql is None:
        return
    place = ("graphql",)
    document = re.sub(r'"""[\s\S]*?"""|"(?:\\.|[^"\\])*"|#[^\n]*', "", action.graphql)
    named = re.match(r"\s*(query|mutation|subscription)\b", document)
    if document.count("{") != document.count("}") or not re.match(r"\s*(query|mutation)\b|\s*{", document):
        yield place, "is not one GraphQL query or mutation; begin it with `query` or `mutation` and close every brace"
    if operation.method != "POST" or not is_json(operation.content_type):
        yield ("request",), "a GraphQL document is sent by POST as JSON"
    if named and (named[1] == "mutation") is (action.effect is Effect.READ):
        yield ("effect",), f"the document is a {named[1]}, but the effect is {action.effect}"
    declared = dict(re.findall(r"\$(\w+)\s*:\s*([\w\[\]!]+(?:\s*=)?)", document))
    variables = [
        (placement.wire.split(".")[0], placement.name)
        for placement in operation.placements
        if placement.where == "body"
    ]
    for variable, name in variables:
        if variable not in declared:
            yield ("params", name), f"the document declares no ${variable}; {did_you_mean(variable, declared)}"
    yield from _fragments(operation, document)
    filled = {variable for variable, name in variables if name in operation.always_sent}
    for variable, type_ in declared.items():
        if type_.endswith("!") and variable not in filled:
            yield place, f"needs ${variable}, but no required param has its value"


def _fragments(operation: Operation, document: str) -> Iterator[PlacedError]:
    """A param that selects fields names a fragment of the document, and its items are only names of fields."""
    for placement in operation.placements:
        if placement.where != "fragment":
            continue
        place, schema = ("params", placement.name), resolved(operation.spec, operation.action.params[placement.name])
        if not has_fragment(document, placement.wire):
            yield (*place, "as"), f"the document has no fragment {placement.wire}; name the one whose fields are chosen"
        if schema.get("type") != "array" or schema.get("items", {}).get("pattern") != FIELD_NAMES:
            yield place, f"selects fields, so it is a list of texts with `pattern: {FIELD_NAMES}`"


def _texts(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    """The params within a text have a value whenever the text is sent."""
    used = set()
    for placement in operation.placements:
        place = ("params", placement.name)
        for name in re.findall(r"{(\w+)}", placement.text or ""):
            used.add(name)
            if name not in operation.action.params:
                yield (*place, "text"), f"{name} is not among the params; {did_you_mean(name, operation.action.params)}"
            elif name != placement.name and name not in operation.always_sent:
                yield (*place, "text"), f"holds {{{name}}}, which may be left out; require it or give it a default"
    for placement in operation.placements:
        place = ("params", placement.name)
        is_for_rule = operation.action.rule is not None
        if placement.where == "text" and placement.name not in {*used, *_unsent(kind, operation)} and not is_for_rule:
            yield place, f"is in no text; write {{{placement.name}}} into the `text` of another param"
        if placement.where == "fragment" and operation.action.graphql is None:
            yield (*place, "in"), "selects fields of a GraphQL document, but this action has none; drop it"


def _unsent(kind: Kind, operation: Operation) -> set[str]:
    """The params that only the gateway reads: they carry what the first page said to those that follow."""
    styles = [kind.spec.paging[name] for name in pagings(operation.action) & kind.spec.paging.keys()]
    return {name for style in styles for name in style.carried}


def _rule(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    rule = operation.action.rule
    if rule is not None and rule not in known_rules():
        yield ("rule",), f"there is no rule {rule}; {did_you_mean(rule, known_rules())}"


def _pages(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    for style in sorted(pagings(operation.action) & kind.spec.paging.keys()):
        for name in kind.spec.paging[style].request_params:
            if name not in operation.action.params:
                hint = did_you_mean(name, operation.action.params)
                yield ("paging",), f"{style} needs {name}, which is not among the params; {hint}"
        columns, carried = operation.action.columns, kind.spec.paging[style].carried
        paging = kind.spec.paging[style]
        is_ordered = (operation.action.order or paging.order or "unknown") != "unknown"
        if carried and paging.is_counted and paging.size is not None and not is_ordered:
            yield ("paging",), f"{style} carries members of the first page, so its `order` must be known"
        if columns is not None and columns.param is not None and columns.param not in carried:
            yield ("columns", "param"), f"is not among what {style} carries to further pages; add it to `carried`"
        yield from _counted(operation, kind.spec.paging[style])
        if EVERY in (operation.action.records or ()) and _is_beside_records(kind.spec.paging[style]):
            yield ("paging",), f"{style} has paths beside the list (`@`), but `*` gathers lists; write whole paths"
    order = operation.action.order
    if isinstance(order, TimeOrder) and order.since is not None and order.since not in operation.action.params:
        hint = did_you_mean(order.since, operation.action.params)
        yield ("order", "since"), f"{order.since} is not among the params; {hint}"


def _is_beside_records(paging: Paging) -> bool:
    return any(path[:1] == (BESIDE_RECORDS,) for path in paging.meta.values())


def _counted(operation: Operation, paging: Paging) -> Iterator[PlacedError]:
    """A param that is counted takes whole numbers."""
    if paging.style not in (PagingStyle.PAGE, PagingStyle.OFFSET) or paging.param not in operation.action.params:
        return
    types = resolved(operation.spec, operation.action.params[paging.param]).get("type", ())
    if "integer" not in ([types] if isinstance(types, str) else types):
        hint = "write `type: integer`, or another style if the param takes tokens"
        yield ("params", paging.param), f"the style {paging.style} counts it; {hint}"


def _alternatives(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    for position, alternative in enumerate(operation.action.alternatives):
        place = ("alternatives", str(position))
        if alternative.without not in operation.action.params:
            hint = did_you_mean(alternative.without, operation.action.params)
            yield (*place, "without"), f"{alternative.without} is not among the params; {hint}"
        for name in re.findall(r"{(\w+)}", alternative.request):
            if name not in operation.action.params or name == alternative.without:
                yield (*place, "request"), f"needs {{{name}}}, which is not given with this request"


def _upload_session(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    how = operation.action.upload_session
    if how is None:
        return
    if operation.file_param is None:
        yield ("upload_session",), "sends the file of the action; give exactly one param `contentEncoding: base64`"
        return
    for name in re.findall(r"{(\w+)}", how.request):
        if name not in operation.upload_start.action.params:
            hint = did_you_mean(name, operation.upload_start.action.params)
            yield ("upload_session", "request"), f"needs {{{name}}}, which is not among the params; {hint}"
    if how.request_body is not None:
        yield ("upload_session", "request_body"), "the other params than the file are the body; drop it"


def _find_by(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    named = re.match(r"([a-z_]+)\.([a-z_]+)\b", operation.action.find_by or "")
    if named and (named[1], named[2]) not in kind.operations:
        hint = did_you_mean(named[0], (".".join(each) for each in kind.operations))
        yield ("find_by",), f"there is no {named[0]}; {hint}"


def _example(operation: Operation) -> Iterator[PlacedError]:
    action = operation.action
    if action.required and not action.example:
        yield ("example",), f"is missing; show the params of a call, at least {', '.join(action.required)}"
    if not action.example:
        return
    try:
        checks.validated(operation, action.example)
    except InvalidParams as refused:
        for fault in refused.faults:
            yield ("example", *filter(None, fault.field.split("."))), f"would be refused: {fault.message}"


_CHECKS: tuple[Callable[[Kind, Operation], Iterator[PlacedError]], ...] = (
    _effect,
    _result,
    _placements,
    _body,
    _tool,
    _graphql,
    _texts,
    _rule,
    _pages,
    _alternatives,
    _find_by,
    _upload_session,
    long_running.of_operation,
    bulk.of_operation,
)
