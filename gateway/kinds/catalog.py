"""The loaded kinds, with every operation of theirs ready to run."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import jsonschema_rs

from gateway.errors import ConnectorNotReady, UnknownAction, UnknownConnectorType, UnknownEntity
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.breadth import breadth_of
from gateway.kinds.long_running import FollowUp
from gateway.kinds.members import media_type
from gateway.kinds.paging import Order, Paging
from gateway.kinds.patterns import has_pattern, validator_of, weight_elsewhere, without_unusable
from gateway.kinds.placements import Placement, json_schema, placements_of, plain_name
from gateway.kinds.requests import Action, DefaultTime
from gateway.kinds.siblings import (
    ActionChange,
    alternative_of,
    bulk_of,
    changed,
    file_description_of,
    follow_up_of,
    resolved,
    start_of,
    upload_start_of,
)
from gateway.kinds.sources import SpecError
from gateway.kinds.spec import ConnectorSpec, Entity
from gateway.kinds.suggestions import canonical, did_you_mean, known_actions
from gateway.kinds.sunsets import call_sunsets, sunset_headers


@dataclass(frozen=True)
class Operation:
    """One entity.action of a kind, compiled: what `requests`, `params` and `responses` work from."""

    spec: ConnectorSpec
    entity_id: str
    action_id: str
    action: Action

    def __str__(self) -> str:
        return self.name

    @cached_property
    def name(self) -> str:
        return f"{self.entity_id}.{self.action_id}"

    @property
    def entity(self) -> Entity:
        return self.spec.entities[self.entity_id]

    @cached_property
    def method(self) -> str:
        return self.action.request.split(" ", 1)[0]

    @cached_property
    def path(self) -> str:
        return self.spec.current_path(self.action.request.split(" ", 1)[1])

    @cached_property
    def placements(self) -> tuple[Placement, ...]:
        return placements_of(self.action)

    @cached_property
    def path_params(self) -> tuple[str, ...]:
        """The params that its path holds."""
        return tuple(placement.name for placement in self.placements if placement.where == "path")

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The texts that are sent in the place of params."""
        return {placement.name: placement.text for placement in self.placements if placement.text is not None}

    @cached_property
    def content_type(self) -> str:
        """The type of its request body."""
        return self.action.content_type or self.spec.content_type

    @cached_property
    def media_type(self) -> str:
        """The type of its request body without parameters, in lower case."""
        return media_type(self.content_type)

    @cached_property
    def has_body(self) -> bool:
        """Whether its requests have a body: always but with GET, and with DELETE if something is placed in it."""
        action = self.action
        if self.method == "DELETE":
            is_placed = any(placement.where == "body" for placement in self.placements)
            return is_placed or bool(action.constant_body or action.request_body)
        return self.method != "GET" and not action.no_body

    @cached_property
    def constant_headers(self) -> dict[str, str]:
        """The headers of all its requests but the type of the body."""
        return {"Accept": "application/json", **self.spec.headers, **self.action.headers}

    @cached_property
    def variable_headers(self) -> tuple[str, ...]:
        """The constant headers that have variables of the connector in them."""
        declared = (*self.spec.headers.items(), *self.action.headers.items())
        return tuple(name for name, text in declared if re.search(r"{\w+}", text))

    @cached_property
    def variable_query(self) -> Mapping[str, str]:
        """The constants of the query, and the defaults of its params, that have variables of the connector in them."""
        in_query = {each.wire: self.defaults.get(each.name) for each in self.placements if each.where == "query"}
        members = {**in_query, **self.action.constant_query}
        texts = {name: text for name, text in members.items() if isinstance(text, str)}
        declared = self.spec.environment.keys()
        return {name: text for name, text in texts.items() if declared & set(re.findall(r"{(\w+)}", text))}

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON Schema 2020-12 of the params as callers see them."""
        return {
            "type": "object",
            "properties": {name: json_schema(schema) for name, schema in self.action.params.items()},
            "required": list(self.action.required),
            "additionalProperties": False,
            **self.action.constraints,
            **({"$defs": self.spec.definitions} if self.spec.definitions else {}),
        }

    @cached_property
    def plain_names(self) -> dict[str, str]:
        """The params that tools of agents have under another name, by that name."""
        return {plain: name for name in self.action.params if (plain := plain_name(name)) != name}

    @cached_property
    def validator(self) -> jsonschema_rs.Draft202012Validator:
        """Checks params; a pattern that a kind has had since before the linter refused it is not checked."""
        return validator_of(without_unusable(self.schema))

    @cached_property
    def patterned_params(self) -> Mapping[str, dict[str, Any]]:
        """The params whose schemas may have patterns."""
        params = self.action.params.items()
        shared = has_pattern(self.spec.definitions)
        return {name: schema for name, schema in params if has_pattern(schema) or (shared and "$ref" in str(schema))}

    @cached_property
    def patterns_elsewhere(self) -> int:
        """The weight of the patterns of params that stand where it is not followed which texts they match."""
        definitions = self.spec.definitions
        schemas = [*self.action.params.values(), *definitions.values(), {"not": self.action.constraints}]
        return sum(weight_elsewhere(schema, definitions) for schema in schemas)

    @cached_property
    def breadth(self) -> int:
        """How much of its schema one value is checked with at most."""
        return breadth_of(self.schema, self.spec.definitions)

    @cached_property
    def output_validator(self) -> jsonschema_rs.Draft202012Validator:
        """Checks the structured content of a tool's results; nothing is fetched for it."""
        definitions = {"$defs": self.spec.definitions} if self.spec.definitions else {}
        schema = {**(self.action.output_schema or {}), **definitions}
        return jsonschema_rs.Draft202012Validator(schema, validate_formats=False, offline=True)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        return {name: schema["default"] for name, schema in self.action.params.items() if "default" in schema}

    @cached_property
    def default_times(self) -> dict[str, DefaultTime]:
        """The defaults that depend on the time of the call."""
        schemas = self.action.params.items()
        return {name: DefaultTime(**schema["default_time"]) for name, schema in schemas if "default_time" in schema}

    @cached_property
    def always_sent(self) -> frozenset[str]:
        """The params that every call has: required ones, and those with defaults."""
        return frozenset({*self.action.required, *self.defaults, *self.default_times})

    @cached_property
    def member_defaults(self) -> dict[str, dict[str, Any]]:
        """The defaults within params that are objects: they complete an object that was given."""
        defaults = {
            name: {
                member: inner["default"] for member, inner in schema.get("properties", {}).items() if "default" in inner
            }
            for name, schema in self.action.params.items()
        }
        return {name: members for name, members in defaults.items() if members}

    @property
    def example(self) -> dict[str, Any]:
        """A call of it, as an execute body."""
        return {"entity": self.entity_id, "action": self.action_id, "params": self.action.example}

    @property
    def fields(self) -> dict[str, str | dict[str, Any]]:
        """The fields of its records as far as they are declared; none if accounts add fields."""
        return {} if self.entity.additional_fields else self.action.fields or self.entity.fields

    @cached_property
    def paging(self) -> Paging | None:
        return self.spec.paging[self.action.paging].beside(self.action.records or ()) if self.action.paging else None

    @cached_property
    def order(self) -> Order:
        """The order of its list: what may happen to its pages while they are read."""
        if self.paging is None:
            return "stable"
        return self.action.order or self.paging.order or "unknown"

    @cached_property
    def is_list(self) -> bool:
        return self.action.records is not None

    @cached_property
    def file_param(self) -> str | None:
        """The one param that is a file: a text in base64, or an object with `content` in base64."""
        found = []
        for name, schema in self.action.params.items():
            whole = self.resolved(schema)
            content = self.resolved(whole.get("properties", {}).get("content", {}))
            if "contentEncoding" in whole or "contentEncoding" in content:
                found.append(name)
        return found[0] if len(found) == 1 else None

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """A schema with the definition that it refers to."""
        return resolved(schema, self.spec)

    @cached_property
    def is_download(self) -> bool:
        return self.action.download is not None

    @cached_property
    def sunset_headers(self) -> Mapping[str | None, Mapping[str, str]]:
        """By authentication method, what an answer says of the end of what the call relied on."""
        methods = (None, *self.spec.authentication)
        return {method: sunset_headers(call_sunsets(self.spec, method, self.path, str(self))) for method in methods}

    def changed(self, **members: Unpack[ActionChange]) -> "Operation":
        """This operation with other members of its action."""
        return self._sibling(changed(self.action, **members))

    def _sibling(self, action: Action) -> "Operation":
        return Operation(self.spec, self.entity_id, self.action_id, action)

    @cached_property
    def start(self) -> "Operation":
        """The request that starts a long operation: the whole response is its record."""
        return self._sibling(start_of(self.action))

    def follow_up(self, request: FollowUp) -> "Operation":
        """A further request of a long operation: one of `long_running.follow_ups`."""
        return self._follow_ups[id(request)]

    @cached_property
    def _follow_ups(self) -> dict[int, "Operation"]:
        """By the identity of the request, because models have no hash; it lives as long as the action."""
        how = self.action.long_running
        requests = () if how is None else how.follow_ups.values()
        return {id(each): self._sibling(follow_up_of(self.action, self.spec, each)) for each in requests}

    @cached_property
    def upload_start(self) -> "Operation":
        """The request that opens the upload session: the whole response is its record."""
        how, file = self.action.upload_session, self.file_param
        assert how is not None
        assert file is not None
        return self._sibling(upload_start_of(self.action, self.spec, file, how))

    @cached_property
    def bulk(self) -> "Operation | None":
        """The request that replaces many calls of this operation; its param `ITEMS` is the list of their items."""
        action = bulk_of(self.action)
        return None if action is None else self._sibling(action)

    @cached_property
    def file_description(self) -> "Operation | None":
        """The operation that reads the record of a download's file; None if the application has none."""
        action = file_description_of(self.action)
        return None if action is None else self._sibling(action)

    @cached_property
    def alternatives(self) -> tuple[tuple[str, "Operation"], ...]:
        """The operations that replace this one, each with the param whose absence chooses it."""
        return tuple((how.without, self._sibling(alternative_of(self.action, how))) for how in self.action.alternatives)

    def instead(self, params: Mapping[str, Any]) -> "Operation":
        """This operation, or the one that replaces it when a param is left out."""
        return next((operation for without, operation in self.alternatives if without not in params), self)


