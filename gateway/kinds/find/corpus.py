"""The index data of each operation: its words, texts and verbs, and the ids that it takes."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from gateway.contract.kinds import Effect
from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.find.applications import Applications
from gateway.kinds.find.bm25 import Bm25
from gateway.kinds.find.entries import OperationEntry, entries_of
from gateway.kinds.find.references import EntityKey, entities_taken, nouns_of
from gateway.kinds.find.verbs import WRITES, plain_action
from gateway.kinds.find.words import stems

_PATH_PARAM = re.compile(r"{\w+}|[/.?=&]|\bjson\b")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedOperation:
    """The index data of one operation."""

    entry: OperationEntry
    entity: EntityKey
    #: the standard action that its action is like: `create` for `create_many`
    action: str
    #: the stems of the verbs that begin its phrases
    verbs: frozenset[str]
    #: the stems of its phrases and of the names of its entity
    terms: frozenset[str]
    #: the entities of its kind whose ids it takes
    taken: frozenset[str]
    #: its title, phrases and description, whose closest is compared with a question
    texts: tuple[str, ...]

    @property
    def noun(self) -> tuple[str, ...]:
        """The kind and the noun of the entity; the noun of `project_sections` and `sections` is the same."""
        kind, entity_id = self.entity
        return kind, *stems(entity_id.replace("_", " "))[-1:]


class Corpus:
    """The index data of all operations of a catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.applications = Applications(catalog)
        #: the stems of a phrase; the names of an entity are read once, not for each of its operations
        self._stems = cache(self._stems_of)
        self.operations = tuple(self._indexed(entry) for entry in entries_of(catalog))
        self.nouns = nouns_of(catalog)
        documents = [self._document(operation) for operation in self.operations]
        self.words = Bm25(documents)
        #: the stems of all operations of each entity
        self.of_entities: dict[EntityKey, Counter[str]] = {}
        for operation, document in zip(self.operations, documents, strict=True):
            self.of_entities.setdefault(operation.entity, Counter()).update(document)
        places = {entity: place for place, entity in enumerate(self.of_entities)}
        #: for each operation, the place of its entity
        self.entity_of = [places[operation.entity] for operation in self.operations]
        #: the stems of each entity's name
        self.names = [frozenset(stems(entity_id.replace("_", " "))) for _, entity_id in self.of_entities]
        #: for the kind and the noun of an entity, the verbs of phrases of operations that change something
        self.verbs_of: dict[tuple[str, ...], set[str]] = {}
        for operation in self.operations:
            if operation.action in WRITES:
                self.verbs_of.setdefault(operation.noun, set()).update(operation.verbs)
        #: the words of kinds: "help desk"
        self.kind_phrases = [(kind.name, terms) for kind in catalog for terms in self._phrases_of_kind(kind)]

    def _indexed(self, entry: OperationEntry) -> IndexedOperation:
        phrases = _phrases_of(entry)
        first = [self._stems(text)[:1] for text in (*phrases, entry.description)]
        named = f"{entry.kind.spec.application} {entry.entity_id} {entry.action_id}. {entry.description}"
        return IndexedOperation(
            entry=entry,
            entity=(entry.kind.name, entry.entity_id),
            action=plain_action(entry.action_id, is_read=entry.effect is Effect.READ),
            verbs=frozenset(term for terms in first for term in terms),
            terms=frozenset(self._named_in(entry)),
            taken=entities_taken(entry),
            texts=(entry.title, *phrases, named.replace("_", " ")),
        )

    def _document(self, operation: IndexedOperation) -> Counter[str]:
        entry = operation.entry
        return Counter(self._named_in(entry)) + Counter(_terms_of_schema(entry))

    def _named_in(self, entry: OperationEntry) -> list[str]:
        """The stems of the operation's phrases and of the names of its entity."""
        names = (entry.entity_id.replace("_", " "), *entry.entity.synonyms, entry.title, *_phrases_of(entry))
        return [term for name in names for term in self._stems(name)]

    def _phrases_of_kind(self, kind: Kind) -> Iterator[frozenset[str]]:
        for text in (kind.spec.title, kind.name, *kind.spec.synonyms):
            if terms := frozenset(self._stems(text)):
                yield terms

    def _stems_of(self, phrase: str) -> tuple[str, ...]:
        """The stems without those of names of applications, because these only select kinds."""
        return stems(self.applications.separated(phrase)[0])


def _phrases_of(entry: OperationEntry) -> tuple[str, ...]:
    """The phrases of an operation; a search of the copy, which has none, finds the records of a list."""
    actions = entry.entity.actions
    action = entry.action or actions.get("list") or actions.get("api_search")
    return action.phrases if action else ()


def _terms_of_schema(entry: OperationEntry) -> frozenset[str]:
    """The stems of the description, the path, the params and the fields of an operation."""
    names = (*entry.schema.get("properties", ()), *entry.fields)
    # users of an API may search for its paths: "chat.postMessage"
    path = "" if entry.action is None else _PATH_PARAM.sub(" ", entry.action.request.split(" ", 1)[1])
    texts = (entry.description, entry.entity.description, path, *names)
    return frozenset(stems(_CAMEL.sub(" ", " ".join(texts)).replace("_", " ").replace(".", " ")))
