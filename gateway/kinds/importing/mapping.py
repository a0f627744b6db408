"""Maps a document to a kind: each operation becomes an action with a unique name, or a finding with a reason. Pure."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from pydantic import ValidationError

from gateway.kinds.catalog import Kind
from gateway.kinds.importing.connector import connector_of, kind_name
from gateway.kinds.importing.effects import effect_of
from gateway.kinds.importing.examples import with_example
from gateway.kinds.importing.health import health_check_of
from gateway.kinds.importing.lifting import lift
from gateway.kinds.importing.mcp_server import from_mcp_server, hints, is_mcp_server
from gateway.kinds.importing.model import (
    CORRECTIONS,
    UNREAD,
    Confidence,
    Finding,
    ImportFailed,
    Node,
    NotMapped,
    SourceOperation,
    for_a_person,
    guessed,
)
from gateway.kinds.importing.names import PathFacts, action_name, entity_names, path_facts
from gateway.kinds.importing.operations import is_included, operations_of
from gateway.kinds.importing.paging import paging_of
from gateway.kinds.importing.references import MAX_LEVELS, Document, is_too_deep, node_of
from gateway.kinds.importing.requests import RequestParts, request_parts
from gateway.kinds.importing.responses import Shape, fields_of, shape_of
from gateway.kinds.importing.schemas import Schemas
from gateway.kinds.importing.servers import ServerAddress, address_of, own_address
from gateway.kinds.importing.swagger2 import from_swagger2
from gateway.kinds.importing.words import identifier, phrase, plain
from gateway.kinds.lint.kind import lint_kind
from gateway.kinds.requests import Action
from gateway.kinds.spec import ConnectorSpec

#: members of corrections that are not copied to the action
_OF_OPERATION = ("entity", "action", "ignore", "params")
#: times that the kind is linted; after each, the operations with errors are left out
_ROUNDS = 3


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of an import."""

    #: the name of the kind; from the document's title by default
    kind: str | None = None
    #: globs of paths, ids or tags; everything by default
    include: Sequence[str] = ()
    #: the URL that every request begins with, in place of the document's servers
    server: str | None = None
    #: the URL of the document, for servers that are relative to it
    base_url: str = ""
    #: values of variables in the URLs of servers
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Mapped:
    """One operation as an action, before its names are unique."""

    operation: SourceOperation
    spec: dict[str, Any]
    fields: dict[str, Any]
    entity: str = ""
    action: str = ""
    names: tuple[str, ...] = ()
    paging: dict[str, Any] | None = None
    #: where it is sent, if not to the server of the kind
    address: ServerAddress | None = None


@dataclass(kw_only=True)
class Imported:
    """A kind made from a document."""

    connector: dict[str, Any]
    entities: dict[str, dict[str, Any]]
    #: the number of operations that the options select
    total: int
    #: the number of them that became actions
    mapped: int
    #: the number of operations with a longer name, because another one has the short name
    clashes: int
    findings: list[Finding] = field(default_factory=list)
    #: `METHOD /path` → `entity.action`
    names: dict[str, str] = field(default_factory=dict)

    @property
    def lists(self) -> dict[str, dict[str, Any] | None]:
        """The paging style of each list by its `entity.action`; None for a list without pages."""
        styles = self.connector.get("paging", {})
        return {
            f"{entity}.{name}": styles.get(action.get("paging"))
            for entity, members in self.entities.items()
            for name, action in members["actions"].items()
            if "records" in action
        }


