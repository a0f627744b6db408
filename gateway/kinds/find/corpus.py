"""The index data of each operation: its phrases, words and verbs, and the ids that it takes."""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain
from math import log
from typing import Any, TypeVar

from gateway.contract.kinds import Effect
from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.find.applications import Applications
from gateway.kinds.find.entries import OperationEntry, entries_of
from gateway.kinds.find.fitness import WRITES
from gateway.kinds.find.phrases import Owner, Phrases, groups_of
from gateway.kinds.find.references import EntityKey, entities_taken, nouns_of
from gateway.kinds.find.verbs import COMMANDS, plain_action
from gateway.kinds.find.words import EMPTY, stem, stems, words

_PATH_PARAM = re.compile(r"{\w+}|[/.?=&]|\bjson\b")
_WRITTEN = re.compile(r"[^\W_]+")
_Key = TypeVar("_Key", bound=Hashable)
_Item = TypeVar("_Item")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedOperation:
    """The index data of one operation."""

    entry: OperationEntry
    owner: Owner
    #: the standard action that its action is like: `create` for `create_many`
    action: str
    #: the first two items of its owner
    entity: EntityKey
    #: the stems of its description, params and fields
    text: frozenset[str]
    #: the stems of the verbs that begin its phrases
    verbs: frozenset[str]
    #: the entities whose ids it takes, with a certainty from 0 to 1
    taken: Mapping[str, float]


class Corpus:
    """The index data of all operations of a catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.applications = Applications(catalog)
        entries = tuple(entries_of(catalog))
        self.operations = tuple(
            IndexedOperation(
                entry=entry,
                owner=owner_of(entry),
                action=plain_action(entry.action_id, is_read=entry.effect is Effect.READ),
                entity=(entry.kind.name, entry.entity_id),
                text=_text_of(entry),
                verbs=self._verbs_of(entry),
                taken=entities_taken(entry),
            )
            for entry in entries
        )
        self.operations_of = _grouped((operation.entity, operation) for operation in self.operations)
        self.phrases = Phrases(self._phrases(catalog, entries))
        self.nouns = nouns_of(catalog)
        self._terms = _united(self.phrases)
        #: for each entity, the stems of the names of other entities that are listed with its id
        self.listed_below = _united(self._listed_below())
        #: for each stem, the operations whose text has it
        self.texts_with = _grouped((term, each.owner) for each in self.operations for term in each.text)
        #: the words of kinds: "help desk"
        self.kind_phrases = [(owner[0], terms) for owner, terms in self.phrases if len(owner) == 1]
        self.shares = self._shares_of_kinds()
        self.names, self.vocabularies = self._names_of_entities(), self._vocabularies()
        #: for the kind and the noun of an entity, the verbs of phrases of operations that change something
        self.verbs_of = _united(
            (noun_of(operation.owner), operation.verbs) for operation in self.operations if operation.action in WRITES
        )
        self.vocabulary = frozenset(self._vocabulary())

    def terms_of(self, owner: Owner) -> Set[str]:
        """The stems of an owner's phrases."""
        return self._terms.get(owner, frozenset())

    def _phrases(self, catalog: Catalog, entries: tuple[OperationEntry, ...]) -> Iterator[tuple[Owner, str]]:
        """All phrases, without names of applications, because these only select kinds."""
        for kind in catalog:
            for text in (kind.spec.title, kind.name, *kind.spec.synonyms):
                yield (kind.name,), self._bare(text)
            for entity_id, entity in kind.spec.entities.items():
                for text in (entity_id.replace("_", " "), *entity.synonyms):
                    yield (kind.name, entity_id), self._bare(text)
        for entry in entries:
            for text in (entry.title, *_phrases_of(entry)):
                yield owner_of(entry), self._bare(text)

    def _bare(self, text: str) -> str:
        return self.applications.separated(text)[0]

    def _verbs_of(self, entry: OperationEntry) -> frozenset[str]:
        first = [words(self._bare(phrase))[:1] for phrase in (*_phrases_of(entry), entry.description)]
        return frozenset(stem(word) for each in first for word in each if word not in EMPTY)

    def _listed_below(self) -> Iterator[tuple[EntityKey, Set[str]]]:
        for operation in self.operations:
            kind, entity_id = operation.entity
            for parent in operation.taken.keys() - {entity_id} if operation.action == "list" else ():
                yield (kind, parent), set(stems(entity_id.replace("_", " "))) - set(stems(parent))

    def _shares_of_kinds(self) -> dict[str, dict[str, float]]:
        """For each stem, the share of each kind in its uses in phrases, times the rarity of the stem among kinds."""
        uses: dict[str, Counter[str]] = defaultdict(Counter)
        for owner, terms in self.phrases:
            for term in terms:
                uses[term][owner[0]] += 1
        kinds = len(self.catalog.kinds)
        return {
            term: {kind: count / used.total() * log(kinds / len(used)) for kind, count in used.items()}
            for term, used in uses.items()
        }

    def _names_of_entities(self) -> dict[EntityKey, set[str]]:
        """For each entity, the stems and word groups in the phrases of it, its operations and its kind."""
        terms_of_entities = _united(
            ((owner[0], owner[1]), terms | self.terms_of(owner[:1]))
            for owner, terms in self._terms.items()
            if len(owner) > 1
        )
        return {key: terms | groups_of(terms) for key, terms in terms_of_entities.items()}

    def _vocabularies(self) -> dict[EntityKey, set[str]]:
        """For each entity, the stems and word groups in the phrases and texts of it, its operations and its kind."""
        of_phrases = (((owner[0], owner[1]), terms) for owner, terms in self.phrases if len(owner) > 1)
        of_texts = ((operation.entity, operation.text) for operation in self.operations)
        return {
            key: terms | groups_of(terms) | self.terms_of(key[:1])
            for key, terms in _united(chain(of_phrases, of_texts)).items()
        }

    def _vocabulary(self) -> Iterator[str]:
        """The words to which misspelt words are corrected."""
        yield from EMPTY
        yield from COMMANDS
        texts = [text for kind in self.catalog for text in _texts_of_kind(kind)]
        for operation in self.operations:
            texts += [operation.entry.description, *_phrases_of(operation.entry), *_names(operation.entry.schema)]
        # Each word once, because `words` is slow.
        for word in {word for text in texts for word in _WRITTEN.findall(text)}:
            yield from words(word)


