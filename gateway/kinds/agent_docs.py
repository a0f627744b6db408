"""A kind explained to agents: a document of headings, paragraphs, tables and example calls, made from its spec."""

from typing import Any

import msgspec

from gateway.errors import NotFound
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Kind
from gateway.kinds.param_rows import param_rows
from gateway.kinds.search_schema import search_call, search_params_schema
from gateway.kinds.spec import Entity
from gateway.kinds.suggestions import did_you_mean
from gateway.kinds.sunsets import all_sunsets, undated_deprecations

Block = dict[str, Any]


def skill_docs(kind: Kind, section: str | None = None) -> dict[str, Any]:
    """The document `{id, metadata, outline, content, section_id?}`; raises NotFound for an unknown section."""
    sections = {"overview": _overview(kind), **{entity: _entity(kind, entity) for entity in kind.spec.entities}}
    # known agents ask for `entity:contacts`
    name = None if section is None else section.removeprefix("entity:")
    if name is not None and name not in sections:
        raise NotFound(f"{kind.name} docs have no section {section!r}; {did_you_mean(name, sections)}")
    shown = sections if name is None else {name: sections[name]}
    document = {
        "id": kind.name,
        "metadata": {"id": kind.name, "title": kind.spec.title, "kind": kind.name},
        "outline": [{"id": name, "title": blocks[0]["text"]} for name, blocks in sections.items()],
        "content": [block for blocks in shown.values() for block in blocks],
    }
    return document if section is None else {**document, "section_id": section}


def _overview(kind: Kind) -> list[Block]:
    methods = [f"{method.title}: {', '.join(method.credentials)}" for method in kind.spec.authentication.values()]
    methods += [*(sentence for _, sentence in all_sunsets(kind.spec)), *undated_deprecations(kind.spec)]
    return [
        _heading(1, kind.spec.title),
        _paragraph(kind.spec.description),
        _heading(2, "Credentials"),
        {"type": "list", "ordered": False, "items": methods},
        _heading(2, "Entities"),
        _table(
            ["Entity", "Actions"],
            [[entity, ", ".join(kind.actions_of(entity))] for entity in kind.spec.entities],
        ),
        *(_query_language() if any(entity.search for entity in kind.spec.entities.values()) else ()),
    ]


def _query_language() -> list[Block]:
    return [
        _heading(2, SEARCH_ACTION),
        _paragraph("For every entity with a synchronized copy; its section lists the fields that filters may use."),
        _params(search_params_schema(None)),
    ]


def _entity(kind: Kind, entity_id: str) -> list[Block]:
    entity = kind.entity(entity_id)
    blocks = [_heading(2, entity_id), _paragraph(entity.description)]
    for action_id in entity.actions:
        blocks += _action(kind, entity_id, action_id)
    if entity.search:
        blocks += _search(entity_id, entity)
    return blocks


def _action(kind: Kind, entity_id: str, action_id: str) -> list[Block]:
    operation = kind.operation(entity_id, action_id)
    example = {"entity": entity_id, "action": action_id, "params": operation.action.example}
    blocks = [
        _heading(3, f"{entity_id}.{action_id}"),
        _paragraph(f"{operation.action.description} Effect: {operation.action.effect}."),
    ]
    if operation.action.params:
        blocks.append(_params(operation.schema))
    return [*blocks, _code(example)]


def _params(schema: dict[str, Any]) -> Block:
    rows = [[row.name, row.type, "yes" if row.is_required else "", row.meaning] for row in param_rows(schema)]
    return _table(["Param", "Type", "Required", "Meaning"], rows)


def _search(entity_id: str, entity: Entity) -> list[Block]:
    assert entity.search is not None
    fields = [[name, kind] for name, kind in entity.search.fields.items()]
    return [
        _heading(3, f"{entity_id}.{SEARCH_ACTION}"),
        _paragraph("Filter and sort the synchronized copy of the records by these fields."),
        _table(["Field", "Type"], fields),
        _code(search_call(entity_id, entity.search)),
    ]


def _heading(level: int, text: str) -> Block:
    return {"type": "heading", "level": level, "text": text}


def _paragraph(text: str) -> Block:
    return {"type": "paragraph", "text": text}


def _table(headers: list[str], rows: list[list[str]]) -> Block:
    return {"type": "table", "headers": headers, "rows": rows}


def _code(document: Any) -> Block:
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    return {"type": "code", "language": "json", "code": text}