def import_document(root: Node, options: Options) -> Imported:
    """The kind that a document describes; raises ImportFailed for one that describes none."""
    document, of_server = Document(root), list[Finding]()
    if is_mcp_server(root):
        document, of_server = from_mcp_server(root), list(hints(root))
    elif is_too_deep(root):
        raise ImportFailed(f"the document has more than {MAX_LEVELS} levels of objects and arrays; shorten its schemas")
    elif str(root.get("swagger", "")).startswith("2"):
        document = from_swagger2(document)
    elif not str(root.get("openapi", "")).startswith("3"):
        raise ImportFailed('not an OpenAPI document: it must have `openapi: 3.x` or `swagger: "2.0"`')
    every = [each for each in operations_of(document) if is_included(each, options.include)]
    gets = {each.path for each in every if each.method == "GET"}
    wanted = [
        each
        for each in every
        if each.corrections.get("ignore") is not True
        and not (each.method in ("HEAD", "OPTIONS", "TRACE") and each.path in gets)
    ]
    if not wanted:
        raise ImportFailed("the document has no operations" + (" that --include matches" if options.include else ""))
    address, of_address = address_of(
        document.root.get("servers"), server=options.server, base_url=options.base_url, answers=options.variables
    )
    findings: list[Finding] = []
    mapped = _mapped(document, wanted, address, options.variables, findings)
    clashes = _name(mapped, path_facts(wanted), findings)
    kind = options.kind or kind_name(document)
    connector, of_connector = connector_of(document, wanted, kind, address, options.variables)
    _add_addresses(connector, mapped)
    findings += lift(connector, mapped)
    corrections = node_of(document.root.get(CORRECTIONS))
    mapped = _linted(connector, corrections, mapped, document, findings)
    connector, entities = _assembled(connector, corrections, mapped, document)
    names = {each.operation.place: f"{each.entity}.{each.action}" for each in mapped}
    findings = [*of_address, *_unread(root), *of_connector, *of_server, *findings]
    return Imported(
        connector=connector,
        entities=entities,
        total=len(wanted),
        mapped=len(mapped),
        clashes=clashes,
        findings=_unsettled(findings, wanted),
        names=names,
    )


def _unread(root: Node) -> list[Finding]:
    """A finding for each document that is referred to and cannot be read."""
    reason = "a document that is referred to cannot be read; what needs it is not mapped, or takes any JSON"
    return [
        Finding(confidence=Confidence.NEEDS_PERSON, place="the document", reason=reason, detail=why)
        for why in node_of(root.get(UNREAD)).values()
    ]


def _unsettled(findings: Sequence[Finding], operations: Sequence[SourceOperation]) -> list[Finding]:
    """The findings whose member no person has corrected."""
    settled = {(each.place, member) for each in operations for member in each.corrections}
    return [each for each in findings if (each.place, each.member) not in settled]


def _mapped(
    document: Document,
    operations: Sequence[SourceOperation],
    address: ServerAddress,
    answers: Mapping[str, str],
    findings: list[Finding],
) -> list[Mapped]:
    schemas = Schemas(document)
    found = []
    for operation in operations:
        try:
            if operation.missing:
                raise NotMapped("a reference cannot be read", operation.missing[0])
            own = own_address(operation.servers, address, answers)
            mapped, doubts = _action_of(operation, own, document, schemas)
        except NotMapped as refused:
            findings.append(for_a_person(operation, refused.reason, refused.detail))
        else:
            found.append(mapped)
            findings += doubts
    if unused := list(schemas.unused_patterns):
        reason = (
            f"{len(unused):,} patterns are left out, which only the application checks: they are large or look around"
        )
        findings.append(
            Finding(confidence=Confidence.GUESSED, place="the document", reason=reason, detail=plain(unused[0], 100))
        )
    return found


def _add_addresses(connector: dict[str, Any], mapped: Sequence[Mapped]) -> None:
    """Add the hosts and variables of operations with their own servers."""
    for address in (each.address for each in mapped if each.address is not None):
        hosts = dict.fromkeys([*connector["hosts"], *address.hosts])
        connector["hosts"] = ["*"] if "*" in hosts else list(hosts)
        if address.environment:
            connector["environment"] = {**address.environment, **connector.get("environment", {})}


def _action_of(
    operation: SourceOperation, own: ServerAddress | None, document: Document, schemas: Schemas
) -> tuple[Mapped, list[Finding]]:
    """An operation as an action, and the findings about it; raises NotMapped."""
    parts = request_parts(operation, document, schemas)
    corrected = operation.corrections.get("effect")
    effect, doubts = (corrected, []) if corrected else effect_of(operation)
    shape = shape_of(operation, document)
    doubts = [*doubts, *parts.findings, *shape.findings]
    spec: dict[str, Any] = {"request": f"{operation.method} {parts.path}", "effect": str(effect)}
    if own is not None:
        spec["server"] = own.server
    spec["description"] = _description(operation)
    spec |= {name: value for name, value in _request_members(parts).items() if value}
    spec[shape.member or "download"] = shape.path if shape.member else {}
    paging = None
    if shape.member == "records":
        paging, of_paging = paging_of(operation, parts, shape, document)
        doubts += of_paging
    _add_params(spec, operation, parts)
    mapped = Mapped(operation=operation, spec=spec, fields=_fields(document, shape), paging=paging, address=own)
    try:
        Action.model_validate(spec)
    except ValidationError as error:
        raise NotMapped("the spec language does not allow it", plain(str(error.errors()[0]["msg"]))) from error
    return mapped, doubts