def _grouped(pairs: Iterable[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """The items of each key; a missing key stays missing, because threads read the result while others iterate it."""
    groups: dict[_Key, list[_Item]] = defaultdict(list)
    for key, item in pairs:
        groups[key].append(item)
    return dict(groups)


def _united(pairs: Iterable[tuple[_Key, Set[str]]]) -> dict[_Key, set[str]]:
    """The union of each key's sets."""
    return {key: set().union(*sets) for key, sets in _grouped(pairs).items()}


def owner_of(entry: OperationEntry) -> Owner:
    return entry.kind.name, entry.entity_id, entry.action_id


def noun_of(owner: Owner) -> tuple[str, ...]:
    """The kind and the noun of an operation's entity; the noun of `project_sections` and `sections` is the same."""
    kind, entity_id, _ = owner
    return kind, *stems(entity_id.replace("_", " "))[-1:]


def _phrases_of(entry: OperationEntry) -> tuple[str, ...]:
    return entry.action.phrases if entry.action else ()


def _texts_of_kind(kind: Kind) -> Iterator[str]:
    spec = kind.spec
    yield from (spec.kind, spec.application, spec.title, *spec.synonyms)
    for entity_id, entity in spec.entities.items():
        yield from (entity_id, entity.description, *entity.synonyms)


def _text_of(entry: OperationEntry) -> frozenset[str]:
    names = (*entry.schema.get("properties", ()), *entry.fields)
    # users of an API may search for its paths: "chat.postMessage"
    path = "" if entry.action is None else _PATH_PARAM.sub(" ", entry.action.request.split(" ", 1)[1])
    texts = (entry.description, entry.entity.description, path, *names)
    return frozenset(stems(_CAMEL.sub(" ", " ".join(texts)).replace("_", " ").replace(".", " ")))


def _names(schema: Mapping[str, Any]) -> Iterator[str]:
    """The names of params and of their members, and the values of enums."""
    for name, member in schema.get("properties", {}).items():
        yield name
        yield from (value for value in member.get("enum", ()) if isinstance(value, str))
        yield from _names(member)