@dataclass(frozen=True)
class Kind:
    """One kind of application: its spec and its operations."""

    spec: ConnectorSpec

    @property
    def name(self) -> str:
        return self.spec.kind

    @cached_property
    def operations(self) -> dict[tuple[str, str], Operation]:
        return {
            (entity_id, action_id): operation
            for entity_id in self.spec.entities
            for action_id, operation in self.operations_of(entity_id).items()
        }

    def operations_of(self, entity_id: str) -> dict[str, Operation]:
        """By action id; made once for each entity, because a call needs no other."""
        made = self._by_entity.get(entity_id)
        if made is None:
            actions = self.entity(entity_id).actions
            made = {action_id: Operation(self.spec, entity_id, action_id, actions[action_id]) for action_id in actions}
            made = self._by_entity.setdefault(entity_id, made)
        return made

    @cached_property
    def _by_entity(self) -> dict[str, dict[str, Operation]]:
        return {}

    @cached_property
    def made(self) -> dict[Hashable, Any]:
        """What was made of its operations and is kept as long as the kind; see `kept_with_kind`."""
        return {}

    def actions_of(self, entity_id: str) -> list[str]:
        """The action ids of an entity, `context_store_search` among them if it is offered."""
        entity = self.entity(entity_id)
        return [*entity.actions, *([SEARCH_ACTION] if entity.search else [])]

    def entity(self, entity_id: str) -> Entity:
        entity = self.spec.entities.get(entity_id)
        if entity is None:
            hint = did_you_mean(entity_id, self.spec.entities)
            raise UnknownEntity(f"{self.name} has no entity {entity_id!r}; {hint}")
        return entity

    def operation(self, entity_id: str, action_id: str) -> Operation:
        """The operation; `search` is understood as `api_search`."""
        is_search = action_id in ("search", "api_search")
        operations = self.operations_of(entity_id)
        operation = operations.get("api_search" if is_search else action_id)
        if operation is None:
            actions = self.actions_of(entity_id)
            # Where the application has no search, the copy may have one.
            hint = known_actions(SEARCH_ACTION if is_search else action_id, actions)
            shown = next(iter(operations.values()), None)
            raise UnknownAction(
                f"{self.name} {entity_id} has no action {action_id!r}; {hint}",
                extra={"example": shown.example} if shown else None,
            )
        return operation

    @property
    def health_check(self) -> Operation | None:
        """The operation that shows whether credentials work, if the application has one."""
        if self.spec.health_check is None:
            return None
        entity_id, action_id = self.spec.health_check.split(".")
        return self.operation(entity_id, action_id)


