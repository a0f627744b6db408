"""One entry for each operation that agents may call, including searches of synchronized copies."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, TypeVar

from gateway.contract.kinds import Effect
from gateway.errors import InvalidParams, UnknownAction
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.placements import plain_name
from gateway.kinds.requests import Action
from gateway.kinds.search_schema import search_example, search_params_schema
from gateway.kinds.spec import Entity
from gateway.kinds.suggestions import did_you_mean, known_actions, singular

T = TypeVar("T")

#: default number of operations that a search returns
DEFAULT_LIMIT = 6
_OF_MANY = {"list": "List", "api_search": "Search", SEARCH_ACTION: "Search the copy of"}


@dataclass(frozen=True, eq=False)
class OperationEntry:
    """An operation, with its description. Compared by identity, which is fast."""

    kind: Kind
    entity_id: str
    action_id: str

    @cached_property
    def name(self) -> str:
        """`kind.entity.action`, unique among all kinds."""
        return f"{self.kind.name}.{self.entity_id}.{self.action_id}"

    @property
    def entity(self) -> Entity:
        return self.kind.spec.entities[self.entity_id]

    @property
    def action(self) -> Action | None:
        """The action in the spec; None for a search of the copy."""
        return self.entity.actions.get(self.action_id)

    @property
    def effect(self) -> Effect:
        return self.action.effect if self.action else Effect.READ

    @property
    def is_destructive(self) -> bool:
        """Whether it may change or delete existing data; most creates only add data."""
        if self.effect is Effect.READ or self.action is None:
            return False
        is_addition = self.action_id == "create" and self.effect is Effect.WRITE
        return not is_addition if self.action.destructive is None else self.action.destructive

    @property
    def title(self) -> str:
        """A short title: `Update ticket`."""
        return title_of(self.entity_id, self.action_id)

    @property
    def description(self) -> str:
        if self.action:
            return self.action.description
        return f"Filter and sort the synchronized copy of {self.entity_id}: {self.entity.description}"

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON Schema 2020-12 of the params, with all constraints of the spec."""
        if self.action:
            return self.kind.operation(self.entity_id, self.action_id).schema
        assert self.entity.search is not None
        return search_params_schema(self.entity.search)

    @property
    def example(self) -> dict[str, Any]:
        """The params of a typical call."""
        if self.action:
            return {plain_name(name): value for name, value in self.action.example.items()}
        assert self.entity.search is not None
        return search_example(self.entity.search)

    @property
    def fields(self) -> dict[str, Any]:
        """The members of the returned records, with their types in the spec."""
        if self.action is None:
            return dict(self.entity.search.fields) if self.entity.search else {}
        return dict(self.entity.fields if self.action.fields is None else self.action.fields)


def kept_with_kind(make: Callable[[OperationEntry], T]) -> Callable[[OperationEntry], T]:
    """Keep what is made of an operation as long as its kind; it must be small beside the operation's spec.

    A cache of so many operations would help nobody: a list of more operations would replace all of it each time.
    """

    @wraps(make)
    def kept(entry: OperationEntry) -> T:
        made, key = entry.kind.made, (make, entry.entity_id, entry.action_id)
        if key not in made:
            made[key] = make(entry)
        value: T = made[key]
        return value

    return kept


def entries_of(catalog: Catalog) -> Iterator[OperationEntry]:
    """Every operation, in the order of the specs."""
    for kind in catalog:
        for entity_id in kind.spec.entities:
            for action_id in kind.actions_of(entity_id):
                yield OperationEntry(kind, entity_id, action_id)


def entry_of(catalog: Catalog, name: str, connected: Collection[str] = ()) -> OperationEntry:
    """The operation with the name `kind.entity.action`; an application's name may replace its kind.

    `entity.action` is enough if only one kind, or only one kind in `connected`, has it. Raises InvalidParams,
    UnknownConnectorType, UnknownEntity or UnknownAction with the nearest names.
    """
    parts = name.rsplit(".", 2)
    if len(parts) == 2:
        return _entry_of_any_kind(catalog, parts[0], parts[1], connected)
    if len(parts) != 3:
        names = (entry.name for entry in entries_of(catalog))
        raise InvalidParams(f"{name!r} is not an operation; write kind.entity.action; {did_you_mean(name, names)}")
    kind = catalog.kind(parts[0])
    kind.entity(parts[1])
    action_id = _action_id(parts[2])
    if action_id not in (actions := kind.actions_of(parts[1])):
        raise UnknownAction(f"{kind.name} {parts[1]} has no action {action_id!r}; {known_actions(action_id, actions)}")
    return OperationEntry(kind, parts[1], action_id)


def _entry_of_any_kind(catalog: Catalog, entity_id: str, action: str, connected: Collection[str]) -> OperationEntry:
    action_id = _action_id(action)
    having = [kind for kind in catalog if entity_id in kind.spec.entities and action_id in kind.actions_of(entity_id)]
    ready = [kind for kind in having if kind.name in connected]
    if len(ready) == 1 or len(having) == 1:
        return OperationEntry((ready or having)[0], entity_id, action_id)
    name = f"{entity_id}.{action_id}"
    if not having:
        short = (f"{entry.entity_id}.{entry.action_id}" for entry in entries_of(catalog))
        raise InvalidParams(f"no kind has an operation {name}; {did_you_mean(name, short)}")
    listed = ", ".join(
        f"{kind.name}.{name} ({kind.spec.application}{', connected' if kind in ready else ''})"
        for kind in sorted(having, key=lambda kind: kind not in ready)
    )
    raise InvalidParams(f"several kinds have {name}; name one of {listed}")


def _action_id(action: str) -> str:
    return "api_search" if action == "search" else action


def passes(entry: OperationEntry, kind: str | None, effect: Effect | str | None, among: Collection[str] | None) -> bool:
    """Whether an operation has the kind, the effect, and a kind in `among`; None means any."""
    return (
        (kind is None or entry.kind.name == kind)
        and (effect is None or entry.effect == effect)
        and (among is None or entry.kind.name in among)
    )


def title_of(entity_id: str | None, action_id: str) -> str:
    """A short title of an operation: `Update ticket`; of a task, which has no entity, its name."""
    verb, entity_id = _OF_MANY.get(action_id) if entity_id else None, entity_id or ""
    noun = entity_id if verb or action_id.endswith("_many") else singular(entity_id)
    return f"{verb or action_id.capitalize()} {noun}".replace("_", " ").rstrip()