def _fields(document: Document, shape: Shape) -> dict[str, Any]:
    return fields_of(document, shape.record) if shape.member in ("records", "record") else {}


def _request_members(parts: RequestParts) -> dict[str, Any]:
    has_body = parts.request_body is not None or any(
        schema.get("in") == "body" or parts.method not in ("GET", "DELETE") for schema in parts.params.values()
    )
    return {
        "headers": parts.headers,
        "constant_query": parts.constant_query,
        "content_type": parts.content_type if has_body and parts.content_type != "application/json" else None,
        "request_body": parts.request_body,
    }


def _add_params(spec: dict[str, Any], operation: SourceOperation, parts: RequestParts) -> None:
    """Add the params with a person's corrections, and an example with the required ones."""
    params = dict(parts.params)
    for name, corrected in node_of(operation.corrections.get("params")).items():
        if corrected is None:
            params.pop(str(name), None)
        else:
            params[str(name)] = {**params.get(str(name), {}), **node_of(corrected)}
    required = [name for name in parts.required if name in params]
    example = {}
    for name in required:
        placed = {key: value for key, value in params[name].items() if key in ("in", "as", "style", "explode")}
        schema = {key: value for key, value in params[name].items() if key not in placed}
        schema, example[name] = with_example(schema)
        params[name] = {**schema, **placed}
    spec |= {name: value for name, value in (("params", params), ("required", required), ("example", example)) if value}
    spec |= {name: value for name, value in operation.corrections.items() if name not in _OF_OPERATION}


def _description(operation: SourceOperation) -> str:
    summary, description = plain(operation.summary, 160), plain(operation.description)
    text = summary or description or phrase(operation.operation_id) or operation.place
    if summary and description and not description.lower().startswith(summary.lower().rstrip(".")):
        text = plain(f"{summary.rstrip('.')}. {description}")
    elif description:
        text = description
    return f"Deprecated. {text}" if operation.is_deprecated else text


def _name(mapped: list[Mapped], facts: PathFacts, findings: list[Finding]) -> int:
    """Set unique names of entities and actions: the shortest path keeps the short name. Returns how many are longer."""
    by_path: dict[str, list[Mapped]] = defaultdict(list)
    for each in mapped:
        each.action = _action(each, facts)
        each.names = tuple(entity_names(each.operation, facts))
        by_path[each.operation.path].append(each)
    taken: set[tuple[str, str]] = set()
    clashes = 0
    for path in sorted(
        by_path, key=lambda path: (all(each.operation.is_deprecated for each in by_path[path]), path.count("/"), path)
    ):
        group = sorted(by_path[path], key=lambda each: (each.operation.method == "PUT", each.operation.method))
        clashes += _name_path(group, taken, findings)
    return clashes


def _action(mapped: Mapped, facts: PathFacts) -> str:
    operation, spec = mapped.operation, mapped.spec
    wanted = operation.corrections.get("action")
    if isinstance(wanted, str):
        return wanted
    return action_name(operation, facts, is_list="records" in spec, is_download="download" in spec)


def _name_path(group: Sequence[Mapped], taken: set[tuple[str, str]], findings: list[Finding]) -> int:
    """Set the names of the operations of one path: the first of each operation's names that is not taken."""
    clashes, seen = 0, Counter[str]()
    for each in group:
        corrected = each.operation.corrections.get("entity")
        names = (corrected,) if isinstance(corrected, str) else each.names
        action = each.action
        if seen[f"{names[0]}.{action}"] and each.operation.method == "PUT" and action == "update":
            action = "replace"
        seen[f"{names[0]}.{action}"] += 1
        numbered = (f"{names[0]}_{number}" for number in count(2))
        free = (name for name in chain(names, numbered) if (name, action) not in taken)
        each.entity, each.action = next(free), action
        taken.add((each.entity, each.action))
        if (each.entity, each.action) != (names[0], action):
            clashes += 1
            reason = "another operation has its name, so its own is longer"
            findings.append(guessed(each.operation, reason, f"{each.entity}.{each.action}", member="action"))
    return clashes