class Catalog:
    """All kinds, by name; those that are not served because their specs have errors, with these."""

    def __init__(
        self,
        kinds: Iterable[Kind],
        refused: Mapping[str, SpecError] | None = None,
        missing: Sequence[SpecError] = (),
    ) -> None:
        self.refused: Mapping[str, SpecError] = refused or {}
        #: the errors of folders that could not be read
        self.missing = missing
        #: the kinds of folders, in whose place no imported kind is served
        self._of_folders: Mapping[str, Kind] = {kind.name: kind for kind in kinds}
        #: counts the changes of the kinds; what is computed from them is computed again
        self.version = 0
        self.serve_imported(())

    def serve_imported(self, imported: Iterable[Kind]) -> None:
        """Serve these kinds beside those of folders, in place of the imported kinds before."""
        self.kinds: dict[str, Kind] = {**{kind.name: kind for kind in imported}, **self._of_folders}
        #: names that are understood: of applications, if one kind alone has them, and of kinds. Those of folders go
        #: first, because credentials that are meant for their applications must not reach an imported kind
        self._by_name = {canonical(name): kind for name, kind in self._applications()}
        self._by_name |= {canonical(name): kind for name, kind in self.kinds.items()}
        self._by_name |= {canonical(name): kind for name, kind in self._applications() if self.is_of_folder(kind.name)}
        self._by_name |= {canonical(name): kind for name, kind in self._of_folders.items()}
        self.version += 1

    def is_of_folder(self, name: str) -> bool:
        """Whether a kind is shipped or stands in a folder of GATEWAY_SPECS, even with errors."""
        return name in self._of_folders or name in self.refused

    def is_application(self, name: str) -> bool:
        """Whether a kind of a folder is understood by the name, which is its application's."""
        kind = self._by_name.get(canonical(name))
        return kind is not None and self.is_of_folder(kind.name)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self.kinds.values())

    def kind(self, name: str) -> Kind:
        """The kind by its name or its application's, in any mix of case, space, `-` and `_`: `Support-Desk`, `zendesk`.

        Raises UnknownConnectorType.
        """
        kind = self._by_name.get(canonical(name))
        if kind is None and canonical(name) in self.refused:
            count = self.refused[canonical(name)].count
            raise UnknownConnectorType(
                f"the connector type {name!r} is not served: its spec has {count}; see `gateway specs lint`"
            )
        if kind is None:
            names = (*(kind.spec.display_name for kind in self), *dict(self._applications()))
            hint = did_you_mean(name, {canonical(each): each for each in names}.values())
            raise UnknownConnectorType(f"there is no connector type {name!r}; {hint}")
        return kind

    def served(self, name: str) -> Kind:
        """The kind of a stored record, by its exact name; raises ConnectorNotReady if it is not served.

        Another kind whose application has that name must not receive the record's credentials.
        """
        kind = self.kinds.get(name)
        if kind is None:
            reason = self.unserved_reason(name)
            raise ConnectorNotReady(
                f"the connector is unserved: {reason}", extra={"connector_status": "unserved", "next_step": reason}
            )
        return kind

    def unserved_reason(self, name: str) -> str | None:
        """Why a kind is not served and who can mend it, without the operator's paths; None for a kind that is."""
        if name in self.kinds:
            return None
        if name in self.refused:
            count = self.refused[name].count
            return f"the kind {name} is not served: its spec has {count}, which the operator sees in `gateway doctor`"
        found = "a folder of GATEWAY_SPECS cannot be read" if self.missing else "no folder of GATEWAY_SPECS has it"
        return f"the kind {name} is not served: {found}, which the operator can correct"

    def application_of(self, name: str) -> str:
        """The application's name of a kind by its exact name; that name for a kind that is not served."""
        kind = self.kinds.get(name)
        return name if kind is None else kind.spec.application

    def _applications(self) -> Iterator[tuple[str, Kind]]:
        """The names of applications that mean one kind; an imported kind does not share the name of a folder's."""
        own = Counter(canonical(kind.spec.application) for kind in self._of_folders.values())
        every = Counter(canonical(kind.spec.application) for kind in self)
        for kind in self:
            name = canonical(kind.spec.application)
            counts = own if name in own else every
            if counts[name] == 1 and (name not in own or self.is_of_folder(kind.name)):
                yield kind.spec.application, kind