def _linted(
    connector: dict[str, Any], corrections: Node, mapped: list[Mapped], document: Document, findings: list[Finding]
) -> list[Mapped]:
    """The operations without errors of the linter; the others become findings that need a person."""
    for _ in range(_ROUNDS):
        made, entities = _assembled(connector, corrections, mapped, document)
        try:
            spec = ConnectorSpec.model_validate({**made, "entities": entities})
        except ValidationError as error:
            first = error.errors()[0]
            at = ".".join(map(str, first["loc"]))
            raise ImportFailed(f"the kind cannot be written: {at}: {first['msg']}") from error
        refused: dict[tuple[str, str], str] = {}
        for place, message in lint_kind(Kind(spec)):
            if place[:1] == ("entities",) and place[2:3] == ("actions",):
                refused.setdefault((place[1], place[3]), f"{'.'.join(place[4:])}: {message}")
            else:
                finding = Finding(
                    confidence=Confidence.NEEDS_PERSON, place="the document", reason=f"{'.'.join(place)}: {message}"
                )
                findings += [finding] if finding not in findings else []
        if not refused:
            return mapped
        for each in mapped:
            if (each.entity, each.action) in refused:
                detail = refused[each.entity, each.action]
                findings.append(for_a_person(each.operation, "the linter reports an error in it", detail))
        mapped = [each for each in mapped if (each.entity, each.action) not in refused]
    return mapped


def _assembled(
    connector: dict[str, Any], corrections: Node, mapped: Sequence[Mapped], document: Document
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The content of `connector.yaml`, and of the entity files by entity id."""
    styles: dict[str, dict[str, Any]] = {}
    groups: dict[str, list[Mapped]] = defaultdict(list)
    for each in sorted(mapped, key=lambda each: (each.entity, each.action)):
        groups[each.entity].append(each)
        if each.paging is not None:
            each.spec["paging"] = _style_name(styles, each.paging)
    tags = {
        str(tag.get("name")): plain(tag.get("description")) for tag in map(node_of, document.root.get("tags") or ())
    }
    entities = {entity: _entity(entity, group, tags) for entity, group in sorted(groups.items())}
    check = health_check_of(
        document.root, ((f"{each.entity}.{each.action}", each.operation, each.spec) for each in mapped)
    )
    made = {**connector, **({"paging": styles} if styles else {}), **check, **corrections}
    return made, entities


def _style_name(styles: dict[str, dict[str, Any]], paging: dict[str, Any]) -> str:
    """The name of a paging style: its `style`, followed by its param if several have the same `style`."""
    for name, known in styles.items():
        if known == paging:
            return name
    style, param = paging["style"], identifier(paging.get("param", "next_page"))
    by_param = style if param == style else f"{style}_{param}"
    name, number = style if style not in styles else by_param, 2
    while name in styles:
        name, number = f"{by_param}_{number}", number + 1
    styles[name] = paging
    return name


#: actions in the order of an entity's file
_ORDER = ("list", "api_search", "get", "create", "update", "replace", "delete", "download")


def _entity(name: str, group: Sequence[Mapped], tags: dict[str, str]) -> dict[str, Any]:
    tag = next((each.operation.tags[0] for each in group if each.operation.tags), "")
    paths = sorted({each.operation.path for each in group}, key=len)
    description = f"{phrase(name).capitalize()} at {paths[0]}."
    if tags.get(tag) and phrase(tag) == phrase(name):
        description = tags[tag]
    fields = next((each.fields for action in ("get", "list") for each in group if each.action == action), {})
    fields = fields or next((each.fields for each in group if each.fields), {})
    actions = {}
    for each in sorted(group, key=lambda each: (_rank(each.action), each.action)):
        spec = dict(each.spec)
        if each.fields and each.fields != fields:
            spec["fields"] = each.fields
        actions[each.action] = spec
    found = {"description": description, "fields": fields, "actions": actions}
    return {member: value for member, value in found.items() if value}


def _rank(action: str) -> int:
    return _ORDER.index(action) if action in _ORDER else len(_ORDER)
